"""The first step of a query, compiled: its keys, looked up in a segment and sorted by block."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from covary.arrays import Integers, Words
from covary.compiled import compiled, unsigned
from covary.index.checksums import PIECE_BYTES, CheckedArray
from covary.index.soundness import (
    SOUND,
    Blocks,
    Fault,
    Layout,
    Part,
    Verdict,
    check_key,
    is_sound_between,
)

HASHES_PER_PIECE = unsigned(PIECE_BYTES // 8)
FEW_STEPS = 64  # from where a hash should be; beyond, a search by halves is quicker


class KeyMatches(NamedTuple):
    """Where the keys of a query lie: those of block i from starts[i] to starts[i+1], in h_u order."""

    starts: Integers  # by block
    entries: npt.NDArray[np.int32]  # position of the key in the block's dictionary
    query_rows: npt.NDArray[np.int32]  # row of the key in the query
    sketches: int  # how many sketches may share a key


@compiled
def _find(wanted: Words, checked: CheckedArray) -> tuple[Integers, bool]:
    """Return where each hash lies among sorted ones, or -1: hashes are spread evenly, so its value tells.

    Only the hashes that decide are held against their checksums: the others are hints.
    """
    hashes = checked.array
    last = hashes.size - 1
    if last < 0:
        return np.full(wanted.size, -1), True
    positions = np.zeros(wanted.size, np.int64)
    per_step = max(float(hashes[last]), 1.0) / max(last, 1)
    for _ in range(4):  # each leaves the square root of the distance
        # All keys a step at a time, so that their waits for memory overlap.
        for i in range(wanted.size):
            step = int((float(wanted[i]) - float(hashes[unsigned(positions[i])])) / per_step)
            positions[i] = min(last, max(0, positions[i] + step))
    for i in range(wanted.size):
        position = positions[i]
        low, high = max(0, position - FEW_STEPS), min(last, position + FEW_STEPS)
        if hashes[low] > wanted[i] or hashes[high] < wanted[i]:  # hashes that are not spread evenly
            position = _search(hashes, wanted[i])
            low, high = max(0, position - FEW_STEPS), min(last, position + FEW_STEPS)
        while position < high and hashes[position] < wanted[i]:
            position += 1
        while position > low and hashes[position] > wanted[i]:
            position -= 1
        # The neighbours too: a hash that was altered must not hide that this one is here.
        before, after = max(0, position - 1), min(last, position + 1)
        seen = checked.seen[unsigned(before) // HASHES_PER_PIECE]
        seen &= checked.seen[unsigned(after) // HASHES_PER_PIECE]
        if not seen and not is_sound_between(checked, before, after + 1):
            return positions, False
        positions[i] = position if hashes[position] == wanted[i] else -1
    return positions, True


@compiled
def _search(hashes: Words, wanted: np.uint64) -> int:
    low, high = 0, hashes.size - 1
    while low < high:
        between = (low + high) // 2
        if hashes[between] < wanted:
            low = between + 1
        else:
            high = between
    return low


@compiled
def match_keys(hashes: Words, blocks: Blocks) -> tuple[KeyMatches, Verdict]:  # noqa: C901
    """Look up the keys of a query, given in h_u order, and sort their postings by block."""
    keys, sound = _find(hashes, blocks.hashes)
    starts, ends = np.zeros(keys.size, np.int64), np.zeros(keys.size, np.int64)
    block_ends = np.zeros(blocks.layout.set_starts.size, np.int64)
    none = KeyMatches(block_ends, np.empty(0, np.int32), np.empty(0, np.int32), 0)
    if not sound:
        return none, Verdict(Fault.ALTERED, Part.KEYS__HASH)
    posting_starts, holders = blocks.posting_starts.array, blocks.posting_blocks.array
    entries = blocks.posting_entries.array
    every = 0
    for i in range(keys.size):
        if keys[i] < 0:
            continue
        if not blocks.keys_seen[keys[i]]:
            verdict = check_key(keys[i], blocks)
            if verdict.fault != Fault.NONE:
                return none, verdict
            blocks.keys_seen[keys[i]] = 1
        starts[i], ends[i] = posting_starts[keys[i]], posting_starts[keys[i] + 1]
        every += ends[i] - starts[i]
        if every > holders.size:  # keys that share postings: there could be more than memory holds
            return none, Verdict(Fault.IMPOSSIBLE, Part.STARTS__START)
        for posting in range(unsigned(starts[i]), unsigned(ends[i])):
            block_ends[unsigned(holders[posting])] += 1
    total = 0
    for block in range(block_ends.size):
        total += block_ends[block]
        block_ends[block] = total - block_ends[block]
    block_starts = block_ends.copy()
    sorted_entries, rows = np.empty(total, np.int32), np.empty(total, np.int32)
    for i in range(keys.size):
        for posting in range(unsigned(starts[i]), unsigned(ends[i])):
            holder = unsigned(holders[posting])
            at = unsigned(block_ends[holder])
            sorted_entries[at], rows[at] = entries[posting], i
            block_ends[holder] += 1
    return KeyMatches(block_starts, sorted_entries, rows, _count_sketches(block_starts, blocks.layout)), SOUND


@compiled
def _count_sketches(starts: Integers, layout: Layout) -> int:
    count = 0
    for block in range(starts.size - 1):
        if starts[block] < starts[block + 1]:
            for key_set in layout.sets[layout.set_starts[block] : layout.set_starts[block + 1]]:
                count += layout.sketch_starts[key_set + 1] - layout.sketch_starts[key_set]
    return count
