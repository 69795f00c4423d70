"""The paper's interval that holds for any bounded distribution (section 4.3), and its variant for ranking.

Both columns are shifted and scaled together to [0, 1], so that one deviation bounds all five means of which r
is made: those of x, y, x², y² and xy.
"""

from math import log, sqrt

import numpy as np

from covary.arrays import Floats
from covary.sketching.sketch_types import Range

COMPARED_AT = 0.95  # the confidence of lengths that are compared with each other alone
SMALLEST_SPREAD = 1e-300  # of two columns: so wide an interval is longer than any; dividing by 0 would fail


def deviation(size: Floats | float, confidence: float) -> Floats:
    """Return how far each of the five means may be off, at a fifth of the error each (Hoeffding 1963)."""
    bound: Floats = np.sqrt(log(10.0 / (1.0 - confidence)) / (2.0 * np.asarray(size, dtype=float)))
    return bound


def hoeffding_ends(
    x: Floats, y: Floats, x_range: Range, y_range: Range, confidence: float, *, small_sample: bool = False
) -> Range:
    """Return ends that hold the join's r at least as often as promised; they may be beyond -1 and 1.

    The variant for small samples (HFD) divides by the sample's own deviations: its ends are no true bounds.
    """
    low, high = min(x_range[0], y_range[0]), max(x_range[1], y_range[1])
    width = high / 2 - low / 2  # halves, since the whole may overflow
    if not 0 < width < np.inf:
        return -1.0, 1.0
    a, b = (x / 2 - low / 2) / width, (y / 2 - low / 2) / width
    product, a_mean, b_mean = float(np.dot(a, b)) / a.size, float(a.mean()), float(b.mean())
    off = float(deviation(a.size, confidence))
    low_top = product - off - (a_mean + off) * (b_mean + off)
    high_top = product + off - (a_mean - off) * (b_mean - off)
    if small_sample:
        low_bottom = high_bottom = float(a.std() * b.std())
    else:
        low_bottom, high_bottom = (
            sqrt(_variance_bound(a, off * side) * _variance_bound(b, off * side)) for side in (-1, 1)
        )
    return (
        _ratio(low_top, high_bottom if low_top >= 0 else low_bottom),
        _ratio(high_top, low_bottom if high_top >= 0 else high_bottom),
    )


def small_sample_lengths(
    means: tuple[Floats, Floats], deviations: tuple[Floats, Floats], low: Floats, high: Floats, size: Floats
) -> Floats:
    """Return the lengths of the variant's intervals for many samples of values between low and high.

    Without finite bounds an interval is as good as infinite.
    """
    low, half_width = low / 2.0, high / 2.0 - low / 2.0  # halves, since the whole may overflow
    bounded = (half_width > 0) & (half_width < np.inf)
    low, half_width = np.where(bounded, low, 0.0), np.where(bounded, half_width, np.inf)
    off = deviation(np.maximum(size, 1.0), COMPARED_AT)
    middles = sum((mean / 2.0 - low) / half_width for mean in means)
    # No deviation exceeds half the width; one that overflowed on the way is taken for that.
    spread = np.prod([np.minimum(each / 2.0 / half_width, 1.0) for each in deviations], axis=0)
    length: Floats = 2.0 * off * (1.0 + middles) / np.maximum(spread, SMALLEST_SPREAD)
    return np.where(np.isnan(deviations[0]) | np.isnan(deviations[1]), np.nan, length)


def _variance_bound(values: Floats, off: float) -> float:
    """Return the largest variance (the smallest, for a negative deviation) that the means allow."""
    return max(0.0, float(np.dot(values, values)) / values.size + off - (float(values.mean()) - off) ** 2)


def _ratio(top: float, bottom: float) -> float:
    """Divide; where the denominator is 0, return infinity."""
    return top / bottom if bottom > 0 else float(np.copysign(np.inf, top))
