"""Which of many correlations are chance: p-values, and q-values over all columns that were tested.

A p-value answers: if the query's numbers were shuffled over its keys, how often would this column look at
least as strongly related? Whether the sample is a part of the join or all of it makes no difference to that.
"""

from collections.abc import Callable

import numpy as np

from covary.arrays import Array, Floats, Truths
from covary.errors import chosen
from covary.statistics.moments import Moments

Correction = Callable[[Floats], Floats]

# Two moments leave the far tail too light: taking the excess double made rare p-values as rare as they say,
# on every kind of column tried (docs/measured/chance.md).
TAIL_FACTOR = 2.0
LEAST_SKEWNESS = 1e-3  # below, the gamma distribution is a normal one
SMALLEST_CHANCE = 1e-300
TWO_VALUED = 1e-6  # what rounding may leave


def quick_p_values(correlation: Floats, size: Floats) -> Floats:
    """Return p-values by Student's t, which holds for columns that are not both heavy-tailed."""
    return _beyond(correlation, size, np.full(size.shape, 0.5), np.maximum(size - 2.0, 0.0) / 2.0)


def p_values(sample: Moments) -> Floats:
    """Return p-values that hold for heavy tails and skew too, from the moments of r over all shuffles.

    Shuffled, r² has mean 1/(n-1) whatever the columns hold (Pitman 1937). Its second moment grows with the
    product of the columns' kurtoses, and r leans to one side by the product of their skewnesses: outliers
    make large r likely by chance. Never is a p-value smaller than Student's.
    """
    plain = quick_p_values(sample.correlation, sample.size)
    chance = np.fmax(np.fmax(plain, _heavy_tailed(sample)), _skewed(sample, plain))
    for number in np.flatnonzero(_are_two_valued(sample) & ~np.isnan(plain)):
        chance[number] = max(chance[number], _fisher_exact(Moments(*(each[[number]] for each in sample))))
    return chance


def _are_two_valued(sample: Moments) -> Truths:
    """Tell where both columns hold two values only: no others have so small a kurtosis for their skewness."""
    sides = (sample.x_skewness, sample.x_kurtosis), (sample.y_skewness, sample.y_kurtosis)
    x_two, y_two = (kurtosis - skewness**2 - 1.0 < TWO_VALUED for skewness, kurtosis in sides)
    return x_two & y_two


def _fisher_exact(sample: Moments) -> float:
    """Return the chance of a larger |r| of two-valued columns, by counting shuffles (Fisher's exact test)."""
    n, r = sample.size.item(), sample.correlation.item()
    skewness = sample.x_skewness.item(), sample.y_skewness.item()
    x_share, y_share = (0.5 - 0.5 * s / np.sqrt(4.0 + s * s) for s in skewness)
    spread = np.sqrt(x_share * (1.0 - x_share) * y_share * (1.0 - y_share))
    in_x, in_y = round(n * x_share), round(n * y_share)
    met = round(n * (r * spread + x_share * y_share))
    counts = np.arange(max(0, in_x + in_y - int(n)), min(in_x, in_y) + 1)

    ways = log_choose(in_x, counts) + log_choose(n - in_x, in_y - counts)
    chances = np.exp(ways - log_choose(n, in_y))
    expected = in_x * in_y / n
    as_far = np.abs(counts - expected) >= abs(met - expected) - 1e-9
    return min(1.0, float(chances[as_far].sum()))


def log_choose(total: float, taken: Array | int) -> Floats:
    """Return the logarithm of how many ways there are to take so many of all; -inf where there is none."""
    from scipy.special import gammaln  # noqa: PLC0415

    impossible = (taken < 0) | (taken > total)
    taken = np.where(impossible, 0, taken)
    ways: Floats = gammaln(total + 1) - gammaln(taken + 1) - gammaln(total - taken + 1)
    return np.where(impossible, -np.inf, ways)


def _heavy_tailed(sample: Moments) -> Floats:
    """Return the chance of a larger r² by the beta distribution of the same two moments."""
    n = np.maximum(sample.size, 4.0)
    excess = _unbiased_excess(sample.x_kurtosis, n) * _unbiased_excess(sample.y_kurtosis, n)
    first, of_normal = 1.0 / (n - 1.0), 3.0 / (n * n - 1.0)
    second = of_normal * (1.0 + TAIL_FACTOR * excess * (n - 2.0) * (n - 3.0) / (3.0 * n * (n - 1.0) ** 2))
    second = np.clip(second, of_normal, 0.999 * first)  # r² can't vary more than between 0 and 1
    scale = (first - second) / (second - first * first)
    return _beyond(sample.correlation, sample.size, first * scale, (1.0 - first) * scale)


def _skewed(sample: Moments, plain: Floats) -> Floats:
    """Return the chance of a larger r by a gamma distribution, where both lean to the same side."""
    from scipy.special import gammaincc, ndtri  # noqa: PLC0415

    n = np.maximum(sample.size, 4.0)
    skewness = sample.x_skewness * sample.y_skewness * np.sqrt(n - 1.0) / (n - 2.0)
    leans_alike = skewness * sample.correlation > 0
    shape = 4.0 / np.maximum(skewness**2, LEAST_SKEWNESS**2)
    # As many standard deviations as a normal number would be off by this chance: no r is beyond 1.
    off = -ndtri(np.maximum(plain / 2.0, SMALLEST_CHANCE))
    tail = gammaincc(shape, shape + off * np.sqrt(shape))
    return np.where(leans_alike, tail, plain)


def _unbiased_excess(kurtosis: Floats, n: Floats) -> Floats:
    """Fisher's k-statistics k4/k2² of a sample with this fourth standardised moment."""
    excess: Floats = (n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * (kurtosis - 3.0) + 6.0)
    return excess


def _beyond(correlation: Floats, size: Floats, first: Floats, second: Floats) -> Floats:
    """Return the chance of a larger r² under a beta distribution; NaN where r is undefined."""
    from scipy.special import betainc  # noqa: PLC0415  a tenth of a second, which --help need not wait

    # Even when all points lie on a line, n of them say no more than this: two outliers may just have met.
    square = np.minimum(correlation * correlation, 1.0 - 1.0 / np.maximum(size, 1.0))
    defined = np.isfinite(square) & (size > 2)
    chance = np.full(square.shape, np.nan)
    chance[defined] = betainc(second[defined], first[defined], 1.0 - square[defined])
    return chance


def benjamini_hochberg(p: Floats) -> Floats:
    """Return q-values: the share of chance hits among all at least as strong, if columns are independent
    or lean the same way."""
    return _step_up(p, 1.0)


def benjamini_yekutieli(p: Floats) -> Floats:
    """Return q-values that hold however the columns depend on each other; they let fewer through."""
    tests = int(np.count_nonzero(~np.isnan(p)))
    return _step_up(p, float((1.0 / np.arange(1, tests + 1)).sum()))


def _step_up(p: Floats, factor: float) -> Floats:
    order = np.argsort(p)  # NaN last
    tests = int(np.count_nonzero(~np.isnan(p)))
    each = p[order][:tests] * factor * tests / np.arange(1, tests + 1)
    q = np.full(p.shape, np.nan)
    q[order[:tests]] = np.minimum(1.0, np.minimum.accumulate(each[::-1])[::-1])
    return q


CORRECTIONS: dict[str, Correction] = {"bh": benjamini_hochberg, "by": benjamini_yekutieli}


def correction_named(name: str) -> Correction:
    """Look a correction for many tests up by name."""
    return chosen(name, CORRECTIONS, "correction")
