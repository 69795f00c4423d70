"""Reading: a table -> chunks that tasks can read apart -> frames of bounded size."""

import bz2
import codecs
import csv
import gzip
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import IO, Any

import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from covary import csvfile
from covary.csvfile import BLOCK_BYTES, QUOTING, SAMPLE_BYTES, Dialect, blocks
from covary.errors import NoSuchColumn, UnreadableTable
from covary.sources import TableSource

CHUNK_BYTES = 64 << 20
BATCH_ROWS = 1 << 20
WINDOW_BYTES = 256 << 10
SAMPLE_ROWS = 20_000
WHOLE = (0, -1)
LINES = Dialect(",", None, "utf-8", "\n", False, (), 0)  # JSON Lines: a line end always ends a record

FAILURES = (
    pl.exceptions.PolarsError, pa.ArrowException, OSError, EOFError, ValueError, KeyError,
    zlib.error, zipfile.BadZipFile, csv.Error, RuntimeError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a table that one task reads: bytes of text, row groups of Parquet, batches of Arrow."""

    source: TableSource
    number: int
    start: int
    stop: int  # -1: to the end, from the start

    def to_json(self) -> str:
        """The chunk as text, to travel to a worker."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Chunk":
        """The chunk that to_json wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "source": TableSource(**fields["source"])})


@dataclass(frozen=True, slots=True)
class Layout:
    """What must be known of a table before a part of it can be read."""

    columns: tuple[str, ...]
    dialect: Dialect | None = None  # of a CSV file

    def to_json(self) -> str:
        """The layout as text, to travel to a worker."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Layout":
        """The layout that to_json wrote."""
        fields = json.loads(text)
        dialect = fields["dialect"]
        if dialect:
            dialect = Dialect(**{**dialect, "columns": tuple(dialect["columns"])})
        return cls(tuple(fields["columns"]), dialect)


def layout_of(source: TableSource) -> Layout:
    """Look into a table just far enough to know how to read any part of it."""
    with _reading(source):
        layout = LAYOUTS[source.format](source)
    if not layout.columns:
        raise UnreadableTable(source.path, "it has no columns that can be a key or a number")
    return layout


def plan_chunks(source: TableSource, layout: Layout, chunk_bytes: int = CHUNK_BYTES) -> list[Chunk]:
    """The parts of a table, each about `chunk_bytes` on disk; every row is in exactly one."""
    with _reading(source):
        ranges = [WHOLE] if source.size <= chunk_bytes else PLANS[source.format](source, layout, chunk_bytes)
    return [Chunk(source, number, start, stop) for number, (start, stop) in enumerate(ranges)]


def read_chunk(chunk: Chunk, layout: Layout, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
    """The rows of a chunk in file order, in frames of bounded size; CSV and JSON Lines all as text."""
    return _read(chunk, layout, columns, BLOCK_BYTES)


def sample_rows(source: TableSource, layout: Layout, chunks: Sequence[Chunk]) -> pl.DataFrame:
    """Rows from the start, the middle and the end of a table, to decide its columns' roles once."""
    places = sorted({0, len(chunks) // 2, len(chunks) - 1})
    parts = [next(_read(chunks[place], layout, None, BLOCK_BYTES // 8), None) for place in places]
    found = [part.head(SAMPLE_ROWS) for part in parts if part is not None]
    return pl.concat(found) if found else pl.DataFrame(schema=dict.fromkeys(layout.columns, pl.String))


def read_whole(source: TableSource) -> pl.DataFrame:
    """A table in one frame."""
    layout = layout_of(source)
    frames = list(read_chunk(Chunk(source, 0, *WHOLE), layout))
    return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(layout.columns, pl.String))


def _read(chunk: Chunk, layout: Layout, columns: Sequence[str] | None, size: int) -> Iterator[pl.DataFrame]:
    wanted = list(layout.columns if columns is None else columns)
    if unknown := set(wanted) - set(layout.columns):
        raise NoSuchColumn(min(unknown), chunk.source.name, layout.columns)
    with _reading(chunk.source):
        for frame in READERS[chunk.source.format](chunk, layout, wanted, size):
            yield from frame.iter_slices(BATCH_ROWS) if frame.height > BATCH_ROWS else (frame,)


@contextmanager
def _reading(source: TableSource) -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        text = str(error.strerror if isinstance(error, OSError) and error.strerror else error)
        reason = text.strip().split("\n")[0][:120] or type(error).__name__
        raise UnreadableTable(source.path, reason) from error


@contextmanager
def _opened(source: TableSource) -> Iterator[IO[bytes]]:
    """The bytes of a text table, decompressed."""
    with ExitStack() as stack:
        if source.compression == "zip":
            archive = stack.enter_context(zipfile.ZipFile(source.path))
            yield stack.enter_context(archive.open(str(source.member)))
        else:
            yield stack.enter_context(OPENERS[source.compression](source.path))


def _csv_layout(source: TableSource) -> Layout:
    with _opened(source) as file:
        sample = file.read(SAMPLE_BYTES)
        # The header of a very wide table may be longer than the sample.
        while len(sample) < SAMPLE_BYTES << 8 and not (b"\n" in sample or b"\r" in sample):
            more = file.read(len(sample))
            if not more:
                break
            sample += more
    if not sample:
        raise UnreadableTable(source.path, "the file is empty")
    dialect = csvfile.sniff(sample)
    return Layout(dialect.columns, dialect)


def _csv_ranges(source: TableSource, layout: Layout, chunk_bytes: int) -> list[tuple[int, int]]:
    dialect = layout.dialect or LINES
    if source.compression or dialect.encoding.startswith("utf-16"):
        return [WHOLE]
    starts = [dialect.body_start]
    with _opened(source) as file:
        for position in range(dialect.body_start + chunk_bytes, source.size, chunk_bytes):
            if position > starts[-1]:
                starts.append(_boundary(file, position, starts[-1], dialect))
    stops = [*starts[1:], source.size]
    return [(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]


def _boundary(file: IO[bytes], position: int, known: int, dialect: Dialect) -> int:
    """The first record start at or after `position`: by the bytes around it, or else by counting quotes."""
    begin = max(position - WINDOW_BYTES, known)
    file.seek(begin)
    found = csvfile.record_boundary(file.read(2 * WINDOW_BYTES), position - begin, dialect)
    if found is not None:
        return begin + found
    file.seek(known)
    pieces = iter(lambda: file.read(BLOCK_BYTES), b"")
    return known + csvfile.count_to_boundary(pieces, position - known, dialect)


def _pieces(chunk: Chunk, dialect: Dialect, size: int) -> Iterator[bytes]:
    """The bytes of a chunk's records in steps; UTF-16 as UTF-8."""
    whole = (chunk.start, chunk.stop) == WHOLE
    start = dialect.body_start if whole else chunk.start
    with _opened(chunk.source) as file:
        if not whole:
            file.seek(start)
            left = chunk.stop - start
            while left > 0 and (piece := file.read(min(size, left))):
                left -= len(piece)
                yield piece
            return
        raw = iter(lambda: file.read(size), b"")
        for piece in _recoded(raw, dialect.encoding) if dialect.encoding.startswith("utf-16") else raw:
            yield piece[start:] if start else piece
            start = max(start - len(piece), 0)


def _recoded(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for piece in pieces:
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", final=True).encode()


def _cp1252_instead(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("covary.cp1252", _cp1252_instead)


def _as_utf8(block: bytes, encoding: str) -> bytes:
    """A block in UTF-8; a byte that isn't UTF-8 is read as cp1252, wherever the blocks happen to end."""
    if encoding == "cp1252":
        return block.decode("cp1252", "replace").encode()
    if block.isascii():
        return block
    try:
        block.decode()
    except UnicodeDecodeError:
        return block.decode("utf-8", "covary.cp1252").encode()
    return block


def _csv_frames(chunk: Chunk, layout: Layout, columns: list[str], size: int) -> Iterator[pl.DataFrame]:
    dialect = layout.dialect or LINES
    for block in blocks(_pieces(chunk, dialect, size), dialect, size):
        text = _as_utf8(block, dialect.encoding)
        try:
            yield _parsed(text, dialect, columns)
        except pl.exceptions.PolarsError:
            yield _parsed_leniently(text, dialect, columns)


def _parsed(text: bytes, dialect: Dialect, columns: list[str]) -> pl.DataFrame:
    # A header of our own gives every block the same width, however ragged its first line is.
    header = dialect.delimiter.join(map(str, range(len(dialect.columns)))) + dialect.line_end
    wanted = set(columns)
    places = [place for place, column in enumerate(dialect.columns) if column in wanted]
    frame = pl.read_csv(
        header.encode() + text,
        columns=None if len(places) == len(dialect.columns) else [str(place) for place in places],
        separator=dialect.delimiter,
        quote_char=dialect.quote,
        eol_char=dialect.line_end,
        null_values=[""],
        infer_schema=False,
        truncate_ragged_lines=True,
    )
    frame.columns = [dialect.columns[place] for place in places]
    return frame if frame.columns == columns else frame[columns]


def _parsed_leniently(text: bytes, dialect: Dialect, columns: list[str]) -> pl.DataFrame:
    """What Polars refuses (a quote in mid-cell, an unclosed one) as Python's slower reader takes it."""
    csv.field_size_limit(1 << 30)
    lines = text.decode().removesuffix(dialect.line_end).split(dialect.line_end)
    tame = (line.rstrip("\r").replace("\r", " ") + "\n" for line in lines)
    quoting = QUOTING[not dialect.quote]
    rows = list(csv.reader(tame, delimiter=dialect.delimiter, quotechar=dialect.quote, quoting=quoting))
    cells = {
        column: [row[place] or None if place < len(row) else None for row in rows]
        for place, column in enumerate(dialect.columns)
    }
    return pl.DataFrame({column: pl.Series(cells[column], dtype=pl.String) for column in columns})


def _json_layout(source: TableSource) -> Layout:
    """The names of the plain fields in the first lines; a field that holds lists or objects is left out."""
    with _opened(source) as file:
        sample = file.read(4 * SAMPLE_BYTES).removeprefix(codecs.BOM_UTF8)
        if source.compression is None and source.size > 8 * SAMPLE_BYTES:
            file.seek(source.size - 4 * SAMPLE_BYTES)
            sample = sample.rpartition(b"\n")[0] + b"\n" + file.read().partition(b"\n")[2]
    if csvfile.utf16_byte_order(sample):
        raise UnreadableTable(source.path, "JSON Lines in UTF-16; convert it to UTF-8")
    nested: dict[str, bool] = {}
    for row in _json_objects(sample):
        for name, value in row.items():
            nested[name] = nested.get(name, False) or isinstance(value, dict | list)
    if not nested:
        raise UnreadableTable(source.path, "no JSON object on any of its first lines")
    return Layout(tuple(name for name, is_nested in nested.items() if not is_nested))


def _json_objects(text: bytes) -> Iterator[dict[str, Any]]:
    """The objects of JSON Lines; a line that isn't one (a truncated last one, say) is passed over."""
    for line in text.split(b"\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _json_frames(chunk: Chunk, layout: Layout, columns: list[str], size: int) -> Iterator[pl.DataFrame]:
    schema = dict.fromkeys(columns, pl.String)  # whatever the type, so that no chunk infers its own
    for block in blocks(_pieces(chunk, LINES, size), LINES, size):
        text = _as_utf8(block.removeprefix(codecs.BOM_UTF8), "utf-8")
        try:
            yield pl.read_ndjson(text, schema=schema)
        except pl.exceptions.PolarsError:
            good = b"\n".join(json.dumps(row).encode() for row in _json_objects(text))
            yield pl.read_ndjson(good, schema=schema) if good else pl.DataFrame(schema=schema)


def _plain_names(schema: pa.Schema) -> tuple[str, ...]:
    """The columns that can be a key or a number: not lists, bytes, intervals; nor two of one name."""
    return tuple(
        f.name for f in schema if _is_plain(f.type) and len(schema.get_all_field_indices(f.name)) == 1
    )


def _is_plain(dtype: pa.DataType) -> bool:
    if pa.types.is_dictionary(dtype):
        return _is_plain(dtype.value_type)
    return any(is_kind(dtype) for is_kind in PLAIN_TYPES)


def _grouped(sizes: Sequence[int], chunk_bytes: int) -> list[tuple[int, int]]:
    """Neighbouring parts put together until they weigh `chunk_bytes`."""
    ranges, start, weight = [], 0, 0
    for number, size in enumerate(sizes, start=1):
        weight += size
        if weight >= chunk_bytes or number == len(sizes):
            ranges.append((start, number))
            start, weight = number, 0
    return ranges or [WHOLE]


def _parquet_layout(source: TableSource) -> Layout:
    return Layout(_plain_names(pa.parquet.read_schema(source.path)))


def _parquet_ranges(source: TableSource, layout: Layout, chunk_bytes: int) -> list[tuple[int, int]]:
    footer = pa.parquet.read_metadata(source.path)
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    return _grouped(
        [sum(group.column(c).total_compressed_size for c in range(group.num_columns)) for group in groups],
        chunk_bytes,
    )


def _parquet_frames(chunk: Chunk, layout: Layout, columns: list[str], size: int) -> Iterator[pl.DataFrame]:
    with pa.parquet.ParquetFile(chunk.source.path, memory_map=True) as file:
        groups = range(chunk.start, file.num_row_groups if chunk.stop < 0 else chunk.stop)
        weight = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        rows = sum(file.metadata.row_group(group).num_rows for group in groups)
        batch_rows = max(1024, min(BATCH_ROWS, rows * 4 * size // max(weight, 1)))
        for batch in file.iter_batches(batch_rows, list(groups), columns, use_threads=False):
            yield _from_arrow(batch, columns)


def _arrow_layout(source: TableSource) -> Layout:
    with _arrow_reader(source) as reader:
        return Layout(_plain_names(reader.schema))


@contextmanager
def _arrow_reader(source: TableSource, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The file format's reader, or the stream format's, which has no random access."""
    with pa.memory_map(source.path) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        opener = pa.ipc.open_file if is_file else pa.ipc.open_stream
        options = pa.ipc.IpcReadOptions(use_threads=False)
        if columns is not None:
            with opener(file) as reader:
                options.included_fields = [reader.schema.get_field_index(column) for column in columns]
            file.seek(0)
        with opener(file, options=options) as reader:
            yield reader


def _arrow_ranges(source: TableSource, layout: Layout, chunk_bytes: int) -> list[tuple[int, int]]:
    with _arrow_reader(source) as reader:
        if not hasattr(reader, "num_record_batches"):
            return [WHOLE]
        count = reader.num_record_batches
    return _grouped([source.size // max(count, 1)] * count, chunk_bytes)


def _arrow_frames(chunk: Chunk, layout: Layout, columns: list[str], size: int) -> Iterator[pl.DataFrame]:
    with _arrow_reader(chunk.source, columns) as reader:
        if hasattr(reader, "num_record_batches"):
            stop = reader.num_record_batches if chunk.stop < 0 else chunk.stop
            batches = (reader.get_batch(number) for number in range(chunk.start, stop))
        else:
            batches = iter(reader)
        for batch in batches:
            yield _from_arrow(batch, columns)


def _from_arrow(batch: pa.RecordBatch, columns: list[str]) -> pl.DataFrame:
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    return frame[columns]  # not select, which would read a name like ^x$ as a pattern


PLAIN_TYPES = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_boolean,
    pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal128,
    pa.types.is_date, pa.types.is_timestamp, pa.types.is_time,
)  # fmt: skip
OPENERS: dict[str | None, Callable[[str], Any]] = {
    None: partial(open, mode="rb", buffering=0),
    "gzip": gzip.GzipFile,
    "bzip2": bz2.BZ2File,
    "zstd": partial(pa.input_stream, compression="zstd"),
}
LAYOUTS = {"csv": _csv_layout, "jsonl": _json_layout, "parquet": _parquet_layout, "arrow": _arrow_layout}
PLANS = {"csv": _csv_ranges, "jsonl": _csv_ranges, "parquet": _parquet_ranges, "arrow": _arrow_ranges}
READERS = {"csv": _csv_frames, "jsonl": _json_frames, "parquet": _parquet_frames, "arrow": _arrow_frames}
