"""One joined sample, compiled: Pearson's r of its values, ranks or normal scores, and the moments around it.

A sample is given as it lies in an index: the values of a sketch, the places of its keys in a dictionary, and
the query's values in the order of that dictionary, NaN where it does not hold the key. Whole-array
expressions are written out as loops: they would run no faster, and take seconds to compile.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from covary.arrays import Floats
from covary.compiled import adding_in_any_order, compiled, unsigned
from covary.statistics.correlation import SMALLEST_SAMPLE
from covary.statistics.ranks import normal_scores, ranks_of, to_unit_length

# Below this share of its sum of squares a variance has lost too many digits to cancellation; below the other
# figure the squares themselves have.
LOST_DIGITS, SMALLEST_SQUARES = 1e-6, 1e-280
LEAST_LEFT = 0.1  # of 1 without the leverage of a pair, so that dividing by it stays bounded
LEAST_APART = 1e-12  # of 1 - r²: pairs nearer to a line have no spread around it to measure

SWITCHES: dict[str, tuple[bool | None, bool | None]] = {
    "pearson": (None, None), "spearman": (True, None), "rin": (True, True),
}  # fmt: skip


class Moments(NamedTuple):
    """What intervals and tests need to know of samples, by sample.

    Attributes:
        size: pairs.
        correlation: NaN where undefined.
        error: standard error of atanh(r) from the influence of each pair, corrected for its leverage.
        effective: how many pairs carry that error; few where outliers do.
        bias: by how much r is too large on average, to second order, over 1 - r²; negative: too small.
        x_skewness: third moment of the standardised values of the query (0: symmetric).
        y_skewness: of the other column.
        x_kurtosis: their fourth moment (3: normal).
        y_kurtosis: of the other column.
        x_mean: mean of the query's values; of their ranks for a measure of ranks, as the three below.
        x_deviation: their standard deviation.
        y_mean: mean of the other column's values.
        y_deviation: their standard deviation.
    """

    size: Floats
    correlation: Floats
    error: Floats
    effective: Floats
    bias: Floats
    x_skewness: Floats
    y_skewness: Floats
    x_kurtosis: Floats
    y_kurtosis: Floats
    x_mean: Floats
    x_deviation: Floats
    y_mean: Floats
    y_deviation: Floats


MOMENTS = len(Moments._fields)
# The places of the moments in an array of facts, which is what compiled loops fill.
SIZE, CORRELATION, ERROR, EFFECTIVE, BIAS, X_SKEWNESS, Y_SKEWNESS, X_KURTOSIS, Y_KURTOSIS = range(9)
X_MEAN, X_DEVIATION, Y_MEAN, Y_DEVIATION = range(9, MOMENTS)


def moments_of(x: Floats, y: Floats, measure: str = "pearson") -> Moments:
    """Measure one sample closely; each moment is an array of length 1."""
    facts = np.full((MOMENTS, 1), np.nan)
    facts[SIZE] = x.size
    if x.size >= SMALLEST_SAMPLE:
        x, y = np.array(x, dtype=float), np.array(y, dtype=float)
        by_rank, as_normal = SWITCHES[measure]
        if by_rank:
            scores = normal_scores(x.size) if as_normal else np.empty(0)
            x, y = ranks_of(x, as_normal, scores), ranks_of(y, as_normal, scores)
        if not (np.isnan(x[0]) or np.isnan(y[0])):
            facts[CORRELATION] = _careful(x, y, facts[:, 0])
    return Moments(*facts)


@compiled
def near_zero(x: Any) -> Any:
    """Bring a query's values near 0 and 1, where sums of squares lose the fewest digits."""
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
def _sums(members: Any, values: Any, near_of_key: Any) -> Any:
    first = values[0]  # nearly as good as the mean against cancellation, and known beforehand
    n = 0
    sx = sxx = sy = syy = sxy = 0.0
    for place in range(members.size):
        x = near_of_key[unsigned(members[place])]
        y = values[place] - first
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
def pearson_at(members: Any, values: Any, near_of_key: Any, x_of_key: Any) -> Any:
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
def closely_at(
    members: Any, values: Any, near_of_key: Any, x_of_key: Any, exponent: Any, middle: Any, facts: Any
) -> Any:
    """Measure Pearson's r and the moments of the sample, in two passes."""
    if not members.size:
        return 0, np.nan
    n, sx, sy, x_spread, y_spread, together, sound = _sums(members, values, near_of_key)
    if n < SMALLEST_SAMPLE:
        return n, np.nan
    x_mean, y_mean = sx / n, sy / n + values[0]
    x_deviation, y_deviation = np.sqrt(max(x_spread, 0.0)) / n, np.sqrt(max(y_spread, 0.0)) / n
    if not sound or y_deviation < LOST_DIGITS * abs(y_mean):
        x, y = _sample(members, values, x_of_key)
        return n, _careful(x, y, facts)
    r = min(1.0, max(-1.0, together / np.sqrt(x_spread) / np.sqrt(y_spread)))
    _influence(members, values, near_of_key, x_mean, 1 / x_deviation, y_mean, 1 / y_deviation, r, n, facts)
    facts[X_MEAN] = math.ldexp(x_mean + middle, exponent)
    facts[X_DEVIATION] = math.ldexp(x_deviation, exponent)
    facts[Y_MEAN], facts[Y_DEVIATION] = y_mean, y_deviation
    return n, r


