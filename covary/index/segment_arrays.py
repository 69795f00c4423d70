"""Where everything in a segment lies: its arrays go block after block, its frames table after table."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from covary.arrays import Bytes
from covary.columns.times import GRANULARITIES
from covary.index.checksums import CheckedArray
from covary.index.segment_files import Segment
from covary.index.soundness import PLACES, Layout, are_sound_bytes, first_wrong_place
from covary.sketching.aggregate import AGGREGATES

LAID_OUT_BY = (
    "blocks.start", "blocks.set", "key_sets.order", "key_sets.size", "key_sets.member_start",
    "key_sets.block", "key_sets.reach", "key_sets.complete", "columns.start", "sketches.key_set",
    "sketches.value_start",
)  # fmt: skip


class Blocks(NamedTuple):
    """The arrays of a segment that a query walks; the long ones are looked at as far as they are read."""

    hashes: CheckedArray  # by key, sorted
    posting_starts: CheckedArray  # by key
    posting_blocks: CheckedArray  # blocks that hold the key
    posting_entries: CheckedArray  # its places in their dictionaries
    keys_seen: Bytes  # by key: 1 once its postings were looked at
    layout: Layout
    members: CheckedArray  # the keys of each key set in h_u order, as places in the block's dictionary
    values: CheckedArray  # of each sketch, in the order of its keys


def blocks_of(segment: Segment) -> Blocks:
    """Take the arrays of a segment that a query walks, once it is certain that none leads outside."""
    arrays, checked = segment.arrays, segment.arrays.checked
    for name in LAID_OUT_BY:  # not the whole files, of which a query does not need all
        array, content, sums, seen = checked[name]
        if not are_sound_bytes(content, sums, seen, 0, array.nbytes):
            raise arrays.altered(name)
    layout = Layout(
        arrays["blocks.start"],
        arrays["blocks.set"],
        arrays["key_sets.order"],
        arrays["key_sets.size"],
        arrays["key_sets.member_start"],
        arrays["columns.start"],
        arrays["sketches.value_start"],
        np.zeros(arrays["key_sets.size"].size, dtype=np.uint8),
    )
    wrong = first_wrong_place(
        tuple(layout),
        arrays["key_sets.block"],
        arrays["sketches.key_set"],
        arrays["key_sets.reach"],
        checked["keys.hash"].array.size,
        checked["starts.start"].array.size,
        checked["postings.block"].array.size,
        checked["postings.entry"].array.size,
        checked["dictionary.place"].array.size,
        checked["members.entry"].array.size,
        checked["values.value"].array.size,
    )
    if wrong:
        raise arrays.impossible(PLACES[wrong])
    return Blocks(
        checked["keys.hash"],
        checked["starts.start"],
        checked["postings.block"],
        checked["postings.entry"],
        np.zeros(checked["keys.hash"].array.size, dtype=np.uint8),
        layout,
        checked["members.entry"],
        checked["values.value"],
    )


def named_by(segment: Segment, fact: str) -> npt.NDArray[np.uint32]:
    """Return where the key, value, granularity or aggregate of each sketch is among the names."""
    places = places_below(segment, f"sketches.{fact}", segment.names.len())
    known = {"granularity": {"", *GRANULARITIES}, "aggregate": {*AGGREGATES}}.get(fact)
    if known is not None:
        used = segment.names.gather(np.flatnonzero(np.bincount(places)))
        if not known.issuperset(used):
            raise segment.arrays.impossible(f"sketches.{fact}")
    return places


def places_below(segment: Segment, name: str, end: int) -> npt.NDArray[np.uint32]:
    """Return an array of places, once it is certain that all are below an end."""
    places = segment.arrays[name]
    if places.size and int(places.max()) >= end:
        raise segment.arrays.impossible(name)
    return places
