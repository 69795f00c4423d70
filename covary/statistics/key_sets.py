"""How many keys a column has, and how the keys of two columns meet, with standard errors (section 2.1).

Below the smaller threshold two sketches hold every key of their columns, so the keys there are a sample of
all keys, and a count of them divided by the threshold estimates the whole count (Beyer et al. 2007). The key
at the threshold sets it and is no part of the sample: that makes the estimates unbiased wherever the sketches
were cut (Dasgupta et al. 2016), and a key unseen because its h_u equals the threshold does no harm.
"""

from dataclasses import dataclass, replace
from math import hypot, sqrt

import numpy as np

from covary.errors import IncompatibleSketches, SketchError, chosen
from covary.sketching.hashing import Hashes
from covary.sketching.sketch_types import Sketch, SketchConfig

DISTINCT_ESTIMATORS = {"basic": 0, "unbiased": 1}  # how many is taken from k in (k - _)/U(k)
SMALLEST_RATE = 2.0**-53  # in 32-bit mode every key of a tiny sketch may have an h_u of 0
# A sample without keys of a kind does not say that there are none, yet a count of 0 would leave no error.
# Where half a key is expected, 3 samples in 5 are without one.
LEAST_COUNT = 0.5
LARGEST_SHARE_ERROR = 0.5  # no figure between 0 and 1 can have a larger standard deviation


@dataclass(frozen=True, slots=True)
class SetEstimate:
    """A number of keys, or a share of them, with its standard error: 0 when it was counted, not estimated."""

    value: float
    error: float

    @property
    def exact(self) -> bool:
        """Whether the value was counted."""
        return self.error == 0.0


@dataclass(frozen=True, slots=True)
class KeySets:
    """How the keys of two columns meet; the estimates agree with each other as the true figures do.

    Attributes:
        left_distinct: distinct keys of the left column; sharper than from its sketch alone when that was cut
            earlier than the right one.
        right_distinct: distinct keys of the right column, likewise.
        union: keys that either column holds.
        intersection: keys that both columns hold.
        jaccard: the share of the union that both hold.
        left_containment: the share of the left column's keys that the right column holds.
        right_containment: the share of the right column's keys that the left column holds.
    """

    left_distinct: SetEstimate
    right_distinct: SetEstimate
    union: SetEstimate
    intersection: SetEstimate
    jaccard: SetEstimate
    left_containment: SetEstimate
    right_containment: SetEstimate

    @property
    def join_size(self) -> SetEstimate:
        """Rows of the join: after aggregation, one for each key that both columns hold."""
        return self.intersection

    def swapped(self) -> "KeySets":
        """The same with left and right exchanged."""
        return replace(
            self,
            left_distinct=self.right_distinct,
            right_distinct=self.left_distinct,
            left_containment=self.right_containment,
            right_containment=self.left_containment,
        )


def distinct_keys(sketch: Sketch, estimator: str = "unbiased") -> SetEstimate:
    """Count or estimate the distinct keys of a column by (k-1)/U(k), or by the basic k/U(k)."""
    require_sketches(sketch)
    taken_off = chosen(estimator, DISTINCT_ESTIMATORS, "estimator of distinct keys")
    estimate = _scale_up(sketch.size - taken_off, sketch.threshold)
    return _clamp(estimate, *_possible_distinct(sketch))


def compare_key_sets(left: Sketch, right: Sketch, shared: Hashes | None = None) -> KeySets:
    """Count or estimate how the keys of two columns meet; `shared`: the keys in both sketches, if known."""
    require_sketches(left, right)
    check_comparable(left.config, right.config)
    if shared is None:
        shared = np.intersect1d(left.key_hashes, right.key_hashes, assume_unique=True)
    # Cut at the same place, which is the wide one must not depend on which is the left one.
    if _breadth(left) >= _breadth(right):
        return _compare(left, right, shared)
    return _compare(right, left, shared).swapped()


def require_sketches(*given: object) -> None:
    """Refuse what is no sketch, as a table passed in place of its sketch."""
    for each in given:
        if not isinstance(each, Sketch):
            kind = type(each).__name__
            raise SketchError(f"a sketch is needed, not a {kind}: covary.sketch(table, key=..., value=...)")


def check_comparable(left: SketchConfig, right: SketchConfig) -> None:
    """Refuse to compare sketches whose keys were hashed or written differently."""
    for name, ours, theirs, remedy in (
        ("hash", left.hash, right.hash, f"--hash {left.hash}"),
        ("key normaliser", left.normaliser, right.normaliser, "this version of covary"),
    ):
        if ours != theirs:
            raise IncompatibleSketches(
                f"these sketches can't be compared: one was made with {name} {ours!r}, the other with "
                f"{theirs!r}; make them anew with the same: covary index with {remedy}"
            )


