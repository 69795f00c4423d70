"""Where everything in a segment lies: its arrays go block after block, its frames table after table."""

import numpy as np

from covary.arrays import Slots
from covary.columns.times import GRANULARITIES
from covary.index.segment_files import Segment
from covary.index.soundness import Blocks, Layout, are_sound_bytes, find_impossible_layout
from covary.sketching.aggregate import AGGREGATES

LAYOUT = {  # the arrays of a Layout, by its fields
    "dictionary_starts": "blocks.start",
    "set_starts": "blocks.set",
    "sets": "key_sets.order",
    "sizes": "key_sets.size",
    "member_starts": "key_sets.member_start",
    "block_of_set": "key_sets.block",
    "reach": "key_sets.reach",
    "sketch_starts": "columns.start",
    "set_of_sketch": "sketches.key_set",
    "value_starts": "sketches.value_start",
}


def read_blocks(segment: Segment) -> Blocks:
    """Take the arrays of a segment that a query walks, once it is certain that none leads outside."""
    arrays, checked = segment.arrays, segment.arrays.checked
    for name in (*LAYOUT.values(), "key_sets.complete"):  # not the whole files: a query does not need all
        array, content, sums, seen = checked[name]
        if not are_sound_bytes(content, sums, seen, 0, array.nbytes):
            raise arrays.altered(name)
    blocks = Blocks(
        hashes=checked["keys.hash"],
        posting_starts=checked["starts.start"],
        posting_blocks=checked["postings.block"],
        posting_entries=checked["postings.entry"],
        keys_seen=np.zeros(checked["keys.hash"].array.size, dtype=np.uint8),
        dictionary=checked["dictionary.place"],
        layout=Layout(
            **{field: arrays[name] for field, name in LAYOUT.items()},
            sets_seen=np.zeros(arrays["key_sets.size"].size, dtype=np.uint8),
        ),
        members=checked["members.entry"],
        values=checked["values.value"],
    )
    part = find_impossible_layout(blocks)
    if part:
        raise arrays.impossible(part.array)
    return blocks


def read_name_slots(segment: Segment, field: str) -> Slots:
    """Return where the key, value, granularity or aggregate of each sketch is among the names."""
    slots = read_slots_below(segment, f"sketches.{field}", segment.names.len())
    known = {"granularity": {"", *GRANULARITIES}, "aggregate": {*AGGREGATES}}.get(field)
    if known is not None:
        used = segment.names.gather(np.flatnonzero(np.bincount(slots)))
        if not known.issuperset(used):
            raise segment.arrays.impossible(f"sketches.{field}")
    return slots


def read_slots_below(segment: Segment, name: str, end: int) -> Slots:
    """Return an array of slots, once it is certain that all are below an end."""
    slots = segment.arrays[name]
    if slots.size and int(slots.max()) >= end:
        raise segment.arrays.impossible(name)
    return slots
