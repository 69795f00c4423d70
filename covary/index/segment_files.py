"""A segment on disk: packed Arrow describes it, Arrow mapped into memory answers where it lies."""

import errno
import mmap
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import xxhash

from covary.arrays import Array, Integers
from covary.errors import DamagedIndex, StoreError
from covary.index.checksums import (
    PIECE_BYTES,
    CheckedArray,
    checksums_of,
    in_memory,
    is_sound_at,
    on_disk,
    piece_count,
)
from covary.index.plain_arrow import NotPlainArrow, pack_table, read_batch, unpack_table
from covary.index.soundness import Fault, Verdict
from covary.index.table_records import NOTES, TABLES
from covary.own_files import NotPlain, open_whole, require_folder

NAMED = ("key", "value", "granularity", "aggregate")  # of a sketch, as positions among the segment's names
COUNTED = ("rows", "null_keys", "null_values", "not_finite", "minimum", "maximum")
SLOT, START, NUMBER, ENTRY = (np.uint32,), (np.int64,), (np.float64,), (np.uint16, np.uint32)
ARRAYS: dict[str, dict[str, tuple[type, ...]]] = {  # with the types that each may have
    "sketches": {
        "table": SLOT,
        **dict.fromkeys(NAMED, SLOT),
        "key_set": SLOT,
        **dict.fromkeys(COUNTED, START),
        "minimum": NUMBER,
        "maximum": NUMBER,
        "value_start": START,
    },
    "key_sets": {
        "size": START,
        "complete": (np.uint8,),
        "reach": NUMBER,
        "block": START,
        "order": START,
        "member_start": START,
    },
    "columns": {"start": START},
    "members": {"entry": ENTRY},
    "values": {"value": NUMBER},
    "dictionary": {"place": SLOT},
    "blocks": {"start": START, "set": START},
    "keys": {"hash": (np.uint64,)},
    "postings": {"block": SLOT, "entry": ENTRY},
    "starts": {"start": START},
}
# What tells of tables, what more is known of each, and all names; apart, for most questions need not all.
FRAMES = {"tables": TABLES, "notes": NOTES, "names": pl.Schema({"name": pl.String()})}
KINDS = {f"{name}.{column}": kinds for name, columns in ARRAYS.items() for column, kinds in columns.items()}
CHECKSUMS = "checksums.arrow"
FILES = frozenset(
    [*(f"{name}.arrow.zst" for name in FRAMES), *(f"{name}.arrow" for name in ARRAYS), CHECKSUMS]
)
ARROW_STARTS = 8  # bytes before the first message of an Arrow file
NO_MORE_FILES = {errno.EMFILE, errno.ENFILE}
SEGMENTS = "segments"  # the folder of an index in which they lie
ALTERED = "its checksum does not match the manifest's"
ReadFrame = Callable[[str], pl.DataFrame]
MappedFile = tuple[pa.Buffer, str]  # a file of arrays where it lies, and its checksum


