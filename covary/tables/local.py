"""This machine's files below a folder, or that match a glob."""

import glob
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import takewhile

from covary.errors import NothingThere, UnreadableTable
from covary.own_files import looks_like_an_index
from covary.tables.files import describe_error
from covary.tables.kinds import list_folders_around, recognise_lakehouse
from covary.tables.location import Location
from covary.tables.skipped import Reason, SkippedSource, Why
from covary.tables.source import FoundFile

Found = Iterator[FoundFile | SkippedSource]
NOT_THERE = "no such file or folder"


def list_local_files(source: str) -> Found:
    """Every file that a path or a glob names, in a fixed order."""
    absolute = Location(source).path
    if os.path.isdir(absolute):
        if lakehouse := recognise_lakehouse(absolute):
            yield FoundFile(Location(absolute), os.path.dirname(absolute), explicit=True, lakehouse=lakehouse)
        elif index := next(filter(looks_like_an_index, list_folders_around(os.path.dirname(absolute))), None):
            yield SkippedSource(absolute, Reason(Why.IN_AN_INDEX, (index,)))
        else:
            yield from _walk(absolute, absolute, set())
    elif os.path.lexists(absolute):
        yield FoundFile(Location(absolute), os.path.dirname(absolute), explicit=True)
    elif glob.has_magic(source):
        yield from _list_matches(source, absolute)
    else:
        raise UnreadableTable(source, NOT_THERE)


def matches(path: str, pattern: str) -> bool:
    """Whether a glob, of which ** stands for any folders, names a path or a folder around it."""
    return _match_parts(path.split("/"), pattern.rstrip("/").split("/"))


def _match_parts(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_match_parts(parts[skipped:], pattern[1:]) for skipped in range(len(parts)))
    is_alike = bool(parts) and (parts[0] == pattern[0] or fnmatchcase(parts[0], pattern[0]))
    return is_alike and _match_parts(parts[1:], pattern[1:])


def _list_matches(source: str, pattern: str) -> Found:
    matches = sorted(glob.glob(pattern, recursive=True))
    if not matches:
        raise NothingThere(source, "no file matches this pattern")
    fixed = takewhile(lambda part: not glob.has_magic(part), pattern.split(os.sep))
    root = os.sep.join(fixed) or os.sep
    seen: set[tuple[int, int]] = set()
    # The same folders lie around many files.
    lakehouse, is_index = cache(recognise_lakehouse), cache(looks_like_an_index)
    listed: set[str] = set()
    for match in matches:
        # A file of an index or of a lakehouse's table is no table: its rows may be deleted long ago.
        folders = list_folders_around(match)
        whole = next(filter(is_index, folders), None) or next(filter(lakehouse, folders), None)
        if whole in listed:
            continue
        if whole:
            listed.add(whole)
            if is_index(whole):
                yield SkippedSource(whole, Reason(Why.AN_INDEX))
            else:
                # Named below the glob's folder, unless the glob begins inside the table.
                is_below = whole.startswith(os.path.join(root, ""))
                above = root if is_below else os.path.dirname(whole)
                yield FoundFile(Location(whole), above, lakehouse=lakehouse(whole))
        elif not os.path.isdir(match):
            yield FoundFile(Location(match), root)
        elif os.path.basename(pattern) != "**":  # which already names every file below
            yield from _walk(match, root, seen)


def _walk(top: str, root: str, seen: set[tuple[int, int]]) -> Found:
    waiting: list[FoundFile | SkippedSource | str] = [top]  # folders may lie deeper than calls can
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            waiting += reversed([*_list_folder(each, root, seen)])
        else:
            yield each


def _list_folder(
    folder: str, root: str, seen: set[tuple[int, int]]
) -> Iterator[FoundFile | SkippedSource | str]:
    """What is right in a folder, in order; a folder by its path."""
    try:
        status = os.stat(folder)
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield SkippedSource(folder, Reason(Why.UNREADABLE, (describe_error(error).lower(),)), may_hold=True)
        return
    if (status.st_dev, status.st_ino) in seen:  # a link back to a folder we've been in
        return
    seen.add((status.st_dev, status.st_ino))
    if looks_like_an_index(folder):
        yield SkippedSource(folder, Reason(Why.AN_INDEX))
        return
    if lakehouse := recognise_lakehouse(folder):
        yield FoundFile(Location(folder), root, lakehouse=lakehouse)
        return
    for entry in ordered:
        if entry.name.startswith((".", "_")):
            continue
        try:
            is_folder = entry.is_dir()
        except OSError as error:  # a link that leads nowhere but back to itself
            yield SkippedSource(entry.path, Reason(Why.UNREADABLE, (describe_error(error).lower(),)))
            continue
        yield entry.path if is_folder else FoundFile(Location(entry.path), root)
