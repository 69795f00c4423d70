"""What kind of table a file is, told by its suffix and its first bytes."""

import bz2
import codecs
import gzip
import os
import zlib
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import IO, Any

import pyarrow as pa

from covary.tables.formats.csv_dialect import is_text, looks_delimited
from covary.tables.formats.encodings import utf16_byte_order

HEAD_BYTES = 4096
PACKED_HEAD_BYTES = 2 << 20  # more than a block of bzip2, of which nothing can be had before its end

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
TELLS_NOTHING = COMPRESSION_SUFFIXES - {".zip"}  # of what a file holds, if no other suffix comes before
COMPRESSION_MARKS = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}
UNPACKERS: dict[str, Callable[[IO[bytes]], Any]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file),
    "bzip2": bz2.BZ2File,
    "zstd": partial(pa.input_stream, compression="zstd"),
}
BROKEN = (zlib.error, EOFError, ValueError, OSError, pa.ArrowException)  # what unpackers raise
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
    """Why a file that might have been a table isn't one; it never leaves covary.tables.discover."""


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


def format_unpacked(file: IO[bytes], compression: str, explicit: bool) -> str:
    """The format of what a compressed file holds if its name doesn't tell."""
    try:
        # No more is looked at: gigabytes of zeros may follow an empty part, and are skipped one by one.
        head: bytes = UNPACKERS[compression](BytesIO(file.read(PACKED_HEAD_BYTES))).read(HEAD_BYTES)
    except BROKEN as error:
        if getattr(error, "errno", None):
            raise
        raise NotATable(f"a broken {compression} file") from None
    if not head:
        raise NotATable(f"a {compression} file with nothing in it")
    if head.lstrip()[:1] in {b"{", b"["}:
        return _json_lines(head)
    if not is_text(head) or not (explicit or looks_delimited(head)):
        raise NotATable(f"a {compression} file of no table; if it is one, name it as in table.csv.gz")
    return "csv"


def _unzipped(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(head, HEAD_BYTES)
    except zlib.error:
        raise NotATable("a broken gzip file") from None


def _json_lines(head: bytes) -> str:
    if head.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"[":
        raise NotATable("one JSON array, not JSON Lines")
    return "jsonl"
