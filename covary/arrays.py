"""Short names for the kinds of arrays that columns, keys and numbers are held in; runs of equal numbers."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]  # numbers of any kind
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Slots = npt.NDArray[np.uint32]
Truths = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Row = dict[str, Any]  # of a table: what it holds, by column


def starts_of_runs(ordered: npt.NDArray[np.generic]) -> Truths:
    """Mark where each run of equal numbers begins: in a sorted array, the distinct ones."""
    begins = np.ones(ordered.size, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return begins
