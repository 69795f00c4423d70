"""A file to the tables in it: none if it isn't tabular, several only in a zip or a database."""

import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import Protocol

from covary.errors import UnreadableTable
from covary.tables.compression import HEAD_BYTES, TELLS_NOTHING, detect_compression, read_packed_head
from covary.tables.files import FileState, describe_error, raise_as_os_errors
from covary.tables.kinds import (
    UNREAD_KINDS,
    find_marked_reader,
    find_text_reader,
    may_hold_a_table,
    recognise,
    recognise_packed,
    split_name,
)
from covary.tables.location import Location
from covary.tables.reader import Reader
from covary.tables.registry import READERS, find_readers
from covary.tables.skipped import NotATable, NotToBeSeen, Reason, SkippedSource, Why
from covary.tables.source import FoundFile, TableSource

Tables = Sequence[TableSource | SkippedSource]


class Look(Protocol):
    """A way to look into a file: call a function with what is given, here or in another process."""

    def __call__(
        self, path: str, function: Callable[..., Tables], *given: object, stop: Event | None = None
    ) -> Tables:
        """Give what the function does; `path` names the file that is to blame if it never returns.

        `stop` is set when nobody waits for it any more.
        """


def look_here(
    path: str, function: Callable[..., Tables], *given: object, stop: Event | None = None
) -> Tables:
    """Look into a file in this process."""
    return function(*given)


def list_tables_in_file(file: FoundFile, look: Look = look_here) -> Tables:
    """The tables of one file; one that only foreign readers can look into is looked into as `look` does."""
    if file.lakehouse:
        return look(file.location.text, _list_folder, file, READERS[file.lakehouse])
    path = file.location.bare
    stem, suffix = split_name(os.path.basename(path))
    if suffix in UNREAD_KINDS and not find_readers(suffix):
        raise NotATable(Why.UNREAD_KIND, UNREAD_KINDS[suffix])
    if not (file.explicit or may_hold_a_table(stem, suffix)):
        return []
    state, head = _read_start(file)
    compression = detect_compression(head)
    folder = os.path.relpath(os.path.dirname(path), Location(file.root).bare).replace(os.sep, "/")
    name = stem if folder == "." else f"{folder}/{stem}"
    table = TableSource(name, file.location, "", compression, size=state.size, version=state.version)
    marked = find_marked_reader(head)
    if marked:  # a format that is packed unpacks itself
        table = replace(table, compression=None)
    if marked and marked.holds_tables:
        return look(file.location.text, _list_held_tables, table, marked)
    if compression == "zip" and not marked:
        return look(file.location.text, _list_zip, table)
    if suffix in TELLS_NOTHING and not marked:
        return look(file.location.text, _list_packed, table, file.explicit)
    reader = marked or recognise(suffix, head, compression, file.explicit)
    return reader.tables_in_file(table) if reader else []


def _list_packed(file: TableSource, explicit: bool) -> Sequence[TableSource]:
    """The one table of a compressed file whose name does not tell what it holds."""
    if file.compression is None:
        raise NotATable(Why.NOT_COMPRESSED)
    with _reading(), file.location.open() as stream:
        head = read_packed_head(stream, file.compression)
        return recognise_packed(head, file.compression, explicit).tables_in_file(file)


def _list_held_tables(file: TableSource, reader: Reader) -> Sequence[TableSource]:
    """The tables that a file holds; named after the file alone if there is but one."""
    if file.location.is_url:
        raise NotATable(Why.NOT_ON_THIS_MACHINE, reader.title)
    try:
        tables = reader.tables_in_file(file)
    except OSError as problem:
        raise NotToBeSeen(Why.UNREADABLE, str(problem).split("\n")[0]) from None
    if not tables:
        raise NotATable(Why.NO_TABLES, reader.title)
    alone = len(tables) == 1
    return [each if alone else replace(each, name=f"{file.name}/{each.member}") for each in tables]


def _list_folder(file: FoundFile, reader: Reader) -> Sequence[TableSource]:
    """The one table that a folder, or an entry of a catalog, is."""
    if file.location.is_of_catalog:
        name = file.location.text.removeprefix(f"{file.root}.").replace(".", "/")
    else:
        name = os.path.relpath(file.location.bare, Location(file.root).bare).replace(os.sep, "/")
    try:
        return [reader.table_in_folder(name, file.location.text)]
    except UnreadableTable as problem:
        raise NotToBeSeen(Why.UNREADABLE, problem.reason) from problem


def _read_start(file: FoundFile) -> tuple[FileState, bytes]:
    with _reading():
        if file.state:
            with file.location.open() as stream:
                state, head = file.state, stream.read(HEAD_BYTES)
        else:
            state, head = file.location.read_start(HEAD_BYTES)
    if not head:
        raise NotATable(Why.EMPTY)
    return state, head


@contextmanager
def _reading() -> Iterator[None]:
    try:
        with raise_as_os_errors():
            yield
    except OSError as error:
        raise NotToBeSeen(Why.UNREADABLE, describe_error(error).lower()) from None


def _list_zip(archive: TableSource) -> Tables:
    """The text tables of a zip, and what else is in it that might have been a table."""
    try:
        with _reading(), archive.location.open() as file, zipfile.ZipFile(file) as opened:
            every = [info for info in opened.infolist() if not _is_hidden(info)]
    except (zipfile.BadZipFile, ValueError) as error:  # the latter for names that are not in UTF-8
        raise NotATable(Why.BROKEN_ZIP, str(error)) from None
    except NotImplementedError as error:  # so zipfile names a version of the format that is newer than it
        raise NotATable(Why.NEWER_ZIP, str(error)) from None
    of_name = {info.filename: info for info in every}  # of several, the last: so zipfile opens a name
    times = Counter(info.filename for info in every)
    tables: list[TableSource] = []
    others: dict[str, Reason] = {}
    repeated: dict[str, Reason] = {}
    for name, info in of_name.items():
        suffix = os.path.splitext(name)[1].lower()
        if reader := find_text_reader(suffix):
            member = replace(archive, member=name, size=info.compress_size)
            tables += reader.tables_in_file(member)
            if times[name] > 1:
                repeated[name] = Reason(Why.SAME_NAME_IN_ZIP, (str(times[name]),))
        elif any(each.is_file for each in find_readers(suffix)) or suffix in UNREAD_KINDS:
            others[name] = Reason(Why.NO_TEXT_IN_ZIP)
    if not tables:
        raise NotATable(Why.NOTHING_IN_ZIP)
    if len(tables) > 1:
        tables = [replace(table, name=f"{archive.name}/{_name_member(table)}") for table in tables]
    folder = archive.location.bare
    return [
        *sorted(tables, key=lambda table: str(table.member)),
        *(SkippedSource(f"{folder}/{name}", reason) for name, reason in (others | repeated).items()),
    ]


def _is_hidden(info: zipfile.ZipInfo) -> bool:
    return any(part.startswith((".", "_")) for part in _folders_and_name(info.filename))


def _folders_and_name(member: str) -> list[str]:
    """The folders and the name of a member; nothing is written, so where they lead to is no matter."""
    return [part for part in member.replace("\\", "/").split("/") if part not in {"", ".", ".."}]


def _name_member(table: TableSource) -> str:
    return os.path.splitext("/".join(_folders_and_name(str(table.member))))[0]
