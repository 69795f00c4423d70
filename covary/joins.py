"""Two sketches to the joined sample, and what they say of the join itself (paper, sections 2.1 and 3.2)."""

from dataclasses import dataclass

import numpy as np

from covary.aggregate import Floats
from covary.errors import IncompatibleSketches
from covary.hashing import Hashes
from covary.sketches import Sketch, SketchConfig


@dataclass(frozen=True, slots=True)
class JoinSize:
    """How the two key columns meet: exact when every key of one was looked up in the other, else estimated.

    Attributes:
        overlap: distinct keys that both columns hold; after aggregation the join has one row for each.
        containment: the share of the left column's keys that the right column holds.
        left_distinct: distinct keys of the left column.
        right_distinct: distinct keys of the right column.
        exact: whether the overlap is a count and not an estimate.
    """

    overlap: float
    containment: float
    left_distinct: float
    right_distinct: float
    exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class JoinedSample:
    """The pairs of numbers whose key is in both sketches: a uniform sample of the join (Theorem 1)."""

    key_hashes: Hashes
    x: Floats
    y: Floats
    join: JoinSize

    @property
    def size(self) -> int:
        """How many pairs the sample holds."""
        return int(self.key_hashes.size)


def join(left: Sketch, right: Sketch) -> JoinedSample:
    """Join two sketches on their key hashes, in h_u order."""
    check_comparable(left.config, right.config)
    shared, in_left, in_right = np.intersect1d(
        left.key_hashes, right.key_hashes, assume_unique=True, return_indices=True
    )
    order = np.argsort(in_left)
    in_left, in_right = in_left[order], in_right[order]
    return JoinedSample(
        shared[order], left.values[in_left], right.values[in_right], measure_join(left, right, shared.size)
    )


def measure_join(left: Sketch, right: Sketch, shared: int) -> JoinSize:
    """Estimate how the key columns meet, from the keys below both thresholds.

    Below the smaller threshold both sketches hold every key they saw, so the union there is itself a KMV
    synopsis and Beyer's estimators apply to it: union (k-1)/U(k), intersection shared/k of that. Of the
    valid sizes k this is the largest; the smaller of the two sketch sizes would waste most of the sample
    when one of the sketches is complete.
    """
    exact = _sees_all_of(left, right) or _sees_all_of(right, left)
    overlap = float(shared)
    if not exact and shared:
        cut = min(left.threshold, right.threshold)
        union = np.count_nonzero(left.units <= cut) + np.count_nonzero(right.units <= cut) - shared
        overlap = float(shared / union * (union - 1) / cut)
    largest = min(left.distinct_keys, right.distinct_keys)
    fewest = float(shared) if exact else shared + 1.0  # a join not seen whole has at least a key unseen
    overlap = max(fewest, min(overlap, largest)) if shared else 0.0
    containment = min(1.0, overlap / left.distinct_keys) if left.size else 0.0
    return JoinSize(overlap, containment, left.distinct_keys, right.distinct_keys, exact)


def _sees_all_of(whole: Sketch, other: Sketch) -> bool:
    """Tell whether no key of a column lies beyond where the other was cut, so that each is known to join."""
    beyond = whole.reach > other.threshold or (whole.config.scheme.ties and whole.reach == other.threshold)
    return whole.complete and not beyond


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
