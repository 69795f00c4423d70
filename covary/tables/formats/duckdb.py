"""Tables of a DuckDB file, only ever read: as Arrow, streamed, by ranges of row numbers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from covary.errors import MissingPart
from covary.tables.arrow_frames import find_plain_columns, from_arrow, gather_frames, is_text
from covary.tables.files import require_files
from covary.tables.formats.sql_rows import cut_numbers, quote_name, share_file
from covary.tables.location import Location
from covary.tables.reader import WHOLE, Layout, Range, Reader, RowRequest
from covary.tables.source import TableSource

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

COMPANIONS = (".wal", ".wal.checkpoint", ".wal.recovery")
ROWS_AT_ONCE, CELLS_AT_ONCE = 16_384, 1 << 22
LISTING = """
SELECT schema_name, table_name AS name, estimated_size * column_count AS cells FROM duckdb_tables()
WHERE NOT internal AND NOT temporary
UNION ALL SELECT schema_name, view_name, NULL FROM duckdb_views() WHERE NOT internal AND NOT temporary
ORDER BY ALL
"""
# A file from anywhere must not make us read others, or the network, by way of its views.
LARGEST_CELL, TOO_LARGE = 1 << 27, "a cell of it has more than 128 MB of text"
SETTINGS: dict[str, str | bool | int | float | list[str]] = {"threads": 1, "enable_external_access": False}
IN_REACH = "CASE WHEN {0} BETWEEN '0001-01-01' AND '9999-12-31' THEN {0} END AS {0}"

# A view can make cells that fill the memory before anybody looks.
NOT_HUGE = f"CASE WHEN strlen({{0}}) > {LARGEST_CELL} THEN error('{TOO_LARGE}') ELSE {{0}} END AS {{0}}"


class DuckdbReader(Reader):
    """Files of tables and views, whose rows have numbers."""

    name, title = "duckdb", "DuckDB"
    suffixes, marks = (".duckdb", ".db"), ((8, b"DUCK"),)
    holds_tables = True

    def tables_in_file(self, file: TableSource) -> list[TableSource]:
        """The tables and views of a file, each with its share of the file's size."""
        with _open_database(file.location.text) as database:
            listed = database.execute(LISTING).fetchall()
        cells = [(_name_member(schema, name), count or 0) for schema, name, count in listed]
        return share_file(file, self, cells)

    def version(self, source: TableSource) -> str:
        """What changes when the file does, or the log of what is not yet in it."""
        version, log = source.location.state().version, Location(f"{source.location.text}.wal")
        return f"{version} {log.state().version}" if os.path.exists(log.text) else version

    def layout(self, source: TableSource) -> Layout:
        """The names of the columns that can serve."""
        with _open_database(source.location.text) as database:
            return Layout(find_plain_columns(_read_schema(database, _find_relation(database, source)[0])))

    def ranges(self, source: TableSource, layout: Layout, chunk_bytes: int) -> list[Range]:
        """The row numbers of the parts of a table; none for a view, which has no such numbers."""
        with _open_database(source.location.text) as database:
            relation, is_view = _find_relation(database, source)
            if is_view:
                return []
            [last] = database.execute(f"SELECT max(rowid) FROM {relation}").fetchone() or [None]
        return cut_numbers(0, (last or 0) + 1, source.size, chunk_bytes)

    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """The rows with some numbers, or all, in batches of bounded size."""
        source, part, columns = request.source, request.part, request.columns
        with _open_database(source.location.text) as database:
            relation, _ = _find_relation(database, source)
            schema = _read_schema(database, relation)
            listed = ", ".join(_write_expression(schema.field(name)) for name in columns)
            rows = f"SELECT {listed} FROM {relation}"
            if part != WHOLE:
                rows += f" WHERE rowid >= {part[0]} AND rowid < {part[1]}"
            at_once = max(1, min(ROWS_AT_ONCE, CELLS_AT_ONCE // len(columns)))
            with database.sql(rows).to_arrow_reader(at_once) as reader:
                yield from gather_frames((from_arrow(batch, columns) for batch in reader), request.size)


READER = DuckdbReader()


@contextmanager
def _open_database(path: str) -> "Iterator[DuckDBPyConnection]":
    try:
        import duckdb  # noqa: PLC0415  (an extra)
    except ImportError:
        raise MissingPart(
            "reading a DuckDB file needs a package that is not installed: pip install 'covary[duckdb]'"
        ) from None
    require_files(f"{path}{suffix}" for suffix in COMPANIONS)
    try:
        with duckdb.connect(path, read_only=True, config=SETTINGS) as database:
            yield database
    except duckdb.Error as problem:
        raise OSError(str(problem)) from problem


def _find_relation(database: "DuckDBPyConnection", source: TableSource) -> tuple[str, bool]:
    """How a table is called in SQL, and whether it's a view."""
    for schema, name, cells in database.execute(LISTING).fetchall():
        if _name_member(schema, name) == source.member:
            return f"{quote_name(schema)}.{quote_name(name)}", cells is None
    raise ValueError("it is no longer there")


def _read_schema(database: "DuckDBPyConnection", relation: str) -> pa.Schema:
    with database.sql(f"SELECT * FROM {relation} LIMIT 0").to_arrow_reader(1) as reader:
        return reader.schema


def _write_expression(field: pa.Field) -> str:
    """How a column is read: without infinite times, which Arrow has not, and without huge cells of text."""
    way = "{}"
    if is_text(field.type):
        way = NOT_HUGE
    elif pa.types.is_date(field.type) or pa.types.is_timestamp(field.type):
        way = IN_REACH
    return way.format(quote_name(field.name))


def _name_member(schema: str, name: str) -> str:
    return name if schema == "main" else f"{schema}.{name}"
