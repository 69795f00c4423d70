"""Where everything in a segment lies: its arrays go block after block, its frames table after table."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from covary.aggregate import Floats
from covary.segment import Places
from covary.segmentfiles import Segment


class Blocks(NamedTuple):
    """The arrays of a segment: what belongs to item i lies from starts[i] to starts[i+1]."""

    hashes: npt.NDArray[np.uint64]  # by key, sorted
    posting_starts: Places  # by key
    posting_blocks: npt.NDArray[np.uint32]  # blocks that hold the key
    posting_entries: npt.NDArray[Any]  # its places in their dictionaries
    widest: int  # keys of the largest dictionary
    set_starts: Places  # by block
    sets: Places  # key sets of the block
    sizes: Places  # by key set
    member_starts: Places  # by key set
    members: npt.NDArray[Any]  # its keys in h_u order, as places in the block's dictionary
    sketch_starts: Places  # by key set: its sketches are neighbours
    value_starts: Places  # by sketch
    values: Floats


def blocks_of(segment: Segment) -> Blocks:
    """Take the arrays of a segment that a query walks."""
    arrays = segment.arrays
    return Blocks(
        arrays["keys.hash"],
        arrays["starts.start"],
        arrays["postings.block"],
        arrays["postings.entry"],
        int(np.diff(arrays["blocks.start"]).max(initial=0)),
        arrays["blocks.set"],
        arrays["key_sets.order"],
        arrays["key_sets.size"],
        arrays["key_sets.member_start"],
        arrays["members.entry"],
        arrays["columns.start"],
        arrays["sketches.value_start"],
        arrays["values.value"],
    )
