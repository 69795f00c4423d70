"""Databases named by URL, and one table of a database named by what follows a #."""

import os
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from urllib.parse import unquote

import fsspec

from covary.errors import NothingThere, UnreadableTable
from covary.secrets import DIALECTS, FILES
from covary.tables.formats.postgresql import READER as POSTGRESQL
from covary.tables.formats.sqlalchemy import READER as ANY_DATABASE
from covary.tables.formats.sqlalchemy import is_dialect
from covary.tables.location import Location
from covary.tables.registry import READERS
from covary.tables.source import TableSource

BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
HOST = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::\d*)?")
MOST_NAMES = 5
SERVER_READERS = {scheme: reader for reader in READERS.values() for scheme in reader.schemes}


def is_database(source: str) -> bool:
    """Whether a source is named by the URL of a database."""
    location = Location(source)
    if not location.is_url:
        return False
    scheme = location.scheme
    kind = scheme.partition("+")[0]
    if scheme in SERVER_READERS or kind in DIALECTS:
        return True
    # Nothing that fsspec knows is a database: SQLAlchemy need not be loaded to read from s3://.
    return scheme not in fsspec.available_protocols() and is_dialect(scheme)


def split_table(source: str) -> tuple[str, str | None]:
    """A database, and the table in it that a person named after a #, if any."""
    if is_database(source):
        whole, _, table = source.partition("#")
        if not _is_well_formed(whole) or ("@" in table and not _is_file(whole)):
            # Said before a driver says it, and quotes a password.
            marks = "% / ? # @ : in a name or password as %25 %2F %3F %23 %40 %3A"
            raise UnreadableTable(source, f"its URL is broken; write {marks}")
        return whole, unquote(table) or None
    if Location(source).is_url or os.path.lexists(Location(source).path):
        return source, None
    for mark in re.finditer("#", source):
        if os.path.isfile(Location(source[: mark.start()]).path):
            return source[: mark.start()], source[mark.end() :] or None
    return source, None


def list_server_tables(url: str) -> Sequence[TableSource]:
    """Every table of the database that a URL names."""
    reader = SERVER_READERS.get(Location(url).scheme, ANY_DATABASE)
    try:
        return reader.tables_on_server(url)
    except OSError as problem:
        raise UnreadableTable(url, Location(url).secrets.hide(str(problem))) from None


def hold_in_one_state(tables: list[TableSource]) -> AbstractContextManager[list[TableSource]]:
    """Hold tables of PostgreSQL in the state that they are in now, so that all tasks read the same."""
    return POSTGRESQL.hold_state(tables)


def choose_table(tables: Sequence[TableSource], wanted: str, whole: str) -> TableSource:
    """The table that a person named, with or without quotes, and its schema where that is public."""
    names = {_plain(str(table.member)): table for table in tables}
    table = names.get(_plain(wanted)) or names.get(f"public.{_plain(wanted)}")
    if table is None:
        there = f"there are: {name_some(tables)}" if tables else "it holds none"
        raise NothingThere(whole, f"there is no table {wanted!r} in it; {there}")
    return table


def name_some(tables: Sequence[TableSource]) -> str:
    """Name some tables of a database."""
    more = ["..."] if len(tables) > MOST_NAMES else []
    return ", ".join([*(str(table.member) for table in tables[:MOST_NAMES]), *more])


def _plain(name: str) -> str:
    return name.replace('"', "")


def _is_file(url: str) -> bool:
    return Location(url).scheme.partition("+")[0] in FILES


def _is_well_formed(url: str) -> bool:
    """Whether what is between :// and the database's name is user:password@host:port, or several hosts.

    An @ after it may be the end of a password that begins before it.
    """
    rest = url.partition("://")[2]
    authority = re.split(r"[/?]", rest, maxsplit=1)[0]
    user, _, hosts = authority.rpartition("@")
    if "@" in user or BROKEN_ESCAPE.search(authority):
        return False
    if "@" in rest[len(authority) :] and not _is_file(url):
        return False
    return all(HOST.fullmatch(host) for host in hosts.split(","))
