"""Rows of Parquet and Arrow files, with the types that they declare."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.ipc

from covary.csvfile import Dialect
from covary.filesystems import is_url, open_bytes
from covary.tablesource import TableSource

BATCH_ROWS = 1 << 20
PLAIN_TYPES = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_boolean,
    pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal128,
    pa.types.is_date, pa.types.is_timestamp, pa.types.is_time,
)  # fmt: skip


def parquet_layout(source: TableSource) -> tuple[tuple[str, ...], Dialect | None]:
    """The names of the columns that can serve."""
    with parquet_file(source.path) as file:
        return plain_names(file.schema_arrow), None


def parquet_ranges(source: TableSource, dialect: Dialect | None, chunk_bytes: int) -> list[tuple[int, int]]:
    """The row groups of the parts of a file."""
    with parquet_file(source.path) as file:
        footer = file.metadata
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    return grouped(
        [sum(group.column(c).total_compressed_size for c in range(group.num_columns)) for group in groups],
        chunk_bytes,
    )


def parquet_frames(
    source: TableSource, part: tuple[int, int], dialect: Dialect | None, columns: list[str], size: int
) -> Iterator[pl.DataFrame]:
    """The rows of some row groups, in batches of bounded size."""
    with parquet_file(source.path) as file:
        for batch in parquet_batches(file, part, columns, size):
            yield from_arrow(batch, columns)


def parquet_batches(
    file: Any, part: tuple[int, int], columns: list[str], size: int
) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups of an open file, about `size` bytes on disk at a time."""
    groups = range(part[0], file.num_row_groups if part[1] < 0 else part[1])
    weight = sum(file.metadata.row_group(group).total_byte_size for group in groups)
    rows = sum(file.metadata.row_group(group).num_rows for group in groups)
    batch_rows = max(1024, min(BATCH_ROWS, rows * 4 * size // max(weight, 1)))
    yield from file.iter_batches(batch_rows, list(groups), columns, use_threads=False)


@contextmanager
def parquet_file(path: str, **options: Any) -> Iterator[Any]:
    """Open a Parquet file by path or URL."""
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  14 MB, which asking an index need not have

    if not is_url(path):
        with ParquetFile(path, **options) as file:
            yield file
        return
    # Only the columns asked for are fetched, each in one request.
    with open_bytes(path) as stream, ParquetFile(stream, pre_buffer=True, **options) as file:
        yield file


def arrow_layout(source: TableSource) -> tuple[tuple[str, ...], Dialect | None]:
    """The names of the columns that can serve."""
    with _arrow_reader(source) as reader:
        return plain_names(reader.schema), None


def arrow_ranges(source: TableSource, dialect: Dialect | None, chunk_bytes: int) -> list[tuple[int, int]]:
    """The record batches of the parts of a file; none if it's a stream, read only from its start."""
    with _arrow_reader(source) as reader:
        if not hasattr(reader, "num_record_batches"):
            return []
        count = reader.num_record_batches
    return grouped([source.size // max(count, 1)] * count, chunk_bytes)


def arrow_frames(
    source: TableSource, part: tuple[int, int], dialect: Dialect | None, columns: list[str], size: int
) -> Iterator[pl.DataFrame]:
    """The rows of some record batches."""
    with _arrow_reader(source, columns) as reader:
        if hasattr(reader, "num_record_batches"):
            stop = reader.num_record_batches if part[1] < 0 else part[1]
            batches = (reader.get_batch(number) for number in range(part[0], stop))
        else:
            batches = iter(reader)
        for batch in batches:
            yield from_arrow(batch, columns)


@contextmanager
def _arrow_reader(source: TableSource, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The file format's reader, or the stream format's, which has no random access."""
    # Not mapped: a file cut short under our eyes would stop the process, not fail.
    with pa.PythonFile(open_bytes(source.path)) if is_url(source.path) else pa.OSFile(source.path) as file:
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


def from_arrow(batch: pa.RecordBatch, columns: list[str]) -> pl.DataFrame:
    """Take a batch as a frame of some of its columns."""
    batch.validate(full=True)  # a damaged file would make the process crash later, not fail
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    return frame[columns]  # not select, which would read a name like ^x$ as a pattern


def gathered(frames: Iterable[pl.DataFrame], size: int) -> Iterator[pl.DataFrame]:
    """Small frames put together until they weigh `size`."""
    waiting: list[pl.DataFrame] = []
    weight = 0.0
    for frame in frames:
        waiting.append(frame)
        weight += frame.estimated_size()
        if weight >= size:
            yield pl.concat(waiting)
            waiting, weight = [], 0.0
    if waiting:
        yield pl.concat(waiting)


def plain_names(schema: pa.Schema) -> tuple[str, ...]:
    """The columns that can be a key or a number: not lists, bytes, intervals; each with a name of its own."""
    return tuple(
        f.name
        for f in schema
        if f.name and _is_plain(f.type) and len(schema.get_all_field_indices(f.name)) == 1
    )


def _is_plain(dtype: pa.DataType) -> bool:
    if pa.types.is_dictionary(dtype):
        return _is_plain(dtype.value_type)
    return any(is_kind(dtype) for is_kind in PLAIN_TYPES)


def grouped(sizes: Sequence[int], chunk_bytes: int) -> list[tuple[int, int]]:
    """Neighbouring parts put together until they weigh `chunk_bytes`."""
    ranges, start, weight = [], 0, 0
    for number, size in enumerate(sizes, start=1):
        weight += size
        if weight >= chunk_bytes or number == len(sizes):
            ranges.append((start, number))
            start, weight = number, 0
    return ranges
