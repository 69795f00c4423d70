"""Our interval for a correlation: unit-free, exact on a whole join, and honest where a few outliers decide.

docs/measured/coverage.md has how often it covers, by kind of data, beside the others.
"""

from functools import lru_cache
from math import log

import numpy as np

from covary.arrays import Array, Floats
from covary.statistics.moments import Moments

# Where few of n points carry the error of r, what was not seen may well hold as much error again, and
# Student's t has fewer degrees of freedom; with fewer than these, an interval would say nothing.
FEW_RATE, FREEDOM_RATE, FEWEST_FREEDOM = 3.0, 0.04, 2.5
# The bias is estimated from fourth moments, and a sample without the rarest outliers understates these.
BIAS_FACTOR = 16.0
ON_A_LINE = 1e-9  # how near |r| is to 1 when all points lie on a line, but for rounding


def unseen_share(sample_size: Array | float, join_size: Array | float) -> Floats:
    """Return (N-n)/(N-1): how much of the sampling variance is left when n of N rows were seen."""
    size = np.asarray(join_size, dtype=float)
    beyond = np.maximum(size - sample_size, 0.0)
    unknown = np.isinf(size)
    share: Floats = np.where(unknown, 1.0, np.where(unknown, 0.0, beyond) / np.maximum(size - 1.0, 1.0))
    return share


def influence_ends(sample: Moments, join_size: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Compute our interval for many samples at once; NaN where r is undefined.

    On the scale of atanh(r), around it: Student's t times the leverage-corrected error of the influence
    function, never below Fisher's. How many points carry that error decides how heavy the tails of t are, and
    how far to trust that the part of the join not seen is like the part that was.
    """
    r, n = sample.correlation, sample.size
    unseen = unseen_share(n, join_size)
    least = 1.0 / np.sqrt(np.maximum(n - 3.0, 1e-9))
    few = np.minimum(1.0, FEW_RATE * n / sample.effective**4)
    factor = np.sqrt(np.where(unseen > 0, unseen + (1.0 - unseen) * few, 0.0))
    most_freedom = np.maximum(n - 2.0, FEWEST_FREEDOM)
    freedom = np.clip(FREEDOM_RATE * (sample.effective - 1.0) ** 4 / np.sqrt(n), FEWEST_FREEDOM, most_freedom)
    half = t_quantile(freedom, confidence) * np.maximum(sample.error, least) * factor
    # Outliers that most samples lack may pull r to 0: where r leans away from 0, the inner end is moved.
    inward = BIAS_FACTOR * np.maximum(np.sign(r) * sample.bias, 0.0) * unseen
    middle = np.arctanh(np.clip(r, -1.0 + ON_A_LINE, 1.0 - ON_A_LINE))
    low = np.tanh(middle - half - np.where(r > 0, inward, 0.0))
    high = np.tanh(middle + half + np.where(r < 0, inward, 0.0))
    on_a_line = np.abs(r) >= 1.0 - ON_A_LINE
    inner = end_off_a_line(n, sample.x_kurtosis, unseen, confidence)
    low = np.where(on_a_line, np.where(r > 0, inner, -1.0), low)
    high = np.where(on_a_line, np.where(r > 0, 1.0, -inner), high)
    return np.where(unseen > 0, np.minimum(low, r), r), np.where(unseen > 0, np.maximum(high, r), r)


def none_seen(confidence: float) -> float:
    """Return how many of a kind may be expected where none was seen: 3.69 at 95 %."""
    return -log((1.0 - confidence) / 2.0)


def end_off_a_line(size: Floats, kurtosis: Floats, unseen: Floats, confidence: float) -> Floats:
    """Return how small |r| may be when all points seen lie on a line: some not seen may not.

    Of two-valued columns the rarer value decides, and n over the kurtosis is about how often it was seen. |r|
    is least when half of the points off the line have it in one column, and half in the other.
    """
    seen = size / np.maximum(kurtosis, 1.0)
    end: Floats = seen / (seen + none_seen(confidence) * unseen / 2.0)
    return end


def t_quantile(freedom: Floats, confidence: float) -> Floats:
    """Student's two-sided quantile, from a table: exact to seven digits, and a hundred times as fast."""
    inverses, quantiles = _t_table(confidence)
    quantile: Floats = np.interp(1.0 / freedom, inverses, quantiles)
    return quantile


@lru_cache(maxsize=8)
def _t_table(confidence: float) -> tuple[Floats, Floats]:
    from scipy.special import ndtri, stdtrit  # noqa: PLC0415  a tenth of a second, which --help need not wait

    inverses = np.linspace(0.0, 1.0 / FEWEST_FREEDOM, 4001)
    share = 0.5 + confidence / 2.0
    return inverses, np.concatenate([[ndtri(share)], stdtrit(1.0 / inverses[1:], share)])
