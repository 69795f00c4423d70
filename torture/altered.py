"""How an index with altered contents is written: all that this package knows of the files of an index.

What is written has right checksums everywhere: it lies as somebody would who knows the format.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from covary.index.checksums import in_memory
from covary.index.manifest import FORMAT, MANIFEST, SEGMENTS, Manifest, read_manifest, seal_of
from covary.index.segment_files import (
    Segment,
    SoundArrays,
    StoredSegment,
    checksum_of,
    open_segment,
    stored_segment,
    write_segment,
)
from covary.index.table_records import NOTES

Arrays = dict[str, np.ndarray[Any, Any]]


def contents_of(index: Path) -> tuple[Arrays, pl.DataFrame, pl.DataFrame]:
    """Read the arrays, tables and names of the first segment of an index."""
    segment = open_segment(index / SEGMENTS / read_manifest(index).segments[0].name)
    arrays = {name: np.array(array) for name, array in segment.arrays.items()}
    return arrays, segment.tables, segment.names.to_frame("name")


def write_altered(
    index: Path,
    into: Path,
    arrays: Mapping[str, np.ndarray[Any, Any]],
    tables: pl.DataFrame,
    names: pl.DataFrame,
) -> None:
    """Write an index with one segment of these contents, with the settings of another index."""
    parts = into / SEGMENTS
    parts.mkdir(parents=True)
    notes = tables.select([name for name in NOTES if name in tables.columns])
    frames = {"tables": tables.drop(notes.columns), "notes": notes, "names": names}
    checked = {name: in_memory(array) for name, array in arrays.items()}
    _write_manifest(index, into, write_segment(Segment(SoundArrays(checked), frames.__getitem__), parts))


def write_with_file(index: Path, into: Path, name: str, alter: Callable[[Path], None]) -> None:
    """Copy an index with a file of its first segment altered, under checksums that fit."""
    before = read_manifest(index).segments[0]
    (into / SEGMENTS).mkdir(parents=True)
    made = into / SEGMENTS / "made"
    shutil.copytree(index / SEGMENTS / before.name, made)
    alter(made / name)
    stored = stored_segment(made)
    made.rename(made.with_name(stored.name))
    _write_manifest(index, into, stored)


def _write_manifest(index: Path, into: Path, stored: StoredSegment) -> None:
    manifest = replace(read_manifest(index), segments=(stored,))
    (into / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")


def write_manifest(index: Path, into: Path, alter: Callable[[dict[str, Any]], Any]) -> None:
    """Copy an index with a manifest that says something else, under a seal that fits."""
    shutil.copytree(index, into)
    content = json.loads((into / MANIFEST).read_text(encoding="utf-8"))
    content.pop("checksum")
    alter(content)
    sealed = content | {"checksum": seal_of(content)}
    (into / MANIFEST).write_text(json.dumps(sealed, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def files_of(index: Path) -> list[Path]:
    """Every file that says what an index holds: its manifest, and those of its segments."""
    named = [
        index / SEGMENTS / stored.name / name
        for stored in segments_of(index)
        for name in sorted(stored.files)
    ]
    return [index / MANIFEST, *named]


def segments_of(index: Path) -> Sequence[StoredSegment]:
    """The segments that the manifest of an index names."""
    return read_manifest(index).segments


__all__ = [
    "FORMAT",
    "MANIFEST",
    "SEGMENTS",
    "Manifest",
    "checksum_of",
    "contents_of",
    "files_of",
    "segments_of",
    "write_altered",
    "write_manifest",
    "write_with_file",
]
