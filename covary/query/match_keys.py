"""The first step of a query, compiled: its keys, found among those of a segment and sorted by block."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from covary.compiled import compiled, unsigned
from covary.index.checksums import PIECE_BYTES, CheckedArray
from covary.index.segment_arrays import Blocks
from covary.index.segment_files import SoundArrays
from covary.index.segment_layout import Places
from covary.index.soundness import (
    ALTERED,
    IMPOSSIBLE,
    LONG,
    SOUND,
    STARTS,
    Layout,
    is_sound_between,
    look_at_key,
)

HASHES_PER_PIECE = unsigned(PIECE_BYTES // 8)
FEW_STEPS = 64  # from where a hash should be; beyond, a search by halves is quicker


class Meetings(NamedTuple):
    """Where the keys of a query lie: those of block i from starts[i] to starts[i+1], in h_u order."""

    starts: Places  # by block
    entries: npt.NDArray[np.int32]  # place of the key in the block's dictionary
    places: npt.NDArray[np.int32]  # place of the key in the query
    sketches: int  # how many sketches may share a key


def meetings(hashes: npt.NDArray[np.uint64], blocks: Blocks, arrays: SoundArrays) -> Meetings:
    """Look up the keys of a query, given in h_u order."""
    # Numba takes plain tuples at once; it looks at one with names each time, as long as a small query takes.
    layout = tuple(blocks.layout)
    keys, sound = _find(hashes, tuple(blocks.hashes))
    if not sound:
        raise arrays.altered("keys.hash")
    starts, entries, places, wrong, of = _by_block(
        keys, tuple(blocks.posting_starts), tuple(blocks.posting_blocks), tuple(blocks.posting_entries),
        layout, blocks.keys_seen,
    )  # fmt: skip
    if wrong:
        raise arrays.altered(LONG[of]) if wrong == ALTERED else arrays.impossible(LONG[of])
    return Meetings(starts, entries, places, int(_count_sketches(starts, layout)))


@compiled
def _find(wanted: Any, checked: Any) -> Any:
    """Return where each hash lies among sorted ones, or -1: hashes are spread evenly, so its value tells.

    Only the hashes that decide are held against their checksums: the others are hints.
    """
    checked = CheckedArray(*checked)
    hashes = checked.array
    last = hashes.size - 1
    if last < 0:
        return np.full(wanted.size, -1), True
    found = np.zeros(wanted.size, np.int64)
    per_step = max(float(hashes[last]), 1.0) / max(last, 1)
    for _ in range(4):  # each leaves the square root of the distance
        # All keys a step at a time, so that their waits for memory overlap.
        for i in range(wanted.size):
            step = int((float(wanted[i]) - float(hashes[unsigned(found[i])])) / per_step)
            found[i] = min(last, max(0, found[i] + step))
    for i in range(wanted.size):
        place = found[i]
        low, high = max(0, place - FEW_STEPS), min(last, place + FEW_STEPS)
        if hashes[low] > wanted[i] or hashes[high] < wanted[i]:  # hashes that are not spread evenly
            place = _search(hashes, wanted[i])
            low, high = max(0, place - FEW_STEPS), min(last, place + FEW_STEPS)
        while place < high and hashes[place] < wanted[i]:
            place += 1
        while place > low and hashes[place] > wanted[i]:
            place -= 1
        # The neighbours too: a hash that was altered must not hide that this one is here.
        before, after = unsigned(max(0, place - 1)), unsigned(min(last, place + 1))
        seen = checked.seen[before // HASHES_PER_PIECE] and checked.seen[after // HASHES_PER_PIECE]
        if not seen and not is_sound_between(checked, np.int64(before), np.int64(after) + 1):
            return found, False
        found[i] = place if hashes[place] == wanted[i] else -1
    return found, True


@compiled
def _search(hashes: Any, wanted: Any) -> Any:
    low, high = 0, hashes.size - 1
    while low < high:
        between = (low + high) // 2
        if hashes[between] < wanted:
            low = between + 1
        else:
            high = between
    return low


@compiled
def _by_block(keys: Any, starts_of_keys: Any, blocks: Any, entries: Any, layout: Any, seen: Any) -> Any:
    """Sort the postings of the keys by block: the place in its dictionary, and the place in the query.

    Says at last what is wrong, if anything is, and with which of the arrays.
    """
    starts_of_keys, blocks, entries, layout = (
        CheckedArray(*starts_of_keys), CheckedArray(*blocks), CheckedArray(*entries), Layout(*layout),
    )  # fmt: skip
    starts, ends = np.zeros(keys.size, np.int64), np.zeros(keys.size, np.int64)
    block_ends = np.zeros(layout.set_starts.size, np.int64)
    none = np.empty(0, np.int32)
    every = 0
    for i in range(keys.size):
        if keys[i] < 0:
            continue
        if not seen[keys[i]]:
            wrong, of = look_at_key(keys[i], starts_of_keys, blocks, entries, layout)
            if wrong:
                return block_ends, none, none, wrong, of
            seen[keys[i]] = 1
        starts[i], ends[i] = starts_of_keys.array[keys[i]], starts_of_keys.array[keys[i] + 1]
        every += ends[i] - starts[i]
        if every > blocks.array.size:  # keys that share postings: there could be more than memory holds
            return block_ends, none, none, IMPOSSIBLE, STARTS
        for posting in range(unsigned(starts[i]), unsigned(ends[i])):
            block_ends[unsigned(blocks.array[posting])] += 1
    total = 0
    for block in range(block_ends.size):
        total += block_ends[block]
        block_ends[block] = total - block_ends[block]
    block_starts = block_ends.copy()
    sorted_entries, places = np.empty(total, np.int32), np.empty(total, np.int32)
    for i in range(keys.size):
        for posting in range(unsigned(starts[i]), unsigned(ends[i])):
            holder = unsigned(blocks.array[posting])
            at = unsigned(block_ends[holder])
            sorted_entries[at], places[at] = entries.array[posting], i
            block_ends[holder] += 1
    return block_starts, sorted_entries, places, SOUND, 0


@compiled
def _count_sketches(starts: Any, layout: Any) -> Any:
    layout = Layout(*layout)
    count = 0
    for block in range(starts.size - 1):
        if starts[block] < starts[block + 1]:
            for key_set in layout.sets[layout.set_starts[block] : layout.set_starts[block + 1]]:
                count += layout.sketch_starts[key_set + 1] - layout.sketch_starts[key_set]
    return count
