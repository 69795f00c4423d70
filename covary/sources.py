"""What is a table: files, folders and globs -> TableSources with names of their own."""

import glob
import os
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from covary.errors import UnreadableTable
from covary.fileformat import (
    FORMATS,
    HEAD_BYTES,
    TEXT_FORMATS,
    UNREAD_KINDS,
    NotATable,
    compression_of,
    format_of,
    split_name,
)


@dataclass(frozen=True, slots=True)
class TableSource:
    """One table of a collection: where it is and how its bytes are to be read."""

    name: str
    path: str
    format: str
    compression: str | None
    member: str | None
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """A file that might have been a table, and why it isn't one."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    root: str
    explicit: bool  # named by the person, so an unknown suffix is no reason to pass it by


def shown(path: str) -> str:
    """Return a path as text that can be stored and printed, whatever bytes its name is made of."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def find_tables(sources: Sequence[str | os.PathLike[str]]) -> tuple[list[TableSource], list[SkippedSource]]:
    """Every table below the given files, folders and globs, in a fixed order, and what was passed by."""
    tables: dict[tuple[str, str | None], tuple[TableSource, _File]] = {}
    skipped: dict[str, SkippedSource] = {}
    for source in sources:
        for found in _files_of(os.fspath(source)):
            if isinstance(found, SkippedSource):
                skipped[found.path] = found
                continue
            try:
                for table in _tables_in(found):
                    if isinstance(table, SkippedSource):
                        skipped[table.path] = table
                    else:
                        tables.setdefault((table.path, table.member), (table, found))
            except NotATable as error:
                skipped[found.path] = SkippedSource(found.path, str(error))
    return _with_unique_names(list(tables.values())), list(skipped.values())


def table_at(path: str | os.PathLike[str]) -> TableSource:
    """The one table in a file, or UnreadableTable with a plain reason."""
    given = os.fspath(path)
    absolute = os.path.abspath(given)
    if os.path.isdir(absolute):
        raise UnreadableTable(given, "it's a folder; name one table in it")
    try:
        found = _tables_in(_File(absolute, os.path.dirname(absolute), explicit=True))
    except NotATable as error:
        raise UnreadableTable(given, str(error)) from None
    tables = [table for table in found if isinstance(table, TableSource)]
    if len(tables) > 1:
        members = ", ".join(str(table.member) for table in tables[:3])
        raise UnreadableTable(given, f"it's a zip of {len(tables)} tables ({members}, ...); unpack one")
    return tables[0]


def _files_of(source: str) -> Iterator[_File | SkippedSource]:
    absolute = os.path.abspath(os.path.expanduser(source))
    if os.path.isdir(absolute):
        yield from _walk(absolute, absolute, set())
    elif os.path.lexists(absolute):
        yield _File(absolute, os.path.dirname(absolute), explicit=True)
    elif glob.has_magic(source):
        yield from _matches(source, absolute)
    else:
        raise UnreadableTable(source, "no such file or folder")


def _matches(source: str, pattern: str) -> Iterator[_File | SkippedSource]:
    matches = sorted(glob.glob(pattern, recursive=True))
    if not matches:
        raise UnreadableTable(source, "no file matches this pattern")
    parts = pattern.split(os.sep)
    fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    root = os.sep.join(parts[:fixed]) or os.sep
    seen: set[tuple[int, int]] = set()
    for match in matches:
        if _in_an_index(match):
            continue
        if not os.path.isdir(match):
            yield _File(match, root, explicit=False)
        elif os.path.basename(pattern) != "**":  # which already names every file below
            yield from _walk(match, root, seen)


def _in_an_index(path: str) -> bool:
    """Whether a path is an index of ours or lies in one: its files are no tables."""
    folders = (Path(path), *Path(path).parents)
    return any((each / "manifest.json").is_file() and (each / "segments").is_dir() for each in folders)


def _walk(folder: str, root: str, seen: set[tuple[int, int]]) -> Iterator[_File | SkippedSource]:
    try:
        status = os.stat(folder)
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield SkippedSource(folder, _os_reason(error))
        return
    if (status.st_dev, status.st_ino) in seen:  # a link back to a folder we've been in
        return
    seen.add((status.st_dev, status.st_ino))
    if _in_an_index(folder):
        return
    for entry in ordered:
        if entry.name.startswith((".", "_")):
            continue
        try:
            is_folder = entry.is_dir()
        except OSError as error:  # a link that leads nowhere but back to itself
            yield SkippedSource(entry.path, _os_reason(error))
            continue
        if is_folder:
            yield from _walk(entry.path, root, seen)
        else:
            yield _File(entry.path, root, explicit=False)


