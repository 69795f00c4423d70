"""Rows of Arrow files and streams, with the types that they declare.

A batch is read as a whole, and a few kilobytes may stand for gigabytes. How much memory the batches of a file
take can be read in the file before any is unpacked: a batch's message says where its buffers are, and a
compressed buffer begins with its length when unpacked. pyarrow shows neither of them. Messages are
FlatBuffers: tables whose fields are found by way of a table of offsets.
"""

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.ipc

from covary.tables.arrow_frames import (
    BATCH_ROWS,
    CELLS_AT_ONCE,
    find_plain_columns,
    from_arrow,
    gather_frames,
    group_ranges,
)
from covary.tables.reader import FileReader, Layout, Range, RowRequest
from covary.tables.source import TableSource

ArrowFile: TypeAlias = pa.RecordBatchFileReader | pa.RecordBatchStreamReader
LARGEST_BATCH = 768 << 20  # bytes of a record batch, which can only be read at once

MAGIC = b"ARROW1"
CONTINUED = 0xFFFFFFFF  # before the length of a message, but in the oldest files
LARGEST_MESSAGE = 64 << 20
FOOTER_DICTIONARIES, FOOTER_BATCHES = 2, 3  # fields of a footer
MESSAGE_HEADER, MESSAGE_BODY_LENGTH = 2, 3  # of a message
DICTIONARY_NUMBER, DICTIONARY_DATA, DICTIONARY_IS_MORE = 0, 1, 2  # of a dictionary batch
BATCH_BUFFERS, BATCH_COMPRESSION = 2, 3  # of a record batch
LENGTH_BYTES = 8  # of the unpacked length, before a compressed buffer
KIND_FIELD, OF_DICTIONARY, OF_RECORDS = 1, 2, 3  # what a message is


