"""A segment on disk: Parquet that describes, Arrow that is mapped into memory and answers where it lies."""

import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import xxhash

from covary.errors import DamagedIndex, NotAnIndex

ARRAYS = {
    "members": ("entry",),
    "values": ("value",),
    "dictionary": ("place",),
    "blocks": ("start",),
    "keys": ("hash",),
    "postings": ("block", "entry"),
    "starts": ("start",),
}
FRAMES = ("tables", "sketches", "key_sets")


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """The contents of a segment: frames that describe, arrays that answer."""

    tables: pl.DataFrame
    sketches: pl.DataFrame
    key_sets: pl.DataFrame
    arrays: Mapping[str, npt.NDArray[Any]]  # "keys.hash", "values.value", ...

    @property
    def entries(self) -> int:
        """How many ⟨key, value⟩ entries the segment holds."""
        return int(self.arrays["values.value"].size)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """What the manifest remembers of a file."""

    size: int
    checksum: str


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """What the manifest remembers of a segment."""

    name: str
    files: Mapping[str, StoredFile]


def write_segment(segment: Segment, folder: Path) -> StoredSegment:
    """Write a segment's files and measure them."""
    write_files(segment, folder)
    return stored_segment(folder)


def write_files(segment: Segment, folder: Path) -> None:
    """Write a segment's files; the folder appears when all of them are in it.

    A task that is tried again, or twice at once, writes the same bytes: whoever comes second is ignored.
    """
    draft = folder.with_name(f"{folder.name}.{uuid.uuid4().hex[:12]}")
    draft.mkdir(parents=True)
    for name in FRAMES:
        packed = BytesIO()  # Polars reports a full disk as an error of its own; Path reports it as what it is
        getattr(segment, name).write_parquet(packed, compression="zstd")
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
    """Measure the files of a segment as they lie on disk."""
    files = sorted(folder.iterdir())
    return StoredSegment(
        folder.name, {file.name: StoredFile(file.stat().st_size, checksum_of(file)) for file in files}
    )


def read_segment(folder: Path, stored: StoredSegment) -> Segment:
    """Open a segment after checking that no file is missing, truncated or altered."""
    for name, expected in stored.files.items():
        _check_file(folder / name, expected)
    return open_segment(folder)


def open_segment(folder: Path) -> Segment:
    """Open a segment as it lies."""
    frames = {name: pl.read_parquet(folder / f"{name}.parquet") for name in FRAMES}
    arrays = {
        f"{name}.{column}": array
        for name in ARRAYS
        for column, array in _map_arrays(folder / f"{name}.arrow").items()
    }
    return Segment(**frames, arrays=arrays)


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


def _check_file(file: Path, expected: StoredFile) -> None:
    advice = "rebuild the index with covary index"
    try:
        size = file.stat().st_size
        if size != expected.size:
            raise DamagedIndex(f"{file} is damaged: {size:,} bytes instead of {expected.size:,}; {advice}")
        if checksum_of(file) != expected.checksum:
            raise DamagedIndex(f"{file} is damaged: its checksum does not match the manifest's; {advice}")
    except FileNotFoundError:
        raise DamagedIndex(f"{file} is missing; {advice}") from None
    except PermissionError:
        raise NotAnIndex(f"no permission to read {file}") from None
    except OSError as problem:
        raise DamagedIndex(f"{file} is damaged: {problem.strerror or problem}; {advice}") from None


def checksum_of(file: Path) -> str:
    """Checksum a file by XXH3: as fast as it can be read."""
    digest = xxhash.xxh3_128()
    with file.open("rb") as stream:
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()
