"""What kind of table a file is, told by its suffix and its first bytes."""

import os

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


def split_name(name: str) -> tuple[str, str]:
    """A file name without its known suffixes, and the suffix that tells its kind."""
    stem, suffix = os.path.splitext(name)
    suffix = suffix.lower()
    if suffix in COMPRESSION_SUFFIXES:
        inner_stem, inner = os.path.splitext(stem)
        if find_readers(inner.lower()) or inner.lower() in UNREAD_KINDS:
            return inner_stem, inner.lower()
    known = find_readers(suffix) or suffix in COMPRESSION_SUFFIXES
    return (stem if known else name), suffix


def refuse_unread_kind(suffix: str) -> None:
    """Say of a tabular file of a kind that isn't read what to do."""
    if suffix in UNREAD_KINDS and not find_readers(suffix):
        raise NotATable(Why.UNREAD_KIND, UNREAD_KINDS[suffix])


def may_hold_a_table(stem: str, suffix: str) -> bool:
    """Whether a file that nobody named may hold a table, as its name tells.

    A compressed file's name may leave open what it holds, as sales.gz and sales.2013.gz do.
    """
    inner = os.path.splitext(stem)[1]
    leaves_open = suffix in TELLS_NOTHING and (not inner or inner[1:].isdecimal())
    return leaves_open or suffix == ".zip" or bool(find_readers(suffix))


def find_text_reader(suffix: str) -> Reader | None:
    """The reader of text files with a suffix, which may be compressed or lie in a zip."""
    return next((reader for reader in find_readers(suffix) if reader.is_text), None)


def find_marked_reader(head: bytes) -> Reader | None:
    """The reader of files that begin with these bytes, if they tell."""
    return next((reader for reader in READERS.values() if reader.has_mark(head)), None)


def recognise(suffix: str, head: bytes, compression: str | None, explicit: bool) -> Reader | None:
    """The reader of a file without a mark of its format, or None if it has nothing of a table.

    Args:
        suffix: that tells its kind.
        head: its first bytes.
        compression: how it is compressed, if it is.
        explicit: whether a person named the file.
    """
    declared = find_readers(suffix)
    if declared and not declared[0].is_text:
        titles = " or ".join(reader.title for reader in declared)
        raise NotATable(Why.COMPRESSED if compression else Why.OF_ANOTHER_KIND, titles)
    start = FileStart(suffix, unpack_head(head, compression) if compression else head, explicit)
    if not declared and b"\0" in start.head and not utf16_byte_order(start.head):
        raise NotATable(Why.UNKNOWN_KIND)
    return next((reader for reader in declared or _text_readers() if reader.suits(start)), None)


def recognise_packed(head: bytes, compression: str, explicit: bool) -> Reader:
    """The reader of what a compressed file holds whose name does not tell."""
    start = FileStart("", head, explicit, undeclared=True)
    reader = next((reader for reader in _text_readers() if reader.suits(start)), None)
    if reader is None:
        raise NotATable(Why.NO_TABLE_PACKED, compression)
    return reader


def _text_readers() -> tuple[Reader, ...]:
    return tuple(reader for reader in READERS.values() if reader.is_text)
