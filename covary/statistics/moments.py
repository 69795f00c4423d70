"""One joined sample, compiled: Pearson's r of its values, ranks or normal scores, and the moments around it.

A sample is given as it lies in an index: the values of a sketch, the positions of its keys in a dictionary,
and the query's values in the order of that dictionary, NaN where it does not hold the key. Whole-array
expressions are written out as loops: they would run no faster, and take seconds to compile.
"""

import math
from typing import NamedTuple

import numpy as np

from covary.arrays import Array, Floats, Integers
from covary.compiled import adding_in_any_order, compiled, unsigned
from covary.statistics.correlation import SMALLEST_SAMPLE
from covary.statistics.ranks import normal_scores, ranks_of, to_unit_length

# Below this share of its sum of squares a variance has lost too many digits to cancellation; below the other
# figure the squares themselves have.
LOST_DIGITS, SMALLEST_SQUARES = 1e-6, 1e-280
LEAST_LEFT = 0.1  # of 1 without the leverage of a point, so that dividing by it stays bounded
LEAST_APART = 1e-12  # of 1 - r²: points nearer to a line have no spread around it to measure

SWITCHES: dict[str, tuple[bool | None, bool | None]] = {
    "pearson": (None, None), "spearman": (True, None), "rin": (True, True),
}  # fmt: skip


class Moments(NamedTuple):
    """What intervals and tests need to know of samples, by sample; x is the query's column."""

    size: Floats  # points
    correlation: Floats  # NaN where undefined
    error: Floats  # standard error of atanh(r) from the influence of each point, corrected for its leverage
    effective: Floats  # how many points carry that error; few where outliers do
    bias: Floats  # by how much r is too large on average, to second order, over 1 - r²; negative: too small
    x_skewness: Floats  # third moment of the standardised values (0: symmetric)
    y_skewness: Floats
    x_kurtosis: Floats  # their fourth moment (3: normal)
    y_kurtosis: Floats
    x_mean: Floats  # of the values; of their ranks for a measure of ranks, as the three below
    x_deviation: Floats  # standard deviation
    y_mean: Floats
    y_deviation: Floats


NO_MOMENTS = [np.empty(0)] * (len(Moments._fields) - 2)


class QueryNumbers(NamedTuple):
    """The numbers of a query by position of the key in a dictionary; NaN where it does not hold the key."""

    x: Floats  # as they are
    near: Floats  # brought near 0 and 1, where sums of squares lose the fewest digits
    exponent: int  # of the power of two that they were divided by
    middle: float  # what was then subtracted from them


class Scale(NamedTuple):
    """How to standardise a column: subtract the mean, then multiply by the factor."""

    mean: float
    factor: float


def empty_moments(samples: int, *, closely: bool) -> Moments:
    """Make room for the moments of so many samples; or, not filled yet, for sizes and correlations alone."""
    if closely:
        return Moments(*np.full((len(Moments._fields), samples), np.nan))
    return Moments(np.empty(samples), np.empty(samples), *NO_MOMENTS)


def moments_of(x: Floats, y: Floats, measure: str = "pearson") -> Moments:
    """Measure one sample closely; each moment is an array of length 1."""
    moments = empty_moments(1, closely=True)
    moments.size[0] = x.size
    if x.size >= SMALLEST_SAMPLE:
        x, y = np.array(x, dtype=float), np.array(y, dtype=float)
        by_rank, as_normal = SWITCHES[measure]
        if by_rank:
            scores = normal_scores(x.size) if as_normal else np.empty(0)
            x, y = ranks_of(x, as_normal, scores), ranks_of(y, as_normal, scores)
        if not (np.isnan(x[0]) or np.isnan(y[0])):
            measure_carefully(x, y, moments, 0)
    return moments


@compiled
def near_zero(x: Floats) -> tuple[Floats, int, float]:
    """Bring values near 0 and 1 by a power of two, and by their mean after that; return both, too."""
    largest = 0.0
    for value in x:
        largest = max(largest, abs(value))
    exponent = math.frexp(largest)[1]
    near = np.empty(x.size)
    total = 0.0
    for i in range(x.size):
        near[i] = math.ldexp(x[i], -exponent)
        total += near[i]
    middle = total / max(x.size, 1)
    for i in range(x.size):
        near[i] -= middle
    return near, exponent, middle


