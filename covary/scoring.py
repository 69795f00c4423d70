"""The compiled loops of a query: every sketch of every block that holds a key of the query is scored.

A block's dictionary is looked up once; then each of its sketches is one pass over its keys, with all sums in
registers. NumPy would need a pass and a temporary for each of them; Numba compiles one loop. Whole-array
expressions are written out as loops here: they would run no faster, and take seconds to compile.
"""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from covary.aggregate import Floats
from covary.blocks import Blocks
from covary.correlation import SMALLEST_SAMPLE

# Below this share of its sum of squares a variance has lost too many digits to cancellation; below the other
# figure the squares themselves have.
LOST_DIGITS, SMALLEST_SQUARES = 1e-6, 1e-280

Places = npt.NDArray[np.int64]
unsigned = np.uint64  # an unsigned place needs no check for a negative one


def _compiled(loop: Callable[..., Any], **options: Any) -> Any:
    try:
        return numba.njit(nogil=True, cache=True, **options)(loop)
    except RuntimeError:  # no folder to keep compiled code in: it is compiled in every process
        return numba.njit(nogil=True, **options)(loop)


def _adding_in_any_order(loop: Callable[..., Any]) -> Any:
    """Compile a loop whose sums may be added in any order, and so several at a time."""
    return _compiled(loop, fastmath={"reassoc", "contract", "nsz"})


Scores = tuple[Places, Floats, Floats]


def pearson_of_all(hashes: npt.NDArray[np.uint64], x: Floats, blocks: Blocks) -> Scores:
    """Return the sketches that share a key with the query, how many, and Pearson's r (NaN: undefined)."""
    scores: Scores = _score(tuple(blocks), hashes, np.array(x), None)
    return scores


def spearman_of_all(hashes: npt.NDArray[np.uint64], x: Floats, blocks: Blocks) -> Scores:
    """Return the sketches that share a key with the query, how many, and Spearman's rank correlation."""
    scores: Scores = _score(tuple(blocks), hashes, np.array(x), True)
    return scores


@_compiled
def _score(blocks: Any, wanted: Any, x: Any, by_rank: Any) -> Any:
    hashes, posting_starts, posting_blocks, posting_entries, widest, set_starts, sets = blocks[:7]
    set_sizes, member_starts, members, sketch_starts, value_starts, values = blocks[7:]
    keys = _find(wanted, hashes)
    starts, entries, places = _by_block(keys, posting_starts, posting_blocks, posting_entries, set_starts)
    room = _count_sketches(starts, set_starts, sets, sketch_starts)
    sketches, sizes, correlations = np.empty(room, np.int64), np.empty(room), np.empty(room)
    found = 0
    near_x = _near_zero(x)
    # By place in a dictionary; NaN: the query does not hold the key.
    x_of_key, near_x_of_key = np.full(widest, np.nan), np.full(widest, np.nan)
    for block in range(starts.size - 1):
        first, end = starts[block], starts[block + 1]
        if first == end:
            continue
        for i in range(first, end):
            x_of_key[entries[i]], near_x_of_key[entries[i]] = x[places[i]], near_x[places[i]]
        for key_set in sets[set_starts[block] : set_starts[block + 1]]:
            start = member_starts[key_set]
            own = members[start : start + set_sizes[key_set]]
            # Keys ascend in h_u: past the last that the query holds there is nothing to find.
            own = own[: _count_up_to(entries[end - 1], own)]
            for sketch in range(sketch_starts[key_set], sketch_starts[key_set + 1]):
                start = value_starts[sketch]
                y = values[start : start + own.size]
                if by_rank is None:  # settled while compiling: only one of the two is compiled
                    size, r = _pearson(own, y, near_x_of_key, x_of_key)
                else:
                    size, r = _spearman(own, y, x_of_key)
                if size:
                    sketches[found], sizes[found], correlations[found] = sketch, size, r
                    found += 1
        for i in range(first, end):
            x_of_key[entries[i]] = near_x_of_key[entries[i]] = np.nan
    return sketches[:found], sizes[:found], correlations[:found]


@_compiled
def _find(wanted: Any, hashes: Any) -> Any:
    """Return where each hash lies among sorted ones, or -1: hashes are spread evenly, so its value tells."""
    last = hashes.size - 1
    if last < 0:
        return np.full(wanted.size, -1)
    found = np.zeros(wanted.size, np.int64)
    per_step = max(float(hashes[last]), 1.0) / max(last, 1)
    for _ in range(4):  # each leaves the square root of the distance
        # All keys a step at a time, so that their waits for memory overlap.
        for i in range(wanted.size):
            step = int((float(wanted[i]) - float(hashes[unsigned(found[i])])) / per_step)
            found[i] = min(last, max(0, found[i] + step))
    for i in range(wanted.size):
        place = found[i]
        while place < last and hashes[place] < wanted[i]:
            place += 1
        while place > 0 and hashes[place] > wanted[i]:
            place -= 1
        found[i] = place if hashes[place] == wanted[i] else -1
    return found


