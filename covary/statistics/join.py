"""Two sketches to the joined sample: pairs of numbers, without a join (paper, section 3.2)."""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from covary.arrays import Floats
from covary.columns.times import GRANULARITIES
from covary.errors import IncompatibleSketches
from covary.sketching.hashing import Hashes
from covary.sketching.open_table import Frame, KeyName, open_table
from covary.sketching.sketch_table import sketch_table
from covary.sketching.sketch_types import Range, Sketch, SketchConfig
from covary.statistics.key_sets import KeySets, check_comparable, compare_key_sets, require_sketches

ENOUGH_KEYS = 10  # as a hit must share, by default
Column = tuple[Frame, KeyName, str]  # a table, a key of it and a column of numbers


@dataclass(frozen=True, slots=True, eq=False)
class JoinedSample:
    """The pairs of numbers whose key is in both sketches: a uniform sample of the join (Theorem 1).

    Attributes:
        key_hashes: the keys, in h_u order.
        x: the left column's number for each.
        y: the right column's.
        keys: how the keys of the whole columns meet, with standard errors.
        x_range: bounds of all numbers of the left column, sampled or not.
        y_range: bounds of the right column's.
    """

    key_hashes: Hashes
    x: Floats
    y: Floats
    keys: KeySets
    x_range: Range
    y_range: Range

    @property
    def size(self) -> int:
        """How many pairs the sample holds."""
        return int(self.key_hashes.size)

    @property
    def exact(self) -> bool:
        """Whether the sample is the whole join, so that nothing is estimated."""
        return self.keys.intersection.exact


def join(left: Sketch, right: Sketch) -> JoinedSample:
    """Join two sketches on their key hashes, in h_u order."""
    require_sketches(left, right)
    check_comparable(left.config, right.config)
    _check_granularities(left.pair.granularity, right.pair.granularity)
    shared, in_left, in_right = np.intersect1d(
        left.key_hashes, right.key_hashes, assume_unique=True, return_indices=True
    )
    order = np.argsort(in_left)
    return JoinedSample(
        shared[order],
        left.values[in_left[order]],
        right.values[in_right[order]],
        compare_key_sets(left, right, shared),
        left.value_range,
        right.value_range,
    )


def _check_granularities(left: str, right: str) -> None:
    """Refuse to join hours with days, which share no key: that would look like tables that don't meet."""
    if left and right and left != right:
        coarser = max(left, right, key=GRANULARITIES.index)
        raise IncompatibleSketches(
            f"these sketches can't be joined: times of one are by {left}, of the other by {right}; "
            f'make both with by="{coarser}" (--by {coarser})'
        )


def sketch_both(
    left: Column, right: Column, config: SketchConfig, by: str | None = None
) -> tuple[Sketch, Sketch]:
    """Sketch two columns so that they join: their times at the finest granularity that both have.

    The columns of a key may be named in any order; that in which the most keys meet is taken.
    """
    mine, others = (
        sketch_table(open_table(frame, key, value), value, config, any_order=any_order).at(by)
        for (frame, key, value), any_order in ((left, False), (right, True))
    )
    pairs = [(one.sketch, other.sketch) for one in mine for other in others]
    alike = [pair for pair in pairs if pair[0].pair.granularity == pair[1].pair.granularity]
    finest_first = groupby(alike, key=lambda pair: pair[0].pair.granularity)
    best = [max(same, key=_shared) for _, same in finest_first]
    enough = (pair for pair in best if _shared(pair) >= ENOUGH_KEYS)
    return next(enough, max(best, key=_shared) if best else pairs[0])


def _shared(pair: tuple[Sketch, Sketch]) -> int:
    return np.intersect1d(pair[0].key_hashes, pair[1].key_hashes, assume_unique=True).size
