"""Finished sketches to a segment, inverted from key hash to blocks of key sets; segments to one.

Key sets that begin with the same key are mostly of one key domain. They make up a block, with a dictionary
of the keys they hold: a query looks its keys up once for all of them, and each key set names its own by their
places in that small dictionary. Keys stand there in h_u order, so those of a key set ascend.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from covary.hashing import Hashes, HashScheme, smallest_first
from covary.segmentfiles import Segment
from covary.sketches import Counts, Sketch

Places = npt.NDArray[np.int64]
COLUMN_NOTE = pl.Struct(
    {
        "name": pl.String,
        "kind": pl.String,
        "role": pl.String,
        "reason": pl.String,
        "keys": pl.List(pl.String),
        "missing": pl.Int64,
        "not_understood": pl.Int64,
        "not_understood_examples": pl.List(pl.String),
        "canonical_examples": pl.List(pl.List(pl.String)),
    }
)
TABLES = pl.Schema(
    {
        "name": pl.String(),
        "path": pl.String(),
        "rows": pl.Int64(),
        "bytes": pl.Int64(),
        "version": pl.String(),
        "problem": pl.String(),
        "columns": pl.List(COLUMN_NOTE),
        "member": pl.String(),
        "source": pl.String(),
    }
)
SKETCHES = pl.Schema(
    {
        "table": pl.UInt32,
        "key": pl.String,
        "value": pl.String,
        "granularity": pl.String,
        "aggregate": pl.String,
        "key_set": pl.UInt32,
        "rows": pl.Int64,
        "null_keys": pl.Int64,
        "null_values": pl.Int64,
        "not_finite": pl.Int64,
        "minimum": pl.Float64,
        "maximum": pl.Float64,
    }
)
KEY_SETS = pl.Schema({"size": pl.UInt32, "block": pl.UInt32, "complete": pl.Boolean, "reach": pl.Float64})
SETS_PER_BLOCK = 64


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """What was decided about a column, why, and what of it could not be used.

    Attributes:
        name: of the column.
        kind: what it holds.
        role: "key", "number", "key and number" or "".
        reason: why, in plain words.
        keys: the keys that it is part of: itself, and with another column.
        missing: cells that are empty or a mark of absence; None if they were not counted.
        not_understood: cells that are there, but could not be read as what the column holds.
        not_understood_examples: a few of those.
        canonical_examples: some keys as written and as canonical text.
    """

    name: str
    kind: str
    role: str
    reason: str
    keys: tuple[str, ...] = ()
    missing: int | None = None
    not_understood: int | None = None
    not_understood_examples: tuple[str, ...] = ()
    canonical_examples: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TableRecord:
    """What the index remembers of a table.

    Attributes:
        name: of its own in the collection.
        path: where it is, an absolute path or a URL.
        rows: how many were read.
        bytes: its size, compressed if it is.
        version: changes when the table does.
        problem: why it was skipped, if it was.
        columns: what was decided about each.
        member: which table of a zip or a database.
        source: what the person named when it was found.
    """

    name: str
    path: str
    rows: int = 0
    bytes: int = 0
    version: str = ""
    problem: str | None = None
    columns: tuple[ColumnNote, ...] = ()
    member: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _KeySet:
    """Sketches that hold the same keys."""

    hashes: Hashes
    sketches: list[Sketch]

    @property
    def scheme(self) -> HashScheme:
        """How its keys were hashed."""
        return self.sketches[0].config.scheme


def build_segment(tables: Sequence[tuple[TableRecord, Sequence[Sketch]]]) -> Segment:
    """Turn finished tables into one segment."""
    key_sets: list[_KeySet] = []
    table_of: list[int] = []
    for number, (_, sketches) in enumerate(tables):
        shared = _share_key_sets(sketches)
        key_sets += shared
        table_of += [number] * len(shared)
    blocks = _blocks(key_sets)
    return Segment(
        tables=_table_frame([record for record, _ in tables]),
        sketches=_sketch_frame(key_sets, table_of),
        key_sets=_key_set_frame(key_sets, blocks),
        arrays=_arrays(key_sets, blocks),
    )


def _table_frame(records: Sequence[TableRecord]) -> pl.DataFrame:
    fields = {name: [getattr(record, name) for record in records] for name in TABLES if name != "columns"}
    kept = ColumnNote.__slots__
    notes = [[{name: getattr(note, name) for name in kept} for note in record.columns] for record in records]
    return pl.DataFrame({**fields, "columns": notes}, schema=TABLES)


def _share_key_sets(sketches: Sequence[Sketch]) -> list[_KeySet]:
    """Bring together the sketches of one key column that ended up with the same keys."""
    found: dict[tuple[str, str, bytes, bool], _KeySet] = {}
    last: Sketch | None = None
    name: tuple[str, str, bytes, bool] = ("", "", b"", False)
    for sketch in sketches:
        if last is None or sketch.key_hashes is not last.key_hashes or sketch.pair.key != last.pair.key:
            pair = sketch.pair
            name = (pair.key, pair.granularity, sketch.key_hashes.tobytes(), sketch.complete)
        found.setdefault(name, _KeySet(sketch.key_hashes, [])).sketches.append(sketch)
        last = sketch
    return [key_set for key_set in found.values() if key_set.hashes.size]


def _sketch_frame(key_sets: Sequence[_KeySet], table_of: Sequence[int]) -> pl.DataFrame:
    sketches = [sketch for key_set in key_sets for sketch in key_set.sketches]
    key_set_of = [number for number, key_set in enumerate(key_sets) for _ in key_set.sketches]
    columns = {
        "table": [table_of[number] for number in key_set_of],
        "key": [sketch.pair.key for sketch in sketches],
        "value": [sketch.pair.value for sketch in sketches],
        "granularity": [sketch.pair.granularity for sketch in sketches],
        "aggregate": [sketch.aggregate for sketch in sketches],
        "key_set": key_set_of,
    }
    counts = {name: [getattr(sketch.counts, name) for sketch in sketches] for name in Counts.__slots__}
    return pl.DataFrame({**columns, **counts}, schema=SKETCHES)


def _key_set_frame(key_sets: Sequence[_KeySet], blocks: Places) -> pl.DataFrame:
    one_each = [key_set.sketches[0] for key_set in key_sets]
    return pl.DataFrame(
        {
            "size": [sketch.size for sketch in one_each],
            "block": blocks,
            "complete": [sketch.complete for sketch in one_each],
            "reach": [sketch.reach for sketch in one_each],
        },
        schema=KEY_SETS,
    )


def stored_hashes(hashes: Hashes) -> npt.NDArray[np.uint64]:
    """Write identities of either width as 64 bits without a sign."""
    return hashes.view(f"u{hashes.itemsize}").astype(np.uint64)


def _blocks(key_sets: Sequence[_KeySet]) -> Places:
    """Number the block of each key set: those that begin with the same key share one until it is full."""
    first_keys = np.array([key_set.hashes[0] for key_set in key_sets])
    by_key = np.argsort(first_keys, kind="stable")
    new_key = _changes(first_keys[by_key])
    places = np.arange(len(key_sets))
    within = places - np.maximum.accumulate(np.where(new_key, places, 0))
    blocks = np.empty(len(key_sets), dtype=np.int64)
    blocks[by_key] = np.cumsum(within % SETS_PER_BLOCK == 0) - 1
    return blocks


def _arrays(key_sets: Sequence[_KeySet], blocks: Places) -> dict[str, npt.NDArray[Any]]:
    """Lay out the key sets block after block."""
    ordered = [key_sets[number] for number in np.argsort(blocks, kind="stable")]
    sizes = [key_set.hashes.size for key_set in ordered]
    hashes = _concatenate([key_set.hashes for key_set in ordered], np.uint64)
    block = np.repeat(np.sort(blocks), sizes)
    in_order = smallest_first(hashes, key_sets[0].scheme.order(hashes)) if key_sets else np.arange(0)
    in_order = in_order[np.argsort(block[in_order], kind="stable")]  # by block, and by h_u within it
    new_entry = _changes(hashes[in_order]) | _changes(block)
    starts = starts_of(np.bincount(block[new_entry]))
    members = np.empty(hashes.size, dtype=np.int64)
    members[in_order] = np.cumsum(new_entry) - 1 - starts[block]
    keys, dictionary = np.unique(stored_hashes(hashes[in_order[new_entry]]), return_inverse=True)
    return {
        "members.entry": _as_entries(members, starts),
        "values.value": _concatenate(
            [sketch.values for key_set in ordered for sketch in key_set.sketches], np.float64
        ),
        **_dictionaries(keys, dictionary, starts),
    }


def _dictionaries(
    keys: npt.NDArray[np.uint64], dictionary: Places, starts: Places
) -> dict[str, npt.NDArray[Any]]:
    """Lay out the keys, each block's dictionary of them, and for each key where it is held."""
    by_key = np.argsort(dictionary, kind="stable")
    block = np.repeat(np.arange(starts.size - 1, dtype=np.uint32), np.diff(starts))
    return {
        "keys.hash": keys,
        "starts.start": starts_of(np.bincount(dictionary, minlength=keys.size)),
        "postings.block": block[by_key],
        "postings.entry": _as_entries(np.arange(dictionary.size) - starts[block], starts)[by_key],
        "blocks.start": starts,
        "dictionary.place": dictionary.astype(np.uint32),
    }


