"""Tables of a PostgreSQL server, only ever read: as Arrow, streamed, by ranges of blocks, in one state."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from covary.errors import MissingPart
from covary.secrets import Secrets
from covary.tables.arrow_frames import from_arrow
from covary.tables.formats.sql_rows import cut_numbers, quote_name, quote_text
from covary.tables.location import Location
from covary.tables.reader import Layout, Range, Reader, RowRequest
from covary.tables.source import TableSource

if TYPE_CHECKING:
    from adbc_driver_postgresql.dbapi import Cursor

BATCH_BYTES = "adbc.postgresql.batch_size_hint_bytes"
SECONDS_TO_CONNECT = 10
SECONDS_TO_LIST = 60
# Else a server goes on for ever with a statement whose reader was ended; before version 14 it does.
LOOK_FOR_US = "SET client_connection_check_interval = '10s'"
BEYOND_THE_LAST_BLOCK = (1 << 32) - 1
UNKNOWN_SIZE = 1 << 20  # a view's: one of many small tables
WORDS_OF_SERVER = re.compile(r"(?:FATAL|ERROR|PANIC):\s+([^\n]*)")
BEFORE_WORDS_OF_DRIVER = re.compile(r"^.*\[libpq\] (?:Failed to connect: )?")
NO_PASSWORD = "no password supplied"
WRONG_PASSWORD = "password authentication failed"
NO_USER = re.compile(r'role ".*" does not exist|authentication failed')
CHANGED = "it changed while it was read; try again"

# A version begins with the number of the file that holds the rows. What follows changes with every insert,
# update and delete soon after it was committed, and with the columns; reset counters begin anew.
# Partitions are parts of their parent and no tables of their own.
LISTING = """
SELECT current_database()::text, n.nspname, c.relname, format('%I.%I', n.nspname, c.relname),
       CASE WHEN c.relkind IN ('r', 'm', 'p') THEN parts.bytes END,
       CASE WHEN c.relkind IN ('r', 'm', 'p') AND NOT (c.relkind = 'r' AND c.relhassubclass)
                 AND current_setting('track_counts')::boolean AND NOT pg_is_in_recovery()
            THEN concat_ws(' ', coalesce(pg_relation_filenode(c.oid)::text, 'parts'), md5(concat(
                parts.state, '|', columns.state, '|',
                (SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()))))
            ELSE '' END
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (
    SELECT sum(pg_table_size(part))::bigint AS bytes,
           string_agg(concat_ws(' ', part, pg_relation_filenode(part), pg_stat_get_tuples_inserted(part),
                                pg_stat_get_tuples_updated(part), pg_stat_get_tuples_deleted(part)),
                      ',' ORDER BY part) AS state
    FROM (SELECT c.oid AS part UNION SELECT relid::oid FROM pg_partition_tree(c.oid)) AS all_parts
) AS parts
CROSS JOIN LATERAL (
    SELECT string_agg(concat(attname, ' ', atttypid, ' ', atttypmod), ',' ORDER BY attnum) AS state
    FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
) AS columns
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"
"""

# Domains are as the type that they are made of.
COLUMNS = """
SELECT a.attname, coalesce(b.typname, t.typname), coalesce(b.typtype, t.typtype)::text
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
WHERE a.attrelid = {}::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

# Before version 14 a range of blocks was found by reading all.
SHAPE = """
SELECT CASE WHEN relkind IN ('r', 'm') AND NOT relhassubclass
                 AND current_setting('server_version_num')::int >= 140000
            THEN pg_relation_size(oid) / current_setting('block_size')::int ELSE 0 END
FROM pg_class WHERE oid = {}::regclass
"""

FILE = "SELECT coalesce(pg_relation_filenode({}::regclass)::text, 'parts')"

