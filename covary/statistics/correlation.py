"""Correlation of a joined sample (paper, section 2.2)."""

import numpy as np

from covary.arrays import Floats

SMALLEST_SAMPLE = 3  # two points always lie on a line
NAN = float("nan")


def pearson(x: Floats, y: Floats) -> float:
    """Pearson's r in two passes; NaN when a column is constant or fewer than three points are given."""
    if x.size < SMALLEST_SAMPLE:
        return NAN
    x, y = standardise(x), standardise(y)
    return float(np.clip(np.dot(x, y), -1.0, 1.0))


def standardise(values: Floats) -> Floats:
    """Centre and scale to length 1; NaN everywhere for a constant column."""
    largest = np.abs(values).max()
    if values.min() == values.max() or not np.isfinite(largest):
        return np.full(values.size, np.nan)
    # Dividing by a power of two is exact and keeps squares of huge and tiny numbers within range.
    scaled = np.ldexp(values, -np.frexp(largest)[1])
    centred = scaled - scaled.mean()
    centred = centred - centred.mean()  # what the first mean rounded off, which a large offset magnifies
    centred = centred / np.abs(centred).max()
    unit: Floats = centred / np.sqrt(np.dot(centred, centred))
    return unit


def spearman(x: Floats, y: Floats) -> float:
    """Pearson's r of the ranks, ties sharing their average rank."""
    return pearson(_average_ranks(x), _average_ranks(y))


def rin(x: Floats, y: Floats) -> float:
    """Pearson's r of normal scores, the normal quantiles at (rank - 1/2)/n (rankit; paper, section 5.3)."""
    return pearson(_normal_scores(x), _normal_scores(y))


def _normal_scores(values: Floats) -> Floats:
    from scipy.special import ndtri  # noqa: PLC0415  a tenth of a second, which most answers need not wait

    scores: Floats = ndtri((_average_ranks(values) - 0.5) / values.size)
    return scores


def _average_ranks(values: Floats) -> Floats:
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    ranks: Floats = (last - (sizes - 1) / 2)[group]
    return ranks


def can_be_compared(x: Floats, y: Floats) -> bool:
    """Tell whether two columns can have a correlation: three points, and both vary and are finite."""
    # NaN fails every comparison.
    return x.size >= SMALLEST_SAMPLE and all(-np.inf < each.min() < each.max() < np.inf for each in (x, y))