def _as_entries(places: Places, starts: Places) -> npt.NDArray[Any]:
    """Write places in dictionaries in as few bytes as the largest dictionary allows."""
    return places.astype(np.uint16 if np.diff(starts).max(initial=0) <= 1 << 16 else np.uint32)


def _changes(ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool]:
    """Mark the first of each run of equal items."""
    return np.concatenate([[True], ordered[1:] != ordered[:-1]])[: ordered.size]


def starts_of(counts: npt.NDArray[Any]) -> Places:
    """Return where each item starts when so many of each lie one after the other, and where the last ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _before(counts: Places) -> Places:
    """Return, for each place, the sum of all counts before it."""
    return np.cumsum(counts) - counts


def _concatenate(arrays: Sequence[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=kind)


def fold_segments(segments: Sequence[Segment]) -> Segment:
    """Fold several segments into one, with the same answers."""
    if len(segments) == 1:
        return segments[0]
    tables, key_sets, blocks = (
        _before(np.array(counts)).tolist()
        for counts in zip(*(_heights(segment) for segment in segments), strict=True)
    )
    return Segment(
        tables=pl.concat([segment.tables for segment in segments]),
        sketches=pl.concat(
            segment.sketches.with_columns(pl.col("table") + table, pl.col("key_set") + key_set)
            for segment, table, key_set in zip(segments, tables, key_sets, strict=True)
        ).cast(SKETCHES),
        key_sets=pl.concat(
            segment.key_sets.with_columns(pl.col("block") + block)
            for segment, block in zip(segments, blocks, strict=True)
        ).cast(KEY_SETS),
        arrays=_fold_arrays([segment.arrays for segment in segments]),
    )


def _heights(segment: Segment) -> tuple[int, int, int]:
    return segment.tables.height, segment.key_sets.height, segment.arrays["blocks.start"].size - 1


def _fold_arrays(parts: Sequence[Mapping[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
    keys = np.unique(np.concatenate([part["keys.hash"] for part in parts]))
    dictionary = [np.searchsorted(keys, part["keys.hash"])[part["dictionary.place"]] for part in parts]
    sizes = np.concatenate([np.diff(part["blocks.start"]) for part in parts])
    return {
        "members.entry": np.concatenate([part["members.entry"] for part in parts]),
        "values.value": np.concatenate([part["values.value"] for part in parts]),
        **_dictionaries(keys, np.concatenate(dictionary), starts_of(sizes)),
    }