@adding_in_any_order
def _sums(
    members: Array, values: Floats, near_of_key: Floats
) -> tuple[int, float, float, float, float, float, bool]:
    first = values[0]  # nearly as good as the mean against cancellation, and known beforehand
    n = 0
    sx = sxx = sy = syy = sxy = 0.0
    for row in range(members.size):
        x = near_of_key[unsigned(members[row])]
        y = values[row] - first
        held = not np.isnan(x)
        x = x if held else 0.0
        y = y if held else 0.0
        n += 1 if held else 0
        sx += x
        sxx += x * x
        sy += y
        syy += y * y
        sxy += x * y
    x_spread, y_spread = n * sxx - sx * sx, n * syy - sy * sy
    kept_digits = x_spread > LOST_DIGITS * n * sxx and y_spread > LOST_DIGITS * n * syy
    sound = kept_digits and min(x_spread, y_spread) > SMALLEST_SQUARES and y_spread < np.inf
    return n, sx, sy, x_spread, y_spread, n * sxy - sx * sy, sound


@compiled
def pearson_at(members: Array, values: Floats, near_of_key: Floats, x_of_key: Floats) -> tuple[int, float]:
    """Measure the size of a sample and its Pearson's r, in one pass where that loses no digits."""
    if not members.size:
        return 0, np.nan
    n, _, _, x_spread, y_spread, together, sound = _sums(members, values, near_of_key)
    if n < SMALLEST_SAMPLE:
        return n, np.nan
    if sound:
        return n, min(1.0, max(-1.0, together / np.sqrt(x_spread) / np.sqrt(y_spread)))
    x, y = _sample(members, values, x_of_key)
    return n, standardised_product(x, y)[0]


@compiled
def moments_at(
    members: Array, values: Floats, query: QueryNumbers, moments: Moments, sample: int
) -> tuple[int, float]:
    """Measure Pearson's r and the moments of the sample, in two passes."""
    if not members.size:
        return 0, np.nan
    n, sx, sy, x_spread, y_spread, together, sound = _sums(members, values, query.near)
    if n < SMALLEST_SAMPLE:
        return n, np.nan
    x_mean, y_mean = sx / n, sy / n + values[0]
    x_deviation, y_deviation = np.sqrt(max(x_spread, 0.0)) / n, np.sqrt(max(y_spread, 0.0)) / n
    if not sound or y_deviation < LOST_DIGITS * abs(y_mean):
        x, y = _sample(members, values, query.x)
        return n, measure_carefully(x, y, moments, sample)
    r = min(1.0, max(-1.0, together / np.sqrt(x_spread) / np.sqrt(y_spread)))
    moments.size[sample], moments.correlation[sample] = n, r
    x_scale, y_scale = Scale(x_mean, 1 / x_deviation), Scale(y_mean, 1 / y_deviation)
    _add_influence(members, values, query.near, x_scale, y_scale, moments, sample)
    moments.x_mean[sample] = math.ldexp(x_mean + query.middle, query.exponent)
    moments.x_deviation[sample] = math.ldexp(x_deviation, query.exponent)
    moments.y_mean[sample], moments.y_deviation[sample] = y_mean, y_deviation
    return n, r


@compiled
def measure_carefully(x: Floats, y: Floats, moments: Moments, sample: int) -> float:
    """Measure a sample in two passes, which lose no digits; its numbers are standardised in row."""
    r, x_mean, x_deviation, y_mean, y_deviation = standardised_product(x, y)
    if not np.isnan(r):
        moments.size[sample], moments.correlation[sample] = x.size, r
        every, scale = np.arange(x.size), Scale(0.0, np.sqrt(x.size))
        _add_influence(every, y, x, scale, scale, moments, sample)
    moments.x_mean[sample], moments.x_deviation[sample] = x_mean, x_deviation
    moments.y_mean[sample], moments.y_deviation[sample] = y_mean, y_deviation
    return r


