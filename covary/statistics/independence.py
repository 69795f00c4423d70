"""How likely a dependence of any form is chance: tests for distance correlation and Chatterjee's xi."""

import numpy as np

from covary.arrays import Floats, Truths
from covary.statistics.correlation import NAN, can_be_compared, standardise
from covary.statistics.dependence import ROUNDED_ZERO, centred_products, chatterjee, row_sums
from covary.statistics.significance import log_choose

SMALLEST_TEST = 4  # distances of fewer points can't be centred without bias


def distance_p_value(x: Floats, y: Floats) -> float:
    """Return about the chance of such distances between independent columns, rather too large than too small.

    Without its bias the distance correlation of independent columns, times n, is about a chi-square number
    less 1, or less than that (Shen, Panda and Vogelstein 2022).
    """
    from scipy.special import chdtrc  # noqa: PLC0415

    n = x.size
    if not can_be_compared(x, y):
        return NAN
    if n < SMALLEST_TEST:
        return 1.0
    x, y = standardise(x), standardise(y)
    xy, xx, yy = centred_products(x, y, _unbiased_centres(x), _unbiased_centres(y))
    # Of a column with one odd value all centred distances are 0, but for rounding: there is nothing to test.
    if min(xx, yy) <= n * (n - 1) * ROUNDED_ZERO**2:
        return 1.0
    return float(chdtrc(1.0, max(0.0, n * xy / np.sqrt(xx) / np.sqrt(yy) + 1.0)))


def _unbiased_centres(values: Floats) -> Floats:
    """Return what to subtract from a distance, for each of its two rows, to centre it without bias."""
    n, sums = values.size, row_sums(values)
    centres: Floats = sums / (n - 2) - sums.sum() / (2 * (n - 1) * (n - 2))
    return centres


def chatterjee_p_value(x: Floats, y: Floats) -> float:
    """Return the chance of such a xi between independent columns (Chatterjee 2021, theorem 2.2).

    The theorem is for many points. Where most y are equal the few others decide, and these are also tested
    by how they stand together when ordered by x.
    """
    from scipy.special import ndtr  # noqa: PLC0415

    xi = chatterjee(x, y)
    if np.isnan(xi):
        return NAN
    chance = float(ndtr(-xi * np.sqrt(x.size) / _deviation_of_xi(y)))
    differ = y != np.median(y)  # most y are equal only if they are the median
    if 2 * np.count_nonzero(differ) >= y.size:
        return chance
    return max(chance, _chance_of_runs(differ[np.argsort(x, kind="stable")]))


def _chance_of_runs(marks: Truths) -> float:
    """Return the chance that marks in a random order form so few runs (Wald and Wolfowitz 1940)."""
    runs = 1 + np.count_nonzero(marks[1:] != marks[:-1])
    marked, others = int(np.count_nonzero(marks)), int(np.count_nonzero(~marks))
    count = np.arange(2, runs + 1)
    more, fewer = (count + 1) // 2, count // 2  # runs of the kind that begins, and of the other
    ways = np.logaddexp(
        log_choose(marked - 1, more - 1) + log_choose(others - 1, fewer - 1),
        log_choose(marked - 1, fewer - 1) + log_choose(others - 1, more - 1),
    )
    every = log_choose(marked + others, marked)
    return float(min(1.0, np.exp(ways - every).sum()))


def _deviation_of_xi(y: Floats) -> float:
    """Return the standard deviation of xi, times sqrt(n), when columns are independent; ties included."""
    n, ascending = y.size, np.sort(y)
    up_to = np.searchsorted(ascending, ascending, side="right") / n
    at_least = 1.0 - np.searchsorted(ascending, ascending, side="left") / n
    after = np.arange(n - 1, -1, -1)
    weights = (2 * after + 1) / n
    first = np.mean(weights * up_to**2)
    second = np.mean(((np.cumsum(up_to) + after * up_to) / n) ** 2)
    third = np.mean(weights * up_to)
    variance = (first - 2.0 * second + third**2) / np.mean(at_least * (1.0 - at_least)) ** 2
    return float(np.sqrt(max(float(variance), 1.0 / n)))
