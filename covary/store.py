"""The index on disk: immutable segments and one manifest, replaced as the last step of a build.

INDEX/
  manifest.json            settings, and every segment's files with their sizes and checksums
  segments/NAME/
    tables.parquet         one row per table: where it came from, its rows and columns, or why it was skipped
    sketches.parquet       one row per ⟨key, number, aggregate⟩
    key_sets.parquet       one row per distinct key set, shared by the sketches that have it
    members.arrow          the keys of each key set in h_u order, as places in the dictionary of its block
    values.arrow           the numbers of each sketch, in the order of its keys
    dictionary.arrow       the keys of each block of key sets, as places in keys.arrow
    blocks.arrow           where the dictionary of each block starts, and where the last ends
    keys.arrow             every distinct key hash, sorted
    postings.arrow         for each key, the blocks that hold it and its places in their dictionaries
    starts.arrow           where the postings of each key start, and where the last end
"""

import errno
import json
import os
import shutil
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import xxhash

from covary.errors import CannotWrite, CovaryError, DamagedIndex, NotAnIndex, UnsupportedFormat
from covary.sketches import SketchConfig

FORMAT = 2
MANIFEST = "manifest.json"
SEGMENTS = "segments"
SCRATCH = ".building-"
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


@dataclass(frozen=True, slots=True)
class Manifest:
    """The settings of an index and the segments that make it up."""

    config: SketchConfig
    segments: tuple[StoredSegment, ...]
    format: int = FORMAT


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


def checksum_of(file: Path) -> str:
    """Checksum a file by XXH3: as fast as it can be read."""
    digest = xxhash.xxh3_128()
    with file.open("rb") as stream:
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def read_manifest(index: Path) -> Manifest:
    """Read the manifest, refusing what is not an index or is of another format version."""
    file = index / MANIFEST
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        found = content["format"]
    except FileNotFoundError:
        what = "is not a covary index" if index.exists() else "does not exist"
        raise NotAnIndex(f"{index} {what}; make one with: covary index SOURCE --into {index}") from None
    except NotADirectoryError:
        raise NotAnIndex(f"{index} is a file, not a covary index") from None
    except PermissionError:
        raise NotAnIndex(f"no permission to read {file}") from None
    except (ValueError, KeyError, TypeError, RecursionError, OSError):
        raise DamagedIndex(
            f"{file} is damaged: it is not a manifest; rebuild the index with covary index"
        ) from None
    if found != FORMAT:
        raise UnsupportedFormat(
            f"{index} has format version {found}, this covary reads version {FORMAT}; "
            f"rebuild it with covary index, or install the covary that made it"
        )
    try:
        seed = content["config"].pop("seed")
        manifest = _manifest_from(content)
    except (KeyError, TypeError, ValueError, AttributeError, CovaryError):
        raise DamagedIndex(
            f"{file} is damaged: entries are missing; rebuild the index with covary index"
        ) from None
    if seed != manifest.config.scheme.seed:
        raise UnsupportedFormat(
            f"{index} was made with seed {seed}, which this covary does not use; rebuild it"
        )
    return manifest


def _manifest_from(content: dict[str, Any]) -> Manifest:
    config = content["config"]
    segments = tuple(
        StoredSegment(s["name"], {name: StoredFile(**file) for name, file in s["files"].items()})
        for s in content["segments"]
    )
    expected = {f"{name}.parquet" for name in FRAMES} | {f"{name}.arrow" for name in ARRAYS}
    names = [segment.name for segment in segments]
    if not names or len({*names}) < len(names) or not all(name.isdigit() for name in names):
        raise ValueError("segments are missing, repeated or misnamed")
    if any(segment.files.keys() != expected for segment in segments):
        raise ValueError("files are missing")
    if type(config["size"]) is not int:
        raise TypeError("the size is not a whole number")
    return Manifest(SketchConfig(**{**config, "aggregates": tuple(config["aggregates"])}), segments)


def segment_folder(index: Path, stored: StoredSegment) -> Path:
    """Return where a segment lies."""
    return index / SEGMENTS / stored.name


@contextmanager
def building(index: Path) -> Iterator[Path]:
    """Give a scratch folder inside the index for the files of a build; whatever is left in it is removed.

    Failing to write is reported as such, and leaves the previous index as it was.
    """
    made_index = False
    scratch = index / f"{SCRATCH}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
    try:
        made_index = not index.exists()
        _refuse_other_folders(index)
        _sweep(index)
        scratch.mkdir(parents=True)
        yield scratch
    except ConnectionError:  # of Spark's, not of the disk's
        raise
    except OSError as problem:
        raise cannot_write(index, problem) from problem
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if made_index and not (index / MANIFEST).exists():
            shutil.rmtree(index, ignore_errors=True)


def _sweep(index: Path) -> None:
    """Remove what builds of this machine left that were killed before they could."""
    for left in index.glob(f"{SCRATCH}{socket.gethostname()}-*"):
        process = left.name.split("-")[-2]
        if process.isdigit() and not Path("/proc", process).exists() and Path("/proc/self").exists():
            shutil.rmtree(left, ignore_errors=True)


def _refuse_other_folders(index: Path) -> None:
    if index.is_file():
        raise CannotWrite(f"{index} is a file; name a folder for the index")
    if index.is_dir() and not (index / MANIFEST).exists():
        others = [name for name in os.listdir(index) if not name.startswith(SCRATCH) and name != SEGMENTS]
        if others:
            raise CannotWrite(f"{index} holds other files and is not an index; choose a new folder")


def cannot_write(index: Path, problem: OSError) -> CannotWrite:
    """Say in words why an index can't be written."""
    reasons = {
        errno.ENOSPC: "the disk is full",
        errno.EACCES: "no permission",
        errno.EROFS: "it is read-only",
    }
    reason = reasons.get(problem.errno or 0, problem.strerror or str(problem))
    return CannotWrite(f"can't write the index {index}: {reason}; nothing was changed")


def commit(index: Path, manifest: Manifest, scratch: Path) -> None:
    """Move the new segments into place and replace the manifest: the one moment when the index changes."""
    (index / SEGMENTS).mkdir(exist_ok=True)
    for segment in manifest.segments:
        (scratch / segment.name).rename(segment_folder(index, segment))
    draft = scratch / MANIFEST
    content = {
        "format": manifest.format,
        "config": asdict(manifest.config) | {"seed": manifest.config.scheme.seed},
        "segments": [asdict(s) for s in manifest.segments],
    }
    with draft.open("w", encoding="utf-8") as stream:
        json.dump(content, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(index / MANIFEST)
    current = {segment.name for segment in manifest.segments}
    for folder in (index / SEGMENTS).iterdir():
        if folder.name not in current:
            shutil.rmtree(folder, ignore_errors=True)
