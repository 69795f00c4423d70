"""Short names for the kinds of arrays that columns, keys and numbers are held in."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
