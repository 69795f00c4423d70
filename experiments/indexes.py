"""Sketches as rows of a Parquet file, as smaller sketches, and as an index made of sketches at hand."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from covary.index.commit import commit, open_draft
from covary.index.manifest import Manifest
from covary.index.segment_files import write_segment
from covary.index.segment_layout import build_segment
from covary.index.table_records import TableRecord
from covary.own_files import MANIFEST
from covary.query.ask import Index, open_index
from covary.sketching.sketch_types import ColumnPair, Counts, Sketch, SketchConfig

SKETCHES = {
    "number": pl.Int64,
    "table": pl.String,
    "key": pl.String,
    "value": pl.String,
    "complete": pl.Boolean,
    "key_hashes": pl.Binary,
    "values": pl.Binary,
    **{name: pl.Float64 if name in ("minimum", "maximum") else pl.Int64 for name in Counts.__slots__},
}


def sketch_row(number: int, sketch: Sketch) -> dict[str, Any]:
    """Write a sketch as a row."""
    arrays = {"key_hashes": sketch.key_hashes.tobytes(), "values": sketch.values.tobytes()}
    known = {"number": number, "complete": sketch.complete}
    pair = {"table": sketch.pair.table, "key": sketch.pair.key, "value": sketch.pair.value}
    return pair | asdict(sketch.counts) | arrays | known


def sketches_from(rows: pl.DataFrame, config: SketchConfig) -> Iterator[Sketch]:
    """Read sketches back, in the order of their numbers."""
    for row in rows.sort("number").iter_rows(named=True):
        yield Sketch(
            ColumnPair(row["table"], row["key"], row["value"]),
            config.aggregates[0],
            config,
            np.frombuffer(row["key_hashes"], dtype=config.scheme.identity_type),
            np.frombuffer(row["values"]),
            Counts(**{name: row[name] for name in Counts.__slots__}),
            row["complete"],
        )


def smaller(sketch: Sketch, size: int) -> Sketch:
    """Return the sketch of fewer keys that the same rows would have given."""
    return replace(
        sketch,
        config=replace(sketch.config, size=size),
        key_hashes=sketch.key_hashes[:size],
        values=sketch.values[:size],
        complete=sketch.complete and sketch.size <= size,
    )


def write_sketches(sketches: Sequence[Sketch], folder: Path) -> Index:
    """Write sketches, each as that of a table of its own, as an index."""
    tables = [(TableRecord(sketch.pair.table, ""), [sketch]) for sketch in sketches]
    index = write_index(tables, sketches[0].config, folder)
    if index.sketch_count != len(sketches):
        raise ValueError(
            "a sketch without keys has no place in an index: those after it would change numbers"
        )
    return index


def is_index(folder: Path) -> bool:
    """Whether a whole index is there, not one whose writing was cut short."""
    return (folder / MANIFEST).exists()


@lru_cache(maxsize=1)
def read_index(folder: Path) -> Index:
    """Open an index once in a process, without checking it again."""
    return Index.open(folder)


def bytes_of(folder: Path) -> int:
    """Add up the sizes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def write_index(
    tables: Iterable[tuple[TableRecord, Sequence[Sketch]]], config: SketchConfig, folder: Path
) -> Index:
    """Write sketches as an index of one segment, and open it."""
    with open_draft(folder) as draft:
        stored = write_segment(build_segment(list(tables)), draft.folder)
        commit(draft, Manifest(config, (stored,)))
    return open_index(folder)
