"""Which folders are one table each, of this machine or elsewhere, as the readers of such tables tell."""

import os
from collections.abc import Callable, Collection

from fsspec import AbstractFileSystem

from covary.tables.registry import READERS

FOLDER_READERS = [reader for reader in READERS.values() if reader.inner_folder]


def recognise_lakehouse(folder: str) -> str | None:
    """The format of the one table that a folder of this machine is, or None if it is an ordinary folder."""

    def list_names(inner: str) -> list[str]:
        try:
            return os.listdir(os.path.join(folder, inner))
        except OSError:
            return []

    return _first_format(lambda inner: os.path.isdir(os.path.join(folder, inner)), list_names)


def recognise_remote_lakehouse(files: AbstractFileSystem, folder: str) -> str | None:
    """The format of the one table that a folder of an fsspec file system is, if it is one."""
    # A web site may answer any address with a page; nor does any reader of a lakehouse go by HTTP.
    protocols = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    if protocols & {"http", "https"}:
        return None

    def list_names(inner: str) -> list[str]:
        try:
            return [path.rpartition("/")[2] for path in files.ls(f"{folder}/{inner}", detail=False)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    return _first_format(lambda inner: bool(files.isdir(f"{folder}/{inner}")), list_names)


def find_lakehouses(paths: Collection[str]) -> dict[str, str]:
    """The folders that are one table each, by all the files below them, with their formats."""
    lakehouses: dict[str, str] = {}
    for reader in FOLDER_READERS:
        for path in paths:
            if reader.inner_mark is None:
                folder, inner, _ = path.partition(f"/{reader.inner_folder}/")
            else:
                folder, inner, name = path.rpartition(f"/{reader.inner_folder}/")
                inner = inner if reader.inner_mark.fullmatch(name) else ""
            if inner:
                lakehouses.setdefault(folder, reader.name)
    return lakehouses


def list_folders_around(path: str) -> list[str]:
    """A path and the folders that it lies in, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1) if parts[count - 1]]


def _first_format(has_folder: Callable[[str], bool], list_names: Callable[[str], list[str]]) -> str | None:
    for reader in FOLDER_READERS:
        inner, mark = reader.inner_folder, reader.inner_mark
        if has_folder(inner) if mark is None else any(map(mark.fullmatch, list_names(inner))):
            return reader.name
    return None
