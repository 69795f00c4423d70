"""Short names for the kinds of arrays that columns, keys and numbers are held in."""

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
