"""Whether what an index says of itself can be followed, compiled: nothing altered, no place outside.

A checksum tells what a disk altered; it tells nothing of an index that somebody else made. Compiled loops do
not look where they write, so every number that they use as a place is looked at before, once.
"""

from typing import Any, NamedTuple

import numpy as np

from covary.arrays import Bytes, Integers
from covary.compiled import compiled, unsigned
from covary.index.checksums import FACTORS, PIECE_BYTES, CheckedArray

# What can be wrong with the places in a segment: the array that leads outside.
PLACES = (
    "", "blocks.start", "blocks.set", "key_sets.order", "key_sets.block", "key_sets.size",
    "key_sets.member_start", "key_sets.reach", "columns.start", "sketches.key_set", "sketches.value_start",
    "starts.start", "postings.block",
)  # fmt: skip
# What a loop says of what it looked at, and of which of the long arrays it says it.
SOUND, ALTERED, IMPOSSIBLE = range(3)
LONG = ("keys.hash", "starts.start", "postings.block", "postings.entry", "members.entry", "values.value")
HASHES, STARTS, POSTING_BLOCKS, POSTING_ENTRIES, MEMBERS, VALUES = range(len(LONG))
FACTOR_OF_WORD, PIECE, HALF_A_WORD = FACTORS, PIECE_BYTES, np.uint64(32)


class Layout(NamedTuple):
    """What is common to the sketches of a segment: what belongs to item i lies from starts[i] to starts[i+1].

    Whoever made the index, none of these numbers leads outside of the array that it is a place in.
    """

    dictionary_starts: Integers  # by block
    set_starts: Integers  # by block
    sets: Integers  # key sets of the block
    sizes: Integers  # by key set
    member_starts: Integers  # by key set
    sketch_starts: Integers  # by key set: its sketches are neighbours
    value_starts: Integers  # by sketch
    sets_seen: Bytes  # by key set: 1 once its keys were looked at


@compiled
def is_sound_between(checked: Any, first: Any, end: Any) -> Any:
    """Whether the items of an array from first to end are as they were written."""
    width = checked.array.itemsize
    return are_sound_bytes(checked.content, checked.sums, checked.seen, first * width, end * width)


