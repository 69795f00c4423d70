"""Finished sketches to a segment: inverted from key hash to the sketches that hold it; segments to one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from covary.aggregate import Floats
from covary.hashing import Hashes
from covary.sketches import Counts, Sketch
from covary.store import Segment

COLUMN_NOTE = pl.Struct({"name": pl.String, "kind": pl.String, "role": pl.String, "reason": pl.String})
TABLES = pl.Schema(
    {
        "name": pl.String(),
        "path": pl.String(),
        "rows": pl.Int64(),
        "bytes": pl.Int64(),
        "modified_ns": pl.Int64(),
        "problem": pl.String(),
        "columns": pl.List(COLUMN_NOTE),
    }
)
SKETCHES = pl.Schema(
    {
        "table": pl.UInt32,
        "key": pl.String,
        "value": pl.String,
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
KEY_SETS = pl.Schema({"start": pl.UInt64, "size": pl.UInt32, "complete": pl.Boolean, "reach": pl.Float64})


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """What was decided about a column, and why."""

    name: str
    kind: str
    role: str
    reason: str


@dataclass(frozen=True, slots=True)
class TableRecord:
    """What the index remembers of a table; `problem` says why it was skipped, if it was."""

    name: str
    path: str
    rows: int = 0
    bytes: int = 0
    modified_ns: int = 0
    problem: str | None = None
    columns: tuple[ColumnNote, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _KeySet:
    """Sketches that hold the same keys."""

    hashes: Hashes
    sketches: list[Sketch]


def build_segment(tables: Sequence[tuple[TableRecord, Sequence[Sketch]]]) -> Segment:
    """Turn finished tables into one segment."""
    key_sets: list[_KeySet] = []
    table_of: list[int] = []
    for number, (_, sketches) in enumerate(tables):
        shared = _share_key_sets(sketches)
        key_sets += shared
        table_of += [number] * len(shared)
    return Segment(
        tables=_table_frame([record for record, _ in tables]),
        sketches=_sketch_frame(key_sets, table_of),
        key_sets=_key_set_frame(key_sets),
        arrays=_invert(key_sets),
    )


def _table_frame(records: Sequence[TableRecord]) -> pl.DataFrame:
    fields = {name: [getattr(record, name) for record in records] for name in TABLES if name != "columns"}
    kept = ColumnNote.__slots__
    notes = [[{name: getattr(note, name) for name in kept} for note in record.columns] for record in records]
    return pl.DataFrame({**fields, "columns": notes}, schema=TABLES)


def _share_key_sets(sketches: Sequence[Sketch]) -> list[_KeySet]:
    """Bring together the sketches of one key column that ended up with the same keys."""
    found: dict[tuple[str, bytes, bool], _KeySet] = {}
    last: Sketch | None = None
    name: tuple[str, bytes, bool] = ("", b"", False)
    for sketch in sketches:
        if last is None or sketch.key_hashes is not last.key_hashes or sketch.pair.key != last.pair.key:
            name = (sketch.pair.key, sketch.key_hashes.tobytes(), sketch.complete)
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
        "aggregate": [sketch.aggregate for sketch in sketches],
        "key_set": key_set_of,
    }
    counts = {name: [getattr(sketch.counts, name) for sketch in sketches] for name in Counts.__slots__}
    return pl.DataFrame({**columns, **counts}, schema=SKETCHES)


def _key_set_frame(key_sets: Sequence[_KeySet]) -> pl.DataFrame:
    sizes = np.array([key_set.hashes.size for key_set in key_sets], dtype=np.uint64)
    one_each = [key_set.sketches[0] for key_set in key_sets]
    return pl.DataFrame(
        {
            "start": np.cumsum(sizes) - sizes,
            "size": sizes,
            "complete": [sketch.complete for sketch in one_each],
            "reach": [sketch.reach for sketch in one_each],
        },
        schema=KEY_SETS,
    )


def stored_hashes(hashes: Hashes) -> npt.NDArray[np.uint64]:
    """Write identities of either width as 64 bits without a sign."""
    return hashes.view(f"u{hashes.itemsize}").astype(np.uint64)


def _invert(key_sets: Sequence[_KeySet]) -> dict[str, npt.NDArray[Any]]:
    sizes = np.array([key_set.hashes.size for key_set in key_sets], dtype=np.int64)
    widths = np.array([len(key_set.sketches) for key_set in key_sets], dtype=np.int64)
    hashes = _concatenate([stored_hashes(key_set.hashes) for key_set in key_sets], np.uint64)
    by_hash = np.argsort(hashes, kind="stable")
    ordered = hashes[by_hash]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: ordered.size])
    members = np.empty(hashes.size, dtype=np.uint32)
    members[by_hash] = np.repeat(np.arange(first.size), np.diff(first, append=hashes.size))
    width_of_row = np.repeat(widths, sizes)
    key_set = np.repeat(np.arange(len(key_sets)), sizes)[by_hash]
    starts = _before(widths[key_set])
    sketch, value = _postings(
        starts,
        widths[key_set],
        _before(widths)[key_set],
        _before(width_of_row)[by_hash],
        _concatenate([_rows_of_values(key_set) for key_set in key_sets], np.float64),
    )
    return {
        "members.place": members,
        "keys.hash": ordered[first],
        "starts.start": np.append(starts[first], np.int64(sketch.size)),
        "postings.sketch": sketch,
        "postings.value": value,
    }


def _postings(
    starts: npt.NDArray[np.int64],
    widths: npt.NDArray[np.int64],
    first_sketches: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    values: Floats,
) -> tuple[npt.NDArray[np.uint32], Floats]:
    """Write out every row of every key set: one posting for each sketch that shares the set."""
    sketch = np.empty(int(widths.sum()), dtype=np.uint32)
    value = np.empty(sketch.size)
    for width in np.unique(widths):
        alike = np.flatnonzero(widths == width)
        across = np.arange(width)
        target = starts[alike, None] + across
        sketch[target] = first_sketches[alike, None] + across
        value[target] = values[rows[alike, None] + across]
    return sketch, value


def _before(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return, for each place, the sum of all counts before it."""
    return np.cumsum(counts) - counts