@compiled
def _careful(x: Any, y: Any, facts: Any) -> Any:
    r, x_mean, x_deviation, y_mean, y_deviation = standardised_product(x, y)
    if not np.isnan(r):
        every, length = np.arange(x.size), np.sqrt(x.size)
        _influence(every, y, x, 0.0, length, 0.0, length, r, x.size, facts)
    facts[X_MEAN], facts[X_DEVIATION] = x_mean, x_deviation
    facts[Y_MEAN], facts[Y_DEVIATION] = y_mean, y_deviation
    return r


@adding_in_any_order
def _influence(
    members: Any,
    values: Any,
    x_of_key: Any,
    x_mean: Any,
    x_scale: Any,
    y_mean: Any,
    y_scale: Any,
    r: Any,
    n: Any,
    facts: Any,
) -> None:
    """Add up the influence of each pair on r, corrected for its leverage, and the higher moments."""
    apart = max(1.0 - r * r, LEAST_APART)
    half, twice, without_pair, per_leverage = 0.5 * r, 2.0 * r, 1.0 - 1.0 / n, 1.0 / (n * apart)
    total = squares = x_third = y_third = x_fourth = y_fourth = products = crossed = 0.0
    for place in range(members.size):
        x = x_of_key[unsigned(members[place])]
        held = not np.isnan(x)
        u = (x - x_mean) * x_scale
        v = (values[place] - y_mean) * y_scale
        u = u if held else 0.0
        v = v if held else 0.0
        uu, vv, uv = u * u, v * v, u * v
        left = without_pair - (uu + vv - twice * uv) * per_leverage
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
    facts[ERROR] = np.sqrt(total / (n * (n - 1.0))) / apart
    facts[EFFECTIVE] = total * total / squares if squares > 0 else float(n)
    # The second-order expansion of r = Sxy/sqrt(Sxx Syy) around the true moments.
    facts[BIAS] = (r * (0.375 * (x_fourth + y_fourth) + 0.25 * products) - 0.5 * crossed) / (n * n * apart)
    facts[X_SKEWNESS], facts[Y_SKEWNESS] = x_third / n, y_third / n
    facts[X_KURTOSIS], facts[Y_KURTOSIS] = x_fourth / n, y_fourth / n


@compiled
def _sample(members: Any, values: Any, x_of_key: Any) -> Any:
    xs, ys = np.empty(members.size), np.empty(members.size)
    size = 0
    for place in range(members.size):
        x = x_of_key[members[place]]
        if not np.isnan(x):
            xs[size], ys[size] = x, values[place]
            size += 1
    return xs[:size], ys[:size]


@compiled
def standardised_product(x: Any, y: Any) -> Any:
    """Standardise in place; return r (NaN if a column is constant or infinite), means and deviations."""
    x_varies, x_mean, x_deviation = _standardise(x)
    y_varies, y_mean, y_deviation = _standardise(y)
    r = 0.0
    for i in range(x.size):
        r += x[i] * y[i]
    r = min(1.0, max(-1.0, r)) if x_varies and y_varies else np.nan
    return r, x_mean, x_deviation, y_mean, y_deviation


@compiled
def _standardise(values: Any) -> Any:
    """Centre and scale to length 1 in place; tell whether they vary, their mean and standard deviation."""
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
def ranked_at(members: Any, x_of_key: Any, as_normal: Any, scores: Any) -> Any:
    """Return the places of the keys that the query holds, its values' ranks there, and normal scores."""
    held = np.empty(members.size, np.int64)
    size = 0
    for place in range(members.size):
        if not np.isnan(x_of_key[members[place]]):
            held[size] = place
            size += 1
    held = held[:size]
    values = np.empty(size)
    for i in range(size):
        values[i] = x_of_key[members[held[i]]]
    if as_normal is not None and scores.size != size:
        scores = normal_scores(size)
    return held, ranks_of(values, as_normal, scores), scores


@compiled
def by_rank_at(held: Any, ranked: Any, values: Any, as_normal: Any, scores: Any, facts: Any) -> Any:
    """Measure the size of a sample and its r by ranks; and its moments, where there is room for them."""
    n = held.size
    if n < SMALLEST_SAMPLE:
        return n, np.nan
    y = np.empty(n)
    for i in range(n):
        y[i] = values[held[i]]
    y = ranks_of(y, as_normal, scores)
    if np.isnan(ranked[0]) or np.isnan(y[0]):
        return n, np.nan
    if facts.size == MOMENTS:
        return n, _careful(ranked.copy(), y, facts)
    r = 0.0
    for i in range(n):
        r += ranked[i] * y[i]
    return n, min(1.0, max(-1.0, r))
