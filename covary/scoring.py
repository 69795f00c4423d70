"""The compiled loops of a query: every sketch that shares a key with it is scored in one pass.

Each posting of a key that the query holds adds one pair (x, y) to its sketch's six running sums. Loops over
postings are compiled by Numba: NumPy's bincount needs five passes and as many temporaries over the same data.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from covary.aggregate import Floats

SUMS = 6  # n, Σx, Σx², Σy, Σy², Σxy
LOST_DIGITS = (
    1e-8  # below this share of a sum of squares, its variance has lost too many digits to cancellation
)
POSTINGS_FOR_TWO_THREADS = 200_000
_threads = ThreadPoolExecutor(2, thread_name_prefix="covary-score")

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The inverted arrays of a segment: for key i, postings start[i] to start[i+1]."""

    starts: npt.NDArray[np.int64]
    sketches: npt.NDArray[np.uint32]
    values: Floats


def pearson_of_all(keys: Places, x: Floats, postings: Postings, sketch_count: int) -> tuple[Floats, Floats]:
    """Return, for every sketch, its joined sample's size and Pearson's r.

    r is NaN where it is undefined, and infinite where the sums lost too many digits to tell: there the
    joined sample has to be measured in two passes.
    """
    sums = _all_sums(keys, x, postings, sketch_count)
    return _correlations(sums)


def _all_sums(keys: Places, x: Floats, postings: Postings, sketch_count: int) -> Floats:
    lengths = np.cumsum(postings.starts[keys + 1] - postings.starts[keys])
    if not lengths.size or lengths[-1] < POSTINGS_FOR_TWO_THREADS:
        return _sums_of(keys, x, postings, sketch_count)
    middle = int(np.searchsorted(lengths, lengths[-1] // 2))
    other = _threads.submit(_sums_of, keys[middle:], x[middle:], postings, sketch_count)
    return _sums_of(keys[:middle], x[:middle], postings, sketch_count) + other.result()


def _sums_of(keys: Places, x: Floats, postings: Postings, sketch_count: int) -> Floats:
    sums = np.zeros(sketch_count * SUMS)
    _add_postings(keys, x, postings.starts, postings.sketches, postings.values, sums)
    return sums


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _add_postings(keys: Any, x: Any, starts: Any, sketches: Any, values: Any, sums: Any) -> None:
    for i in range(keys.size):
        xi = x[i]
        square = xi * xi
        for place in range(starts[keys[i]], starts[keys[i] + 1]):
            at = np.int64(sketches[place]) * SUMS
            y = values[place]
            sums[at] += 1.0
            sums[at + 1] += xi
            sums[at + 2] += square
            sums[at + 3] += y
            sums[at + 4] += y * y
            sums[at + 5] += xi * y


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _correlations(sums: Any) -> Any:
    count = sums.size // SUMS
    sizes = np.empty(count)
    correlations = np.full(count, np.nan)
    for sketch in range(count):
        n, sx, sxx, sy, syy, sxy = sums[sketch * SUMS : (sketch + 1) * SUMS]
        sizes[sketch] = n
        if n < 3:
            continue
        x_spread = n * sxx - sx * sx
        y_spread = n * syy - sy * sy
        if not (x_spread > LOST_DIGITS * n * sxx and y_spread > LOST_DIGITS * n * syy):
            correlations[sketch] = np.inf
            continue
        r = (n * sxy - sx * sy) / np.sqrt(x_spread) / np.sqrt(y_spread)
        correlations[sketch] = min(1.0, max(-1.0, r))
    return sizes, correlations


def spearman_of_all(keys: Places, x: Floats, postings: Postings, sketch_count: int) -> tuple[Floats, Floats]:
    """Return, for every sketch, its joined sample's size and Spearman's rank correlation (NaN: undefined)."""
    ascending = np.argsort(x, kind="stable")
    # Visiting keys by ascending x leaves every sample sorted by x: only y is left to sort.
    sizes = np.zeros(sketch_count, dtype=np.int64)
    _count_postings(keys, postings.starts, postings.sketches, sizes)
    ends = np.cumsum(sizes)
    xs, ys = np.empty(int(sizes.sum())), np.empty(int(sizes.sum()))
    _collect(
        keys[ascending],
        x[ascending],
        postings.starts,
        postings.sketches,
        postings.values,
        ends - sizes,
        xs,
        ys,
    )
    return sizes.astype(np.float64), _rank_correlations(ends - sizes, ends, xs, ys)


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count_postings(keys: Any, starts: Any, sketches: Any, sizes: Any) -> None:
    for i in range(keys.size):
        for place in range(starts[keys[i]], starts[keys[i] + 1]):
            sizes[sketches[place]] += 1


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _collect(keys: Any, x: Any, starts: Any, sketches: Any, values: Any, free: Any, xs: Any, ys: Any) -> None:
    for i in range(keys.size):
        for place in range(starts[keys[i]], starts[keys[i] + 1]):
            sketch = sketches[place]
            xs[free[sketch]] = x[i]
            ys[free[sketch]] = values[place]
            free[sketch] += 1


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _rank_correlations(firsts: Any, ends: Any, xs: Any, ys: Any) -> Any:
    correlations = np.full(firsts.size, np.nan)
    for sketch in range(firsts.size):
        first, end = firsts[sketch], ends[sketch]
        n = end - first
        if n < 3:
            continue
        x_ranks = _average_ranks(xs[first:end], np.arange(n))
        y = ys[first:end]
        y_ranks = _average_ranks(y, np.argsort(y))
        middle = (n + 1) / 2
        xx = yy = xy = 0.0
        for i in range(n):
            xx += (x_ranks[i] - middle) ** 2
            yy += (y_ranks[i] - middle) ** 2
            xy += (x_ranks[i] - middle) * (y_ranks[i] - middle)
        if xx > 0 and yy > 0:
            correlations[sketch] = min(1.0, max(-1.0, xy / np.sqrt(xx * yy)))
    return correlations


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _average_ranks(values: Any, ascending: Any) -> Any:
    ranks = np.empty(values.size)
    start = 0
    while start < values.size:
        end = start + 1
        while end < values.size and values[ascending[end]] == values[ascending[start]]:
            end += 1
        for i in range(start, end):
            ranks[ascending[i]] = (start + end + 1) / 2
        start = end
    return ranks


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def find_postings(keys: Any, sketch: Any, starts: Any, sketches: Any) -> Any:
    """Return where a sketch's posting lies among those of each key, or -1 where it has none."""
    found = np.full(keys.size, -1, dtype=np.int64)
    for i in range(keys.size):
        low, high = starts[keys[i]], starts[keys[i] + 1]
        while low < high:
            middle = (low + high) // 2
            if sketches[middle] < sketch:
                low = middle + 1
            else:
                high = middle
        if low < starts[keys[i] + 1] and sketches[low] == sketch:
            found[i] = low
    return found


ALL_AT_ONCE = {"pearson": pearson_of_all, "spearman": spearman_of_all}
