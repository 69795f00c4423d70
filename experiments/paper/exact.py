"""The truth about a join: what is measured of it."""

import numpy as np
import polars as pl

from covary.statistics.measures import MEASURES

# PM1 estimates Pearson's, so it has no truth of its own.
CORRELATIONS = ("pearson", "spearman", "rin", "qn")
SIZES = {
    "left": pl.Int64,
    "right": pl.Int64,
    "join_size": pl.Int64,
    "left_keys": pl.Int64,
    "right_keys": pl.Int64,
}
TRUTH = SIZES | dict.fromkeys(CORRELATIONS, pl.Float64)


def correlations_of(x: np.ndarray, y: np.ndarray) -> list[float]:
    """Measure a whole join by every measure that has a truth."""
    return [MEASURES[name].of(x, y, 0) for name in CORRELATIONS]
