"""Database files: told by their first bytes, and the tables in them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from covary.tables.files import is_url
from covary.tables.formats import duckdb as duckdbfile
from covary.tables.formats import sqlite as sqlitefile
from covary.tables.kinds import DATABASES, NotATable, NotToBeSeen
from covary.tables.source import TableSource

Lister = Callable[[TableSource], list[TableSource]]


def lister_of(suffix: str, head: bytes) -> Lister | None:
    """Who lists the tables of a file that begins with these bytes; None if it's no database."""
    if head.startswith(sqlitefile.MARK):
        return sqlitefile.sqlite_tables
    if head[duckdbfile.MARK_PLACE :].startswith(duckdbfile.MARK):
        return duckdbfile.duckdb_tables
    if suffix in DATABASES:
        raise NotATable(f"no {DATABASES[suffix]} file, whatever its name says")
    return None


def tables_in_database(file: TableSource, lister: Lister) -> Sequence[TableSource]:
    """The tables and views of a database file; named after the file alone if there is but one."""
    if is_url(file.path):
        raise NotATable("a database is read only where it lies on this machine; copy it here")
    try:
        tables = lister(file)
    except OSError as problem:
        raise NotToBeSeen(str(problem).split("\n")[0]) from None
    if not tables:
        raise NotATable("a database without tables")
    return (
        [replace(each, name=f"{file.name}/{each.member}") for each in tables] if len(tables) > 1 else tables
    )
