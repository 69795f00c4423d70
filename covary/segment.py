"""Finished sketches to a segment: inverted from key hash to the sketches that hold it; segments to one."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from covary.aggregate import Floats
from covary.hashing import Hashes
from covary.sketches import Sketch
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
    rows: list[dict[str, Any]] = []
    for number, (_, sketches) in enumerate(tables):
        for key_set in _share_key_sets(sketches):
            rows += [_sketch_row(number, len(key_sets), sketch) for sketch in key_set.sketches]
            key_sets.append(key_set)
    return Segment(
        tables=pl.DataFrame([asdict(record) for record, _ in tables], schema=TABLES),
        sketches=pl.DataFrame(rows, schema=SKETCHES),
        key_sets=_key_set_frame(key_sets),
        arrays=_invert(key_sets),
    )


def _share_key_sets(sketches: Sequence[Sketch]) -> Iterable[_KeySet]:
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


def _sketch_row(table: int, key_set: int, sketch: Sketch) -> dict[str, Any]:
    pair = {"table": table, "key": sketch.pair.key, "value": sketch.pair.value}
    return {**pair, "aggregate": sketch.aggregate, "key_set": key_set, **asdict(sketch.counts)}


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
    keys, first = np.unique(hashes[by_hash], return_index=True)
    members = np.empty(hashes.size, dtype=np.uint32)
    members[by_hash] = np.repeat(np.arange(keys.size), np.diff(first, append=hashes.size))
    key_set = np.repeat(np.arange(len(key_sets)), sizes)[by_hash]
    width = widths[key_set]
    starts = np.cumsum(width) - width
    values = _concatenate([_rows_of_values(key_set) for key_set in key_sets], np.float64)
    row_starts = np.cumsum(np.repeat(widths, sizes)) - np.repeat(widths, sizes)
    within = np.arange(int(width.sum())) - np.repeat(starts, width)
    first_sketch = np.cumsum(widths) - widths
    return {
        "members.place": members,
        "keys.hash": keys,
        "starts.start": np.append(starts[first], np.int64(width.sum())),
        "postings.sketch": (np.repeat(first_sketch[key_set], width) + within).astype(np.uint32),
        "postings.value": values[np.repeat(row_starts[by_hash], width) + within],
    }


def _rows_of_values(key_set: _KeySet) -> Floats:
    return np.stack([sketch.values for sketch in key_set.sketches], axis=1).ravel()


def _concatenate(arrays: Sequence[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=kind)


def fold_segments(segments: Sequence[Segment]) -> Segment:
    """Fold several segments into one, with the same answers."""
    if len(segments) == 1:
        return segments[0]
    tables_before = _before([segment.tables.height for segment in segments])
    sketches_before = _before([segment.sketches.height for segment in segments])
    key_sets_before = _before([segment.key_sets.height for segment in segments])
    members_before = _before([segment.arrays["members.place"].size for segment in segments])
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


def _before(counts: Sequence[int]) -> list[int]:
    return [sum(counts[:place]) for place in range(len(counts))]


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
