"""What is a table: files, folders, globs, URLs, catalogs and databases -> TableSources with unique names."""

import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from covary.errors import CovaryError, MissingPart, NothingThere, UnreadableTable, hiding
from covary.secrets import is_connection_string, is_mistyped, lacks_values, shown_url
from covary.tables.databases import choose_table, is_database, list_server_tables, name_some, split_table
from covary.tables.formats.iceberg import list_catalog
from covary.tables.inside_files import Look, list_tables_in_file, look_here
from covary.tables.kinds import recognise_lakehouse
from covary.tables.local import list_local_files
from covary.tables.location import Location
from covary.tables.registry import get_reader
from covary.tables.remote import REQUESTS_AT_ONCE, find_remote_table, list_remote_files
from covary.tables.skipped import NotATable, NotToBeSeen, Reason, SkippedSource, Why
from covary.tables.source import FoundFile, Identity, TableSource
from covary.tables.spark_catalog import list_spark_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NOT_STORED = "users, passwords and the values of parameters are never stored; name it again in full"


class Listing(NamedTuple):
    """The tables of a collection, what was passed by, and the sources that could not be looked into."""

    tables: list[TableSource]
    skipped: list[SkippedSource]
    unlisted: list[SkippedSource]


class KnownNames(NamedTuple):
    """The names of tables that an index keeps though a listing does not hold them, and of all it knows.

    As long as some can't be seen, all others keep the names that they have.
    """

    taken: Sequence[str]
    settled: Mapping[Identity, str]


def find_tables(
    sources: Sequence[str | os.PathLike[str]],
    before: Collection[str] = (),
    names_to_keep: "Callable[[Listing], KnownNames | None] | None" = None,
    spark: "Callable[[], SparkSession] | None" = None,
    look: Look = look_here,
) -> Listing:
    """Every table of the given sources, in a fixed order; an error if none of them can be looked into.

    Args:
        sources: files, folders, globs and URLs.
        before: names of sources that held tables once; it is no mistake if one holds none now.
        names_to_keep: tells what names tables have in an index, if it keeps some that this listing lacks.
        spark: gives the session whose tables are named as spark:db.table.
        look: how files are looked into that may do harm to who does.
    """
    tables: dict[Identity, tuple[TableSource, str]] = {}
    skipped: dict[str, SkippedSource] = {}
    unlisted: list[SkippedSource] = []
    for source in [os.fspath(source) for source in sources]:
        name = name_source(source)
        try:
            with hiding(source):
                _require_in_full(source)
                listed = list(_list_source(source, spark, look))
        except UnreadableTable as problem:
            if isinstance(problem, NothingThere) and name in before:
                continue
            if len(sources) == 1:
                raise
            unlisted.append(SkippedSource(name, Reason(Why.UNREADABLE, (problem.reason,))))
            continue
        for root, each in listed:
            if isinstance(each, SkippedSource):
                path = Location(each.path).marked().shown
                skipped[path] = replace(each, path=path, source=name)
            else:
                table = replace(each, source=name, location=each.location.marked())
                tables.setdefault(table.identity, (table, root))
    if unlisted and len(unlisted) == len(sources):
        raise UnreadableTable(unlisted[0].path, unlisted[0].reason.text)
    listing = Listing([table for table, _ in tables.values()], list(skipped.values()), unlisted)
    known = names_to_keep(listing) if names_to_keep else None
    return listing._replace(tables=_give_unique_names(list(tables.values()), known or KnownNames((), {})))


def name_source(source: str) -> str:
    """Return a source as an index remembers it: the same wherever a command is run, and without a secret.

    A URL whose user, password or parameters are hidden in it can be looked into only when it is named again.
    """
    if not source.strip():
        raise CovaryError("the name of a source or a table is empty; is a variable of your shell not set?")
    location = Location(source)
    elsewhere = location.is_url or location.is_of_catalog or location.is_of_spark or _is_no_path(source)
    return location.marked().shown if elsewhere else Location(location.path).shown


