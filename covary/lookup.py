"""The first step of a query, compiled: its keys, found among those of a segment and sorted by block."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from covary.blocks import Blocks
from covary.compiled import compiled, unsigned
from covary.segment import Places


class Meetings(NamedTuple):
    """Where the keys of a query lie: those of block i from starts[i] to starts[i+1], in h_u order."""

    starts: Places  # by block
    entries: npt.NDArray[np.int32]  # place of the key in the block's dictionary
    places: npt.NDArray[np.int32]  # place of the key in the query
    sketches: int  # how many sketches may share a key


def meetings(hashes: npt.NDArray[np.uint64], blocks: Blocks) -> Meetings:
    """Look up the keys of a query, given in h_u order."""
    keys = _find(hashes, blocks.hashes)
    starts, entries, places = _by_block(
        keys, blocks.posting_starts, blocks.posting_blocks, blocks.posting_entries, blocks.set_starts
    )
    count = _count_sketches(starts, blocks.set_starts, blocks.sets, blocks.sketch_starts)
    return Meetings(starts, entries, places, int(count))


@compiled
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


@compiled
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


@compiled
def _count_sketches(starts: Any, set_starts: Any, sets: Any, sketch_starts: Any) -> Any:
    count = 0
    for block in range(starts.size - 1):
        if starts[block] < starts[block + 1]:
            for key_set in sets[set_starts[block] : set_starts[block + 1]]:
                count += sketch_starts[key_set + 1] - sketch_starts[key_set]
    return count
