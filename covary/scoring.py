"""The compiled loops of a query: every sketch that shares a key with it is scored in one pass.

Each posting of a key that the query holds adds one pair (x, y) to its sketch's running sums. NumPy's
bincount would need five passes and as many temporaries over the same data; Numba compiles one loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from covary.aggregate import Floats
from covary.correlation import pearson

LANES = 8  # n, Σx, Σx², one unused, Σy, Σy², Σxy, one unused: two vector registers of four
# Below this share of its sum of squares a variance has lost too many digits to cancellation; below the other
# figure the squares themselves have.
LOST_DIGITS, SMALLEST_SQUARES = 1e-6, 1e-280

Places = npt.NDArray[np.int64]
unsigned = np.uint64  # an unsigned place needs no check for a negative one


def _compiled(loop: Callable[..., Any]) -> Any:
    try:
        return numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # no folder to keep compiled code in: it is compiled in every process
        return numba.njit(nogil=True)(loop)


def _vectorised(loop: Any) -> Callable[..., None]:
    """Compile a loop with vectorisation of straight-line code, which Numba leaves off: half the time here."""

    settings: Any = numba.config

    def call(*arguments: Any) -> None:
        before = settings.SLP_VECTORIZE
        settings.SLP_VECTORIZE = 1  # read only while compiling, that is at the first call
        try:
            loop(*arguments)
        finally:
            settings.SLP_VECTORIZE = before

    return call


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The inverted arrays of a segment: for key i, postings start[i] to start[i+1]."""

    starts: npt.NDArray[np.int64]
    sketches: npt.NDArray[np.uint32]
    values: Floats


def pearson_of_all(keys: Places, x: Floats, postings: Postings, sketch_count: int) -> tuple[Floats, Floats]:
    """Return, for every sketch, its joined sample's size and Pearson's r (NaN where it is undefined)."""
    sums = np.zeros(sketch_count * LANES)
    _add_postings(keys, _near_zero(x), postings.starts, postings.sketches, postings.values, sums)
    sizes, correlations = _correlations(sums)
    doubtful = np.flatnonzero(np.isinf(correlations))
    if doubtful.size:
        slots = np.full(sketch_count, -1)
        slots[doubtful] = np.arange(doubtful.size)
        ends = np.cumsum(sizes[doubtful].astype(np.int64))
        xs, ys = np.empty(int(ends[-1])), np.empty(int(ends[-1]))
        firsts = ends - sizes[doubtful].astype(np.int64)
        _collect_some(
            keys, x, postings.starts, postings.sketches, postings.values, slots, firsts.copy(), xs, ys
        )
        samples = (slice(first, end) for first, end in zip(firsts.tolist(), ends.tolist(), strict=True))
        correlations[doubtful] = [_two_pass(xs[sample], ys[sample]) for sample in samples]
    return sizes, correlations


def _near_zero(x: Floats) -> Floats:
    """Bring a query's values near 0 and 1, where sums of squares lose the fewest digits."""
    if not x.size:
        return x
    scaled = np.ldexp(x, -np.frexp(np.abs(x).max())[1])
    centred: Floats = scaled - scaled.mean()
    return centred


def _two_pass(x: Floats, y: Floats) -> float:
    constant = x.min() == x.max() or y.min() == y.max()  # the usual case, and told at once
    return float("nan") if constant else pearson(x, y)


@_vectorised
@_compiled
def _add_postings(keys: Any, x: Any, starts: Any, sketches: Any, values: Any, sums: Any) -> None:
    for i in range(keys.size):
        xi = x[i]
        square = xi * xi
        for place in range(unsigned(starts[keys[i]]), unsigned(starts[keys[i] + 1])):
            at = unsigned(sketches[place]) * unsigned(LANES)
            y = values[place]
            # Loads first, stores last: only so are they seen to be one vector each.
            n, sx, sxx, unused = (
                sums[at],
                sums[at + unsigned(1)],
                sums[at + unsigned(2)],
                sums[at + unsigned(3)],
            )
            sy, syy, sxy = sums[at + unsigned(4)], sums[at + unsigned(5)], sums[at + unsigned(6)]
            spare = sums[at + unsigned(7)]
            sums[at] = n + 1.0
            sums[at + unsigned(1)] = sx + xi
            sums[at + unsigned(2)] = sxx + square
            sums[at + unsigned(3)] = unused + 0.0
            sums[at + unsigned(4)] = sy + y * 1.0
            sums[at + unsigned(5)] = syy + y * y
            sums[at + unsigned(6)] = sxy + y * xi
            sums[at + unsigned(7)] = spare + y * 0.0


@_compiled
def _correlations(sums: Any) -> Any:
    count = sums.size // LANES
    sizes = np.empty(count)
    correlations = np.full(count, np.nan)
    for sketch in range(count):
        n, sx, sxx, _, sy, syy, sxy, _ = sums[sketch * LANES : (sketch + 1) * LANES]
        sizes[sketch] = n
        if n < 3:
            continue
        x_spread = n * sxx - sx * sx
        y_spread = n * syy - sy * sy
        if not (x_spread > LOST_DIGITS * n * sxx and y_spread > max(LOST_DIGITS * n * syy, SMALLEST_SQUARES)):
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


@_compiled
def _count_postings(keys: Any, starts: Any, sketches: Any, sizes: Any) -> None:
    for i in range(keys.size):
        for place in range(starts[keys[i]], starts[keys[i] + 1]):
            sizes[sketches[place]] += 1


@_compiled
def _collect(keys: Any, x: Any, starts: Any, sketches: Any, values: Any, free: Any, xs: Any, ys: Any) -> None:
    for i in range(keys.size):
        for place in range(starts[keys[i]], starts[keys[i] + 1]):
            sketch = sketches[place]
            xs[free[sketch]] = x[i]
            ys[free[sketch]] = values[place]
            free[sketch] += 1


@_compiled
def _collect_some(
    keys: Any, x: Any, starts: Any, sketches: Any, values: Any, slots: Any, free: Any, xs: Any, ys: Any
) -> None:
    for i in range(keys.size):
        for place in range(starts[keys[i]], starts[keys[i] + 1]):
            slot = slots[sketches[place]]
            if slot >= 0:
                xs[free[slot]] = x[i]
                ys[free[slot]] = values[place]
                free[slot] += 1


@_compiled
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


@_compiled
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


@_compiled
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
