"""Dearer measures of a joined sample: robust, of ranks, of any dependence, and of a function of x.

Sorting is NumPy's; what follows it is one compiled loop each.
"""

import math

import numpy as np

from covary.arrays import Floats, Integers
from covary.compiled import adding_in_any_order, compiled, unsigned
from covary.statistics.correlation import NAN, can_be_compared, standardise

# Qn of a column as a share of its largest value: below this, its reciprocal would leave a double's range.
SMALLEST_SCALE = 2.0**-1000
# Qn of a sum or difference of two columns of Qn 1: below this it is what rounding has left of a zero.
ROUNDED_ZERO = 1e-12
# Qn of a few of the values, so far off, saves half of the search.
PILOT_STEP, GUESS_ERROR = 8, 0.005


def _clipped(correlation: float) -> float:
    return min(1.0, max(-1.0, float(correlation)))


def qn(x: Floats, y: Floats) -> float:
    """Robust correlation from the scale Qn of the columns' sum and difference (paper, section 5.3).

    NaN as well where Qn is 0: a quarter of the differences in a column are, as when half of it is equal.
    """
    if not can_be_compared(x, y):
        return NAN
    x, y = _near_zero(x), _near_zero(y)
    x_scale, y_scale = _qn_scale(x), _qn_scale(y)
    if min(x_scale, y_scale) < SMALLEST_SCALE:
        return NAN
    x, y = x / x_scale, y / y_scale
    of_sum, of_difference = _qn_scale(x + y), _qn_scale(x - y)
    larger = max(of_sum, of_difference)
    if larger < ROUNDED_ZERO:
        return NAN
    sum_square, difference_square = (of_sum / larger) ** 2, (of_difference / larger) ** 2
    return _clipped((sum_square - difference_square) / (sum_square + difference_square))


def _near_zero(values: Floats) -> Floats:
    """Scale by a power of two, which is exact, to 1 at most, and take the median off."""
    scaled = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
    near: Floats = scaled - np.median(scaled)
    return near


def _qn_scale(values: Floats) -> float:
    """Return Qn without its constant and its factor for small samples: both cancel in a ratio."""
    ascending = np.sort(values)
    half = values.size // 2 + 1
    rank = half * (half - 1) // 2
    return float(_smallest_difference(ascending, rank, _guess(ascending, rank)))