@_compiled
def _by_block(keys: Any, posting_starts: Any, blocks: Any, entries: Any, set_starts: Any) -> Any:
    """Sort the postings of the keys by block: the place in its dictionary, and the place in the query."""
    starts, ends = np.zeros(keys.size, np.int64), np.zeros(keys.size, np.int64)
    for i in range(keys.size):
        if keys[i] >= 0:
            starts[i], ends[i] = posting_starts[keys[i]], posting_starts[keys[i] + 1]
    block_ends = np.zeros(set_starts.size, np.int64)
    for i in range(keys.size):
        for posting in range(unsigned(starts[i]), unsigned(ends[i])):
            block_ends[unsigned(blocks[posting])] += 1
    total = 0
    for block in range(block_ends.size):
        total += block_ends[block]
        block_ends[block] = total - block_ends[block]
    block_starts = block_ends.copy()
    sorted_entries, places = np.empty(total, np.int32), np.empty(total, np.int32)
    for i in range(keys.size):
        for posting in range(unsigned(starts[i]), unsigned(ends[i])):
            holder = unsigned(blocks[posting])
            at = unsigned(block_ends[holder])
            sorted_entries[at], places[at] = entries[posting], i
            block_ends[holder] += 1
    return block_starts, sorted_entries, places


@_compiled
def _count_sketches(starts: Any, set_starts: Any, sets: Any, sketch_starts: Any) -> Any:
    count = 0
    for block in range(starts.size - 1):
        if starts[block] < starts[block + 1]:
            for key_set in sets[set_starts[block] : set_starts[block + 1]]:
                count += sketch_starts[key_set + 1] - sketch_starts[key_set]
    return count


@_compiled
def _near_zero(x: Any) -> Any:
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
    for i in range(x.size):
        near[i] -= total / x.size
    return near


@_compiled
def _count_up_to(last: Any, ascending: Any) -> Any:
    low, high = 0, ascending.size
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] > last:
            high = middle
        else:
            low = middle + 1
    return low


@_adding_in_any_order
def _pearson(members: Any, values: Any, near_x_of_key: Any, x_of_key: Any) -> Any:
    if not members.size:
        return 0, np.nan
    first = values[0]  # nearly as good as the mean against cancellation, and known beforehand
    n = 0
    sx = sxx = sy = syy = sxy = 0.0
    for place in range(members.size):
        x = near_x_of_key[unsigned(members[place])]
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
    if n < SMALLEST_SAMPLE:
        return n, np.nan
    x_spread = n * sxx - sx * sx
    y_spread = n * syy - sy * sy
    exact = x_spread > LOST_DIGITS * n * sxx and y_spread > LOST_DIGITS * n * syy
    if exact and min(x_spread, y_spread) > SMALLEST_SQUARES and y_spread < np.inf:
        return n, min(1.0, max(-1.0, (n * sxy - sx * sy) / np.sqrt(x_spread) / np.sqrt(y_spread)))
    return n, _careful_pearson(members, values, x_of_key)


@_compiled
def _careful_pearson(members: Any, values: Any, x_of_key: Any) -> Any:
    x, y = _sample(members, values, x_of_key)
    if not (_standardise(x) and _standardise(y)):
        return np.nan
    r = 0.0
    for i in range(x.size):
        r += x[i] * y[i]
    return min(1.0, max(-1.0, r))


@_compiled
def _sample(members: Any, values: Any, x_of_key: Any) -> Any:
    xs, ys = np.empty(members.size), np.empty(members.size)
    size = 0
    for place in range(members.size):
        x = x_of_key[members[place]]
        if not np.isnan(x):
            xs[size], ys[size] = x, values[place]
            size += 1
    return xs[:size], ys[:size]


@_compiled
def _standardise(values: Any) -> Any:
    """Centre and scale to length 1 in place, or tell that all are equal, or one infinite."""
    low = high = values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
    largest = max(abs(low), abs(high))
    if low == high or np.isinf(largest):
        return False
    exponent = math.frexp(largest)[1]
    for i in range(values.size):
        values[i] = math.ldexp(values[i], -exponent)  # to 1 at most, exactly: no difference overflows
    _centre(values)
    _centre(values)  # what the first mean rounded off, which a large offset magnifies
    squares = 0.0
    for value in values:
        squares += value * value
    for i in range(values.size):
        values[i] /= np.sqrt(squares)
    return True


@_compiled
def _centre(values: Any) -> None:
    middle = 0.0
    for value in values:
        middle += value / values.size
    for i in range(values.size):
        values[i] -= middle


@_compiled
def _spearman(members: Any, values: Any, x_of_key: Any) -> Any:
    x, y = _sample(members, values, x_of_key)
    n = x.size
    if n < SMALLEST_SAMPLE:
        return n, np.nan
    x_ranks, y_ranks = _ranks(x), _ranks(y)
    middle = (n + 1) / 2
    xx = yy = xy = 0.0
    for i in range(n):
        xx += (x_ranks[i] - middle) ** 2
        yy += (y_ranks[i] - middle) ** 2
        xy += (x_ranks[i] - middle) * (y_ranks[i] - middle)
    if xx > 0 and yy > 0:
        return n, min(1.0, max(-1.0, xy / np.sqrt(xx * yy)))
    return n, np.nan


@_compiled
def _ranks(values: Any) -> Any:
    ascending = np.argsort(values)
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


ALL_AT_ONCE = {"pearson": pearson_of_all, "spearman": spearman_of_all}
