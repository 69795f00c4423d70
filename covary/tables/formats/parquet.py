"""Rows of Parquet and Arrow files, with the types that they declare."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.ipc

from covary.tables.arrow_frames import (
    BATCH_ROWS,
    CELLS_AT_ONCE,
    from_arrow,
    gathered,
    grouped,
    is_text,
    plain_names,
)
from covary.tables.files import is_url, open_bytes, require_files
from covary.tables.formats.arrow import unpacked_sizes
from covary.tables.formats.csv_dialect import Dialect
from covary.tables.source import TableSource

TEXT_ROWS = 1 << 15  # at once of text that is stored cell by cell: a few rows may weigh more than all others
PACKED = 8  # bytes a cell: with fewer, text is stored once and pointed to
LARGEST_BATCH = 768 << 20  # bytes of an Arrow file's record batch, which can only be read at once


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
    with parquet_file(source.path, columns) as file:
        batches = parquet_batches(file, part, columns, size)
        yield from gathered((from_arrow(batch, columns) for batch in batches), 4 * size)


def parquet_batches(
    file: Any, part: tuple[int, int], columns: list[str], size: int
) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups of an open file, about four times `size` bytes, unpacked, at a time."""
    groups = list(range(part[0], file.num_row_groups if part[1] < 0 else part[1]))
    footers = [file.metadata.row_group(group) for group in groups]
    heaviest = max((group.total_byte_size / max(group.num_rows, 1) for group in footers), default=1)
    plain_text = bool(_texts_of(file.schema_arrow).intersection(columns))
    most = min(TEXT_ROWS if plain_text else BATCH_ROWS, CELLS_AT_ONCE // max(len(columns), 1))
    batch_rows = max(1, min(most, int(4 * size / max(heaviest, 1))))
    yield from file.iter_batches(batch_rows, groups, columns, use_threads=False)


def _texts_of(schema: pa.Schema) -> set[str]:
    return {field.name for field in schema if is_text(field.type)}


@contextmanager
def parquet_file(path: str, columns: Sequence[str] = (), **options: Any) -> Iterator[Any]:
    """Open a Parquet file by path or URL, to read some columns of it.

    Text that it stores once and points to stays so: a few kilobytes may stand for gigabytes.
    """
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  14 MB, which asking an index need not have

    with ExitStack() as stack:
        place: Any = path
        if not is_url(path):
            require_files([path])
        else:
            # Only the columns asked for are fetched, each in one request.
            place, options = stack.enter_context(open_bytes(path)), options | {"pre_buffer": True}
        file = stack.enter_context(ParquetFile(place, **options))
        if texts := _stored_once(file, columns):
            options |= {"read_dictionary": texts, "metadata": file.metadata}
            file = stack.enter_context(ParquetFile(place, **options))
        yield file


def _stored_once(file: Any, columns: Sequence[str]) -> list[str]:
    """The columns of text whose cells take less room than text can."""
    held = _texts_of(file.schema_arrow)
    schema = file.schema
    named = {schema.column(place).path: place for place in range(len(schema))}
    texts = [name for name in columns if name in held and name in named]
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)] if texts else []
    found = []
    for name in texts:
        chunks = [group.column(named[name]) for group in groups]
        if all(chunk.has_dictionary_page for chunk in chunks):
            cells = sum(chunk.num_values for chunk in chunks)
            if sum(chunk.total_uncompressed_size for chunk in chunks) < PACKED * cells:
                found.append(name)
    return found


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
    yield from gathered(_arrow_pieces(source, part, columns), 4 * size)


def _arrow_pieces(source: TableSource, part: tuple[int, int], columns: list[str]) -> Iterator[pl.DataFrame]:
    if not is_url(source.path):
        _refuse_huge_batches(source.path)
    rows = max(1, min(BATCH_ROWS, CELLS_AT_ONCE // max(len(columns), 1)))
    with _arrow_reader(source, columns) as reader:
        if hasattr(reader, "num_record_batches"):
            stop = reader.num_record_batches if part[1] < 0 else part[1]
            batches = (reader.get_batch(number) for number in range(part[0], stop))
        else:
            batches = iter(reader)
        for batch in batches:
            for start in range(0, batch.num_rows, rows):
                yield from_arrow(batch.slice(start, rows), columns)


def _refuse_huge_batches(path: str) -> None:
    with open(path, "rb") as file:
        largest = max(unpacked_sizes(file), default=0)
    if largest > LARGEST_BATCH:
        raise ValueError(
            f"a record batch of it takes {largest >> 20:,} MB of memory; "
            f"write it in smaller ones, of at most {LARGEST_BATCH >> 20:,} MB"
        )


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