def _guess(ascending: Floats, rank: int) -> float:
    """Guess a difference of a rank, mostly to half a percent, from that of every eighth value."""
    few = ascending[PILOT_STEP // 2 :: PILOT_STEP].copy()
    if few.size < PILOT_STEP:
        return 0.0
    # A value's difference from itself is not counted, and fewer values have a larger share of these.
    rank_among_few = (2 * rank + ascending.size) // (2 * PILOT_STEP**2) - few.size // 2
    return float(_smallest_difference(few, max(1, rank_among_few), 0.0))


@compiled
def _smallest_difference(ascending: Floats, rank: int, guess: float) -> float:
    """Find the rank-th smallest difference of two values, exactly: rounding keeps differences in order."""
    low, high = _narrow(0.0, ascending[-1] - ascending[0], ascending, rank, guess * (1 - GUESS_ERROR))
    low, high = _narrow(low, high, ascending, rank, guess * (1 + GUESS_ERROR))
    number = np.zeros(1)
    bits = number.view(np.uint64)  # those of a positive double ascend with it, so halve them
    while low < high:
        number[0] = low
        low_bits = bits[0]
        number[0] = high
        bits[0] = low_bits + ((bits[0] - low_bits) >> np.uint64(1))
        low, high = _narrow(low, high, ascending, rank, number[0])
    return low


@compiled
def _narrow(low: float, high: float, ascending: Floats, rank: int, limit: float) -> tuple[float, float]:
    """Move one end of an interval to the difference next to a limit; ends that exist soon meet."""
    count, below, above = _count_differences(ascending, limit)
    if count >= rank:
        return low, min(high, below)
    return max(low, above), high


@compiled
def _count_differences(ascending: Floats, limit: float) -> tuple[np.int64, float, float]:
    """Count the differences up to a limit; return the largest of these and the smallest beyond, too."""
    count, below, above = np.int64(0), 0.0, np.inf
    first = unsigned(0)
    for last in range(unsigned(1), unsigned(ascending.size)):
        while ascending[last] - ascending[first] > limit:
            first += unsigned(1)
        below = max(below, ascending[last] - ascending[first])
        if first > 0:
            above = min(above, ascending[last] - ascending[first - unsigned(1)])
        count += np.int64(last - first)
    return count, below, above


def kendall(x: Floats, y: Floats) -> float:
    """Kendall's tau-b: how many more pairs of rows agree in order than disagree, of those not tied."""
    if not can_be_compared(x, y):
        return NAN
    order = np.argsort(x)
    if np.any(x[order[1:]] == x[order[:-1]]):
        order = np.lexsort((y, x))  # takes five times as long
    return _clipped(_tau(x[order], y[order]))


@compiled
def _tau(x: Floats, y: Floats) -> float:
    """Compute tau-b of columns sorted by x, then y."""
    pairs = x.size * (x.size - 1) // 2
    tied_in_x, tied_in_both = _tied_pairs(x, x), _tied_pairs(x, y)
    disagreeing, ascending = _count_inversions(y)
    tied_in_y = _tied_pairs(ascending, ascending)
    surplus = pairs - tied_in_x - tied_in_y + tied_in_both - 2 * disagreeing
    return surplus / math.sqrt(pairs - tied_in_x) / math.sqrt(pairs - tied_in_y)


@compiled
def _tied_pairs(x: Floats, y: Floats) -> int:
    """Count the pairs of rows equal in both columns, when equal rows stand together."""
    pairs = run = 0
    for i in range(1, x.size):
        run = run + 1 if x[i] == x[i - 1] and y[i] == y[i - 1] else 0
        pairs += run
    return pairs


@compiled
def _count_inversions(values: Floats) -> tuple[int, Floats]:
    """Count the pairs that descend by sorting them with merges; return the sorted values, too."""
    inversions, width, size = 0, 1, values.size
    merged = np.empty(size)
    while width < size:
        for start in range(0, size, 2 * width):
            middle, end = min(start + width, size), min(start + 2 * width, size)
            inversions += _merge(values, merged, start, middle, end)
        values, merged = merged, values
        width *= 2
    return inversions, values


@compiled
def _merge(values: Floats, merged: Floats, start: int, middle: int, end: int) -> int:
    inversions, left, right = 0, start, middle
    for row in range(start, end):
        if right == end or (left < middle and values[left] <= values[right]):
            merged[row] = values[left]
            left += 1
        else:
            merged[row] = values[right]
            right += 1
            inversions += middle - left
    return inversions


def distance(x: Floats, y: Floats) -> float:
    """Distance correlation of Székely, Rizzo and Bakirov: 0 to 1, and 0 only for independent columns.

    It is the V-statistic, which is biased upward on small samples: independent columns of 30 points score
    about 0.3.
    """
    if not can_be_compared(x, y):
        return NAN
    x, y = standardise(x), standardise(y)
    x_centres, y_centres = _centres(x), _centres(y)
    xy, xx, yy = centred_products(x, y, x_centres, y_centres)
    # A row's distance to itself is 0, which centring moves; every other distance counts twice.
    xy += 2 * float(np.dot(x_centres, y_centres))
    xx += 2 * float(np.dot(x_centres, x_centres))
    yy += 2 * float(np.dot(y_centres, y_centres))
    return math.sqrt(max(0.0, _clipped(xy / math.sqrt(xx) / math.sqrt(yy))))


def _centres(values: Floats) -> Floats:
    """Return what to subtract from a distance, for each of its two rows, to centre it doubly."""
    means = row_sums(values) / values.size
    centres: Floats = means - means.mean() / 2
    return centres


def row_sums(values: Floats) -> Floats:
    """Return the sum of the distances of each value to all others."""
    order = np.argsort(values)
    ascending = values[order]
    below = np.cumsum(ascending)
    sums = np.empty(values.size)
    sums[order] = ascending * (2 * np.arange(1, values.size + 1) - values.size) - 2 * below + below[-1]
    return sums


@adding_in_any_order
def centred_products(
    x: Floats, y: Floats, x_centres: Floats, y_centres: Floats
) -> tuple[float, float, float]:
    """Sum the products of centred distances between different rows: x with y, x with x, y with y."""
    xy = xx = yy = 0.0
    for i in range(x.size):
        for j in range(i):
            x_distance = abs(x[i] - x[j]) - x_centres[i] - x_centres[j]
            y_distance = abs(y[i] - y[j]) - y_centres[i] - y_centres[j]
            xy += x_distance * y_distance
            xx += x_distance * x_distance
            yy += y_distance * y_distance
    return xy, xx, yy


def chatterjee(x: Floats, y: Floats) -> float:
    """Chatterjee's xi: how far y is a function of x, from about 0 (independent; at times below) to 1.

    Equal x stand in the order of their points, which is that of a hash: random, and the same every time.
    """
    if not can_be_compared(x, y):
        return NAN
    y_order = np.argsort(y)
    return _clipped(_xi(np.argsort(x, kind="stable"), y_order, y[y_order]))


@compiled
def _xi(x_order: Integers, y_order: Integers, ascending: Floats) -> float:
    size = ascending.size
    up_to = np.empty(size, np.int64)  # how many y are as large as each, or smaller
    steps = spread = start = 0
    while start < size:
        end = start + 1
        while end < size and ascending[end] == ascending[start]:
            end += 1
        for i in range(start, end):
            up_to[y_order[i]] = end
        spread += (end - start) * start * (size - start)
        start = end
    for i in range(1, size):
        steps += abs(up_to[x_order[i]] - up_to[x_order[i - 1]])
    return 1.0 - size * steps / (2.0 * spread)
