import math
from dataclasses import fields, replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covary.errors import CovaryError, IncompatibleSketches, SketchError
from covary.sketching.hashing import SCHEMES, sort_by_order
from covary.sketching.sketch_types import ColumnPair, Counts, Sketch, SketchConfig
from covary.statistics.join import join
from covary.statistics.key_sets import KeySets, SetEstimate, compare_key_sets, distinct_keys

HASHES = sorted(SCHEMES)
STATISTICS = [field.name for field in fields(KeySets)]
key_numbers = st.sets(st.integers(0, 30), max_size=25)


def sketch_of(numbers, size=1024, hash_name="xxhash64", rows_per_key=1):
    keys = pl.Series([f"k{number}" for number in numbers], dtype=pl.String)
    hashes = SCHEMES[hash_name].identify([keys])[0].hashes
    return sketch_of_hashes(hashes, size, hash_name, rows_per_key * hashes.size)


def sketch_of_hashes(hashes, size, hash_name="murmur3", rows=10**6):
    config = SketchConfig(size, hash=hash_name)
    held = hashes[sort_by_order(hashes, config.scheme.order(hashes))][:size]
    counts = Counts(rows, 0, 0, 0, 0.0, 0.0)
    complete = hashes.size <= size
    return Sketch(ColumnPair("t", "k", "v"), "mean", config, held, np.zeros(held.size), counts, complete)


def shared_keys(left, right):
    return np.intersect1d(left.key_hashes, right.key_hashes)


def exact_values(found):
    return {name: getattr(found, name).value for name in STATISTICS if getattr(found, name).exact}


@pytest.mark.parametrize("hash_name", HASHES)
def test_complete_sketches_count_everything(hash_name):
    left, right = (sketch_of(numbers, hash_name=hash_name) for numbers in (range(100), range(60, 260)))
    found = compare_key_sets(left, right)
    assert exact_values(found) == {
        "left_distinct": 100,
        "right_distinct": 200,
        "union": 260,
        "intersection": 40,
        "jaccard": 40 / 260,
        "left_containment": 0.4,
        "right_containment": 0.2,
    }
    assert found.join_size == found.intersection


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_few_keys_are_counted(size):
    assert distinct_keys(sketch_of(range(size), 3)) == SetEstimate(size, 0.0)
    assert distinct_keys(sketch_of(range(size), 3), "basic") == SetEstimate(size, 0.0)


def test_an_empty_column_has_and_shares_nothing():
    empty = sketch_of([])
    assert set(exact_values(compare_key_sets(empty, empty)).values()) == {0.0}
    assert len(exact_values(compare_key_sets(empty, empty))) == len(STATISTICS)
    found = compare_key_sets(empty, sketch_of(range(100), 16))
    shared = (found.intersection, found.jaccard, found.left_containment, found.right_containment)
    assert set(shared) == {SetEstimate(0.0, 0.0)}
    assert found.left_distinct == SetEstimate(0.0, 0.0)
    assert found.union == found.right_distinct
    assert not found.union.exact


def test_a_whole_column_within_the_other_sketch_has_a_known_join():
    right = sketch_of(range(500), 64)
    below = [number for number in range(400, 600) if sketch_of([number]).reach <= right.reach]
    found = compare_key_sets(sketch_of(below), right)
    known = sum(number < 500 for number in below)
    assert found.intersection == SetEstimate(known, 0.0)
    assert found.left_containment == SetEstimate(known / len(below), 0.0)
    assert set(exact_values(found)) == {"left_distinct", "intersection", "left_containment"}


@pytest.mark.parametrize("hash_name", HASHES)
@pytest.mark.parametrize("size", [3, 4, 16])
def test_estimates_have_errors_and_distinct_counts_their_formulas(hash_name, size):
    made = sketch_of(range(300), size, hash_name, rows_per_key=40)
    last = made.units[-1]
    assert distinct_keys(made).value == pytest.approx((size - 1) / last)
    assert distinct_keys(made, "basic").value == pytest.approx(size / last)
    distinct = distinct_keys(made).value
    # The expectation of this is Beyer's variance, D(D-k+1)/(k-2).
    assert distinct_keys(made).error == pytest.approx(
        math.sqrt(distinct * (distinct - size + 1) / (size - 1))
    )
    found = compare_key_sets(made, sketch_of(range(150, 450), size, hash_name))
    assert not exact_values(found)


def test_an_unknown_estimator_is_refused():
    with pytest.raises(CovaryError, match="basic, unbiased"):
        distinct_keys(sketch_of(range(5)), "best")


def test_sketches_of_different_hashes_are_refused():
    with pytest.raises(IncompatibleSketches):
        compare_key_sets(sketch_of(range(5)), sketch_of(range(5), hash_name="murmur3"))


@pytest.mark.parametrize("estimator", ["basic", "unbiased"])
def test_a_column_has_no_more_keys_than_rows_that_have_both_key_and_number(estimator):
    made = sketch_of(range(40), 16)
    for usable in (17, 18, 25):
        counts = Counts(usable + 6, 1, 2, 3, 0.0, 0.0)
        found = distinct_keys(replace(made, counts=counts), estimator)
        assert 17 <= found.value <= usable
        assert found.error <= usable - 17
    assert distinct_keys(replace(made, counts=Counts(17, 0, 0, 0, 0.0, 0.0))) == SetEstimate(17.0, 0.0)


