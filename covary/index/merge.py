"""Segments to fewer: the tables that are left, in the order of their names, inverted anew.

What comes out depends on the tables alone, not on the segments that they were in: an index that grew table by
table ends up, once compacted, with the bytes of one that was built at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl

from covary.arrays import Array, Integers
from covary.index.segment_arrays import read_slots_below
from covary.index.segment_files import COUNTED, NAMED, Segment
from covary.index.segment_layout import FlatSketches, lay_out, pieces, starts_of
from covary.sketching.hashing import HashScheme

ENTRIES_PER_SEGMENT = 1 << 25
# Each segment costs a query a tenth of a millisecond, and memory to make grows with its entries.
MOST_SEGMENTS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A segment, and the rows of the tables in it that are left."""

    segment: Segment
    tables: Integers


def take_tables(segment: Segment, removed: Sequence[int] = ()) -> Part:
    """Take the tables of a segment but those that were removed."""
    tables = np.arange(segment.table_list.height)
    return Part(segment, np.setdiff1d(tables, np.array(removed, dtype=np.int64)))


def entries_per_segment(entries: int) -> int:
    """Return how many entries a segment may hold, in an index of so many."""
    return max(ENTRIES_PER_SEGMENT, entries // MOST_SEGMENTS)


def merge_segments(taken: Iterable[Part], scheme: HashScheme, room: int | None = None) -> Iterator[Segment]:
    """Put the tables of some segments into as few as may be, one after the other in the order of names.

    They are all that an index has, unless `room` says how many entries a segment may hold.
    """
    parts = list(taken)
    if not parts:
        return
    of_part = np.repeat(np.arange(len(parts)), [part.tables.size for part in parts])
    tables = np.concatenate([part.tables for part in parts])
    lists = [part.segment.table_list.select("name", "path", "member")[part.tables] for part in parts]
    by_name = pl.concat(lists).with_row_index("row").sort("name", "path", "member", "row")
    order = by_name["row"].to_numpy()
    entries = np.concatenate([count_entries_by_table(part) for part in parts])[order]
    for together in _cut(entries, room or entries_per_segment(int(entries.sum()))):
        chosen = order[together]
        yield lay_out(_lay_flat(parts, of_part[chosen], tables[chosen]), scheme)


def count_entries_by_table(part: Part) -> Integers:
    """Count the entries of each table that is left."""
    segment, sizes = part.segment, part.segment.arrays["key_sets.size"]
    height = segment.table_list.height
    tables = read_slots_below(segment, "sketches.table", height)
    entries = sizes[read_slots_below(segment, "sketches.key_set", sizes.size)]
    every = np.bincount(tables, weights=entries, minlength=height).astype(np.int64)
    return every[part.tables]


def _cut(entries: Integers, room: int) -> Iterator[slice]:
    """Cut a list of tables into segments of bounded weight, however they came together."""
    start, filled = 0, 0
    for row, weight in enumerate(entries.tolist()):
        if filled and filled + weight > room:
            yield slice(start, row)
            start, filled = row, 0
        filled += weight
    if start < entries.size:
        yield slice(start, entries.size)


def _lay_flat(parts: Sequence[Part], of_part: Integers, tables: Integers) -> FlatSketches:
    """Lay flat some tables, given by part and row, in that order."""
    chosen = [np.flatnonzero(of_part == number) for number in range(len(parts))]
    with ThreadPoolExecutor() as threads:
        segments, rows = [part.segment for part in parts], [tables[positions] for positions in chosen]
        taken = list(threads.map(_take_tables, segments, chosen, rows))
    names = sorted({name for part in taken for name in part.names})
    renamed = [_rename_columns(part, names) for part in taken]
    tables_of_sets = [part.sketches["table"][starts_of(part.widths)[:-1]] for part in taken]
    by_table = np.argsort(np.concatenate(tables_of_sets), kind="stable")
    sizes = np.concatenate([part.sizes for part in taken])
    widths = np.concatenate([part.widths for part in taken])

    def in_order(array: Array, lengths: Integers) -> Array:
        return pieces(array, starts_of(lengths)[:-1][by_table], lengths[by_table])

    sketches = in_order(np.arange(widths.sum()), widths)
    first_rows = starts_of(np.array([part.segment.tables.height for part in parts]))
    return FlatSketches(
        pl.concat([part.segment.tables for part in parts])[first_rows[of_part] + tables],
        names,
        {
            **{
                name: np.concatenate([part[name] for part in renamed])[sketches]
                for name in ("table", *NAMED, *COUNTED)
            },
            "key_set": np.repeat(np.arange(sizes.size, dtype=np.uint32), widths[by_table]),
        },
        sizes[by_table],
        np.concatenate([part.complete for part in taken])[by_table],
        np.concatenate([part.reach for part in taken])[by_table],
        in_order(np.concatenate([part.hashes for part in taken]), sizes),
        in_order(np.concatenate([part.values for part in taken]), sizes * widths),
    )


def _take_tables(segment: Segment, numbers: Integers, tables: Integers) -> FlatSketches:
    """Lay flat some tables of one segment, and number them anew."""
    arrays = segment.arrays
    number_of = np.full(segment.table_list.height, -1)
    number_of[tables] = numbers
    table = number_of[arrays["sketches.table"]]
    wanted = np.flatnonzero(table >= 0)
    key_set_of = arrays["sketches.key_set"][wanted]
    sets = np.unique(key_set_of)
    sizes = arrays["key_sets.size"][sets]
    entries = pieces(arrays["members.entry"], arrays["key_sets.member_start"][sets], sizes).astype(np.int64)
    in_dictionary = np.repeat(arrays["blocks.start"][arrays["key_sets.block"][sets]], sizes) + entries
    named = np.unique(np.concatenate([arrays[f"sketches.{name}"][wanted] for name in NAMED]))
    sketches: dict[str, Array] = {
        "table": table[wanted].astype(np.uint32),
        "key_set": np.searchsorted(sets, key_set_of).astype(np.uint32),
        **{name: np.searchsorted(named, arrays[f"sketches.{name}"][wanted]) for name in NAMED},
        **{name: arrays[f"sketches.{name}"][wanted] for name in COUNTED},
    }
    return FlatSketches(
        segment.tables,
        segment.names.gather(named).to_list(),
        sketches,
        sizes,
        arrays["key_sets.complete"][sets].astype(np.bool_),
        arrays["key_sets.reach"][sets],
        arrays["keys.hash"][arrays["dictionary.place"][in_dictionary]],
        pieces(
            arrays["values.value"],
            arrays["sketches.value_start"][wanted],
            arrays["key_sets.size"][key_set_of],
        ),
    )


def _rename_columns(part: FlatSketches, names: Sequence[str]) -> dict[str, Array]:
    """Name the columns of sketches by their slots in a longer list."""
    slot_of = {name: slot for slot, name in enumerate(names)}
    slots = np.array([slot_of[name] for name in part.names], dtype=np.uint32)
    return {**part.sketches, **{name: slots[part.sketches[name]] for name in NAMED}}