def _compare(wide: Sketch, narrow: Sketch, shared: Hashes) -> KeySets:
    """Compare a sketch, as the left one, with another that was cut no later.

    Three estimates vary independently: the keys of the wide column, the share of them that the narrow column
    holds, and the keys that it alone holds; the rest follows. When both were cut at the same place these are
    Beyer's estimators. Else the wide sketch knows its column's keys better than the part below the cut does.
    """
    cut = narrow.threshold
    of_wide, of_narrow, of_both = (
        int(np.count_nonzero(units < cut))
        for units in (wide.units, narrow.units, wide.config.scheme.unit(shared))
    )
    # Where two keys may tie, one at the cut may have been left out on either side.
    at_the_cut = 0 if wide.config.scheme.ties else shared.size - of_both
    fewest, most = _possible_distinct(narrow)
    wide_keys = distinct_keys(wide)
    if wide.complete and of_wide + at_the_cut == wide.size:
        # Of every key of the wide column it is known whether the narrow one holds it.
        both, share_error = SetEstimate(float(shared.size), 0.0), 0.0
    else:
        share = _estimate_share(of_both, of_wide, wide_keys.value)
        both, share_error = _product(share, wide_keys), share.error
        # A join that was not seen whole, but in part, is taken to have a key unseen.
        least = shared.size + 1.0 if shared.size else 0.0
        both = SetEstimate(min(max(both.value, least), wide_keys.value, most), both.error)
    share = SetEstimate(both.value / max(wide_keys.value, 1.0), share_error)
    narrow_only = _clamp(_scale_up(of_narrow - of_both, cut), 0.0, most)
    narrow_keys = _clamp(_sum(both, narrow_only), fewest, most)
    narrow_only = SetEstimate(narrow_keys.value - both.value, narrow_only.error)
    return KeySets(
        left_distinct=wide_keys,
        right_distinct=narrow_keys,
        union=_sum(wide_keys, narrow_only),
        intersection=both,
        jaccard=_clamp_share(_product(share, _part(wide_keys, narrow_only))),
        left_containment=share,
        right_containment=_part(both, narrow_only),
    )


def _breadth(sketch: Sketch) -> tuple[float, ...]:
    return sketch.threshold, *_possible_distinct(sketch)


def _estimate_share(count: int, sampled: int, of_all: float) -> SetEstimate:
    """Estimate a share from a sample without replacement (hypergeometric)."""
    likely_counted, likely_missed = max(count, LEAST_COUNT), max(sampled - count, LEAST_COUNT)
    unseen = 1 - sampled / of_all
    sampled = max(sampled, 1)
    variance = likely_counted * likely_missed / sampled**2 / max(sampled - 1, 1) * unseen
    return _clamp_share(SetEstimate(count / sampled, sqrt(variance)))


def _scale_up(count: int, rate: float) -> SetEstimate:
    """Estimate a count from a sample taken at a rate; of k-1 keys the error is that of Beyer's estimator."""
    rate = max(rate, SMALLEST_RATE)
    return SetEstimate(count / rate, sqrt(max(count, LEAST_COUNT) * (1 - rate)) / rate)


def _possible_distinct(sketch: Sketch) -> tuple[float, float]:
    """Return the fewest and the most distinct keys that a column can have, given its sketch."""
    if sketch.complete:
        return float(sketch.size), float(sketch.size)
    fewest = sketch.size + 1
    return float(fewest), float(max(fewest, sketch.counts.kept_rows))


def _clamp(estimate: SetEstimate, low: float, high: float) -> SetEstimate:
    return SetEstimate(min(max(estimate.value, low), high), min(estimate.error, high - low))


def _clamp_share(estimate: SetEstimate) -> SetEstimate:
    return SetEstimate(min(max(estimate.value, 0.0), 1.0), min(estimate.error, LARGEST_SHARE_ERROR))


# Of independent estimates, the errors to first order.
def _sum(one: SetEstimate, other: SetEstimate) -> SetEstimate:
    return SetEstimate(one.value + other.value, hypot(one.error, other.error))


def _product(one: SetEstimate, other: SetEstimate) -> SetEstimate:
    return SetEstimate(one.value * other.value, hypot(one.value * other.error, other.value * one.error))


def _part(one: SetEstimate, other: SetEstimate) -> SetEstimate:
    """Return which part of the sum of two estimates the first is."""
    total = one.value + other.value
    if total == 0:
        return SetEstimate(0.0, 0.0)
    error = hypot(other.value * one.error, one.value * other.error) / total**2
    return _clamp_share(SetEstimate(one.value / total, error))