def test_finding_no_shared_key_leaves_an_error():
    found = compare_key_sets(sketch_of(range(500), 16), sketch_of(range(500, 1000), 16))
    for shared in (found.intersection, found.jaccard, found.left_containment, found.right_containment):
        assert shared.value == 0
        assert shared.error > 0


def test_finding_every_key_shared_leaves_an_error():
    found = compare_key_sets(sketch_of(range(500), 16), sketch_of(range(500), 16))
    for share in (found.jaccard, found.left_containment, found.right_containment):
        assert share.value == 1
        assert 0 < share.error < 0.1


@pytest.mark.parametrize("hash_name", HASHES)
@given(left=key_numbers, right=key_numbers, sizes=st.tuples(st.integers(3, 8), st.integers(3, 8)))
def test_figures_are_possible_agree_and_are_right_where_exact(hash_name, left, right, sizes):
    mine, theirs = (
        sketch_of(numbers, size, hash_name) for numbers, size in zip((left, right), sizes, strict=True)
    )
    found = compare_key_sets(mine, theirs)
    assert_possible(found, mine, theirs)
    swapped = compare_key_sets(theirs, mine).swapped()
    for name in ("union", "intersection", "jaccard"):
        assert getattr(found, name) == getattr(swapped, name)
    if mine.threshold != theirs.threshold:
        assert found == swapped
    true = true_figures(left, right)
    assert {name: true[name] for name in exact_values(found)} == pytest.approx(exact_values(found))


def true_figures(left, right):
    both, either = len(left & right), len(left | right)
    figures = (len(left), len(right), either, both)
    shares = (both / max(whole, 1) for whole in (either, len(left), len(right)))
    return dict(zip(STATISTICS, (*figures, *shares), strict=True))


def assert_possible(found, left, right):
    values = [getattr(found, name).value for name in STATISTICS]
    errors = [getattr(found, name).error for name in STATISTICS]
    assert np.isfinite(values).all()
    assert np.isfinite(errors).all()
    assert min(errors) >= 0
    left_keys, right_keys, union, both, *shares = values
    for made, keys in ((left, left_keys), (right, right_keys)):
        assert made.size + (not made.complete) <= keys <= made.counts.rows
    assert shared_keys(left, right).size <= both <= min(left_keys, right_keys)
    assert max(left_keys, right_keys) <= union + 1e-9
    assert union == pytest.approx(left_keys + right_keys - both)
    assert shares == pytest.approx([both / max(1, each) for each in (union, left_keys, right_keys)])
    assert 0 <= min(shares) <= max(shares) <= 1
    assert max(errors[-3:]) <= 0.5


def test_a_join_seen_in_part_is_taken_to_have_a_key_unseen():
    # Nearly all keys are below the cut, so that the estimate is hardly above the keys found.
    for start in range(5, 20):
        left, right = sketch_of(range(20), 18), sketch_of(range(start, start + 20), 18)
        found, shared = compare_key_sets(left, right), shared_keys(left, right).size
        assert found.intersection.exact or not shared or found.intersection.value >= shared + 1


def test_shared_keys_may_be_handed_over():
    left, right = sketch_of(range(100), 32), sketch_of(range(50, 150), 32)
    shared = shared_keys(left, right)
    assert compare_key_sets(left, right, shared) == compare_key_sets(left, right)


@pytest.fixture(scope="module")
def murmur_hashes():
    """Identities so large that many share their h_u, in h_u order."""
    hashes = np.arange(2**31 - 2**23, 2**31, dtype=np.int64).astype(np.int32)
    orders = SCHEMES["murmur3"].order(hashes)
    smallest = np.flatnonzero(orders < 1e-4)
    return hashes[smallest][sort_by_order(hashes[smallest], orders[smallest])]


def test_a_key_tied_with_the_cut_is_in_doubt(murmur_hashes):
    orders = SCHEMES["murmur3"].order(murmur_hashes)
    last = int(np.flatnonzero(np.diff(orders) == 0)[5])  # the sketch ends between two keys of equal h_u
    cut = sketch_of_hashes(murmur_hashes, last + 1)
    unseen = compare_key_sets(sketch_of_hashes(murmur_hashes[[0, 1, last + 1]], 8), cut)
    assert not unseen.intersection.exact
    assert unseen.intersection.value <= 3


def test_a_sketch_cut_at_zero_tells_what_it_can(murmur_hashes):
    nothing = sketch_of_hashes(murmur_hashes, 3)
    assert nothing.threshold == 0
    assert distinct_keys(nothing) == SetEstimate(10**6, 10**6 - 4)
    for other in (nothing, sketch_of_hashes(murmur_hashes, 9), sketch_of_hashes(murmur_hashes[2:6], 9)):
        assert_possible(compare_key_sets(nothing, other), nothing, other)


def test_finding_no_shared_key_does_not_say_that_there_is_none():
    found = compare_key_sets(sketch_of(range(2000), 100), sketch_of(range(2000, 4000), 100))
    assert found.left_containment.value == 0
    # Half a key among a hundred would be missed three times in five.
    assert found.left_containment.error > 0.5 / 100
    assert found.intersection.error > 0.5 / 100 * 1500


def test_a_table_in_place_of_its_sketch_is_refused_with_the_remedy():
    for call in (
        distinct_keys,
        lambda table: compare_key_sets(table, table),
        lambda table: join(table, table),
    ):
        with pytest.raises(SketchError, match=r"a sketch is needed, not a DataFrame: covary\.sketch"):
            call(pl.DataFrame({"key": [1]}))
