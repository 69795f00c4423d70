"""Finished sketches to a segment, inverted from key hash to blocks of key sets.

Key sets that begin with the same key are mostly of one key domain. They make up a block, with a dictionary
of the keys they hold: a query looks its keys up once for all of them, and each key set names its own by their
positions in that small dictionary. Keys stand there in h_u order, so those of a key set ascend.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl

from covary.arrays import Array, Floats, Integers, Truths, Words, starts_of_runs
from covary.index.segment_files import COUNTED, NAMED, Segment
from covary.index.table_records import TableRecord, write_records
from covary.sketching.hashing import SCHEMES, Hashes, HashScheme, sort_by_order
from covary.sketching.sketch_types import Sketch

SETS_PER_BLOCK = 64
LONG_PIECE = 32


@dataclass(frozen=True, slots=True, eq=False)
class FlatSketches:
    """Finished tables, one after the other: their key sets, and of each the sketches that share it."""

    tables: pl.DataFrame  # one row per table
    names: Sequence[str]  # every name of a column, a granularity or an aggregate, sorted
    sketches: Mapping[str, Array]  # by sketch: slots of its table, names and key set, and counts
    sizes: Integers  # by key set: its keys
    complete: Truths  # by key set: whether it holds every key of its column
    reach: Floats  # by key set: h_u of its last key
    hashes: Words  # the keys of one set after the other, in h_u order
    values: Floats  # the numbers of one sketch after the other, in the order of its keys

    @property
    def widths(self) -> Integers:
        """How many sketches share each key set."""
        return np.bincount(self.sketches["key_set"], minlength=self.sizes.size).astype(np.int64)


def build_segment(tables: Sequence[tuple[TableRecord, Sequence[Sketch]]]) -> Segment:
    """Turn finished tables into one segment."""
    key_sets: list[list[Sketch]] = []
    table_of: list[int] = []
    for number, (_, sketches) in enumerate(tables):
        shared = _share_key_sets(sketches)
        key_sets += shared
        table_of += [number] * len(shared)
    scheme = key_sets[0][0].config.scheme if key_sets else SCHEMES["xxhash64"]
    return lay_out(
        _flatten_sketches(write_records([record for record, _ in tables]), key_sets, table_of), scheme
    )


def _share_key_sets(sketches: Sequence[Sketch]) -> list[list[Sketch]]:
    """Bring together the sketches of one key column that ended up with the same keys."""
    shared: dict[tuple[str, str, bytes, bool], list[Sketch]] = {}
    hashes: Hashes | None = None
    for sketch in sketches:
        if sketch.key_hashes is not hashes:  # mostly those of the sketch before
            hashes = sketch.key_hashes
            written = hashes.tobytes()
        name = (sketch.pair.key, sketch.pair.granularity, written, sketch.complete)
        shared.setdefault(name, []).append(sketch)
    return [key_set for key_set in shared.values() if key_set[0].size]


def _flatten_sketches(
    tables: pl.DataFrame, key_sets: Sequence[Sequence[Sketch]], table_of: Sequence[int]
) -> FlatSketches:
    sketches = [sketch for key_set in key_sets for sketch in key_set]
    one_each = [key_set[0] for key_set in key_sets]
    key_set_of = np.repeat(np.arange(len(key_sets), dtype=np.uint32), [len(key_set) for key_set in key_sets])
    named = {
        "key": [sketch.pair.key for sketch in sketches],
        "value": [sketch.pair.value for sketch in sketches],
        "granularity": [sketch.pair.granularity for sketch in sketches],
        "aggregate": [sketch.aggregate for sketch in sketches],
    }
    names = sorted({name for column in named.values() for name in column})
    slot_of = {name: slot for slot, name in enumerate(names)}
    counted = {
        name: np.array(
            [getattr(sketch.counts, name) for sketch in sketches],
            dtype=np.float64 if name in {"minimum", "maximum"} else np.int64,
        )
        for name in COUNTED
    }
    return FlatSketches(
        tables,
        names,
        {
            "table": np.array(table_of, dtype=np.uint32)[key_set_of],
            **{field: np.array([slot_of[name] for name in named[field]], np.uint32) for field in NAMED},
            "key_set": key_set_of,
            **counted,
        },
        np.array([sketch.size for sketch in one_each], dtype=np.int64),
        np.array([sketch.complete for sketch in one_each], dtype=np.bool_),
        np.array([sketch.reach for sketch in one_each], dtype=np.float64),
        concatenate_arrays([to_stored_hashes(sketch.key_hashes) for sketch in one_each], np.uint64),
        concatenate_arrays([sketch.values for sketch in sketches], np.float64),
    )


def to_stored_hashes(hashes: Hashes) -> Words:
    """Write identities of either width as 64 bits without a sign."""
    return hashes.view(f"u{hashes.itemsize}").astype(np.uint64)


def from_stored_hashes(stored: Words, scheme: HashScheme) -> Hashes:
    """Read identities as they were before they were stored."""
    kind = np.dtype(scheme.identity_type)
    return stored.astype(f"u{kind.itemsize}", copy=False).view(kind)


def lay_out(flat: FlatSketches, scheme: HashScheme) -> Segment:
    """Invert finished tables: the same in the same order give the same bytes, wherever they come from."""
    widths, set_starts = flat.widths, starts_of(flat.sizes)
    blocks = _number_blocks(flat.hashes[set_starts[:-1]])
    order = np.argsort(blocks, kind="stable")
    ordered_sizes = flat.sizes[order]
    weights = flat.sizes * widths  # entries of each key set
    key_set = flat.sketches["key_set"]
    column = np.arange(key_set.size) - starts_of(widths)[key_set]
    with ThreadPoolExecutor(1) as aside:  # numbers are copied while keys are sorted
        values = aside.submit(pieces, flat.values, starts_of(weights)[:-1][order], weights[order])
        dictionaries = _lay_out_dictionaries(
            pieces(flat.hashes, set_starts[:-1][order], ordered_sizes), blocks[order], ordered_sizes, scheme
        )
    arrays = {
        **{f"sketches.{name}": array for name, array in flat.sketches.items()},
        "sketches.value_start": _starts_in_order(weights, order)[key_set] + column * flat.sizes[key_set],
        "key_sets.size": flat.sizes,
        "key_sets.complete": flat.complete.astype(np.uint8),
        "key_sets.reach": flat.reach,
        "key_sets.block": blocks,
        "key_sets.order": order,
        "key_sets.member_start": _starts_in_order(flat.sizes, order),
        "columns.start": starts_of(widths),
        "values.value": values.result(),
        **dictionaries,
    }
    names = pl.DataFrame({"name": pl.Series(flat.names, dtype=pl.String)})
    return Segment.in_memory(arrays, flat.tables, names)


def _number_blocks(first_keys: Words) -> Integers:
    """Number the block of each key set: those that begin with the same key share one until it is full."""
    by_key = np.argsort(first_keys, kind="stable")
    new_key = starts_of_runs(first_keys[by_key])
    positions = np.arange(first_keys.size)
    within = positions - np.maximum.accumulate(np.where(new_key, positions, 0))
    blocks = np.empty(first_keys.size, dtype=np.int64)
    blocks[by_key] = np.cumsum(within % SETS_PER_BLOCK == 0) - 1
    return blocks


def _lay_out_dictionaries(
    hashes: Words, block_of: Integers, sizes: Integers, scheme: HashScheme
) -> dict[str, Array]:
    """Lay out the keys, each block's dictionary of them, each key set's part of it, and who holds a key."""
    block = np.repeat(block_of, sizes)
    in_order = sort_by_order(hashes, scheme.order(from_stored_hashes(hashes, scheme)))
    in_order = in_order[np.argsort(block[in_order], kind="stable")]  # by block, and by h_u within it
    new_entry = starts_of_runs(hashes[in_order]) | starts_of_runs(block)
    starts = starts_of(np.bincount(block[new_entry]))
    members = np.empty(hashes.size, dtype=np.int64)
    members[in_order] = np.cumsum(new_entry) - 1 - starts[block]
    keys, dictionary = np.unique(hashes[in_order[new_entry]], return_inverse=True)
    by_key = np.argsort(dictionary, kind="stable")
    holder = np.repeat(np.arange(starts.size - 1, dtype=np.uint32), np.diff(starts))
    return {
        "members.entry": _to_entries(members, starts),
        "keys.hash": keys,
        "starts.start": starts_of(np.bincount(dictionary, minlength=keys.size)),
        "postings.block": holder[by_key],
        "postings.entry": _to_entries(np.arange(dictionary.size) - starts[holder], starts)[by_key],
        "blocks.start": starts,
        "blocks.set": starts_of(np.bincount(block_of, minlength=starts.size - 1)),
        "dictionary.place": dictionary.astype(np.uint32),
    }


def _to_entries(positions: Integers, starts: Integers) -> Array:
    """Write positions in dictionaries in as few bytes as the largest dictionary allows."""
    return positions.astype(np.uint16 if np.diff(starts).max(initial=0) <= 1 << 16 else np.uint32)


def starts_of(counts: Array) -> Integers:
    """Return where each item starts when so many of each lie one after the other, and where the last ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _starts_in_order(lengths: Integers, order: Integers) -> Integers:
    """Return where each item starts when they lie in an order of their own."""
    starts = np.empty(lengths.size, dtype=np.int64)
    starts[order] = starts_of(lengths[order])[:-1]
    return starts


def pieces(array: Array, starts: Integers, lengths: Integers) -> Array:
    """Return pieces of an array one after the other."""
    before = starts_of(lengths)
    first = int(starts[0]) if starts.size else 0
    if np.array_equal(starts, before[:-1] + first):  # as they lie
        return array[first : first + int(before[-1])]
    if before[-1] > LONG_PIECE * lengths.size:  # copied as they are, six times as fast as item by item
        ends = (starts + lengths).tolist()
        return np.concatenate([array[start:end] for start, end in zip(starts.tolist(), ends, strict=True)])
    gathered: Array = array[np.arange(before[-1]) + np.repeat(starts - before[:-1], lengths)]
    return gathered


def concatenate_arrays(arrays: Sequence[Array], kind: type[np.generic]) -> Array:
    """Put arrays one after the other, also if there are none."""
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=kind)
