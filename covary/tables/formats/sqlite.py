"""Tables of a SQLite file, only ever read: all cells as text, by ranges of row numbers."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import polars as pl

from covary.tables.files import require_files
from covary.tables.formats.sql_rows import cut_numbers, fetch_text_frames, quote_name, share_file
from covary.tables.location import Location
from covary.tables.reader import WHOLE, Layout, Range, Reader, RowRequest
from covary.tables.source import TableSource

COMPANIONS = ("-journal", "-wal", "-shm")  # which SQLite opens without a look at what they are
# Of SQLite's own machine: some milliseconds of work, beside which a call of Python is nothing.
STEPS_BETWEEN_LOOKS = 100_000
JOURNAL_MODE, WRITE_AHEAD = 18, 2  # a byte of the file's header, and what it says
LARGEST_CELL = 1 << 27  # bytes; a view can make one that fills the memory before anybody looks
LEAST_ROW_BYTES = 8  # rows may be numbered far higher than they are many
NO_NUMBERS = "no such column"
PRIMARY_CODE = 0xFF  # of an error; the other bits tell more of it
ROW_NUMBERS = ("rowid", "_rowid_", "oid")
# SQLite's own list of tables would look into every view, and one made of many others takes it very long.
LISTING = """
SELECT name, type, rootpage = 0 FROM sqlite_master
WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name
"""
IS_TABLE = "SELECT type = 'table' FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?"
# Of full-text search and spatial indexes, which keep their own tables beside the one they are.
SHADOWS = {
    "config", "content", "data", "docsize", "idx", "segdir", "segments", "stat",
    "node", "parent", "rowid",
}  # fmt: skip


class SqliteReader(Reader):
    """Files of tables and views, whose rows mostly have numbers."""

    name, title = "sqlite", "SQLite"
    suffixes, marks = (".sqlite", ".sqlite3", ".db"), ((0, b"SQLite format 3\0"),)
    holds_tables = True

    def tables_in_file(self, file: TableSource) -> list[TableSource]:
        """The tables and views of a file, each with its share of the file's size."""
        with _open_database(file.location.text) as database:
            listed = _list_tables(database)
            # Counting would read all of the file; the last row's number is found at once.
            most = file.size // LEAST_ROW_BYTES
            rows = {
                name: min(most, _find_last_row(database, name)) if is_table else 0
                for name, is_table in listed
            }
        return share_file(file, self, rows.items())

    def version(self, source: TableSource) -> str:
        """What changes when the file does, or the log of what is not yet in it."""
        log = f"{source.location.text}-wal"
        logged = Location(log).state() if os.path.exists(log) else None
        return source.location.state().version + (f" {logged.version}" if logged and logged.size else "")

    def layout(self, source: TableSource) -> Layout:
        """The names of the columns that can serve."""
        with _open_database(source.location.text) as database:
            columns = database.execute(
                "SELECT name, type FROM pragma_table_xinfo(?)", [source.member]
            ).fetchall()
        return Layout(tuple(name for name, kind in columns if name and "blob" not in kind.lower()))

    def ranges(self, source: TableSource, layout: Layout, chunk_bytes: int) -> list[Range]:
        """The row numbers of the parts of a table; none for a view, or a table without them."""
        with _open_database(source.location.text) as database:
            [is_table] = database.execute(IS_TABLE, [source.member]).fetchone() or [False]
            number = _find_row_number(database, str(source.member)) if is_table else None
            if number is None:
                return []
            first, last = database.execute(
                f"SELECT min({number}), max({number}) FROM {quote_name(str(source.member))}"
            ).fetchone()
        return [] if first is None else cut_numbers(first, last + 1, source.size, chunk_bytes)

    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """The rows with some numbers, or all, in batches of bounded size."""
        source, part, columns = request.source, request.part, request.columns
        with _open_database(source.location.text) as database:
            rows = f"SELECT {', '.join(map(quote_name, columns))} FROM {quote_name(str(source.member))}"
            if part == WHOLE:
                cursor = database.execute(rows)
            else:
                number = _find_row_number(database, str(source.member))
                cursor = database.execute(f"{rows} WHERE {number} >= ? AND {number} < ?", part)
            yield from fetch_text_frames(cursor.fetchmany, columns, request.size)


READER = SqliteReader()


def require_companions(path: str) -> None:
    """Refuse a file beside which a pipe or a device has the name of its journal."""
    require_files(f"{path}{suffix}" for suffix in COMPANIONS)


def let_python_look(database: sqlite3.Connection) -> None:
    """Give Python a turn now and then while a query computes, or it would never see a Ctrl-C."""
    database.set_progress_handler(lambda: 0, STEPS_BETWEEN_LOOKS)  # 0: go on


def raise_if_stopped(problem: BaseException | None) -> None:
    """Raise the KeyboardInterrupt that ended a query: the driver drops it, and tells another error."""
    if getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
        raise KeyboardInterrupt from None


@contextmanager
def _open_database(path: str) -> Iterator[sqlite3.Connection]:
    require_companions(path)
    try:
        with closing(sqlite3.connect(_write_address(path), uri=True)) as database:
            let_python_look(database)
            database.text_factory = lambda text: text.decode("utf-8", "replace")
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_CELL)
            # A view in a file from anywhere runs no more than SQL.
            database.execute("PRAGMA trusted_schema = OFF")
            yield database
    except sqlite3.Error as problem:
        raise_if_stopped(problem)
        raise OSError(str(problem)) from problem


def _write_address(path: str) -> str:
    with open(path, "rb") as file:
        keeps_a_log = file.read(JOURNAL_MODE + 1)[-1:] == bytes([WRITE_AHEAD])
    # SQLite would make a log beside the file, even to read, if there is none; without one, nobody is writing.
    unlogged = keeps_a_log and not os.path.exists(f"{path}-wal")
    return f"{Path(path).as_uri()}?mode=ro{'&immutable=1' if unlogged else ''}"


def _list_tables(database: sqlite3.Connection) -> list[tuple[str, bool]]:
    """The tables and views of a file, by name, and whether each is a table."""
    listed = database.execute(LISTING).fetchall()
    virtual = {name for name, kind, rootless in listed if kind == "table" and rootless}
    return [
        (name, kind == "table")
        for name, kind, _ in listed
        if name not in virtual
        and not (name.rpartition("_")[0] in virtual and name.rpartition("_")[2] in SHADOWS)
    ]


def _find_row_number(database: sqlite3.Connection, table: str) -> str | None:
    """What the number of a row of a table is called; None if its rows have none."""
    columns = database.execute("SELECT lower(name) FROM pragma_table_xinfo(?)", [table]).fetchall()
    taken = {name for (name,) in columns}
    number = next((name for name in ROW_NUMBERS if name not in taken), None)
    try:
        database.execute(f"SELECT {number or 'NULL'} FROM {quote_name(table)} LIMIT 0")
    except sqlite3.OperationalError as problem:
        if NO_NUMBERS in str(problem):  # a table WITHOUT ROWID
            return None
        raise
    return number


def _find_last_row(database: sqlite3.Connection, table: str) -> int:
    try:
        number = _find_row_number(database, table)
        if number is None:
            return 0
        return max(0, database.execute(f"SELECT max({number}) FROM {quote_name(table)}").fetchone()[0] or 0)
    except sqlite3.DatabaseError as problem:
        if problem.sqlite_errorcode & PRIMARY_CODE != sqlite3.SQLITE_CORRUPT:
            raise
        return 0  # it is told when this table is read; the others may be sound
