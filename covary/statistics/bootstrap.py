"""PM1: Pearson's r of resamples, their mean and their modified percentiles (paper, section 5.3; Wilcox)."""

from collections.abc import Callable

import numpy as np

from covary.arrays import Floats, Integers
from covary.compiled import compiled, unsigned
from covary.statistics.correlation import NAN, can_be_compared, standardise
from covary.statistics.moments import standardised_product

FEWEST_DRAWS, MOST_DRAWS = 50, 10_000
# Resampling stops when the mean moves by more than this with a probability below 0.05 %: a normal number
# lies this many standard deviations off as rarely, on either side.
CLOSE_ENOUGH, RARELY = 0.01, 3.4808

# Of this many sorted resamples, the ends of a 95 % interval (1-based), for samples smaller than a size.
PM1_DRAWS = 599
PM1_ENDS = ((40, 7, 593), (80, 8, 592), (180, 11, 588), (250, 14, 585), (np.inf, 15, 584))

# Below this share of the sample's sum of squares, a resample's is too imprecise, and is computed anew.
LOST_DIGITS = 1e-6
LOST = np.inf  # stands for the r of such a resample until it is known

# Numba takes the product of an unsigned and a signed integer for a float: all of these are unsigned.
ODD_STEP, LOW_HALF = unsigned(0x9E3779B97F4A7C15), unsigned(0xFFFFFFFF)
FIRST_FACTOR, SECOND_FACTOR = unsigned(0xBF58476D1CE4E5B9), unsigned(0x94D049BB133111EB)


def resample(x: Floats, y: Floats, draws: int, seed: int = 0) -> Floats:
    """Return Pearson's r of points drawn with replacement, as often as asked; NaN where a column is constant.

    A draw depends on its number and the seed alone: asking for more draws appends to the same ones.
    """
    if not can_be_compared(x, y):
        return np.full(draws, np.nan)
    return _prepare_draws(x, y, seed)(0, draws)


