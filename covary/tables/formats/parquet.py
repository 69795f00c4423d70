"""Rows of Parquet files, with the types that they declare."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING

import polars as pl
import pyarrow as pa

from covary.tables.arrow_frames import (
    BATCH_ROWS,
    CELLS_AT_ONCE,
    find_plain_columns,
    from_arrow,
    gather_frames,
    group_ranges,
    is_text,
)
from covary.tables.files import require_files
from covary.tables.location import Location
from covary.tables.reader import FileReader, Layout, Range, RowRequest
from covary.tables.source import TableSource

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

TEXT_ROWS = 1 << 15  # at once of text that is stored cell by cell: a few rows may weigh more than all others
PACKED = 8  # bytes a cell: with fewer, text is stored once and pointed to


def read_row_groups(
    file: "ParquetFile", part: tuple[int, int], columns: list[str], size: int
) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups of an open file, about four times `size` bytes, unpacked, at a time."""
    groups = list(range(part[0], file.num_row_groups if part[1] < 0 else part[1]))
    footers = [file.metadata.row_group(group) for group in groups]
    heaviest = max((group.total_byte_size / max(group.num_rows, 1) for group in footers), default=1)
    plain_text = bool(_find_texts(file.schema_arrow).intersection(columns))
    most = min(TEXT_ROWS if plain_text else BATCH_ROWS, CELLS_AT_ONCE // max(len(columns), 1))
    batch_rows = max(1, min(most, int(4 * size / max(heaviest, 1))))
    yield from file.iter_batches(batch_rows, groups, columns, use_threads=False)


def _find_texts(schema: pa.Schema) -> set[str]:
    return {field.name for field in schema if is_text(field.type)}


@contextmanager
def open_parquet(
    location: Location, columns: Sequence[str] = (), **options: object
) -> "Iterator[ParquetFile]":
    """Open a Parquet file to read some columns of it.

    Text that it stores once and points to stays so: a few kilobytes may stand for gigabytes.
    """
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  14 MB, which asking an index need not have

    with ExitStack() as stack:
        opened: str | IO[bytes] = location.text
        if not location.is_url:
            require_files([location.text])
        else:
            # Only the columns asked for are fetched, each in one request.
            opened, options = stack.enter_context(location.open()), options | {"pre_buffer": True}
        file = stack.enter_context(ParquetFile(opened, **options))
        if texts := _find_packed_texts(file, columns):
            options |= {"read_dictionary": texts, "metadata": file.metadata}
            file = stack.enter_context(ParquetFile(opened, **options))
        yield file


def _find_packed_texts(file: "ParquetFile", columns: Sequence[str]) -> list[str]:
    """The columns of text whose cells take less room than text can."""
    positions = {file.schema.column(position).path: position for position in range(len(file.schema))}
    texts = _find_texts(file.schema_arrow).intersection(columns, positions)
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)] if texts else []
    packed = []
    for name in texts:
        chunks = [group.column(positions[name]) for group in groups]
        if all(chunk.has_dictionary_page for chunk in chunks):
            cells = sum(chunk.num_values for chunk in chunks)
            if sum(chunk.total_uncompressed_size for chunk in chunks) < PACKED * cells:
                packed.append(name)
    return packed


class ParquetReader(FileReader):
    """Files of row groups, whose footer tells their columns and sizes."""

    name, title = "parquet", "Parquet"
    suffixes, marks = (".parquet", ".pq"), ((0, b"PAR1"),)
    is_packed = is_read_whole = True

    def layout(self, source: TableSource) -> Layout:
        """The names of the columns that can serve."""
        with open_parquet(source.location) as file:
            return Layout(find_plain_columns(file.schema_arrow))

    def ranges(self, source: TableSource, layout: Layout, chunk_bytes: int) -> list[Range]:
        """The row groups of the parts of a file."""
        with open_parquet(source.location) as file:
            footer = file.metadata
        groups = (footer.row_group(number) for number in range(footer.num_row_groups))
        sizes = [
            sum(group.column(c).total_compressed_size for c in range(group.num_columns)) for group in groups
        ]
        return group_ranges(sizes, chunk_bytes)

    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """The rows of some row groups, in batches of bounded size."""
        columns, size = request.columns, request.size
        with open_parquet(request.source.location, columns) as file:
            batches = read_row_groups(file, request.part, columns, size)
            yield from gather_frames((from_arrow(batch, columns) for batch in batches), 4 * size)


READER = ParquetReader()
