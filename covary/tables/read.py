"""Reading: a table -> chunks that tasks can read apart -> frames of bounded size."""

import csv
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter

import polars as pl
import pyarrow as pa

from covary.errors import NoSuchColumn, UnreadableTable, hiding
from covary.secrets import Secrets
from covary.tables.arrow_frames import BATCH_ROWS, BLOCK_BYTES
from covary.tables.faults import Faults
from covary.tables.files import facts_of, failing_as_files_do, words_of
from covary.tables.formats import parquet as columnar, postgresql
from covary.tables.formats import delta as deltatables
from covary.tables.formats import duckdb as duckdbfile
from covary.tables.formats import iceberg as icebergtables
from covary.tables.formats import sqlalchemy as sqlalchemytables
from covary.tables.formats import sqlite as sqlitefile
from covary.tables.formats import csv_rows as textrows
from covary.tables.formats import text_bytes as textfile
from covary.tables.formats.csv_dialect import Dialect
from covary.tables.formats.encodings import NAMES
from covary.tables.source import TableSource

CHUNK_BYTES = 64 << 20
SAMPLE_ROWS = 20_000
WHOLE = (0, -1)

FAILURES = (
    pl.exceptions.PolarsError, pa.ArrowException, OSError, EOFError, ValueError, KeyError,
    zlib.error, zipfile.BadZipFile, csv.Error, RuntimeError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a table that one task reads: bytes of text, row groups, a lakehouse's files, blocks."""

    source: TableSource
    number: int
    start: int
    stop: int  # -1: to the end, from the start


@dataclass(frozen=True, slots=True)
class Layout:
    """What must be known of a table before a part of it can be read."""

    columns: tuple[str, ...]
    dialect: Dialect | None = None  # of a CSV file


LAYOUTS = {
    "csv": textrows.csv_layout,
    "jsonl": textrows.json_layout,
    "parquet": columnar.parquet_layout,
    "arrow": columnar.arrow_layout,
    "delta": deltatables.delta_layout,
    "iceberg": icebergtables.iceberg_layout,
    "sqlite": sqlitefile.sqlite_layout,
    "duckdb": duckdbfile.duckdb_layout,
    "postgresql": postgresql.postgresql_layout,
    "sql": sqlalchemytables.sql_layout,
}
PLANS = {
    "csv": textfile.text_ranges,
    "jsonl": textfile.text_ranges,
    "parquet": columnar.parquet_ranges,
    "arrow": columnar.arrow_ranges,
    "delta": deltatables.delta_ranges,
    "iceberg": icebergtables.iceberg_ranges,
    "sqlite": sqlitefile.sqlite_ranges,
    "duckdb": duckdbfile.duckdb_ranges,
    "postgresql": postgresql.postgresql_ranges,
    "sql": sqlalchemytables.sql_ranges,
}
READERS = {
    "parquet": columnar.parquet_frames,
    "arrow": columnar.arrow_frames,
    "delta": deltatables.delta_frames,
    "iceberg": icebergtables.iceberg_frames,
    "sqlite": sqlitefile.sqlite_frames,
    "duckdb": duckdbfile.duckdb_frames,
    "postgresql": postgresql.postgresql_frames,
    "sql": sqlalchemytables.sql_frames,
}
TEXT_READERS = {"csv": textrows.csv_frames, "jsonl": textrows.json_frames}

# Who tells a table's version as it is now. A lakehouse's readers open one version, whatever becomes of the
# table; a server shows a statement one state of it.
VERSIONS: dict[str, Callable[[TableSource], str]] = {
    "delta": attrgetter("version"),
    "iceberg": attrgetter("version"),
    "sqlite": sqlitefile.sqlite_version,
    "duckdb": duckdbfile.duckdb_version,
    "postgresql": attrgetter("version"),
    "sql": attrgetter("version"),
}


def layout_of(source: TableSource) -> Layout:
    """Look into a table just far enough to know how to read any part of it."""
    with _reading(source):
        layout = Layout(*LAYOUTS[source.format](source))
    if not layout.columns:
        raise UnreadableTable(source.place, "it has no columns that can be a key or a number")
    return layout


def plan_chunks(source: TableSource, layout: Layout, chunk_bytes: int = CHUNK_BYTES) -> list[Chunk]:
    """The parts of a table, each about `chunk_bytes` on disk; every row is in exactly one."""
    with _reading(source):
        cut = PLANS[source.format](source, layout.dialect, chunk_bytes) if source.size > chunk_bytes else []
    return [Chunk(source, number, *part) for number, part in enumerate(cut or [WHOLE])]


def read_chunk(
    chunk: Chunk, layout: Layout, columns: Sequence[str] | None = None, faults: Faults | None = None
) -> Iterator[pl.DataFrame]:
    """The rows of a chunk in file order, in frames of bounded size; CSV and JSON Lines all as text.

    What is wrong with its text is counted in `faults`.
    """
    return _read(chunk, layout, columns, BLOCK_BYTES, Faults() if faults is None else faults)


def damage_of(layout: Layout, faults: Faults) -> list[str]:
    """Say what is wrong with a table that was read, and how it was read all the same."""
    dialect, said = layout.dialect, faults.sentences()
    if dialect and dialect.doubtful:
        said.append(f"its encoding can't be told: read as {NAMES[dialect.encoding]}; save it as UTF-8")
    return said


def remarks_of(layout: Layout) -> list[str]:
    """Say how a table was read where that is no matter of course, though nothing is wrong with it."""
    dialect = layout.dialect
    if dialect is None or not dialect.guessed or dialect.doubtful:
        return []
    return [f"not in UTF-8: read as {NAMES[dialect.encoding]}; if its names look odd, save it as UTF-8"]


def sample_rows(source: TableSource, layout: Layout, chunks: Sequence[Chunk]) -> pl.DataFrame:
    """Rows from the start, the middle and the end of a table, to decide its columns' roles once."""
    places = sorted({0, len(chunks) // 2, len(chunks) - 1})
    parts = [next(_read(chunks[place], layout, None, BLOCK_BYTES // 8, Faults()), None) for place in places]
    found = [part.head(SAMPLE_ROWS) for part in parts if part is not None]
    return pl.concat(found) if found else pl.DataFrame(schema=dict.fromkeys(layout.columns, pl.String))


def _read(
    chunk: Chunk, layout: Layout, columns: Sequence[str] | None, size: int, faults: Faults
) -> Iterator[pl.DataFrame]:
    wanted = list(layout.columns if columns is None else columns)
    if unknown := set(wanted) - set(layout.columns):
        raise NoSuchColumn(min(unknown), chunk.source.name, layout.columns)
    source, part = chunk.source, (chunk.start, chunk.stop)
    with _reading(source):
        version_of = VERSIONS.get(source.format, _file_version)
        # The parts of a table must be of one and the same file; a table in one piece may have changed since.
        expected = version_of(source) if part == WHOLE else source.version
        if source.format in TEXT_READERS:
            frames = TEXT_READERS[source.format](source, part, layout.dialect, wanted, size, faults)
        else:
            frames = READERS[source.format](source, part, layout.dialect, wanted, size)
        for frame in frames:
            yield from frame.iter_slices(BATCH_ROWS) if frame.height > BATCH_ROWS else (frame,)
        if version_of(source) != expected:
            raise ValueError("it changed while it was read; try again")


def _file_version(source: TableSource) -> str:
    return facts_of(source.path).version


@contextmanager
def _reading(source: TableSource) -> Iterator[None]:
    with hiding(source.path):
        try:
            with failing_as_files_do():
                yield
        except FAILURES as error:
            text = Secrets.of(source.path).hide(words_of(error))
            reason = text.strip().split("\n")[0][:120]
            raise UnreadableTable(source.place, reason) from error
