"""What kind of table a file is, told by its suffix and first bytes; which folders are one table each."""

import os
from collections.abc import Callable, Collection
from contextlib import suppress

from fsspec import AbstractFileSystem

from covary.tables.compression import COMPRESSION_SUFFIXES, TELLS_NOTHING, unpack_head
from covary.tables.formats.encodings import utf16_byte_order
from covary.tables.reader import FileStart, Reader
from covary.tables.registry import READERS, find_readers
from covary.tables.skipped import NotATable, Why

# Tabular files that somebody might expect us to read: named among the skipped, unlike pictures and notes.
UNREAD_KINDS = {
    ".xlsx": "Excel", ".xls": "Excel", ".xlsm": "Excel", ".ods": "OpenDocument", ".avro": "Avro",
    ".orc": "ORC",
    ".dta": "Stata", ".sav": "SPSS", ".sas7bdat": "SAS", ".rds": "R", ".rdata": "R", ".dbf": "dBase",
    ".h5": "HDF5", ".hdf5": "HDF5", ".mdb": "Access", ".accdb": "Access", ".pkl": "pickle", ".xz": "xz",
    ".7z": "7-Zip", ".rar": "RAR", ".tar": "tar", ".tgz": "tar",
}  # fmt: skip
FOLDER_READERS = [reader for reader in READERS.values() if reader.inner_folder]
TEXT_READERS = [reader for reader in READERS.values() if reader.may_be_packed]


def split_name(name: str) -> tuple[str, str]:
    """A file name without its known suffixes, and the suffix that tells its kind."""
    stem, suffix = os.path.splitext(name)
    suffix = suffix.lower()
    if suffix in COMPRESSION_SUFFIXES:
        inner_stem, inner = os.path.splitext(stem)
        inner = inner.lower()
        if find_readers(inner) or inner in UNREAD_KINDS:
            return inner_stem, inner
    known = find_readers(suffix) or suffix in COMPRESSION_SUFFIXES
    return (stem if known else name), suffix


def may_hold_a_table(stem: str, suffix: str) -> bool:
    """Whether a file that nobody named may hold a table, as its name tells.

    A compressed file's name may leave open what it holds, as sales.gz and sales.2013.gz do.
    """
    inner = os.path.splitext(stem)[1]
    leaves_open = suffix in TELLS_NOTHING and (not inner or inner[1:].isdecimal())
    return leaves_open or suffix == ".zip" or bool(find_readers(suffix))


def find_text_reader(suffix: str) -> Reader | None:
    """The reader of text files with a suffix, which may be compressed or lie in a zip."""
    return next((reader for reader in find_readers(suffix) if reader.may_be_packed), None)


def find_marked_reader(head: bytes) -> Reader | None:
    """The reader of files that begin with these bytes, if they tell."""
    marks = ((reader, *mark) for reader in READERS.values() for mark in reader.marks)
    return next((reader for reader, position, mark in marks if head.startswith(mark, position)), None)


def recognise(suffix: str, head: bytes, compression: str | None, explicit: bool) -> Reader | None:
    """The reader of a file without a mark of its format, or None if it has nothing of a table."""
    declared = find_readers(suffix)
    if declared and not declared[0].may_be_packed:
        titles = " or ".join(reader.title for reader in declared)
        raise NotATable(Why.COMPRESSED if compression else Why.OF_ANOTHER_KIND, titles)
    start = FileStart(suffix, unpack_head(head, compression) if compression else head, explicit)
    if not declared and b"\0" in start.head and not utf16_byte_order(start.head):
        raise NotATable(Why.UNKNOWN_KIND)
    return next((reader for reader in declared or TEXT_READERS if reader.suits(start)), None)


def recognise_packed(head: bytes, compression: str, explicit: bool) -> Reader:
    """The reader of what a compressed file holds whose name does not tell."""
    start = FileStart("", head, explicit, undeclared=True)
    reader = next((reader for reader in TEXT_READERS if reader.suits(start)), None)
    if reader is None:
        raise NotATable(Why.NO_TABLE_PACKED, compression)
    return reader


def recognise_lakehouse(folder: str) -> str | None:
    """The format of the one table that a folder of this machine is, or None if it is an ordinary folder."""
    return _recognise_folder(folder, os.path.isdir, os.listdir, OSError)


def recognise_remote_lakehouse(files: AbstractFileSystem, folder: str) -> str | None:
    """The format of the one table that a folder of an fsspec file system is, if it is one."""
    # A web site may answer any address with a page; nor does any reader of a lakehouse go by HTTP.
    protocols = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    if protocols & {"http", "https"}:
        return None

    def list_names(inner: str) -> list[str]:
        return [path.rpartition("/")[2] for path in files.ls(inner, detail=False)]

    return _recognise_folder(folder, files.isdir, list_names, FileNotFoundError, NotADirectoryError)


def _recognise_folder(
    folder: str,
    is_folder: Callable[[str], bool],
    list_names: Callable[[str], list[str]],
    *not_there: type[OSError],
) -> str | None:
    for reader in FOLDER_READERS:
        inner, mark = f"{folder}/{reader.inner_folder}", reader.inner_mark
        with suppress(*not_there):
            if is_folder(inner) if mark is None else any(map(mark.fullmatch, list_names(inner))):
                return reader.name
    return None


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