class SoundArrays(Mapping[str, Array]):
    """The arrays of a segment by name; the file of one is held against its checksum when it is first used."""

    def __init__(
        self,
        checked: Mapping[str, CheckedArray],
        files: Mapping[str, MappedFile] = MappingProxyType({}),
        folder: Path | None = None,
    ) -> None:
        self.checked = checked
        self._files = files
        self._folder = folder
        self._sound: set[str] = set()  # so that the pieces of a large array are not counted at every use

    def __getitem__(self, name: str) -> Array:
        checked = self.checked[name]
        if name not in self._sound and not checked.seen.all():
            file = name.partition(".")[0]
            content, checksum = self._files[file]
            if xxhash.xxh3_128_hexdigest(content) != checksum:
                raise self.altered(name)
            for column in ARRAYS[file]:
                self.checked[f"{file}.{column}"].seen[:] = 1
        self._sound.add(name)
        return checked.array

    def __iter__(self) -> Iterator[str]:
        return iter(self.checked)

    def __len__(self) -> int:
        return len(self.checked)

    def at(self, name: str, positions: Integers) -> Array:
        """Return some items of a long array, of which only these are looked at; no position is negative."""
        checked = self.checked[name]
        try:
            sound = is_sound_at(checked, positions * checked.array.itemsize // PIECE_BYTES)
            items: Array = checked.array[positions]
        except IndexError:
            raise self.impossible(name) from None
        if not sound:
            raise self.altered(name)
        return items

    def between(self, name: str, start: int, end: int) -> Array:
        """Return neighbouring items of a long array, of which only these are looked at."""
        checked = self.checked[name]
        if not 0 <= start <= end <= checked.array.size:
            raise self.impossible(name)
        width = checked.array.itemsize
        if not is_sound_at(checked, np.arange(start * width // PIECE_BYTES, piece_count(end * width))):
            raise self.altered(name)
        return checked.array[start:end]

    def altered(self, name: str) -> DamagedIndex:
        """Say that what was read is not what was written."""
        return _damaged(self._file(name), ALTERED)

    def impossible(self, name: str) -> DamagedIndex:
        """Say that what was read can't have been written by covary, though its checksum matches."""
        return _damaged(self._file(name), "it holds what covary can't have written")

    def require_sound(self, verdict: Verdict) -> None:
        """Refuse an array with a fault."""
        if verdict.fault:
            name = verdict.part.array
            raise self.altered(name) if verdict.fault == Fault.ALTERED else self.impossible(name)

    def _file(self, name: str) -> Path:
        return (self._folder or Path()) / f"{name.partition('.')[0]}.arrow"


@dataclass(frozen=True, eq=False)
class Segment:
    """The contents of a segment: arrays that answer, and frames that describe, unpacked when asked for."""

    arrays: SoundArrays  # "keys.hash", "values.value", ...
    read_frame: ReadFrame

    @classmethod
    def in_memory(cls, arrays: Mapping[str, Array], tables: pl.DataFrame, names: pl.DataFrame) -> "Segment":
        """Make a segment that is not on disk."""
        frames = {"tables": tables.select(list(TABLES)), "notes": tables.select(list(NOTES)), "names": names}
        return cls(
            SoundArrays({name: in_memory(array) for name, array in arrays.items()}), frames.__getitem__
        )

    @cached_property
    def tables(self) -> pl.DataFrame:
        """One row per table: all that is known of it."""
        return pl.concat([self.table_list, self.read_frame("notes")], how="horizontal")

    @cached_property
    def table_list(self) -> pl.DataFrame:
        """One row per table: its name, where it came from and in which state."""
        return self.read_frame("tables")

    @cached_property
    def names(self) -> pl.Series:
        """Every name of a column, a granularity or an aggregate, once."""
        return self.read_frame("names")["name"]

    @property
    def sketch_count(self) -> int:
        """How many sketches the segment holds."""
        return int(self.arrays.checked["sketches.table"].array.size)

    @property
    def entries(self) -> int:
        """How many ⟨key, value⟩ entries the segment holds."""
        return int(self.arrays.checked["values.value"].array.size)

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
    """What the manifest remembers of a segment."""

    name: str  # made of its files' checksums, so that the same content has the same name
    files: Mapping[str, StoredFile]
    removed: tuple[int, ...] = ()  # positions of the tables that the index has no more, ascending


def write_segment(segment: Segment, folder: Path) -> StoredSegment:
    """Write a segment into a folder, under a name made of its content."""
    draft = folder / uuid.uuid4().hex
    _write_files(segment, draft)
    sums = [checksums_of(segment.arrays[name]) for name in KINDS]
    _write_arrays(draft / CHECKSUMS, {"sum": np.concatenate(sums)})
    stored = stored_segment(draft)
    _rename_or_discard(draft, folder / stored.name)
    return stored


def write_part(segment: Segment, folder: Path) -> None:
    """Write a segment that the same build reads again; the folder appears when all of its files are in it.

    A task that is tried again, or twice at once, writes the same bytes: whoever comes second is ignored.
    """
    draft = folder.with_name(f"{folder.name}.{uuid.uuid4().hex[:12]}")
    _write_files(segment, draft)
    _rename_or_discard(draft, folder)


def _rename_or_discard(draft: Path, folder: Path) -> None:
    """Give a folder its name; where one of that name is, it holds the same."""
    try:
        draft.rename(folder)
    except OSError:
        if not folder.exists():
            raise
        shutil.rmtree(draft)


def _write_files(segment: Segment, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in FRAMES:
        table = segment.read_frame(name).to_arrow(compat_level=pl.CompatLevel.oldest())
        (folder / _packed_file(name)).write_bytes(pack_table(table))
    for name, columns in ARRAYS.items():
        _write_arrays(
            folder / f"{name}.arrow", {column: segment.arrays[f"{name}.{column}"] for column in columns}
        )


def _write_arrays(file: Path, columns: Mapping[str, Array]) -> None:
    batch = pa.record_batch({name: as_arrow(array) for name, array in columns.items()})
    # Uncompressed: the file is mapped into memory and used where it lies.
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def as_arrow(array: Array) -> pa.Array:
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


def open_segment(folder: Path, stored: StoredSegment | None = None) -> Segment:
    """Open a segment as it lies; it can be read even after its files were removed.

    Without what the manifest remembers of it, it was written just now, and is not held against checksums.
    """
    described = open_description(folder, stored)
    mapped = {name: _mapped_arrays(folder / f"{name}.arrow", columns) for name, columns in ARRAYS.items()}
    arrays = {f"{name}.{column}": array for name, (_, own) in mapped.items() for column, array in own.items()}
    if stored is None:
        sound = SoundArrays({name: in_memory(array) for name, array in arrays.items()})
    else:
        file = folder / CHECKSUMS
        content, sums = _mapped_arrays(file, {"sum": (np.uint64,)})
        if xxhash.xxh3_128_hexdigest(content) != stored.files[CHECKSUMS].checksum:
            raise _damaged(file, ALTERED)
        checked = _with_sums(arrays, sums["sum"], file)
        files = {
            name: (content, stored.files[f"{name}.arrow"].checksum) for name, (content, _) in mapped.items()
        }
        sound = SoundArrays(checked, files, folder)
    segment = Segment(sound, described.read_frame)
    if stored and stored.removed and max(stored.removed) >= segment.table_list.height:
        raise _damaged(folder, "the manifest removes tables that it has not")
    return segment


def _with_sums(arrays: Mapping[str, Array], sums: Array, file: Path) -> dict[str, CheckedArray]:
    """Give each array the checksums of its pieces, which lie one after the other."""
    ends = np.cumsum([piece_count(array.nbytes) for array in arrays.values()])
    if ends[-1] != sums.size:
        raise _damaged(file, "there are not as many checksums as the arrays need")
    parts = np.split(sums, ends[:-1])
    return {name: on_disk(array, part) for (name, array), part in zip(arrays.items(), parts, strict=True)}


def open_description(folder: Path, stored: StoredSegment | None = None) -> Segment:
    """Open only what describes the tables and columns of a segment; altered files are noticed when read."""
    try:
        require_folder(folder)
        packed = {name: _mapped(folder / _packed_file(name)) for name in FRAMES}
    except NotPlain as problem:
        raise _damaged(folder, problem) from problem

    def read(name: str) -> pl.DataFrame:
        file, content = _packed_file(name), pa.py_buffer(packed[name])
        if stored and xxhash.xxh3_128_hexdigest(content) != stored.files[file].checksum:
            raise _damaged(folder / file, ALTERED)
        try:
            return pl.DataFrame(unpack_table(content, frame_schema(name)))
        except NotPlainArrow as problem:
            raise _damaged(folder / file, problem) from problem

    return Segment(SoundArrays({}), read)


@cache
def frame_schema(name: str) -> pa.Schema:
    """Return the schema of a file that describes; not when this is imported, for processes that fork then."""
    return pl.DataFrame(schema=FRAMES[name]).to_arrow(compat_level=pl.CompatLevel.oldest()).schema


def _packed_file(name: str) -> str:
    return f"{name}.arrow.zst"


def _damaged(path: Path, problem: Exception | str) -> DamagedIndex:
    message = str(problem.strerror if isinstance(problem, NotPlain) else problem)
    reason = message.strip().split("\n")[0][:100]
    index = next((folder.parent for folder in path.parents if folder.name == SEGMENTS), "INDEX")
    return DamagedIndex(f"{path} is damaged: {reason}; covary check {index} lists all that is")


def _mapped(file: Path) -> mmap.mmap:
    try:
        with open(open_whole(file), "rb") as stream:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (NotPlain, ValueError) as problem:  # a ValueError, if it is empty
        raise _damaged(file, problem) from problem
    except FileNotFoundError:
        raise
    except OSError as problem:
        # No damage: the machine's limits, or its disk.
        more = "; allow more open files (ulimit -n 4096)" if problem.errno in NO_MORE_FILES else ""
        raise StoreError(f"can't read {file}: {problem.strerror}{more}") from problem


def _mapped_arrays(file: Path, columns: Mapping[str, tuple[type, ...]]) -> tuple[pa.Buffer, dict[str, Array]]:
    """Map a file of arrays into memory: all of it, and each array where it lies in it."""
    content = pa.py_buffer(_mapped(file))
    try:
        batch = read_batch(content.slice(ARROW_STARTS))
        names = batch.schema.names
    except (NotPlainArrow, UnicodeDecodeError) as problem:
        raise _damaged(file, problem) from problem
    if names != list(columns):
        raise _damaged(file, "its columns are not those of an index")
    arrays = {name: _as_numpy(batch.column(name)) for name in columns}
    odd = [name for name, kinds in columns.items() if arrays[name].dtype.type not in kinds]
    if odd:
        raise _damaged(file, f"{odd[0]} holds {arrays[odd[0]].dtype}")
    return content, arrays


def _as_numpy(column: pa.Array) -> Array:
    """Take a mapped column as an array where it lies; pyarrow's own way would import pandas."""
    kind = np.dtype(column.type.to_pandas_dtype())
    if not len(column):
        return np.frombuffer(b"", dtype=kind)
    return np.frombuffer(
        column.buffers()[1], dtype=kind, count=len(column), offset=column.offset * kind.itemsize
    )


def checksum_of(file: Path) -> str:
    """Checksum a file by XXH3: as fast as it can be read."""
    digest = xxhash.xxh3_128()
    with open(open_whole(file), "rb") as stream:
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()
