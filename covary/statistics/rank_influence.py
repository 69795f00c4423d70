"""Our interval for correlations of ranks: from the influence of each point, through the ranks it changes too.

A point moves Spearman's and the normal scores' correlation like any Pearson's, and by the ranks of all other
points, which shift when it is added. docs/measured/coverage.md has how often these intervals cover.
"""

from math import atanh, exp, inf, log, sqrt, tanh

import numpy as np

from covary.arrays import Floats
from covary.compiled import compiled
from covary.statistics.influence import (
    FEWEST_FREEDOM,
    ON_A_LINE,
    end_off_a_line,
    none_seen,
    t_quantile,
    unseen_share,
)
from covary.statistics.moments import LEAST_LEFT

FIELLER = 0.437  # variance of atanh(tau) of normal columns, times n - 4 (Fieller, Hartley and Pearson 1957)
PULL_TO_ZERO = 0.36  # how far normal scores of a sample understate a strong correlation, in ln(n)/n

Ends = tuple[float, float]


def spearman_ends(x: Floats, y: Floats, r: float, join_size: float, confidence: float) -> Ends:
    """Return the ends of our interval for Spearman's correlation."""
    x_ranks, y_ranks = _Ranks(x), _Ranks(y)
    influence, _ = _influence_of_ranks(x_ranks, y_ranks, x_ranks.shares, y_ranks.shares, 1.0, 1.0, r)
    return _around(r, max(_error(influence, r), _fisher_error(x.size)), x_ranks, join_size, confidence)


def rin_ends(x: Floats, y: Floats, r: float, join_size: float, confidence: float) -> Ends:
    """Return the ends of our interval for the correlation of normal scores."""
    from scipy.special import ndtri  # noqa: PLC0415

    x_ranks, y_ranks = _Ranks(x), _Ranks(y)
    x_scores, y_scores = ndtri(x_ranks.shares), ndtri(y_ranks.shares)
    # The slope of the normal quantile: how far a shift of ranks moves each score.
    x_slope, y_slope = (sqrt(2.0 * np.pi) * np.exp(scores**2 / 2.0) for scores in (x_scores, y_scores))
    influence, leverage = _influence_of_ranks(x_ranks, y_ranks, x_scores, y_scores, x_slope, y_slope, r)
    error = _error(influence / np.sqrt(np.maximum(1.0 - leverage, LEAST_LEFT)), r)
    pull = PULL_TO_ZERO * log(x.size) / x.size
    return _around(r, max(error, _fisher_error(x.size)), x_ranks, join_size, confidence, pull)


def kendall_ends(x: Floats, y: Floats, tau: float, join_size: float, confidence: float) -> Ends:
    """Return the ends of our interval for Kendall's tau-b."""
    n, x_ranks, y_ranks = x.size, _Ranks(x), _Ranks(y)
    apart_in_x, apart_in_y = n - x_ranks.times, n - y_ranks.times
    x_share, y_share = apart_in_x.sum() / (n * (n - 1.0)), apart_in_y.sum() / (n * (n - 1.0))
    agreeing = _agreements(x, y) / sqrt(x_share * y_share)
    influence = (2.0 * agreeing - tau * (apart_in_x / x_share + apart_in_y / y_share)) / (n - 1.0)
    least = sqrt(FIELLER / (n - 4.0) * _tie_factor(x) * _tie_factor(y)) if n > 4 else inf
    return _around(tau, max(_error(influence, tau), least), x_ranks, join_size, confidence)


class _Ranks:
    """Average ranks of a column, as shares of n, and the sums over ranks that an influence needs."""

    def __init__(self, values: Floats) -> None:
        _, self._group, sizes = np.unique(values, return_inverse=True, return_counts=True)
        self.times: Floats = sizes[self._group].astype(float)
        self.shares: Floats = (np.cumsum(sizes) - sizes / 2)[self._group] / values.size

    def shifted_by_each(self, weights: Floats) -> Floats:
        """Return, for each point, the mean of weights times the shift of the ranks when it is added."""
        sums = np.bincount(self._group, weights)
        above = (np.cumsum(sums[::-1])[::-1] - sums / 2)[self._group]  # half of the weights tied with it
        shift: Floats = (above - np.dot(self.shares, weights)) / weights.size
        return shift