def pm1(x: Floats, y: Floats, seed: int = 0) -> float:
    """Mean of Pearson's r over resamples, until their mean hardly moves; a constant one counts as 0."""
    if not can_be_compared(x, y):
        return NAN
    draw = _prepare_draws(x, y, seed)
    correlations = np.empty(0)
    while correlations.size < MOST_DRAWS and not _is_settled(correlations):
        draws = min(max(FEWEST_DRAWS, correlations.size // 4), MOST_DRAWS - correlations.size)
        more = draw(correlations.size, draws)
        correlations = np.append(correlations, np.nan_to_num(more))
    return float(correlations.mean())


def _is_settled(correlations: Floats) -> bool:
    draws = correlations.size
    return draws > 0 and bool(RARELY * correlations.std(ddof=1) <= CLOSE_ENOUGH * np.sqrt(draws))


def pm1_ends(x: Floats, y: Floats, seed: int = 0) -> tuple[float, float]:
    """Return the ends of a 95 % interval of Pearson's r; a constant resample is drawn anew."""
    if not can_be_compared(x, y):
        return NAN, NAN
    draw = _prepare_draws(x, y, seed)
    correlations, drawn = np.empty(0), 0
    while correlations.size < PM1_DRAWS and drawn < MOST_DRAWS:
        missing = PM1_DRAWS - correlations.size
        more = draw(drawn, missing)
        correlations, drawn = np.append(correlations, more[~np.isnan(more)]), drawn + missing
    if correlations.size < PM1_DRAWS:
        return NAN, NAN
    low, high = next((low, high) for size, low, high in PM1_ENDS if x.size < size)
    ascending = np.sort(correlations)
    return float(ascending[low - 1]), float(ascending[high - 1])


def _prepare_draws(x: Floats, y: Floats, seed: int) -> Callable[[int, int], Floats]:
    """Return what computes Pearson's r of draws, given the first of them and how many."""
    # The last row is for the one point too many that an odd number of points draws: it adds nothing.
    unit_x, unit_y = np.append(standardise(x), 0.0), np.append(standardise(y), 0.0)
    # A view or a read-only array would be compiled for anew: hence the copies.
    x, y, start = np.array(x), np.array(y), unsigned(int(seed) % 2**64)

    def draw(first: int, draws: int) -> Floats:
        correlations: Floats = _correlate(unit_x, unit_y, start, first, draws)
        _measure_lost(correlations, x, y, start, first)
        return correlations

    return draw


@compiled
def _correlate(x: Floats, y: Floats, seed: np.uint64, first: int, draws: int) -> Floats:
    """Compute r of each draw in one pass, two points at a time; LOST when digits were."""
    size = x.size - 1
    correlations = np.empty(draws)
    for draw in range(draws):
        counter = _first_counter(size, seed, first + draw)
        sx = sy = sxx = syy = sxy = tx = ty = txx = tyy = txy = 0.0
        for drawn in range(1, size + 1, 2):
            counter += ODD_STEP
            i, j = _two_rows(counter, size)
            j = j if drawn < size else unsigned(size)
            sx += x[i]
            tx += x[j]
            sy += y[i]
            ty += y[j]
            sxx += x[i] * x[i]
            txx += x[j] * x[j]
            syy += y[i] * y[i]
            tyy += y[j] * y[j]
            sxy += x[i] * y[i]
            txy += x[j] * y[j]
        correlations[draw] = _pearson(size, sx + tx, sy + ty, sxx + txx, syy + tyy, sxy + txy)
    return correlations


@compiled
def _pearson(size: int, sx: float, sy: float, sxx: float, syy: float, sxy: float) -> float:
    x_spread, y_spread = sxx - sx * sx / size, syy - sy * sy / size
    # The sum of squares of the sample itself is 1.
    if x_spread > LOST_DIGITS * (1 + sxx) and y_spread > LOST_DIGITS * (1 + syy):
        r: float = (sxy - sx * sy / size) / np.sqrt(x_spread) / np.sqrt(y_spread)
        return min(1.0, max(-1.0, r))
    return LOST


@compiled
def _measure_lost(correlations: Floats, x: Floats, y: Floats, seed: np.uint64, first: int) -> None:
    """Measure in two passes the draws that lost digits in one; NaN where a column is constant."""
    xs, ys = np.empty(x.size), np.empty(x.size)
    for draw in range(correlations.size):
        if correlations[draw] == LOST:
            rows = _drawn_rows(x.size, seed, first + draw)
            for i in range(x.size):
                xs[i], ys[i] = x[rows[i]], y[rows[i]]
            correlations[draw] = standardised_product(xs, ys)[0]


@compiled
def _drawn_rows(size: int, seed: np.uint64, draw: int) -> Integers:
    """Return the rows of one draw, the same that its sums were over."""
    counter = _first_counter(size, seed, draw)
    rows = np.empty(size + 1, np.int64)
    for drawn in range(0, size, 2):
        counter += ODD_STEP
        rows[drawn], rows[drawn + 1] = _two_rows(counter, size)
    return rows[:size]


@compiled
def _first_counter(size: int, seed: np.uint64, draw: int) -> np.uint64:
    return _mix(seed) + unsigned(draw) * unsigned((size + 1) // 2) * ODD_STEP


@compiled
def _two_rows(counter: np.uint64, size: int) -> tuple[np.uint64, np.uint64]:
    """Return two random rows below a size: the halves of a random number, each times the size."""
    number = _mix(counter)
    shift = unsigned(32)
    return ((number & LOW_HALF) * unsigned(size)) >> shift, ((number >> shift) * unsigned(size)) >> shift


@compiled
def _mix(counter: np.uint64) -> np.uint64:
    """Turn a counter into a random number, as SplitMix64 does."""
    number = (counter ^ (counter >> unsigned(30))) * FIRST_FACTOR
    number = (number ^ (number >> unsigned(27))) * SECOND_FACTOR
    return number ^ (number >> unsigned(31))
