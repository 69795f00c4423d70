"""The second step of a query, compiled: every sketch of every block that holds a key of it is measured.

A block's dictionary is looked up once; then each of its sketches is one pass over its keys, with all sums in
registers. NumPy would need a pass and a temporary for each of them; Numba compiles one loop.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from covary.arrays import Floats
from covary.compiled import compiled
from covary.index.checksums import CheckedArray
from covary.index.segment_arrays import Blocks
from covary.index.segment_files import SoundArrays
from covary.index.segment_layout import Places
from covary.index.soundness import ALTERED, LONG, SOUND, Layout, look_at_set
from covary.query.match_keys import Meetings, meetings
from covary.statistics.moments import (
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

Scores = tuple[Places, Floats, Floats]
SCORES = 2  # the first moments: size and correlation


class Query(NamedTuple):
    """The keys of a query in h_u order, and the number of each."""

    hashes: npt.NDArray[np.uint64]
    values: Floats


def score_all(
    query: Query, blocks: Blocks, arrays: SoundArrays, measure: str, wanted: npt.NDArray[np.bool_]
) -> Scores:
    """Return which of the wanted sketches share a key with the query, how many each, and r (or NaN)."""
    sketches, facts = _measured(query, blocks, arrays, measure, wanted, closely=False)
    return sketches, facts[SIZE], facts[CORRELATION]


def moments_of_all(
    query: Query, blocks: Blocks, arrays: SoundArrays, measure: str, wanted: npt.NDArray[np.bool_]
) -> tuple[Places, Moments]:
    """Measure more closely the sketches that are wanted, given as a mask, and share a key with the query."""
    sketches, facts = _measured(query, blocks, arrays, measure, wanted, closely=True)
    return sketches, Moments(*facts)


def _measured(
    query: Query,
    blocks: Blocks,
    arrays: SoundArrays,
    measure: str,
    wanted: npt.NDArray[np.bool_],
    *,
    closely: bool,
) -> tuple[Places, Floats]:
    found = meetings(query.hashes, blocks, arrays)
    sketches, facts, wrong, of = _walk(
        tuple(blocks.layout), tuple(blocks.members), tuple(blocks.values), tuple(found),
        np.array(query.values), wanted, closely, *SWITCHES[measure],
    )  # fmt: skip
    if wrong:
        raise arrays.altered(LONG[of]) if wrong == ALTERED else arrays.impossible(LONG[of])
    return sketches, facts


@compiled
def _walk(  # noqa: C901, PLR0912
    layout: Any, members: Any, checked_values: Any, found: Any, x: Any, wanted: Any, closely: Any,
    by_rank: Any, as_normal: Any,
) -> Any:  # fmt: skip
    """Measure sketch after sketch; the branch of a switch that is None is left out while compiling.

    Says at last what is wrong, if anything is, and with which of the arrays.
    """
    layout, found = Layout(*layout), Meetings(*found)
    members, checked_values = CheckedArray(*members), CheckedArray(*checked_values)
    values = checked_values.array
    sketches = np.empty(found.sketches, np.int64)
    facts = np.full((MOMENTS if closely else SCORES, found.sketches), np.nan)
    count = 0
    near, exponent, middle = near_zero(x)
    widest = np.diff(layout.dictionary_starts).max() if layout.dictionary_starts.size > 1 else 0
    # By place in a dictionary; NaN: the query does not hold the key.
    x_of_key, near_of_key = np.full(widest, np.nan), np.full(widest, np.nan)
    scores = np.empty(0)
    for block in range(found.starts.size - 1):
        first, end = found.starts[block], found.starts[block + 1]
        if first == end:
            continue
        for i in range(first, end):
            entry, place = found.entries[i], found.places[i]
            x_of_key[entry], near_of_key[entry] = x[place], near[place]
        width = layout.dictionary_starts[block + 1] - layout.dictionary_starts[block]
        for key_set in layout.sets[layout.set_starts[block] : layout.set_starts[block + 1]]:
            start = layout.member_starts[key_set]
            own = members.array[start : start + layout.sizes[key_set]]
            if not layout.sets_seen[key_set]:
                wrong, of = look_at_set(key_set, own, width, layout, members, checked_values)
                if wrong:
                    return sketches, facts, wrong, of
            # Keys ascend in h_u: past the last that the query holds there is nothing to find.
            own = own[: _count_up_to(found.entries[end - 1], own)]
            if by_rank is not None:
                held, ranked, scores = ranked_at(own, x_of_key, as_normal, scores)
            for sketch in range(layout.sketch_starts[key_set], layout.sketch_starts[key_set + 1]):
                if not wanted[sketch]:
                    continue
                start = layout.value_starts[sketch]
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
            x_of_key[found.entries[i]] = near_of_key[found.entries[i]] = np.nan
    return sketches[:count], facts[:, :count], SOUND, 0


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
