"""What kind of table a file is, told by its suffix and its first bytes."""

import codecs
import os
import zlib

from covary.csvfile import looks_delimited, utf16_byte_order

HEAD_BYTES = 4096

FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv",
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
}  # fmt: skip
TEXT_FORMATS = {"csv", "jsonl"}
FILE_FORMATS = {*FORMATS.values()}
DATABASES = {".sqlite": "SQLite", ".sqlite3": "SQLite", ".db": "SQLite or DuckDB", ".duckdb": "DuckDB"}
COMPRESSION_SUFFIXES = {".gz", ".bz2", ".zst", ".zip"}
COMPRESSION_MARKS = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}
FORMAT_MARKS = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
# Tabular files that somebody might expect us to read: named among the skipped, unlike pictures and notes.
UNREAD_KINDS = {
    ".xlsx": "Excel", ".xls": "Excel", ".xlsm": "Excel", ".ods": "OpenDocument", ".avro": "Avro",
    ".orc": "ORC",
    ".dta": "Stata", ".sav": "SPSS", ".sas7bdat": "SAS", ".rds": "R", ".rdata": "R", ".dbf": "dBase",
    ".h5": "HDF5", ".hdf5": "HDF5", ".mdb": "Access", ".accdb": "Access", ".pkl": "pickle", ".xz": "xz",
    ".7z": "7-Zip", ".rar": "RAR", ".tar": "tar", ".tgz": "tar",
}  # fmt: skip


class NotATable(Exception):
    """Why a file that might have been a table isn't one; it never leaves covary.sources."""


class NotToBeSeen(NotATable):
    """Why a file can't be looked into now: what it held may still be there."""


def split_name(name: str) -> tuple[str, str]:
    """A file name without its known suffixes, and the suffix that tells its kind."""
    stem, suffix = os.path.splitext(name)
    if suffix.lower() in COMPRESSION_SUFFIXES:
        inner_stem, inner = os.path.splitext(stem)
        if inner.lower() in {*FORMATS, *UNREAD_KINDS, *DATABASES}:
            return inner_stem, inner.lower()
    known = suffix.lower() in {*FORMATS, *DATABASES, *COMPRESSION_SUFFIXES}
    return (stem if known else name), suffix.lower()


def compression_of(head: bytes) -> str | None:
    """How a file that begins with these bytes is compressed."""
    return next((name for mark, name in COMPRESSION_MARKS.items() if head.startswith(mark)), None)


def format_of(suffix: str, head: bytes, compression: str | None, explicit: bool) -> str | None:
    """The format of a file, or None if it has nothing of a table; `explicit` if the person named the file."""
    declared = FORMATS.get(suffix)
    if compression:
        head = _unzipped(head) if compression == "gzip" else b""
        if declared not in TEXT_FORMATS | {None}:
            raise NotATable(f"a compressed {declared} file isn't read; unpack it")
    marked = next((kind for mark, kind in FORMAT_MARKS.items() if head.startswith(mark)), None)
    if marked and not compression:
        return marked
    if declared in {"parquet", "arrow"}:
        raise NotATable(f"no {declared.title()} file, whatever its name says")
    if declared == "jsonl":
        return _json_lines(head)
    if b"\0" in head and not utf16_byte_order(head) and declared is None:
        raise NotATable("unknown kind of file")
    if declared is None and head.lstrip()[:1] == b"{":
        return _json_lines(head)
    return "csv" if explicit or suffix != ".txt" or not head or looks_delimited(head) else None


def _unzipped(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(head, HEAD_BYTES)
    except zlib.error:
        raise NotATable("a broken gzip file") from None


def _json_lines(head: bytes) -> str:
    if head.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"[":
        raise NotATable("one JSON array, not JSON Lines")
    return "jsonl"
