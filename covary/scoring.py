"""The second step of a query, compiled: every sketch of every block that holds a key of it is measured.

A block's dictionary is looked up once; then each of its sketches is one pass over its keys, with all sums in
registers. NumPy would need a pass and a temporary for each of them; Numba compiles one loop.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from covary.aggregate import Floats
from covary.blocks import Blocks
from covary.compiled import compiled
from covary.lookup import meetings
from covary.moments import (
    CORRELATION,
    MOMENTS,
    SIZE,
    SWITCHES,
    Moments,
    by_rank_at,
    closely_at,
    near_zero,
    pearson_at,
    ranked_at,
)
from covary.segment import Places

Scores = tuple[Places, Floats, Floats]
SCORES = 2  # the first moments: size and correlation


def score_all(
    hashes: npt.NDArray[np.uint64], x: Floats, blocks: Blocks, measure: str, wanted: npt.NDArray[np.bool_]
) -> Scores:
    """Return which of the wanted sketches share a key with the query, how many each, and r (or NaN)."""
    found = meetings(hashes, blocks)
    sketches, facts = _walk(tuple(blocks), tuple(found), np.array(x), wanted, False, *SWITCHES[measure])
    return sketches, facts[SIZE], facts[CORRELATION]


def moments_of_all(
    hashes: npt.NDArray[np.uint64], x: Floats, blocks: Blocks, measure: str, wanted: npt.NDArray[np.bool_]
) -> tuple[Places, Moments]:
    """Measure more closely the sketches that are wanted, given as a mask, and share a key with the query."""
    found = meetings(hashes, blocks)
    sketches, facts = _walk(tuple(blocks), tuple(found), np.array(x), wanted, True, *SWITCHES[measure])
    return sketches, Moments(*facts)


@compiled
def _walk(  # noqa: C901
    blocks: Any, found: Any, x: Any, wanted: Any, closely: Any, by_rank: Any, as_normal: Any
) -> Any:
    """Measure sketch after sketch; the branch of a switch that is None is left out while compiling."""
    widest, set_starts, sets, set_sizes, member_starts, members = blocks[4:10]
    sketch_starts, value_starts, values = blocks[10:]
    starts, entries, places, room = found
    sketches, facts = np.empty(room, np.int64), np.full((MOMENTS if closely else SCORES, room), np.nan)
    count = 0
    near, exponent, middle = near_zero(x)
    # By place in a dictionary; NaN: the query does not hold the key.
    x_of_key, near_of_key = np.full(widest, np.nan), np.full(widest, np.nan)
    scores = np.empty(0)
    for block in range(starts.size - 1):
        first, end = starts[block], starts[block + 1]
        if first == end:
            continue
        for i in range(first, end):
            x_of_key[entries[i]], near_of_key[entries[i]] = x[places[i]], near[places[i]]
        for key_set in sets[set_starts[block] : set_starts[block + 1]]:
            start = member_starts[key_set]
            own = members[start : start + set_sizes[key_set]]
            # Keys ascend in h_u: past the last that the query holds there is nothing to find.
            own = own[: _count_up_to(entries[end - 1], own)]
            if by_rank is not None:
                held, ranked, scores = ranked_at(own, x_of_key, as_normal, scores)
            for sketch in range(sketch_starts[key_set], sketch_starts[key_set + 1]):
                if not wanted[sketch]:
                    continue
                start = value_starts[sketch]
                y = values[start : start + own.size]
                if by_rank is not None:
                    size, r = by_rank_at(held, ranked, y, as_normal, scores, facts[:, count])
                elif closely:
                    size, r = closely_at(own, y, near_of_key, x_of_key, exponent, middle, facts[:, count])
                else:
                    size, r = pearson_at(own, y, near_of_key, x_of_key)
                if size:
                    sketches[count], facts[SIZE, count], facts[CORRELATION, count] = sketch, size, r
                    count += 1
        for i in range(first, end):
            x_of_key[entries[i]] = near_of_key[entries[i]] = np.nan
    return sketches[:count], facts[:, :count]


@compiled
def _count_up_to(last: Any, ascending: Any) -> Any:
    low, high = 0, ascending.size
    while low < high:
        between = (low + high) // 2
        if ascending[between] > last:
            high = between
        else:
            low = between + 1
    return low
