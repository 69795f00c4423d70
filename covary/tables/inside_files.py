"""A file to the tables in it: none if it isn't tabular, several only in a zip or a database."""

import os
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from covary.errors import UnreadableTable
from covary.secrets import bare_url
from covary.tables.database_files import lister_of, tables_in_database
from covary.tables.files import FileFacts, failing_as_files_do, look_at, open_bytes
from covary.tables.formats.delta import delta_source
from covary.tables.formats.iceberg import iceberg_source, is_of_catalog
from covary.tables.kinds import (
    DATABASES,
    FORMATS,
    HEAD_BYTES,
    TELLS_NOTHING,
    TEXT_FORMATS,
    UNREAD_KINDS,
    NotATable,
    NotToBeSeen,
    compression_of,
    format_of,
    format_unpacked,
    split_name,
)
from covary.tables.local import os_reason
from covary.tables.source import FoundFile, SkippedSource, TableSource

LAKEHOUSES = {"delta": delta_source, "iceberg": iceberg_source}
Look = Callable[..., Any]  # of a path, a function, and what it is called with: gives what the function does


def look_here(path: str, function: Callable[..., Any], *given: Any) -> Any:
    """Look into a file in this process."""
    return function(*given)


def tables_in(file: FoundFile, look: Look = look_here) -> Sequence[TableSource | SkippedSource]:
    """The tables of one file.

    Args:
        file: where it is.
        look: how a file is looked into that only foreign readers can look into.
    """
    if file.lakehouse:
        return [look(file.path, _lakehouse_table, file, file.lakehouse)]
    path = bare_url(file.path)
    stem, suffix = split_name(os.path.basename(path))
    if suffix in UNREAD_KINDS:
        raise NotATable(f"{UNREAD_KINDS[suffix]} files aren't read; export it as CSV or Parquet")
    if not file.explicit and suffix not in {*FORMATS, *DATABASES, ".zip"} and not _may_hold_any(stem, suffix):
        return []
    facts, head = _look(file)
    compression = compression_of(head)
    folder = os.path.relpath(os.path.dirname(path), bare_url(file.root)).replace(os.sep, "/")
    name = stem if folder == "." else f"{folder}/{stem}"
    table = TableSource(name, file.path, "csv", compression, None, facts.size, facts.version)
    if compression == "zip":
        return look(file.path, _tables_in_zip, table)  # type: ignore[no-any-return]
    if suffix in TELLS_NOTHING:
        return [replace(table, format=look(file.path, _format_in, file, compression))]
    if compression and suffix in DATABASES:
        raise NotATable("a compressed database isn't read; unpack it")
    if lister := lister_of(suffix, head):
        return look(file.path, tables_in_database, table, lister)  # type: ignore[no-any-return]
    kind = format_of(suffix, head, compression, file.explicit)
    return [replace(table, format=kind)] if kind else []


def _may_hold_any(stem: str, suffix: str) -> bool:
    """Whether a compressed file's name leaves open what it holds, as sales.gz and sales.2013.gz do."""
    inner = os.path.splitext(stem)[1]
    return suffix in TELLS_NOTHING and (not inner or inner[1:].isdecimal())


def _format_in(file: FoundFile, compression: str | None) -> str:
    if compression is None:
        raise NotATable("no compressed file, whatever its name says")
    try:
        with failing_as_files_do(), open_bytes(file.path) as stream:
            return format_unpacked(stream, compression, file.explicit)
    except OSError as error:
        raise NotToBeSeen(os_reason(error)) from None


def _lakehouse_table(file: FoundFile, lakehouse: str) -> TableSource:
    if is_of_catalog(file.path):
        name = file.path.removeprefix(f"{file.root}.").replace(".", "/")
    else:
        name = os.path.relpath(bare_url(file.path), bare_url(file.root)).replace(os.sep, "/")
    try:
        return LAKEHOUSES[lakehouse](name, file.path)
    except UnreadableTable as problem:
        raise NotToBeSeen(problem.reason) from problem


def _look(file: FoundFile) -> tuple[FileFacts, bytes]:
    try:
        with failing_as_files_do():
            if file.facts:
                with open_bytes(file.path) as stream:
                    facts, head = file.facts, stream.read(HEAD_BYTES)
            else:
                facts, head = look_at(file.path, HEAD_BYTES)
    except OSError as error:
        raise NotToBeSeen(os_reason(error)) from None
    if not head:
        raise NotATable("the file is empty")
    return facts, head


def _tables_in_zip(archive: TableSource) -> Sequence[TableSource | SkippedSource]:
    try:
        with failing_as_files_do(), open_bytes(archive.path) as file, zipfile.ZipFile(file) as opened:
            every = [info for info in opened.infolist() if not _is_hidden(info)]
    except OSError as error:
        raise NotToBeSeen(os_reason(error)) from None
    except (zipfile.BadZipFile, ValueError) as error:  # the latter for names that are not in UTF-8
        raise NotATable(f"a broken zip: {error}") from None
    except NotImplementedError as error:  # so zipfile names a version of the format that is newer than it
        raise NotATable(f"a zip that can't be read ({error}); pack it anew") from None
    of_name = {info.filename: info for info in every}  # of several, the last: so zipfile opens a name
    members, others = [], []
    for info in of_name.values():
        if FORMATS.get(_suffix(info)) in TEXT_FORMATS:
            members.append(info)
        elif _suffix(info) in FORMATS or _suffix(info) in UNREAD_KINDS:
            others.append(info)
    if not members:
        raise NotATable("a zip without CSV or JSON Lines files that can be read")
    tables = [
        replace(
            archive,
            name=f"{archive.name}/{_plain_name(info)}" if len(members) > 1 else archive.name,
            format=FORMATS[_suffix(info)],
            member=info.filename,
            size=info.compress_size,
        )
        for info in members
    ]
    unread = [
        SkippedSource(
            f"{bare_url(archive.path)}/{info.filename}",
            "only CSV and JSON Lines are read in a zip; unpack it",
        )
        for info in others
    ]
    times = Counter(info.filename for info in every)
    unread += [
        SkippedSource(
            f"{bare_url(archive.path)}/{info.filename}",
            f"the zip holds {times[info.filename]} files of this name; only the last is read",
        )
        for info in members
        if times[info.filename] > 1
    ]
    return [*sorted(tables, key=lambda table: str(table.member)), *unread]


def _is_hidden(info: zipfile.ZipInfo) -> bool:
    return any(part.startswith((".", "_")) for part in _parts(info))


def _parts(info: zipfile.ZipInfo) -> list[str]:
    """The folders and the name of a member; nothing is written, so where they lead to is no matter."""
    parts = info.filename.replace("\\", "/").split("/")
    return [part for part in parts if part not in {"", ".", ".."}]


def _plain_name(info: zipfile.ZipInfo) -> str:
    return os.path.splitext("/".join(_parts(info)))[0]


def _suffix(info: zipfile.ZipInfo) -> str:
    return os.path.splitext(info.filename)[1].lower()