def _tables_in(file: _File) -> Sequence[TableSource | SkippedSource]:
    """The tables of one file: none if it isn't tabular, several only in a zip."""
    stem, suffix = split_name(os.path.basename(file.path))
    if suffix in UNREAD_KINDS:
        raise NotATable(f"{UNREAD_KINDS[suffix]} files aren't read; export it as CSV or Parquet")
    if not file.explicit and suffix not in FORMATS and suffix != ".zip":
        return []
    status, head = _look(file.path)
    compression = compression_of(head)
    folder = os.path.relpath(os.path.dirname(file.path), file.root).replace(os.sep, "/")
    name = stem if folder == "." else f"{folder}/{stem}"
    table = TableSource(name, file.path, "csv", compression, None, status.st_size, status.st_mtime_ns)
    if compression == "zip":
        return _tables_in_zip(table)
    kind = format_of(suffix, head, compression, file.explicit)
    return [replace(table, format=kind)] if kind else []


def _look(path: str) -> tuple[os.stat_result, bytes]:
    try:
        # O_NONBLOCK: a named pipe without a writer would otherwise hang the listing.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise NotATable("not a regular file")
            head = os.read(handle, HEAD_BYTES)
        finally:
            os.close(handle)
    except OSError as error:
        raise NotATable(_os_reason(error)) from None
    if not head:
        raise NotATable("the file is empty")
    return status, head


def _tables_in_zip(archive: TableSource) -> Sequence[TableSource | SkippedSource]:
    try:
        with zipfile.ZipFile(archive.path) as opened:
            every = [info for info in opened.infolist() if not _is_hidden(info)]
    except (zipfile.BadZipFile, OSError, NotImplementedError) as error:
        raise NotATable(f"a broken zip: {error}") from None
    members = [info for info in every if FORMATS.get(_suffix(info)) in TEXT_FORMATS]
    others = [info for info in every if _suffix(info) in UNREAD_KINDS or _suffix(info) in FORMATS]
    if not members:
        raise NotATable("a zip without CSV or JSON Lines files that can be read")
    tables = [
        replace(
            archive,
            name=f"{archive.name}/{os.path.splitext(info.filename)[0]}" if len(members) > 1 else archive.name,
            format=FORMATS[_suffix(info)],
            member=info.filename,
            size=info.compress_size,
        )
        for info in members
    ]
    unread = [
        SkippedSource(
            f"{archive.path}/{info.filename}", "only CSV and JSON Lines are read in a zip; unpack it"
        )
        for info in others
        if info not in members
    ]
    return [*sorted(tables, key=lambda table: str(table.member)), *unread]


def _is_hidden(info: zipfile.ZipInfo) -> bool:
    return any(part.startswith((".", "_")) for part in info.filename.split("/"))


def _suffix(info: zipfile.ZipInfo) -> str:
    return os.path.splitext(info.filename)[1].lower()


def _with_unique_names(found: list[tuple[TableSource, _File]]) -> list[TableSource]:
    """Names below the root; where two clash, with suffixes, then with the root's name, then in full."""
    names = [table.name for table, _ in found]
    for longer in (_with_suffixes, _with_root, _in_full):
        counts = Counter(names)
        if len(counts) == len(names):
            break
        names = [
            name if counts[name] == 1 else longer(*pair) for name, pair in zip(names, found, strict=True)
        ]
    return [replace(table, name=name) for name, (table, _) in zip(names, found, strict=True)]


def _with_suffixes(table: TableSource, file: _File) -> str:
    return _joined(os.path.relpath(table.path, file.root), table.member)


def _with_root(table: TableSource, file: _File) -> str:
    return f"{os.path.basename(file.root)}/{_with_suffixes(table, file)}"


def _in_full(table: TableSource, file: _File) -> str:
    return _joined(table.path, table.member)


def _joined(path: str, member: str | None) -> str:
    return path.replace(os.sep, "/") + (f"/{member}" if member else "")


def _os_reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
