"""Reading: a table -> chunks that tasks can read apart -> frames of bounded size."""

import csv
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import polars as pl
import pyarrow as pa

from covary.errors import NoSuchColumn, UnreadableTable, hiding
from covary.tables.arrow_frames import BATCH_ROWS, BLOCK_BYTES
from covary.tables.faults import Faults
from covary.tables.files import describe_error, raise_as_os_errors
from covary.tables.reader import WHOLE, Layout, RowRequest
from covary.tables.registry import get_reader
from covary.tables.source import TableSource

CHUNK_BYTES = 64 << 20
SAMPLE_ROWS = 20_000

FAILURES = (
    pl.exceptions.PolarsError, pa.ArrowException, OSError, EOFError, ValueError, KeyError,
    zlib.error, zipfile.BadZipFile, csv.Error, RuntimeError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a table that one task reads; from `start` to `stop` in what its reader counts."""

    source: TableSource
    number: int
    start: int
    stop: int  # -1: to the end, from the start


def read_layout(source: TableSource) -> Layout:
    """Look into a table just far enough to know how to read any part of it."""
    with _explain_failures(source):
        layout = get_reader(source).layout(source)
    if not layout.columns:
        raise UnreadableTable(source.location.shown, "it has no columns that can be a key or a number")
    return layout


def plan_chunks(source: TableSource, layout: Layout, chunk_bytes: int = CHUNK_BYTES) -> list[Chunk]:
    """The parts of a table, each about `chunk_bytes` on disk; every row is in exactly one."""
    with _explain_failures(source):
        large = source.size > chunk_bytes
        ranges = get_reader(source).ranges(source, layout, chunk_bytes) if large else []
    return [Chunk(source, number, *part) for number, part in enumerate(ranges or [WHOLE])]


def read_chunk(
    chunk: Chunk,
    layout: Layout,
    columns: Sequence[str] | None = None,
    faults: Faults | None = None,
    size: int = BLOCK_BYTES,
) -> Iterator[pl.DataFrame]:
    """The rows of a chunk in file order, in frames of about `size` bytes; CSV and JSON Lines all as text.

    What is wrong with its text is counted in `faults`.
    """
    wanted = list(layout.columns if columns is None else columns)
    if unknown := set(wanted) - set(layout.columns):
        raise NoSuchColumn(min(unknown), chunk.source.name, layout.columns)
    source, part = chunk.source, (chunk.start, chunk.stop)
    with _explain_failures(source):
        reader = get_reader(source)
        # The parts of a table must be of one and the same file; a table in one piece may have changed since.
        expected = reader.version(source) if part == WHOLE else source.version
        for frame in reader.frames(RowRequest(source, part, layout, wanted, size, faults or Faults())):
            yield from frame.iter_slices(BATCH_ROWS) if frame.height > BATCH_ROWS else (frame,)
        if reader.version(source) != expected:
            raise ValueError("it changed while it was read; try again")


def describe_damage(layout: Layout, faults: Faults) -> list[str]:
    """Say what is wrong with a table that was read, and how it was read all the same."""
    return [*faults.sentences(), *layout.damage]


def sample_rows(source: TableSource, layout: Layout, chunks: Sequence[Chunk]) -> pl.DataFrame:
    """Rows from the start, the middle and the end of a table, to decide its columns' roles once."""
    numbers = sorted({0, len(chunks) // 2, len(chunks) - 1})
    starts = (read_chunk(chunks[number], layout, size=BLOCK_BYTES // 8) for number in numbers)
    rows = [frame.head(SAMPLE_ROWS) for start in starts for frame in islice(start, 1)]
    return pl.concat(rows) if rows else pl.DataFrame(schema=dict.fromkeys(layout.columns, pl.String))


@contextmanager
def _explain_failures(source: TableSource) -> Iterator[None]:
    with hiding(source.location.text):
        try:
            with raise_as_os_errors():
                yield
        except FAILURES as error:
            text = source.location.secrets.hide(describe_error(error))
            reason = text.strip().split("\n")[0][:120]
            raise UnreadableTable(source.location.shown, reason) from error