def _is_no_path(source: str) -> bool:
    """Whether a source is a URL of a kind that isn't read: jdbc:postgresql://..., simplecache::s3://..."""
    if is_mistyped(source) or source.startswith("jdbc:"):
        return not _is_there(source)
    return "://" in source and not (source.startswith("file://") or os.path.lexists(source))


def _is_there(source: str) -> bool:
    """Whether a file, a table of a file, or files matching a glob are there, however odd their names."""
    names = [source, *(source[: match.start()] for match in re.finditer("#", source))]
    if any(os.path.lexists(Location(name).path) for name in names if name):
        return True
    return glob.has_magic(source) and any(glob.iglob(Location(source).path, recursive=True))


def _require_in_full(source: str) -> None:
    if is_mistyped(source) and not _is_there(source):
        raise CovaryError(
            f"{shown_url(source).strip()!r} looks like a URL that is mistyped; write scheme://host/path "
            f"without anything before it, or the name of a file that is there"
        )
    if lacks_values(source):
        raise UnreadableTable(source, NOT_STORED)
    is_named = Location(source).is_of_catalog or Location(source).is_of_spark
    if is_connection_string(source) and not is_named and not _is_there(source):
        raise CovaryError(
            "a connection string is no source; name a database by its URL: mssql+pyodbc://user@host/database"
        )


def add_checksums(listing: Listing) -> Listing:
    """Read the files of a listing for their checksums; what is no file goes by its version."""
    with ThreadPoolExecutor() as reading:
        return listing._replace(tables=list(reading.map(_add_checksum, listing.tables)))


def _add_checksum(table: TableSource) -> TableSource:
    if not get_reader(table).is_file:
        return table
    digest = xxhash.xxh3_128()
    try:
        with table.location.open() as file:
            while block := file.read(1 << 22):
                digest.update(block)
    except Exception:  # each kind of store has errors of its own; it is told when the table is read
        return replace(table, version="")
    return replace(table, checksum=digest.hexdigest())


def find_table(path: str | os.PathLike[str]) -> TableSource:
    """The one table that a path or a URL names, or one of a database; UnreadableTable with a plain reason."""
    given = os.fspath(path)
    with hiding(given):
        _require_in_full(given)
        if Location(given).is_of_spark:
            raise UnreadableTable(given, "only covary index reads tables of Spark; give a frame")
        whole, wanted = split_table(given)
        tables = _list_tables_in(whole)
        if wanted is not None:
            table = choose_table(tables, wanted, whole)
        elif len(tables) == 1:
            table = tables[0]
        else:
            raise UnreadableTable(given, _say_which_to_name(tables, whole))
        return replace(table, location=table.location.marked(make_key=False))


def _say_which_to_name(tables: Sequence[TableSource], whole: str) -> str:
    if not tables:
        return "it holds no tables"
    several = f"{len(tables)} tables ({name_some(tables)})"
    if get_reader(tables[0]).may_be_packed:
        return f"it's a zip of {several}; unpack one"
    return f"it holds {several}; name one, as in {Location(whole).shown}#{tables[0].member}"


def _list_tables_in(source: str, look: Look = look_here) -> Sequence[TableSource]:
    """The tables of a database, of a file, or of a folder or a catalog's entry that is one."""
    if is_database(source):
        return list_server_tables(source)
    try:
        tables = list_tables_in_file(_find_named_file(source), look)
    except NotATable as error:
        raise UnreadableTable(source, error.reason.hide(Location(source).secrets).text) from None
    return [table for table in tables if isinstance(table, TableSource)]


