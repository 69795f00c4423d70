"""Whether what an index says of itself can be followed, compiled: nothing altered, nothing leads outside.

A checksum tells what a disk altered; it tells nothing of an index that somebody else made. Compiled loops do
not look where they write, so every number that they use as a position is checked before, once.
"""

from enum import IntEnum, auto
from typing import Any, NamedTuple

import numpy as np

from covary.arrays import Array, Bytes, Floats, Integers, Slots, Words
from covary.compiled import compiled, unsigned
from covary.index.checksums import FACTORS, HALF, PIECE_BYTES, CheckedArray


class Fault(IntEnum):
    """What a loop can find wrong with an array."""

    NONE = 0
    ALTERED = auto()  # it is not what was written
    IMPOSSIBLE = auto()  # covary can't have written it


class Part(IntEnum):
    """The arrays of a segment in which a loop can find a fault; two underscores stand for the dot."""

    NONE = 0
    BLOCKS__START = auto()
    BLOCKS__SET = auto()
    KEY_SETS__ORDER = auto()
    KEY_SETS__BLOCK = auto()
    KEY_SETS__SIZE = auto()
    KEY_SETS__MEMBER_START = auto()
    KEY_SETS__REACH = auto()
    COLUMNS__START = auto()
    SKETCHES__KEY_SET = auto()
    SKETCHES__VALUE_START = auto()
    KEYS__HASH = auto()
    STARTS__START = auto()
    POSTINGS__BLOCK = auto()
    POSTINGS__ENTRY = auto()
    MEMBERS__ENTRY = auto()
    VALUES__VALUE = auto()

    @property
    def array(self) -> str:
        """The name of the array in a segment, as "key_sets.size"."""
        return self.name.lower().replace("__", ".")


class Verdict(NamedTuple):
    """What is wrong, if anything is, and with which array."""

    fault: Fault
    part: Part


SOUND = Verdict(Fault.NONE, Part.NONE)


class Layout(NamedTuple):
    """What is common to the sketches of a segment: what belongs to item i lies from starts[i] to starts[i+1].

    Whoever made the index, none of these numbers leads outside of the array that it is a position in.
    """

    dictionary_starts: Integers  # by block
    set_starts: Integers  # by block
    sets: Integers  # key sets of the block
    sizes: Integers  # by key set
    member_starts: Integers  # by key set
    block_of_set: Integers  # by key set
    reach: Floats  # by key set: h_u of its last key
    sketch_starts: Integers  # by key set: its sketches are neighbours
    set_of_sketch: Slots  # by sketch
    value_starts: Integers  # by sketch
    sets_seen: Bytes  # by key set: 1 once its keys were checked


class Blocks(NamedTuple):
    """The arrays of a segment that a query walks; the long ones are checked as far as they are read."""

    hashes: CheckedArray  # by key, sorted
    posting_starts: CheckedArray  # by key
    posting_blocks: CheckedArray  # blocks that hold the key
    posting_entries: CheckedArray  # its positions in their dictionaries
    keys_seen: Bytes  # by key: 1 once its postings were checked
    dictionary: CheckedArray  # the keys of each block, as positions in the hashes
    layout: Layout
    members: CheckedArray  # the keys of each key set in h_u order, as positions in the block's dictionary
    values: CheckedArray  # of each sketch, in the order of its keys


@compiled
def name_blocks(parts: Any) -> Blocks:
    """Give the names back that `unnamed` took off."""
    hashes, starts, holders, entries, keys_seen, dictionary, layout, members, values = parts
    return Blocks(
        CheckedArray(*hashes),
        CheckedArray(*starts),
        CheckedArray(*holders),
        CheckedArray(*entries),
        keys_seen,
        CheckedArray(*dictionary),
        Layout(*layout),
        CheckedArray(*members),
        CheckedArray(*values),
    )


@compiled
def is_sound_between(checked: CheckedArray, first: int, end: int) -> bool:
    """Whether the items of an array from first to end are as they were written."""
    width = checked.array.itemsize
    return are_sound_bytes(checked.content, checked.sums, checked.seen, first * width, end * width)


