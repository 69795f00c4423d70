"""Where everything in a segment lies: its arrays go block after block, its frames table after table."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from covary.aggregate import Floats
from covary.segment import Places, starts_of
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
    """Find where the arrays of a segment hold what belongs to each key, block, key set and sketch."""
    arrays = segment.arrays
    block = segment.key_sets["block"].to_numpy()
    sizes = segment.key_sets["size"].to_numpy().astype(np.int64)
    key_set = segment.sketches["key_set"].to_numpy()
    widths = np.bincount(key_set, minlength=sizes.size)
    sketch_starts = starts_of(widths)
    sets = np.argsort(block, kind="stable")
    column = np.arange(key_set.size) - sketch_starts[key_set]
    return Blocks(
        arrays["keys.hash"],
        arrays["starts.start"],
        arrays["postings.block"],
        arrays["postings.entry"],
        int(np.diff(arrays["blocks.start"]).max(initial=0)),
        starts_of(np.bincount(block, minlength=arrays["blocks.start"].size - 1)),
        sets,
        sizes,
        _starts_in_order(sizes, sets),
        arrays["members.entry"],
        sketch_starts,
        _starts_in_order(sizes * widths, sets)[key_set] + column * sizes[key_set],
        arrays["values.value"],
    )


def _starts_in_order(lengths: Places, order: Places) -> Places:
    """Return where each item starts when they lie in an order of their own."""
    starts = np.empty(lengths.size, dtype=np.int64)
    starts[order] = starts_of(lengths[order])[:-1]
    return starts
