"""Two sketches to the joined sample: pairs of numbers, without a join (paper, section 3.2)."""

from dataclasses import dataclass

import numpy as np

from covary.aggregate import Floats
from covary.hashing import Hashes
from covary.keysets import KeySets, check_comparable, compare_key_sets, require_sketches
from covary.sketches import Range, Sketch


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