def _find_named_file(given: str) -> FoundFile:
    location = Location(given)
    if location.is_of_catalog:
        first, *others = list_catalog(given)
        if others:
            reason = f"it holds {1 + len(others)} tables; name one, as {first.location.text}"
            raise UnreadableTable(given, reason)
        return first
    if location.is_url:
        return find_remote_table(given)
    path = location.path
    lakehouse = recognise_lakehouse(path)
    if os.path.isdir(path) and not lakehouse:
        raise UnreadableTable(given, "it's a folder; name one table in it")
    return FoundFile(Location(path), os.path.dirname(path), explicit=True, lakehouse=lakehouse)


def _list_source(
    source: str, spark: "Callable[[], SparkSession] | None", look: Look
) -> Iterator[tuple[str, TableSource | SkippedSource]]:
    """The tables of one source, each with the folder below which it is named."""
    location = Location(source)
    if location.is_of_spark:
        if spark is None:
            raise UnreadableTable(source, "only covary index reads tables of Spark")
        yield from (("", table) for table in list_spark_tables(source, spark()))
        return
    whole, wanted = split_table(source)
    if is_database(whole) or wanted is not None:
        tables = _list_tables_in(whole, look)
        root = os.path.dirname(Location(whole).bare if Location(whole).is_url else Location(whole).path)
        for table in tables if wanted is None else [choose_table(tables, wanted, whole)]:
            yield root, table
        return
    if location.is_url or location.is_of_catalog:
        files = list(list_catalog(source) if location.is_of_catalog else list_remote_files(source))
        stop = Event()
        look_into = partial(_look_into, look=partial(look, stop=stop))
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as asking:  # each file is a request away
            try:
                inside = list(asking.map(look_into, files))
            except BaseException:  # Ctrl-C, say: the threads would go on, and be waited for
                stop.set()
                raise
    else:
        inside = [_look_into(file, look) for file in list_local_files(source)]
    yield from chain.from_iterable(inside)


def _look_into(file: FoundFile | SkippedSource, look: Look) -> list[tuple[str, TableSource | SkippedSource]]:
    """What is in a file, or why it is passed by; each with the folder below which it is named."""
    if isinstance(file, SkippedSource):
        return [("", file)]
    path = file.location.text
    with hiding(path):
        try:
            return [(file.root, each) for each in list_tables_in_file(file, look)]
        except NotATable as error:
            reason = error.reason.hide(file.location.secrets)
            return [(file.root, SkippedSource(path, reason, may_hold=isinstance(error, NotToBeSeen)))]
        except MissingPart as error:
            if file.explicit:
                raise
            return [(file.root, SkippedSource(path, Reason(Why.UNREADABLE, (str(error),))))]


def _give_unique_names(rooted: list[tuple[TableSource, str]], known: KnownNames) -> list[TableSource]:
    """Names below the root; where two clash, with suffixes, then with the root's name, then in full."""
    settled = [known.settled.get(table.identity) for table, _ in rooted]
    names = [name or table.name for name, (table, _) in zip(settled, rooted, strict=True)]
    for longer in (_name_with_suffixes, _name_with_root, _name_in_full):
        counts = Counter([*names, *known.taken])
        if all(counts[name] == 1 for name in names):
            break
        names = [
            name if counts[name] == 1 or keep else longer(table, root)
            for name, keep, (table, root) in zip(names, settled, rooted, strict=True)
        ]
    return [replace(table, name=name) for name, (table, _) in zip(names, rooted, strict=True)]


def _name_with_suffixes(table: TableSource, root: str) -> str:
    if table.location.is_of_catalog or table.location.is_of_spark:
        return _name_in_full(table, root)
    return _join_name(os.path.relpath(table.location.shown, Location(root).shown), table.member)


def _name_with_root(table: TableSource, root: str) -> str:
    return f"{os.path.basename(Location(root).shown)}/{_name_with_suffixes(table, root)}"


def _name_in_full(table: TableSource, root: str) -> str:
    return _join_name(table.location.shown, table.member)


def _join_name(path: str, member: str | None) -> str:
    return path.replace(os.sep, "/") + (f"/{member}" if member else "")