def _rows_of_values(key_set: _KeySet) -> Floats:
    return np.stack([sketch.values for sketch in key_set.sketches], axis=1).ravel()


def _concatenate(arrays: Sequence[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=kind)


def fold_segments(segments: Sequence[Segment]) -> Segment:
    """Fold several segments into one, with the same answers."""
    if len(segments) == 1:
        return segments[0]
    tables_before, sketches_before, key_sets_before, members_before = (
        _before(np.array(counts)).tolist()
        for counts in zip(*(_heights(segment) for segment in segments), strict=True)
    )
    return Segment(
        tables=pl.concat([segment.tables for segment in segments]),
        sketches=pl.concat(
            segment.sketches.with_columns(pl.col("table") + tables, pl.col("key_set") + key_sets)
            for segment, tables, key_sets in zip(segments, tables_before, key_sets_before, strict=True)
        ).cast(SKETCHES),
        key_sets=pl.concat(
            segment.key_sets.with_columns(pl.col("start") + members)
            for segment, members in zip(segments, members_before, strict=True)
        ).cast(KEY_SETS),
        arrays=_fold_arrays([segment.arrays for segment in segments], sketches_before),
    )


def _heights(segment: Segment) -> tuple[int, int, int, int]:
    frames = (segment.tables, segment.sketches, segment.key_sets)
    tables, sketches, key_sets = (frame.height for frame in frames)
    return tables, sketches, key_sets, segment.arrays["members.place"].size


def _fold_arrays(parts: Sequence[Any], sketches_before: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
    keys = np.unique(np.concatenate([part["keys.hash"] for part in parts]))
    places = [np.searchsorted(keys, part["keys.hash"]) for part in parts]
    lengths = [np.diff(part["starts.start"]) for part in parts]
    total = np.zeros(keys.size, dtype=np.int64)
    for place, length in zip(places, lengths, strict=True):
        total[place] += length
    starts = np.cumsum(total) - total
    sketch = np.empty(int(total.sum()), dtype=np.uint32)
    value = np.empty(sketch.size)
    free = starts.copy()
    for part, place, length, before in zip(parts, places, lengths, sketches_before, strict=True):
        old = np.cumsum(length) - length
        target = np.repeat(free[place] - old, length) + np.arange(int(length.sum()))
        sketch[target] = part["postings.sketch"] + np.uint32(before)
        value[target] = part["postings.value"]
        free[place] += length
    return {
        "members.place": np.concatenate(
            [place[part["members.place"]] for part, place in zip(parts, places, strict=True)]
        ).astype(np.uint32),
        "keys.hash": keys,
        "starts.start": np.append(starts, np.int64(total.sum())),
        "postings.sketch": sketch,
        "postings.value": value,
    }