@adding_in_any_order
def _add_influence(
    members: Array,
    values: Floats,
    x_of_key: Floats,
    x_scale: Scale,
    y_scale: Scale,
    moments: Moments,
    sample: int,
) -> None:
    """Add up the influence of each point on r, corrected for its leverage, and the higher moments."""
    n, r = int(moments.size[sample]), moments.correlation[sample]
    apart = max(1.0 - r * r, LEAST_APART)
    half, twice, without_point, per_leverage = 0.5 * r, 2.0 * r, 1.0 - 1.0 / n, 1.0 / (n * apart)
    total = squares = x_third = y_third = x_fourth = y_fourth = products = crossed = 0.0
    for row in range(members.size):
        x = x_of_key[unsigned(members[row])]
        held = not np.isnan(x)
        u = (x - x_scale.mean) * x_scale.factor
        v = (values[row] - y_scale.mean) * y_scale.factor
        u = u if held else 0.0
        v = v if held else 0.0
        uu, vv, uv = u * u, v * v, u * v
        left = without_point - (uu + vv - twice * uv) * per_leverage
        left = left if left > LEAST_LEFT else LEAST_LEFT
        influence = uv - half * (uu + vv)
        squared = influence * influence / left
        total += squared
        squares += squared * squared
        products += uv * uv
        crossed += uv * (uu + vv)
        x_third += uu * u
        y_third += vv * v
        x_fourth += uu * uu
        y_fourth += vv * vv
    moments.error[sample] = np.sqrt(total / (n * (n - 1.0))) / apart
    moments.effective[sample] = total * total / squares if squares > 0 else float(n)
    # The second-order expansion of r = Sxy/sqrt(Sxx Syy) around the true moments.
    moments.bias[sample] = (r * (0.375 * (x_fourth + y_fourth) + 0.25 * products) - 0.5 * crossed) / (
        n * n * apart
    )
    moments.x_skewness[sample], moments.y_skewness[sample] = x_third / n, y_third / n
    moments.x_kurtosis[sample], moments.y_kurtosis[sample] = x_fourth / n, y_fourth / n


@compiled
def _sample(members: Array, values: Floats, x_of_key: Floats) -> tuple[Floats, Floats]:
    xs, ys = np.empty(members.size), np.empty(members.size)
    size = 0
    for row in range(members.size):
        x = x_of_key[members[row]]
        if not np.isnan(x):
            xs[size], ys[size] = x, values[row]
            size += 1
    return xs[:size], ys[:size]


@compiled
def standardised_product(x: Floats, y: Floats) -> tuple[float, float, float, float, float]:
    """Standardise in row; return r (NaN if a column is constant or infinite), means and deviations."""
    x_varies, x_mean, x_deviation = _standardise(x)
    y_varies, y_mean, y_deviation = _standardise(y)
    r = 0.0
    for i in range(x.size):
        r += x[i] * y[i]
    r = min(1.0, max(-1.0, r)) if x_varies and y_varies else np.nan
    return r, x_mean, x_deviation, y_mean, y_deviation


@compiled
def _standardise(values: Floats) -> tuple[bool, float, float]:
    """Centre and scale to length 1 in row; tell whether they vary, their mean and standard deviation."""
    low = high = values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
    largest = max(abs(low), abs(high))
    if low == high or np.isinf(largest):
        return False, low, 0.0
    exponent = math.frexp(largest)[1]
    for i in range(values.size):
        values[i] = math.ldexp(values[i], -exponent)  # to 1 at most, exactly: no difference overflows
    mean, length = to_unit_length(values)
    return True, math.ldexp(mean, exponent), math.ldexp(length / np.sqrt(values.size), exponent)


@compiled
def rank_query_at(
    members: Array, x_of_key: Floats, as_normal: bool | None, scores: Floats
) -> tuple[Integers, Floats, Floats]:
    """Return the rows of the keys that the query holds, its values' ranks there, and normal scores."""
    held = np.empty(members.size, np.int64)
    size = 0
    for row in range(members.size):
        if not np.isnan(x_of_key[members[row]]):
            held[size] = row
            size += 1
    held = held[:size]
    values = np.empty(size)
    for i in range(size):
        values[i] = x_of_key[members[held[i]]]
    if as_normal is not None and scores.size != size:
        scores = normal_scores(size)
    return held, ranks_of(values, as_normal, scores), scores


@compiled
def by_rank_at(
    held: Integers, ranked: Floats, values: Floats, as_normal: bool | None, scores: Floats
) -> tuple[Floats, float]:
    """Return the ranks of the values whose keys the query holds, and r by ranks."""
    n = held.size
    y = np.empty(n)
    for i in range(n):
        y[i] = values[held[i]]
    if n < SMALLEST_SAMPLE:
        return y, np.nan
    y = ranks_of(y, as_normal, scores)
    if np.isnan(ranked[0]) or np.isnan(y[0]):
        return y, np.nan
    r = 0.0
    for i in range(n):
        r += ranked[i] * y[i]
    return y, min(1.0, max(-1.0, r))