class ArrowReader(FileReader):
    """Files and streams of record batches."""

    name, title = "arrow", "Arrow"
    suffixes, marks = (".arrow", ".feather", ".ipc"), ((0, MAGIC), (0, b"\xff\xff\xff\xff"))
    is_read_whole = True

    def layout(self, source: TableSource) -> Layout:
        """The names of the columns that can serve."""
        with _open_reader(source) as reader:
            return Layout(find_plain_columns(reader.schema))

    def ranges(self, source: TableSource, layout: Layout, chunk_bytes: int) -> list[Range]:
        """The record batches of the parts of a file; none if it's a stream, read only from its start."""
        with _open_reader(source) as reader:
            if not isinstance(reader, pa.RecordBatchFileReader):
                return []
            count = reader.num_record_batches
        return group_ranges([source.size // max(count, 1)] * count, chunk_bytes)

    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """The rows of some record batches."""
        yield from gather_frames(_read_slices(request), 4 * request.size)


READER = ArrowReader()


def _read_slices(request: RowRequest) -> Iterator[pl.DataFrame]:
    source, (start, stop), columns = request.source, request.part, request.columns
    if not source.location.is_url:
        _refuse_huge_batches(source.location.text)
    rows = max(1, min(BATCH_ROWS, CELLS_AT_ONCE // max(len(columns), 1)))
    with _open_reader(source, columns) as reader:
        if isinstance(reader, pa.RecordBatchFileReader):
            numbers = range(start, reader.num_record_batches if stop < 0 else stop)
            batches = map(reader.get_batch, numbers)
        else:
            batches = iter(reader)
        for batch in batches:
            for first in range(0, batch.num_rows, rows):
                yield from_arrow(batch.slice(first, rows), columns)


def _refuse_huge_batches(path: str) -> None:
    with open(path, "rb") as file:
        largest = max(measure_batches(file), default=0)
    if largest > LARGEST_BATCH:
        raise ValueError(
            f"a record batch of it takes {largest >> 20:,} MB of memory; "
            f"write it in smaller ones, of at most {LARGEST_BATCH >> 20:,} MB"
        )


@contextmanager
def _open_reader(source: TableSource, columns: Sequence[str] | None = None) -> Iterator["ArrowFile"]:
    """The file format's reader, or the stream format's, which has no random access."""
    # Not mapped: a file cut short under our eyes would stop the process, not fail.
    location = source.location
    with pa.PythonFile(location.open()) if location.is_url else pa.OSFile(location.text) as file:
        is_file = file.read(6) == MAGIC
        file.seek(0)
        opener = pa.ipc.open_file if is_file else pa.ipc.open_stream
        options = pa.ipc.IpcReadOptions(use_threads=False)
        if columns is not None:
            with opener(file) as reader:
                options.included_fields = [reader.schema.get_field_index(column) for column in columns]
            file.seek(0)
        with opener(file, options=options) as reader:
            yield reader


def measure_batches(file: IO[bytes]) -> Iterator[int]:
    """How many bytes each record batch takes in memory, with the dictionaries it needs.

    Where a file can't be understood this ends, and leaves it to pyarrow to refuse the file.
    """
    dictionaries: dict[int, int] = {}
    try:
        for message, body in _read_messages(file):
            kind, batch = message.read_number(KIND_FIELD, "<B"), message.read_table(MESSAGE_HEADER)
            if kind == OF_RECORDS:
                yield sum(dictionaries.values()) + _measure_buffers(file, batch, body)
            elif kind == OF_DICTIONARY:
                number = batch.read_number(DICTIONARY_NUMBER, "<q")
                before = dictionaries.get(number, 0) if batch.read_number(DICTIONARY_IS_MORE, "<B") else 0
                data = batch.read_table(DICTIONARY_DATA)
                dictionaries[number] = before + _measure_buffers(file, data, body)
                yield sum(dictionaries.values())
    except (struct.error, IndexError, ValueError, OverflowError, OSError):
        return


def _read_messages(file: IO[bytes]) -> "Iterator[tuple[_Table, int]]":
    """The messages of dictionaries and records, each with where its body begins; of a stream all messages."""
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        yield from _read_streamed_messages(file, end)
        return
    file.seek(max(end - len(MAGIC) - 4, 0))
    length = struct.unpack("<i", file.read(4))[0]
    start = end - len(MAGIC) - 4 - length
    if not 0 <= length <= LARGEST_MESSAGE or start < 0:
        return
    file.seek(start)
    footer = _Table.read_root(file.read(length))
    for field in (FOOTER_DICTIONARIES, FOOTER_BATCHES):
        for position in footer.find_structs(field, 24):
            yield _read_message(file, struct.unpack_from("<q", footer.data, position)[0])


def _read_streamed_messages(file: IO[bytes], end: int) -> "Iterator[tuple[_Table, int]]":
    start, length = 0, 0
    while start < end and length >= 0:
        message, body = _read_message(file, start)
        yield message, body
        length = message.read_number(MESSAGE_BODY_LENGTH, "<q")
        start = body + length


def _read_message(file: IO[bytes], start: int) -> "tuple[_Table, int]":
    """A message, and where its body begins; ValueError if there is none, as at the end of a stream."""
    file.seek(start)
    (length,) = struct.unpack("<I", file.read(4))
    start += 4
    if length == CONTINUED:
        (length,) = struct.unpack("<I", file.read(4))
        start += 4
    if not length or length > LARGEST_MESSAGE:
        raise ValueError("no message where one should be")
    return _Table.read_root(file.read(length)), start + length


def _measure_buffers(file: IO[bytes], batch: "_Table", body: int) -> int:
    positions = batch.find_structs(BATCH_BUFFERS, 16)
    buffers = [struct.unpack_from("<qq", batch.data, position) for position in positions]
    if not batch.find(BATCH_COMPRESSION):
        return sum(length for _, length in buffers)
    total = 0
    for offset, length in buffers:
        if length >= LENGTH_BYTES:
            file.seek(body + offset)
            (unpacked,) = struct.unpack("<q", file.read(LENGTH_BYTES))
            total += length if unpacked < 0 else unpacked  # -1: this one is not packed
    return total


class _Table:
    """A table of a FlatBuffer."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self._position = position
        self._offsets = position - int(struct.unpack_from("<i", data, position)[0])

    @classmethod
    def read_root(cls, data: bytes) -> "_Table":
        return cls(data, struct.unpack_from("<I", data)[0])

    def find(self, field: int) -> int:
        """Where a field is; 0 if it is not there."""
        if self._offsets < 0 or 4 + 2 * field >= struct.unpack_from("<H", self.data, self._offsets)[0]:
            return 0
        offset = int(struct.unpack_from("<H", self.data, self._offsets + 4 + 2 * field)[0])
        return self._position + offset if offset else 0

    def read_number(self, field: int, kind: str) -> int:
        """A number; 0 if it is not there."""
        position = self.find(field)
        return int(struct.unpack_from(kind, self.data, position)[0]) if position else 0

    def read_table(self, field: int) -> "_Table":
        """A table within this one."""
        position = self.find(field)
        if not position:
            raise ValueError("a table that should be there is not")
        return _Table(self.data, position + int(struct.unpack_from("<I", self.data, position)[0]))

    def find_structs(self, field: int, size: int) -> range:
        """Where the items of a vector of structs are."""
        position = self.find(field)
        if not position:
            return range(0)
        start = position + int(struct.unpack_from("<I", self.data, position)[0])
        (count,) = struct.unpack_from("<I", self.data, start)
        if count * size > len(self.data):
            raise ValueError("a vector longer than its message")
        return range(start + 4, start + 4 + count * size, size)
