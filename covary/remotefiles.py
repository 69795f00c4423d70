"""Files of an object store or any other fsspec file system, below a URL or matching a glob of one."""

import glob
import posixpath
from collections.abc import Iterator
from typing import Any

from covary.errors import CovaryError, UnreadableTable
from covary.filesystems import file_system, remote_facts
from covary.localfiles import os_reason
from covary.tablesource import FoundFile, shown


def remote_files(url: str) -> Iterator[FoundFile]:
    """Every file that a URL names: itself, all below it, or what matches it; in a fixed order."""
    files, place = file_system(url)
    try:
        files.invalidate_cache()
        found, root = _listed(files, place)
    except CovaryError:
        raise
    except Exception as problem:  # each kind of store has errors of its own
        raise UnreadableTable(shown(url), _reason(problem)) from problem
    if not found:
        raise UnreadableTable(shown(url), "there is no file")
    for path, info in sorted(found.items()):
        if path == place.rstrip("/"):
            yield FoundFile(url, posixpath.dirname(url), True, remote_facts(info))
        elif not _is_hidden(path, root):
            full, folder = files.unstrip_protocol(path), files.unstrip_protocol(root)
            yield FoundFile(full, folder, facts=remote_facts(info))


def _listed(files: Any, place: str) -> tuple[dict[str, Any], str]:
    """The files that a place names, with what is known of each, and the folder below which they are."""
    if glob.has_magic(place):
        fixed = place[: min(place.find(mark) for mark in "*?[" if mark in place)]
        found = files.glob(place, detail=True)
        return {path: info for path, info in found.items() if info["type"] == "file"}, posixpath.dirname(
            fixed
        )
    found = files.find(place, detail=True)
    if not found:  # a file that can't be listed, only asked for: a web page, say
        info = files.info(place)
        found = {place.rstrip("/"): info} if info["type"] == "file" else {}
    return found, place.rstrip("/")


def _is_hidden(path: str, root: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.removeprefix(root).split("/"))


def _reason(problem: Exception) -> str:
    if isinstance(problem, OSError):
        return os_reason(problem)
    return f"{type(problem).__name__}: {str(problem).strip().splitlines()[0] if str(problem).strip() else ''}"
