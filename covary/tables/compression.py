"""Compressed files: told by their first bytes, and unpacked."""

import bz2
import gzip
import zlib
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import IO

import pyarrow as pa

from covary.tables.skipped import NotATable, Why

HEAD_BYTES = 4096
PACKED_HEAD_BYTES = 2 << 20  # more than a block of bzip2, of which nothing can be had before its end
COMPRESSION_SUFFIXES = {".gz", ".bz2", ".zst", ".zip"}
TELLS_NOTHING = COMPRESSION_SUFFIXES - {".zip"}  # of what a file holds, if no other suffix comes before
COMPRESSION_MARKS = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}
UNPACKERS: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file),  # type: ignore[dict-item,return-value]
    "bzip2": bz2.BZ2File,
    "zstd": partial(pa.input_stream, compression="zstd"),
}
BROKEN = (zlib.error, EOFError, ValueError, OSError, pa.ArrowException)  # what unpackers raise


def detect_compression(head: bytes) -> str | None:
    """How a file that begins with these bytes is compressed."""
    return next((name for mark, name in COMPRESSION_MARKS.items() if head.startswith(mark)), None)


def unpack_head(head: bytes, compression: str) -> bytes:
    """The first bytes of what a file holds, as far as its own first bytes tell them."""
    if compression != "gzip":
        return b""
    try:
        return zlib.decompressobj(31).decompress(head, HEAD_BYTES)
    except zlib.error:
        raise NotATable(Why.BROKEN, "gzip") from None


def read_packed_head(file: IO[bytes], compression: str) -> bytes:
    """The first bytes of what a compressed file holds; NotATable if there are none."""
    try:
        # No more is looked at: gigabytes of zeros may follow an empty part, and are skipped one by one.
        head = UNPACKERS[compression](BytesIO(file.read(PACKED_HEAD_BYTES))).read(HEAD_BYTES)
    except BROKEN as error:
        if getattr(error, "errno", None):
            raise
        raise NotATable(Why.BROKEN, compression) from None
    if not head:
        raise NotATable(Why.NOTHING_PACKED, compression)
    return head
