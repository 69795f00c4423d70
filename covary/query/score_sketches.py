"""The second step of a query, compiled: every sketch of every block that holds a key of it is measured.

A block's dictionary is looked up once; then each of its sketches is one pass over its keys, with all sums in
registers. NumPy would need a pass and a temporary for each of them; Numba compiles one loop.
"""

from typing import Any, NamedTuple

import numpy as np

from covary.arrays import Array, Floats, Integers, Truths, Words
from covary.compiled import compiled, unnamed
from covary.index.segment_files import SoundArrays
from covary.index.soundness import SOUND, Blocks, Fault, Verdict, check_key_set, name_blocks
from covary.query.match_keys import KeyMatches, match_keys
from covary.statistics.moments import (
    SWITCHES,
    Moments,
    QueryNumbers,
    by_rank_at,
    empty_moments,
    measure_carefully,
    moments_at,
    near_zero,
    pearson_at,
    rank_query_at,
)


class Query(NamedTuple):
    """The keys of a query in h_u order, and the number of each."""

    hashes: Words
    values: Floats


def score_sketches(
    query: Query, blocks: Any, arrays: SoundArrays, measure: str, wanted: Truths, *, closely: bool = False
) -> tuple[Integers, Moments]:
    """Measure the wanted sketches that share a key with the query, and say which these are.

    `blocks` are those of a segment, `unnamed`; `closely` asks for all moments, not for the size and the
    correlation alone.
    """
    moments = empty_moments(int(np.count_nonzero(wanted)) if closely else wanted.size, closely=closely)
    asked = query.hashes, np.array(query.values)
    sketches, verdict = _score(blocks, asked, wanted, unnamed(moments), closely, *SWITCHES[measure])
    arrays.require_sound(verdict)
    return sketches, Moments(*(each[: sketches.size] if each.size else each for each in moments))


@compiled
def _score(
    unnamed_blocks: Any,
    asked: tuple[Words, Floats],
    wanted: Truths,
    unnamed_moments: Any,
    closely: bool,
    by_rank: bool | None,
    as_normal: bool | None,
) -> tuple[Integers, Verdict]:
    blocks, query, moments = name_blocks(unnamed_blocks), Query(*asked), Moments(*unnamed_moments)
    matches, verdict = match_keys(query.hashes, blocks)
    if verdict.fault != Fault.NONE:
        return np.empty(0, np.int64), verdict
    return _walk(blocks, matches, query.values, wanted, moments, closely, by_rank, as_normal)


@compiled
def _walk(  # noqa: C901, PLR0912
    blocks: Blocks,
    matches: KeyMatches,
    x: Floats,
    wanted: Truths,
    moments: Moments,
    closely: bool,
    by_rank: bool | None,
    as_normal: bool | None,
) -> tuple[Integers, Verdict]:
    """Measure sketch after sketch; the branch of a switch that is None is left out while compiling."""
    layout, members, values = blocks.layout, blocks.members.array, blocks.values.array
    sketches = np.empty(matches.sketches, np.int64)
    count = 0
    near, exponent, middle = near_zero(x)
    widest = np.diff(layout.dictionary_starts).max() if layout.dictionary_starts.size > 1 else 0
    x_of_key, near_of_key, scores = np.full(widest, np.nan), np.full(widest, np.nan), np.empty(0)
    query = QueryNumbers(x_of_key, near_of_key, exponent, middle)
    entries, query_rows, sizes, correlations = (
        matches.entries, matches.query_rows, moments.size, moments.correlation,
    )  # fmt: skip
    for block in range(matches.starts.size - 1):
        first, end = matches.starts[block], matches.starts[block + 1]
        if first == end:
            continue
        for i in range(first, end):
            entry, row = entries[i], query_rows[i]
            x_of_key[entry], near_of_key[entry] = x[row], near[row]
        for key_set in layout.sets[layout.set_starts[block] : layout.set_starts[block + 1]]:
            if not layout.sets_seen[key_set]:
                verdict = check_key_set(key_set, block, blocks)
                if verdict.fault != Fault.NONE:
                    return sketches, verdict
            start = layout.member_starts[key_set]
            own = members[start : start + layout.sizes[key_set]]
            # Keys ascend in h_u: past the last that the query holds there is nothing to find.
            own = own[: _count_up_to(entries[end - 1], own)]
            if by_rank is not None:
                held, ranked, scores = rank_query_at(own, x_of_key, as_normal, scores)
            for sketch in range(layout.sketch_starts[key_set], layout.sketch_starts[key_set + 1]):
                if not wanted[sketch]:
                    continue
                start = layout.value_starts[sketch]
                y = values[start : start + own.size]
                if by_rank is not None:
                    y_ranks, r = by_rank_at(held, ranked, y, as_normal, scores)
                    size = held.size
                    if closely and not np.isnan(r):
                        r = measure_carefully(ranked.copy(), y_ranks, moments, count)
                elif closely:
                    size, r = moments_at(own, y, query, moments, count)
                else:
                    size, r = pearson_at(own, y, near_of_key, x_of_key)
                if size:
                    sketches[count], sizes[count], correlations[count] = sketch, size, r
                    count += 1
        for i in range(first, end):
            x_of_key[entries[i]] = near_of_key[entries[i]] = np.nan
    return sketches[:count], SOUND


@compiled
def _count_up_to(last: int, ascending: Array) -> int:
    low, high = 0, ascending.size
    while low < high:
        between = (low + high) // 2
        if ascending[between] > last:
            high = between
        else:
            low = between + 1
    return low