@compiled
def are_sound_bytes(content: Bytes, sums: Words, seen: Bytes, start: int, end: int) -> bool:
    """Whether bytes are as they were written; each piece is checked once."""
    if end <= start:
        return True
    for piece in range(start // PIECE_BYTES, (end + PIECE_BYTES - 1) // PIECE_BYTES):
        if not seen[piece]:
            if _sum_of(content[piece * PIECE_BYTES : (piece + 1) * PIECE_BYTES]) != sums[piece]:
                return False
            seen[piece] = 1
    return True


@compiled
def _sum_of(content: Bytes) -> np.uint64:
    """Add up a piece as `covary.index.checksums.checksums_of` does."""
    whole = content.size // 8
    words = content[: 8 * whole].view(np.uint64)
    total = unsigned(content.size)
    for i in range(whole):
        total += (words[i] ^ (words[i] >> HALF)) * FACTORS[i]
    last = unsigned(0)
    for position in range(8 * whole, content.size):
        last |= unsigned(content[position]) << unsigned(8 * (position % 8))
    if last:
        total += (last ^ (last >> HALF)) * FACTORS[whole]
    return total


@compiled
def _ascend_below(positions: Array, end: int) -> bool:
    """Whether positions ascend and none lies at the end or beyond."""
    sound = positions.size == 0 or bool(positions[positions.size - 1] < end)
    for i in range(1, positions.size):
        sound &= positions[i - 1] < positions[i]
    return sound


@compiled
def find_impossible_layout(blocks: Blocks) -> Part:  # noqa: C901, PLR0911, PLR0912
    """Return the first array of the layout that leads outside of another, or none."""
    layout, dictionary = blocks.layout, blocks.dictionary.array.size
    sets, sketches = layout.sizes.size, layout.value_starts.size
    block_count = layout.set_starts.size - 1
    starts = layout.dictionary_starts
    if starts.size != block_count + 1 or not _are_starts(starts, dictionary):
        return Part.BLOCKS__START
    if not _are_starts(layout.set_starts, sets):
        return Part.BLOCKS__SET
    if layout.sets.size != sets:
        return Part.KEY_SETS__ORDER
    if layout.block_of_set.size != sets or layout.member_starts.size != sets or layout.reach.size != sets:
        return Part.KEY_SETS__BLOCK
    if not _are_starts(layout.sketch_starts, sketches) or layout.sketch_starts.size != sets + 1:
        return Part.COLUMNS__START
    if layout.set_of_sketch.size != sketches:
        return Part.SKETCHES__KEY_SET
    if blocks.posting_starts.array.size != blocks.hashes.array.size + 1:
        return Part.STARTS__START
    if blocks.posting_blocks.array.size != dictionary or blocks.posting_entries.array.size != dictionary:
        return Part.POSTINGS__BLOCK
    # Keys and numbers lie set after set in the order of blocks, each in a room of its own: sets that shared
    # some would be small here, and unpack far when they are merged.
    taken = np.zeros(sets, np.uint8)
    member = value = 0
    for block in range(block_count):
        for i in range(layout.set_starts[block], layout.set_starts[block + 1]):
            key_set = layout.sets[i]
            if key_set < 0 or key_set >= sets or taken[key_set]:
                return Part.KEY_SETS__ORDER
            taken[key_set] = 1
            if layout.block_of_set[key_set] != block:
                return Part.KEY_SETS__BLOCK
            size = layout.sizes[key_set]
            if size < 1 or size > blocks.members.array.size - member:
                return Part.KEY_SETS__SIZE
            if layout.member_starts[key_set] != member:
                return Part.KEY_SETS__MEMBER_START
            member += size
            if not 0.0 <= layout.reach[key_set] < 1.0:
                return Part.KEY_SETS__REACH
            for sketch in range(layout.sketch_starts[key_set], layout.sketch_starts[key_set + 1]):
                if layout.set_of_sketch[sketch] != key_set:
                    return Part.SKETCHES__KEY_SET
                if layout.value_starts[sketch] != value or size > blocks.values.array.size - value:
                    return Part.SKETCHES__VALUE_START
                value += size
    if member != blocks.members.array.size:
        return Part.KEY_SETS__MEMBER_START
    if value != blocks.values.array.size:
        return Part.SKETCHES__VALUE_START
    return Part.NONE


@compiled
def _are_starts(starts: Integers, end: int) -> bool:
    """Whether starts begin at 0, never descend, and end with the size of the array that they lead into."""
    if starts.size == 0 or starts[0] != 0 or starts[starts.size - 1] != end:
        return False
    sound = True
    for i in range(1, starts.size):
        sound &= starts[i - 1] <= starts[i]
    return sound


@compiled
def check_key(key: int, blocks: Blocks) -> Verdict:  # noqa: PLR0911
    """Check, once, the postings of a key before they are followed."""
    starts, layout = blocks.posting_starts, blocks.layout
    if not is_sound_between(starts, key, key + 2):
        return Verdict(Fault.ALTERED, Part.STARTS__START)
    start, end = starts.array[key], starts.array[key + 1]
    if not 0 <= start <= end <= blocks.posting_blocks.array.size:
        return Verdict(Fault.IMPOSSIBLE, Part.STARTS__START)
    if not is_sound_between(blocks.posting_blocks, start, end):
        return Verdict(Fault.ALTERED, Part.POSTINGS__BLOCK)
    if not is_sound_between(blocks.posting_entries, start, end):
        return Verdict(Fault.ALTERED, Part.POSTINGS__ENTRY)
    for posting in range(start, end):
        block = np.int64(blocks.posting_blocks.array[posting])
        if block >= layout.set_starts.size - 1:
            return Verdict(Fault.IMPOSSIBLE, Part.POSTINGS__BLOCK)
        width = layout.dictionary_starts[block + 1] - layout.dictionary_starts[block]
        if blocks.posting_entries.array[posting] >= width:
            return Verdict(Fault.IMPOSSIBLE, Part.POSTINGS__ENTRY)
    return SOUND


@compiled
def check_key_set(key_set: int, block: int, blocks: Blocks) -> Verdict:
    """Check, once, the keys of a key set and the numbers of its sketches before they are followed."""
    layout = blocks.layout
    start, size = layout.member_starts[key_set], layout.sizes[key_set]
    if not is_sound_between(blocks.members, start, start + size):
        return Verdict(Fault.ALTERED, Part.MEMBERS__ENTRY)
    width = layout.dictionary_starts[block + 1] - layout.dictionary_starts[block]
    if not _ascend_below(blocks.members.array[start : start + size], width):
        return Verdict(Fault.IMPOSSIBLE, Part.MEMBERS__ENTRY)
    for sketch in range(layout.sketch_starts[key_set], layout.sketch_starts[key_set + 1]):
        start = layout.value_starts[sketch]
        if not is_sound_between(blocks.values, start, start + size):
            return Verdict(Fault.ALTERED, Part.VALUES__VALUE)
    layout.sets_seen[key_set] = 1
    return SOUND


@compiled
def check_all(blocks: Blocks) -> Verdict:
    """Check every key and every key set, as queries do with those that they follow."""
    hashes, layout = blocks.hashes.array, blocks.layout
    if not is_sound_between(blocks.hashes, 0, hashes.size):
        return Verdict(Fault.ALTERED, Part.KEYS__HASH)
    for key in range(hashes.size):
        if key and hashes[key - 1] >= hashes[key]:
            return Verdict(Fault.IMPOSSIBLE, Part.KEYS__HASH)
        verdict = check_key(key, blocks)
        if verdict.fault != Fault.NONE:
            return verdict
    for block in range(layout.set_starts.size - 1):
        for key_set in layout.sets[layout.set_starts[block] : layout.set_starts[block + 1]]:
            verdict = check_key_set(key_set, block, blocks)
            if verdict.fault != Fault.NONE:
                return verdict
    return SOUND
