"""Files of an object store or any other fsspec file system, below a URL or matching a glob of one."""

import glob
import posixpath
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from fsspec import AbstractFileSystem

from covary.errors import NothingThere, UnreadableTable
from covary.secrets import Secrets, bare_url
from covary.tables.files import Info, describe_error, explain_store_error, file_system, remote_state
from covary.tables.kinds import find_lakehouses, list_folders_around, recognise_remote_lakehouse
from covary.tables.location import Location
from covary.tables.source import FoundFile

REQUESTS_AT_ONCE = 32
WEB, PAGE = ("http://", "https://"), "text/html"
MOST_PAGES, SECONDS_FOR_ALL_PAGES = 10_000, 600.0  # of links to links, which a server can make up for ever
TOO_MANY_PAGES = "its pages lead to more pages than can be looked through; name a folder further down"


def list_remote_files(url: str) -> Iterator[FoundFile]:
    """Every file that a URL names: itself, all below it, or what matches it; in a fixed order."""
    files, wanted = file_system(url)
    try:
        files.invalidate_cache()
        listed, root = _list_path(files, wanted)
        lakehouses = _find_lakehouses_around(files, wanted, listed)
    except Exception as problem:  # each kind of store has errors of its own
        raise UnreadableTable(url, _explain_failure(problem, url)) from problem
    tables: dict[str, Info] = {}
    for path, info in listed.items():
        table = next((folder for folder in list_folders_around(path) if folder in lakehouses), path)
        if table in lakehouses or info["type"] == "file":
            tables.setdefault(table, info)
    if not tables:
        raise NothingThere(url, "there is no file")
    for path, info in sorted(tables.items()):
        lakehouse = lakehouses.get(path)
        state = None if lakehouse else remote_state(info)
        if path == wanted.rstrip("/"):
            whole = url if "?" in url else url.rstrip("/")
            yield FoundFile(Location(whole), _folder_of(whole), True, state, lakehouse)
            continue
        folder = root if path.startswith(f"{root}/") else posixpath.dirname(path)
        if not _is_hidden(path, folder):
            full, below = files.unstrip_protocol(path), files.unstrip_protocol(folder)
            yield FoundFile(Location(full), below, state=state, lakehouse=lakehouse)


def find_remote_table(url: str) -> FoundFile:
    """The one file or the one folder of a lakehouse's table that a URL names."""
    files, wanted = file_system(url)
    try:
        files.invalidate_cache()
        lakehouse = recognise_remote_lakehouse(files, wanted.rstrip("/"))
    except Exception as problem:
        raise UnreadableTable(url, _explain_failure(problem, url)) from problem
    named = url.rstrip("/") if lakehouse else url
    return FoundFile(Location(named), _folder_of(named), explicit=True, lakehouse=lakehouse)


def _folder_of(url: str) -> str:
    return posixpath.dirname(bare_url(url).rstrip("/"))


def _list_path(files: AbstractFileSystem, wanted: str) -> tuple[dict[str, Info], str]:
    """What a path names, with what is known of each, and the folder below which they are."""
    if _is_glob(wanted):
        fixed = wanted[: min(wanted.find(mark) for mark in "*?[" if mark in wanted)]
        return files.glob(wanted, detail=True), posixpath.dirname(fixed)
    if wanted.startswith(WEB):
        # To look for links, all of a page would be read, and what is no page may have no end.
        try:
            info = files.info(wanted)
        except FileNotFoundError as problem:
            if isinstance(problem.__cause__, TimeoutError):  # nor will it answer to the next question
                raise
        else:
            if info.get("mimetype") != PAGE:
                return {wanted.rstrip("/"): info}, wanted.rstrip("/")
    listed = _follow_links(files, wanted) if wanted.startswith(WEB) else files.find(wanted, detail=True)
    # Of a file on the web, a listing tells nothing but its own name.
    known = {path: info or files.info(path) for path, info in listed.items()}
    if not known:  # a file that can't be listed, only asked for: a web page, say
        info = files.info(wanted)
        known = {wanted.rstrip("/"): info} if info["type"] == "file" else {}
    return known, wanted.rstrip("/")


def _follow_links(files: AbstractFileSystem, wanted: str) -> dict[str, Info]:
    """The files that a page links to, and the pages below it: fsspec would pass by what does not answer."""
    linked: dict[str, Info] = {}
    pages, seen, until = [wanted], {wanted.rstrip("/")}, time.monotonic() + SECONDS_FOR_ALL_PAGES
    while pages:
        if len(seen) > MOST_PAGES or time.monotonic() > until:
            raise OSError(TOO_MANY_PAGES)
        page = pages.pop()
        try:
            links = files.ls(page, detail=True)
        except FileNotFoundError as problem:
            if page == wanted or isinstance(problem.__cause__, TimeoutError):
                raise
            continue  # a link that leads nowhere is no reason to doubt the others
        for link in links:
            name = link["name"].rstrip("/")
            if link["type"] != "directory":
                linked[name] = link
            elif name not in seen:
                seen.add(name)
                pages.append(link["name"])
    return linked


def _is_glob(wanted: str) -> bool:
    """Whether a path is a pattern; what follows a ? on the web is a question."""
    return glob.has_magic(wanted.partition("?")[0] if wanted.startswith(WEB) else wanted)


def _find_lakehouses_around(files: AbstractFileSystem, wanted: str, paths: Collection[str]) -> dict[str, str]:
    """The folders that are a lakehouse's tables, of those that some paths lie in."""
    if not _is_glob(wanted):
        return find_lakehouses(paths)
    # A glob tells only what it matches: ask for the logs of the folders around.
    folders = sorted({folder for path in paths for folder in list_folders_around(path)})
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as asking:
        formats = asking.map(partial(recognise_remote_lakehouse, files), folders)
        return {folder: kind for folder, kind in zip(folders, formats, strict=True) if kind}


def _is_hidden(path: str, root: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.removeprefix(root).split("/"))


def _explain_failure(problem: Exception, url: str) -> str:
    if plain := explain_store_error(problem):
        return plain
    if isinstance(problem, OSError):
        return Secrets.of(url).hide(describe_error(problem).lower())
    return " ".join([f"{type(problem).__name__}:", *Secrets.of(url).hide(str(problem)).split()])[:200]
