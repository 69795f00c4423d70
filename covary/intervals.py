"""Confidence intervals for a correlation estimated from a sample of a join."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from covary.aggregate import Floats

Z_95 = 1.959963984540054  # the 97.5 % point of the normal distribution


@dataclass(frozen=True, slots=True)
class Interval:
    """The ends of a confidence interval."""

    low: float
    high: float


def unseen_factor(sample_size: npt.NDArray[Any] | float, join_size: npt.NDArray[Any] | float) -> Floats:
    """Return sqrt((N-n)/(N-1)): how much of the sampling error is left when n of N rows were seen."""
    beyond = np.maximum(np.asarray(join_size, dtype=float) - sample_size, 0.0)
    factor: Floats = np.sqrt(beyond / np.maximum(np.asarray(join_size, dtype=float) - 1.0, 1.0))
    return factor


def fisher(correlation: float, sample_size: int, join_size: float = float("inf")) -> Interval:
    """Fisher's z interval at 95 %, narrowed by how much of the join was seen: [r, r] when all of it was.

    With the join size unknown (infinite) it is the textbook interval z ± 1.96/sqrt(n-3).
    """
    unseen = 1.0 if np.isinf(join_size) else float(unseen_factor(sample_size, join_size))
    if unseen == 0.0:
        return Interval(correlation, correlation)
    if sample_size <= 3:
        return Interval(-1.0, 1.0)
    if abs(correlation) == 1.0:
        return Interval(correlation, correlation)
    half = Z_95 * unseen / np.sqrt(sample_size - 3)
    z = np.arctanh(correlation)
    return Interval(float(np.tanh(z - half)), float(np.tanh(z + half)))