AS_IT_IS = "{}"
AS_TEXT = "{}::text"
# The driver would hand on times that are infinite, or too far away for Arrow, as others.
IN_REACH = "CASE WHEN {0} BETWEEN '0001-01-01' AND '9999-12-31' THEN {0} END"
ENUM = "e"
EXPRESSIONS = {
    **dict.fromkeys(
        ("int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "time"), AS_IT_IS
    ),
    **dict.fromkeys(("date", "timestamp", "timestamptz"), IN_REACH),
    # Numbers of any length are read from their text, like those of a CSV file.
    **dict.fromkeys(("numeric", "uuid", "bpchar", "name", "char", "citext", "inet", "cidr"), AS_TEXT),
    "money": "{}::numeric::text",
    "oid": "{}::bigint",
}


class PostgresqlReader(Reader):
    """Tables of a server, asked by its own driver."""

    name, title = "postgresql", "PostgreSQL"
    schemes = ("postgresql", "postgres")

    def tables_on_server(self, url: str) -> list[TableSource]:
        """Every table and view of a database but the system's own."""
        with _open_cursor(url) as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = '{SECONDS_TO_LIST}s'")
            cursor.execute(LISTING)
            rows = cursor.fetchall()
        tables = []
        for database, schema, table, identifier, size, version in rows:
            name = f"{database}/{table}" if schema == "public" else f"{database}/{schema}.{table}"
            weight = UNKNOWN_SIZE if size is None else int(size)
            tables.append(TableSource(name, Location(url), self.name, None, identifier, weight, version))
        return tables

    @contextmanager
    def hold_state(self, tables: list[TableSource]) -> Iterator[list[TableSource]]:
        """Hold each server's tables in the state that they are in now, so that all tasks read the same.

        Where that can't be had, a table is read in one piece by one statement, or fails with its own reason.
        """
        with ExitStack() as stack:
            snapshots: dict[str, str] = {}
            for url in dict.fromkeys(table.location.text for table in tables if table.format == self.name):
                with suppress(OSError):
                    cursor = stack.enter_context(_open_cursor(url, hold=True))
                    # The connection waits for as long as the build takes.
                    cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                    cursor.execute("SELECT pg_export_snapshot()")
                    snapshots[url] = cursor.fetchone()[0]
            yield [replace(table, snapshot=snapshots.get(table.location.text, "")) for table in tables]

    def layout(self, source: TableSource) -> Layout:
        """The names of the columns that can serve."""
        with _open_cursor(source.location.text) as cursor:
            return Layout(tuple(_write_expressions(cursor, source)))

    def ranges(self, source: TableSource, layout: Layout, chunk_bytes: int) -> list[Range]:
        """The blocks of the parts of a table; none for what has no blocks or no state to share."""
        if not source.snapshot:
            return []
        with _open_cursor(source.location.text) as cursor:
            cursor.execute(SHAPE.format(quote_text(str(source.member))))
            blocks = int(cursor.fetchone()[0])
        if blocks < 2:
            return []
        *parts, (last, _) = cut_numbers(0, blocks, source.size, chunk_bytes)
        # The last has no end: it is no matter whether the table has grown since it was measured.
        return [*parts, (last, BEYOND_THE_LAST_BLOCK)]

    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """The rows of some blocks, or of all, in batches of bounded size."""
        source, (start, stop), columns = request.source, request.part, request.columns
        with _open_cursor(source.location.text, source.snapshot) as cursor:
            expressions = _write_expressions(cursor, source)
            if not set(columns) <= set(expressions):
                raise ValueError(CHANGED)
            listed = ", ".join(f"{expressions[column]} AS {quote_name(column)}" for column in columns)
            rows = f"FROM {source.member}"
            if stop >= 0:
                rows = f"FROM ONLY {source.member} WHERE ctid >= '({start},0)' AND ctid < '({stop},0)'"
            cursor.adbc_statement.set_options(**{BATCH_BYTES: str(request.size)})
            cursor.execute(f"SELECT {listed} {rows}")
            for batch in cursor.fetch_record_batch():
                yield from_arrow(batch, columns)
            if source.snapshot:
                _refuse_another_file(cursor, source)


READER = PostgresqlReader()


def _write_expressions(cursor: "Cursor", source: TableSource) -> dict[str, str]:
    """How each column is read, but for those that can be neither a key nor a number, like lists."""
    cursor.execute(COLUMNS.format(quote_text(str(source.member))))
    expressions = {}
    for name, type_name, type_type in cursor.fetchall():
        if way := AS_TEXT if type_type == ENUM else EXPRESSIONS.get(type_name):
            expressions[name] = way.format(quote_name(name))
    return expressions


def _refuse_another_file(cursor: "Cursor", source: TableSource) -> None:
    """Fail if the table was emptied or written anew: a snapshot does not tell, and blocks have moved.

    Our transaction has it locked against that by now, so that it can't happen after this.
    """
    cursor.execute(FILE.format(quote_text(str(source.member))))
    expected = source.version.partition(" ")[0]
    if expected and str(cursor.fetchone()[0]) != expected:
        raise ValueError(CHANGED)


@contextmanager
def _open_cursor(url: str, snapshot: str = "", hold: bool = False) -> "Iterator[Cursor]":
    """A cursor in a transaction that can't write."""
    try:
        import adbc_driver_postgresql.dbapi as driver  # noqa: PLC0415  (an extra)
    except ImportError:
        raise MissingPart(
            "reading postgresql:// needs a package that is not installed: pip install 'covary[postgresql]'"
        ) from None
    level = "ISOLATION LEVEL REPEATABLE READ" if snapshot or hold else ""
    try:
        with driver.connect(_add_time_limit(url), autocommit=True) as connection, connection.cursor() as ask:
            with suppress(driver.Error):
                ask.execute(LOOK_FOR_US)
            ask.execute(f"BEGIN {level} READ ONLY")
            if snapshot:
                ask.execute(f"SET TRANSACTION SNAPSHOT {quote_text(snapshot)}")
            # Rows in the order of their blocks, whoever else is reading.
            ask.execute("SET LOCAL synchronize_seqscans = off")
            ask.execute("SET LOCAL max_parallel_workers_per_gather = 0")
            yield ask
    except (driver.Error, OSError) as problem:
        if isinstance(problem, OSError) and "[libpq]" not in str(problem):
            raise
        raise OSError(_explain_failure(url, str(problem))) from None


def _add_time_limit(url: str) -> str:
    if "connect_timeout=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}connect_timeout={SECONDS_TO_CONNECT}"


def _explain_failure(url: str, text: str) -> str:
    if "invalid snapshot identifier" in text:
        return "the connection that held its state was lost; try again"
    message = WORDS_OF_SERVER.search(text)
    reason = message[1] if message else BEFORE_WORDS_OF_DRIVER.sub("", text.strip().split("\n")[0])
    advice = ""
    if NO_PASSWORD in reason:
        advice = "; give it in PGPASSWORD or in the file .pgpass, it is never stored in an index"
    elif WRONG_PASSWORD in reason:
        advice = "; see whether its user and password are right: PGUSER, PGPASSWORD, the file .pgpass"
    elif NO_USER.search(reason) and "@" not in url:
        advice = "; a user is never stored in an index: give it in PGUSER, or name the database again with it"
    return Secrets.of(url).hide(reason) + advice
