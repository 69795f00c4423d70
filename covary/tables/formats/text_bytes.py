"""The bytes of a text table: decompressed, cut at records, in UTF-8."""

import codecs
import os
import weakref
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import IO

from covary.tables.compression import UNPACKERS
from covary.tables.faults import NOT_UTF8, Faults
from covary.tables.formats.csv_dialect import Dialect
from covary.tables.formats.csv_records import Records, cut_records, find_ranges
from covary.tables.location import Location
from covary.tables.reader import Range, RowRequest
from covary.tables.source import TableSource

CELLS_AT_ONCE = 1 << 25  # of text, once parsed: 16 bytes each at least
BEYOND_BYTES = 256 << 10


@contextmanager
def open_text(source: TableSource) -> Iterator[IO[bytes]]:
    """The bytes of a text table, decompressed."""
    with ExitStack() as stack:
        if source.compression == "zip":
            open_archive = _open_archive if source.version else _open_archive.__wrapped__
            archive = open_archive(source.location, source.version, os.getpid())
            file = stack.enter_context(archive.open(str(source.member)))
        else:
            file = stack.enter_context(source.location.open())
            if source.compression:
                file = stack.enter_context(UNPACKERS[source.compression](file))
        yield file


@lru_cache(maxsize=1)
def _open_archive(location: Location, version: str, process: int) -> zipfile.ZipFile:
    """Open a zip and keep it for its other members: to list 20,000 of them for each is the work of hours.

    Each process has its own, as two would move each other's position in the file. The file is closed when
    neither this nor anyone who reads a member holds the zip any more.
    """
    file = location.open()
    try:
        archive = zipfile.ZipFile(file)
    except BaseException:
        file.close()
        raise
    weakref.finalize(archive, file.close)
    return archive


def cut_text(source: TableSource, dialect: Dialect, chunk_bytes: int) -> list[Range]:
    """The bytes of the parts of a table; none if it can only be read from its start."""
    if source.compression or dialect.recoded:
        return []
    with open_text(source) as file:
        return find_ranges(file, source.size, dialect, chunk_bytes)


def read_records(request: RowRequest, dialect: Dialect) -> Iterator[Records]:
    """The records that are asked for, in UTF-8, some at a time, with what is wrong counted."""
    source, size, faults = request.source, request.size, request.faults
    start, stop = request.part
    with open_text(source) as file:
        if stop < 0:
            pieces, beyond = _read_from_start(file, dialect, size), None
        else:
            file.seek(start)
            pieces = read_at_most(file, stop - start, size)
            beyond = iter(lambda: file.read(BEYOND_BYTES), b"") if stop < source.size else None
        for records in cut_records(pieces, dialect, faults, size, beyond):
            yield records._replace(text=_decode_to_utf8(records.text, dialect.text_encoding, faults))


def read_at_most(file: IO[bytes], left: int, size: int) -> Iterator[bytes]:
    """So many bytes, or what is left, in pieces of `size` or less: a stream may give fewer at a time."""
    while left > 0 and (piece := file.read(min(size, left))):
        left -= len(piece)
        yield piece


def _read_from_start(file: IO[bytes], dialect: Dialect, size: int) -> Iterator[bytes]:
    """The bytes of all records in steps; as UTF-8, if a byte of a character may look like a delimiter."""
    pieces = iter(lambda: file.read(size), b"")
    if dialect.recoded:
        pieces = map(str.encode, codecs.iterdecode(pieces, dialect.encoding, "replace"))
    start = dialect.body_start
    for piece in pieces:
        yield piece[start:]
        start = max(start - len(piece), 0)


def _decode_as_cp1252(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("covary.cp1252", _decode_as_cp1252)


def _decode_to_utf8(text: bytes, encoding: str, faults: Faults) -> bytes:
    """Whole records in UTF-8; a byte that isn't UTF-8 is read as cp1252, wherever the text happens to end."""
    if encoding != "utf-8":
        return text.decode(encoding, "replace").encode()
    if text.isascii():
        return text
    try:
        text.decode()
    except UnicodeDecodeError:
        lost = text.decode(errors="replace").count("\ufffd") - text.count("\ufffd".encode())
        faults.add(NOT_UTF8, lost)
        return text.decode("utf-8", "covary.cp1252").encode()
    return text
