"""How likely a dependence of any form is chance: tests for distance correlation and Chatterjee's xi."""

import numpy as np

from covary.aggregate import Floats
from covary.correlation import NAN, can_be_compared, standardised
from covary.dependence import centred_products, chatterjee, row_sums

SMALLEST_TEST = 4  # distances of fewer pairs can't be centred without bias


def distance_p_value(x: Floats, y: Floats) -> float:
    """Return the chance of such distances between independent columns, never too small.

    Without its bias the distance correlation of independent columns, times n, is about a chi-square number
    less 1, or less than that (Shen, Panda and Vogelstein 2022).
    """
    from scipy.special import chdtrc  # noqa: PLC0415

    n = x.size
    if n < SMALLEST_TEST or not can_be_compared(x, y):
        return NAN
    x, y = standardised(x), standardised(y)
    xy, xx, yy = centred_products(x, y, _unbiased_centres(x), _unbiased_centres(y))
    if not min(xx, yy) > 0:
        return 1.0
    return float(chdtrc(1.0, max(0.0, n * xy / np.sqrt(xx) / np.sqrt(yy) + 1.0)))


def _unbiased_centres(values: Floats) -> Floats:
    """Return what to subtract from a distance, for each of its two rows, to centre it without bias."""
    n, sums = values.size, row_sums(values)
    centres: Floats = sums / (n - 2) - sums.sum() / (2 * (n - 1) * (n - 2))
    return centres


def chatterjee_p_value(x: Floats, y: Floats) -> float:
    """Return the chance of such a xi between independent columns (Chatterjee 2021, theorem 2.2)."""
    from scipy.special import ndtr  # noqa: PLC0415

    xi = chatterjee(x, y)
    if np.isnan(xi):
        return NAN
    return float(ndtr(-xi * np.sqrt(x.size) / _deviation_of_xi(y)))


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
