"""Set statistics have the bias and the root mean square error that theory and their standard errors say."""

from dataclasses import fields
from typing import NamedTuple

import numpy as np
import pytest

from covary.sketching.hashing import SCHEMES, sort_by_order
from covary.sketching.sketch_types import ColumnPair, Counts, Sketch, SketchConfig
from covary.statistics.key_sets import KeySets, compare_key_sets, distinct_keys

pytestmark = pytest.mark.statistical
TRIALS = 500
HASHES = sorted(SCHEMES)
STATISTICS = [field.name for field in fields(KeySets)]
OF_SHARED_KEYS = {"intersection", "jaccard", "left_containment", "right_containment"}


class Meeting(NamedTuple):
    """Keys of the left column alone, of both and of the right alone, and the sizes of the sketches."""

    left_only: int
    both: int
    right_only: int
    left_size: int = 256
    right_size: int = 256

    @property
    def nested(self):
        return not (self.left_only and self.both and self.right_only)

    @property
    def figures(self):
        left, right = self.left_only + self.both, self.right_only + self.both
        union = left + self.right_only
        shares = (self.both / whole for whole in (union, left, right))
        return dict(zip(STATISTICS, (left, right, union, self.both, *shares), strict=True))


MEETINGS = {
    "both cut": Meeting(600, 400, 1600),
    "left complete": Meeting(130, 100, 900),
    "right complete": Meeting(900, 100, 130),
    "left within right": Meeting(0, 600, 1000),
    "left complete and within right": Meeting(0, 200, 900),
    "right within left": Meeting(1000, 600, 0),
    "disjoint": Meeting(800, 0, 1200),
    "equal": Meeting(0, 1000, 0),
    "right sketch smaller": Meeting(700, 400, 900, 256, 128),
    "left sketch smaller": Meeting(700, 400, 900, 128, 256),
    "barely cut": Meeting(100, 200, 150),
}


def sketch_of(hashes, size, hash_name):
    config = SketchConfig(size, hash=hash_name)
    held = hashes[sort_by_order(hashes, config.scheme.order(hashes))][:size]
    counts = Counts(10**9, 0, 0, 0, 0.0, 0.0)  # rows enough that no estimate has to be brought below them
    complete = hashes.size <= size
    return Sketch(ColumnPair("t", "k", "v"), "mean", config, held, np.zeros(held.size), counts, complete)


def draw_hashes(rng, count, hash_name):
    identity_type = SCHEMES[hash_name].identity_type
    limits = np.iinfo(identity_type)
    drawn = np.unique(rng.integers(limits.min, limits.max, count + 50, identity_type, endpoint=True))
    return rng.permutation(drawn)[:count]


def draw_sketches(meeting, hash_name):
    rng = np.random.default_rng(1)
    left_only, both, right_only = meeting[:3]
    for _ in range(TRIALS):
        hashes = draw_hashes(rng, left_only + both + right_only, hash_name)
        yield (
            sketch_of(hashes[: left_only + both], meeting.left_size, hash_name),
            sketch_of(hashes[left_only:], meeting.right_size, hash_name),
        )


def assert_unbiased(values, truth):
    values = np.asarray(values)
    standard_error = values.std(ddof=1) / np.sqrt(values.size)
    assert abs(values.mean() - truth) <= 4 * standard_error + 1e-9 * truth


def error_ratio(estimates, truth):
    """The root mean square error, in units of the standard errors that were told."""
    wrong = np.array([each.value for each in estimates]) - truth
    told = np.array([each.error for each in estimates])
    return np.sqrt(np.mean(wrong**2) / np.mean(told**2))


@pytest.mark.parametrize("hash_name", HASHES)
@pytest.mark.parametrize("meeting", MEETINGS.values(), ids=MEETINGS)
def test_two_sketches_are_unbiased_with_the_errors_they_tell(meeting, hash_name):
    found = [compare_key_sets(left, right) for left, right in draw_sketches(meeting, hash_name)]
    for name, truth in meeting.figures.items():
        estimates = [getattr(each, name) for each in found]
        if all(each.exact for each in estimates):
            assert {each.value for each in estimates} == {truth}
            continue
        assert_unbiased([each.value for each in estimates], truth)
        # That no key is shared, or all of one column, a sample can't know: what it tells is too large then.
        lowest = 0.0 if meeting.nested and name in OF_SHARED_KEYS else 0.85
        # The root of a mean of 500 squares is itself 3 to 4 % off.
        assert lowest <= error_ratio(estimates, truth) <= 1.15, name


@pytest.mark.parametrize("hash_name", HASHES)
@pytest.mark.parametrize("size", [16, 256])
def test_distinct_keys_have_the_bias_and_the_variance_of_theory(size, hash_name):
    distinct, rng = 2000, np.random.default_rng(2)
    made = [sketch_of(draw_hashes(rng, distinct, hash_name), size, hash_name) for _ in range(TRIALS)]
    unbiased, basic = (
        np.array([distinct_keys(each, name).value for each in made]) for name in ("unbiased", "basic")
    )
    assert_unbiased(unbiased, distinct)
    assert_unbiased(basic, distinct * size / (size - 1))
    deviation = np.sqrt(distinct * (distinct - size + 1) / (size - 2))
    assert unbiased.std() == pytest.approx(deviation, rel=0.15)
    known_bias = distinct / (size - 1)
    of_basic = np.hypot(deviation * size / (size - 1), known_bias)
    assert np.sqrt(np.mean((basic - distinct) ** 2)) == pytest.approx(of_basic, rel=0.15)
    assert error_ratio([distinct_keys(each) for each in made], distinct) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("hash_name", HASHES)
def test_errors_of_the_intersection_are_beyers_when_both_are_cut_alike(hash_name):
    meeting = Meeting(500, 500, 500)
    found = [compare_key_sets(left, right) for left, right in draw_sketches(meeting, hash_name)]
    wrong = np.array([each.intersection.value for each in found]) - 500
    # The union below the cut has about 3 keys for 2 of a sketch.
    k, union = 384, 1500
    beyer = 500 * (k * union - k**2 - union + k + 500) / (k * (k - 2))
    assert np.sqrt(np.mean(wrong**2)) == pytest.approx(np.sqrt(beyer), rel=0.15)