def _influence_of_ranks(
    x_ranks: _Ranks,
    y_ranks: _Ranks,
    x: Floats,
    y: Floats,
    x_slope: Floats | float,
    y_slope: Floats | float,
    r: float,
) -> tuple[Floats, Floats]:
    """Return the influence of each point on the correlation of scores x and y of ranks, and its leverage."""
    u, v = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    x_slope, y_slope = x_slope / x.std(), y_slope / y.std()
    through_x = x_ranks.shifted_by_each((v - r * u) * x_slope)
    through_y = y_ranks.shifted_by_each((u - r * v) * y_slope)
    influence = u * v - r / 2.0 * (u * u + v * v) + through_x + through_y
    spread = (u * u - 2.0 * r * u * v + v * v) / max(1.0 - r * r, ON_A_LINE)
    return influence, (1.0 + spread) / u.size


def _error(influence: Floats, r: float) -> float:
    """Return the standard error of atanh(r)."""
    n = influence.size
    return sqrt(float(np.dot(influence, influence)) / (n * (n - 1.0))) / max(1.0 - r * r, ON_A_LINE)


def _around(
    r: float, error: float, ranks: _Ranks, join_size: float, confidence: float, pull: float = 0.0
) -> Ends:
    """Return the ends around atanh(r), the outer one further out by a pull."""
    n = ranks.shares.size
    unseen = float(unseen_share(n, join_size))
    if abs(r) >= 1.0 - ON_A_LINE:
        inner = _end_out_of_order(ranks, unseen, confidence)
        return (inner, r) if r > 0 else (r, -inner)
    quantile = float(t_quantile(np.array([max(n - 2.0, FEWEST_FREEDOM)]), confidence)[0])
    half, outward = quantile * error * sqrt(unseen), pull * atanh(r) * abs(atanh(r)) * unseen
    low, high = atanh(r) - half + min(outward, 0.0), atanh(r) + half + max(outward, 0.0)
    return tanh(low), tanh(high)


def _fisher_error(n: int) -> float:
    return 1.0 / sqrt(n - 3.0) if n > 3 else inf


def _end_out_of_order(ranks: _Ranks, unseen: float, confidence: float) -> float:
    """Return how small |r| may be when all points seen are in one order: some not seen may not be.

    If neighbours agree in order with probability (1 + r)/2, all n - 1 of them seldom do by chance.
    """
    n = ranks.shares.size
    centred = ranks.shares - ranks.shares.mean()
    kurtosis = np.mean(centred**4) / np.mean(centred**2) ** 2
    by_chance = 2.0 * exp(-none_seen(confidence) * unseen / (n - 1.0)) - 1.0
    sizes, kurtoses, shares = (np.array([each], dtype=float) for each in (n, kurtosis, unseen))
    return min(by_chance, float(end_off_a_line(sizes, kurtoses, shares, confidence)[0]))


def _tie_factor(values: Floats) -> float:
    """Return how much ties widen the distribution of tau: 1 without any, 1.5 for two values."""
    _, sizes = np.unique(values, return_counts=True)
    shares = sizes / values.size
    return float((1.0 - (shares**3).sum()) / (1.0 - (shares**2).sum()))


@compiled
def _agreements(x: Floats, y: Floats) -> Floats:
    """Count, for each point, the points that agree with it in order less those that disagree."""
    counts = np.zeros(x.size)
    for i in range(x.size):
        agreements = 0
        for j in range(x.size):
            in_x = (x[i] > x[j]) - (x[i] < x[j])
            agreements += in_x * ((y[i] > y[j]) - (y[i] < y[j]))
        counts[i] = agreements
    return counts