@compiled
def are_sound_bytes(content: Any, sums: Any, seen: Any, start: Any, end: Any) -> Any:
    """Whether bytes are as they were written; each piece is looked at once."""
    if end <= start:
        return True
    for piece in range(start // PIECE, (end + PIECE - 1) // PIECE):
        if not seen[piece]:
            if _sum_of(content[piece * PIECE : (piece + 1) * PIECE]) != sums[piece]:
                return False
            seen[piece] = 1
    return True


@compiled
def _sum_of(content: Any) -> Any:
    """Add up a piece as `covary.index.checksums.checksums_of` does."""
    whole = content.size // 8
    words = content[: 8 * whole].view(np.uint64)
    total = unsigned(content.size)
    for i in range(whole):
        total += (words[i] ^ (words[i] >> HALF_A_WORD)) * FACTOR_OF_WORD[i]
    last = unsigned(0)
    for place in range(8 * whole, content.size):
        last |= unsigned(content[place]) << unsigned(8 * (place % 8))
    if last:
        total += (last ^ (last >> HALF_A_WORD)) * FACTOR_OF_WORD[whole]
    return total


@compiled
def is_ascending_within(places: Any, end: Any) -> Any:
    """Whether places ascend and none lies at the end or beyond."""
    sound = places.size == 0 or places[places.size - 1] < end
    for i in range(1, places.size):
        sound &= places[i - 1] < places[i]
    return sound


@compiled
def first_wrong_place(  # noqa: C901, PLR0911, PLR0912
    layout: Any, block_of: Any, key_set_of: Any, reach: Any, keys: Any, starts: Any, postings: Any,
    entries: Any, dictionary: Any, members: Any, values: Any,
) -> Any:  # fmt: skip
    """Return which of PLACES leads outside, 0 if none does; the last seven are the lengths of arrays."""
    layout = Layout(*layout)
    blocks, sets, sketches = layout.set_starts.size - 1, layout.sizes.size, layout.value_starts.size
    if layout.dictionary_starts.size != blocks + 1 or not _are_starts(layout.dictionary_starts, dictionary):
        return 1
    if not _are_starts(layout.set_starts, sets):
        return 2
    if layout.sets.size != sets:
        return 3
    if block_of.size != sets or layout.member_starts.size != sets or reach.size != sets:
        return 4
    if not _are_starts(layout.sketch_starts, sketches) or layout.sketch_starts.size != sets + 1:
        return 8
    if key_set_of.size != sketches:
        return 9
    if starts != keys + 1:
        return 11
    if postings != dictionary or entries != dictionary:
        return 12
    # Keys and numbers lie set after set in the order of blocks, each in a room of its own: sets that shared
    # some would be small here, and unpack far when they are merged.
    taken = np.zeros(sets, np.uint8)
    member = value = 0
    for block in range(blocks):
        for i in range(layout.set_starts[block], layout.set_starts[block + 1]):
            key_set = layout.sets[i]
            if key_set < 0 or key_set >= sets or taken[key_set]:
                return 3
            taken[key_set] = 1
            if block_of[key_set] != block:
                return 4
            size = layout.sizes[key_set]
            if size < 1 or size > members - member:
                return 5
            if layout.member_starts[key_set] != member:
                return 6
            member += size
            if not 0.0 <= reach[key_set] < 1.0:
                return 7
            for sketch in range(layout.sketch_starts[key_set], layout.sketch_starts[key_set + 1]):
                if key_set_of[sketch] != key_set:
                    return 9
                if layout.value_starts[sketch] != value or size > values - value:
                    return 10
                value += size
    if member != members:
        return 6
    if value != values:
        return 10
    return 0


@compiled
def _are_starts(starts: Any, end: Any) -> Any:
    """Whether starts begin at 0, never descend, and end where the array does that they are places in."""
    if starts.size == 0 or starts[0] != 0 or starts[starts.size - 1] != end:
        return False
    sound = True
    for i in range(1, starts.size):
        sound &= starts[i - 1] <= starts[i]
    return sound


@compiled
def look_at_key(  # noqa: PLR0911
    key: Any, starts: Any, blocks: Any, entries: Any, layout: Any
) -> Any:
    """Look, once, at the postings of a key before they are followed."""
    if not is_sound_between(starts, key, key + 2):
        return ALTERED, STARTS
    start, end = starts.array[key], starts.array[key + 1]
    if not 0 <= start <= end <= blocks.array.size:
        return IMPOSSIBLE, STARTS
    if not is_sound_between(blocks, start, end):
        return ALTERED, POSTING_BLOCKS
    if not is_sound_between(entries, start, end):
        return ALTERED, POSTING_ENTRIES
    for posting in range(start, end):
        block = np.int64(blocks.array[posting])
        if block >= layout.set_starts.size - 1:
            return IMPOSSIBLE, POSTING_BLOCKS
        if entries.array[posting] >= layout.dictionary_starts[block + 1] - layout.dictionary_starts[block]:
            return IMPOSSIBLE, POSTING_ENTRIES
    return SOUND, 0


@compiled
def look_at_set(key_set: Any, own: Any, width: Any, layout: Any, members: Any, values: Any) -> Any:
    """Look, once, at the keys of a key set and at the numbers of its sketches, before they are followed."""
    start = layout.member_starts[key_set]
    if not is_sound_between(members, start, start + own.size):
        return ALTERED, MEMBERS
    if not is_ascending_within(own, width):
        return IMPOSSIBLE, MEMBERS
    for sketch in range(layout.sketch_starts[key_set], layout.sketch_starts[key_set + 1]):
        start = layout.value_starts[sketch]
        if not is_sound_between(values, start, start + own.size):
            return ALTERED, VALUES
    layout.sets_seen[key_set] = 1
    return SOUND, 0


@compiled
def look_at_all(
    hashes: Any, starts: Any, blocks: Any, entries: Any, layout: Any, members: Any, values: Any
) -> Any:
    """Look at every key and every key set, as queries do at those that they meet."""
    hashes, starts, blocks, entries, layout, members, values = (
        CheckedArray(*hashes), CheckedArray(*starts), CheckedArray(*blocks), CheckedArray(*entries),
        Layout(*layout), CheckedArray(*members), CheckedArray(*values),
    )  # fmt: skip
    if not is_sound_between(hashes, 0, hashes.array.size):
        return ALTERED, HASHES
    for key in range(hashes.array.size):
        if key and hashes.array[key - 1] >= hashes.array[key]:
            return IMPOSSIBLE, HASHES
        wrong, of = look_at_key(key, starts, blocks, entries, layout)
        if wrong:
            return wrong, of
    for block in range(layout.set_starts.size - 1):
        width = layout.dictionary_starts[block + 1] - layout.dictionary_starts[block]
        for key_set in layout.sets[layout.set_starts[block] : layout.set_starts[block + 1]]:
            start = layout.member_starts[key_set]
            own = members.array[start : start + layout.sizes[key_set]]
            wrong, of = look_at_set(key_set, own, width, layout, members, values)
            if wrong:
                return wrong, of
    return SOUND, 0
