"""A segment on disk: Parquet that describes, Arrow that is mapped into memory and answers where it lies."""

import mmap
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import xxhash

from covary.errors import DamagedIndex

NAMED = ("key", "value", "granularity", "aggregate")  # of a sketch, as places among the segment's names
COUNTED = ("rows", "null_keys", "null_values", "not_finite", "minimum", "maximum")
ARRAYS = {
    "sketches": ("table", *NAMED, "key_set", *COUNTED, "value_start"),
    "key_sets": ("size", "complete", "reach", "block", "order", "member_start"),
    "columns": ("start",),
    "members": ("entry",),
    "values": ("value",),
    "dictionary": ("place",),
    "blocks": ("start", "set"),
    "keys": ("hash",),
    "postings": ("block", "entry"),
    "starts": ("start",),
}
FRAMES = ("tables", "names")
FILES = frozenset([*(f"{name}.parquet" for name in FRAMES), *(f"{name}.arrow" for name in ARRAYS)])
ReadFrame = Callable[[str, Sequence[str] | None], pl.DataFrame]


class Segment:
    """The contents of a segment: arrays that answer, and frames that describe, read when asked for."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], read_frame: ReadFrame) -> None:
        self.arrays = arrays  # "keys.hash", "values.value", ...
        self.read_frame = read_frame

    @classmethod
    def in_memory(
        cls, arrays: Mapping[str, npt.NDArray[Any]], tables: pl.DataFrame, names: pl.DataFrame
    ) -> "Segment":
        """Make a segment that is not on disk."""
        frames = {"tables": tables, "names": names}
        return cls(arrays, lambda name, columns: frames[name].select(columns or pl.all()))

    @cached_property
    def tables(self) -> pl.DataFrame:
        """One row per table."""
        return self.read_frame("tables", None)

    def read_tables(self, columns: Sequence[str]) -> pl.DataFrame:
        """Read some facts of the tables."""
        return self.read_frame("tables", columns)

    @cached_property
    def places(self) -> pl.DataFrame:
        """The names of the tables, and where they came from."""
        return self.read_tables(("name", "path", "member"))

    @cached_property
    def names(self) -> pl.Series:
        """Every name of a column, a granularity or an aggregate, once."""
        return self.read_frame("names", None)["name"]

    @property
    def sketch_count(self) -> int:
        """How many sketches the segment holds."""
        return int(self.arrays["sketches.table"].size)

    @property
    def entries(self) -> int:
        """How many ⟨key, value⟩ entries the segment holds."""
        return int(self.arrays["values.value"].size)

    @cached_property
    def sketches(self) -> pl.DataFrame:
        """One row per ⟨key, number, aggregate⟩: its table, its names, and what was counted."""
        names = {name: self.names.gather(self.arrays[f"sketches.{name}"]) for name in NAMED}
        counted = {name: self.arrays[f"sketches.{name}"] for name in ("table", "key_set", *COUNTED)}
        return pl.DataFrame({**names, **counted})


@dataclass(frozen=True, slots=True)
class StoredFile:
    """What the manifest remembers of a file."""

    size: int
    checksum: str


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """What the manifest remembers of a segment.

    Attributes:
        name: made of its files' checksums, so that the same content has the same name.
        files: of the segment.
        removed: places of the tables that are no longer part of the index, ascending.
    """

    name: str
    files: Mapping[str, StoredFile]
    removed: tuple[int, ...] = ()


def write_segment(segment: Segment, folder: Path) -> StoredSegment:
    """Write a segment into a folder, under a name made of its content."""
    draft = folder / uuid.uuid4().hex
    write_files(segment, draft)
    stored = stored_segment(draft)
    try:
        draft.rename(folder / stored.name)
    except OSError:
        if not (folder / stored.name).exists():
            raise
        shutil.rmtree(draft)
    return stored


def write_files(segment: Segment, folder: Path) -> None:
    """Write a segment's files; the folder appears when all of them are in it.

    A task that is tried again, or twice at once, writes the same bytes: whoever comes second is ignored.
    """
    draft = folder.with_name(f"{folder.name}.{uuid.uuid4().hex[:12]}")
    draft.mkdir(parents=True)
    for name, frame in (("tables", segment.tables), ("names", segment.names.to_frame("name"))):
        packed = BytesIO()  # Polars reports a full disk as an error of its own; Path reports it as what it is
        frame.write_parquet(packed, compression="zstd")
        (draft / f"{name}.parquet").write_bytes(packed.getbuffer())
    for name, columns in ARRAYS.items():
        table = pa.table({column: as_arrow(segment.arrays[f"{name}.{column}"]) for column in columns})
        # Uncompressed: the file is mapped into memory and used where it lies.
        with (
            pa.OSFile(str(draft / f"{name}.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, table.schema) as writer,
        ):
            writer.write_table(table)
    try:
        draft.rename(folder)
    except OSError:
        if not folder.exists():
            raise
        shutil.rmtree(draft)


def as_arrow(array: npt.NDArray[Any]) -> pa.Array:
    """Take an array as Arrow's without copying it, nor importing pandas as pyarrow's own way does."""
    whole = np.ascontiguousarray(array)
    return pa.Array.from_buffers(pa.from_numpy_dtype(whole.dtype), whole.size, [None, pa.py_buffer(whole)])


def stored_segment(folder: Path) -> StoredSegment:
    """Measure the files of a segment as they lie on disk, and name it by their checksums."""
    files = {
        file.name: StoredFile(file.stat().st_size, checksum_of(file)) for file in sorted(folder.iterdir())
    }
    name = xxhash.xxh3_128_hexdigest(
        "".join(f"{name} {file.checksum}\n" for name, file in files.items()).encode()
    )
    return StoredSegment(name, files)


def open_segment(folder: Path) -> Segment:
    """Open a segment as it lies; it can be read even after its files were removed."""
    described = open_description(folder)
    try:
        arrays = {
            f"{name}.{column}": array
            for name in ARRAYS
            for column, array in _map_arrays(folder / f"{name}.arrow").items()
        }
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as problem:
        raise _damaged(folder, problem) from problem
    return Segment(arrays, described.read_frame)


def open_description(folder: Path) -> Segment:
    """Open only what describes the tables and columns of a segment."""
    frames = {name: _mapped(folder / f"{name}.parquet") for name in FRAMES}

    def read(name: str, columns: Sequence[str] | None) -> pl.DataFrame:
        try:
            return pl.read_parquet(bytes(frames[name]), columns=list(columns) if columns else None)
        except pl.exceptions.PolarsError as problem:
            raise _damaged(folder, problem) from problem

    return Segment({}, read)


def _damaged(place: Path, problem: Exception) -> DamagedIndex:
    reason = str(problem).strip().split("\n")[0][:100]
    return DamagedIndex(f"{place} is damaged: {reason}; covary check lists all that is")


def _mapped(file: Path) -> mmap.mmap:
    with file.open("rb") as stream:
        try:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as problem:  # it is empty
            raise _damaged(file, problem) from problem


def _map_arrays(file: Path) -> dict[str, npt.NDArray[Any]]:
    table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
    return {name: _as_numpy(table.column(name)) for name in table.column_names}


def _as_numpy(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Take a mapped column as an array where it lies; pyarrow's own way would import pandas."""
    kind = column.type.to_pandas_dtype()
    if not len(column):
        return np.frombuffer(b"", dtype=kind)
    chunk = column.chunk(0)  # a file of ours holds one batch
    start = chunk.offset * np.dtype(kind).itemsize
    return np.frombuffer(chunk.buffers()[1], dtype=kind, count=len(chunk), offset=start)


def checksum_of(file: Path) -> str:
    """Checksum a file by XXH3: as fast as it can be read."""
    digest = xxhash.xxh3_128()
    with file.open("rb") as stream:
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()
