"""How far a Parquet file of an index would unpack, told by its pages before any is unpacked.

An index may come from somebody else. A file of some kilobytes can hold pages that unpack to many gigabytes,
and what the end of the file says of their sizes need not be true; readers go by the header of each page. So
the headers are read here, in Thrift's compact form, by the numbers that Parquet's format gives their fields.
"""

import struct
from collections.abc import Iterator
from typing import Any

BYTES_OF_A_VALUE = 16  # in memory: the view of a text
MAGIC = b"PAR1"
NONE, TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12  # Thrift's kinds
ROW_GROUPS, COLUMNS, METADATA = 4, 1, 3  # of the file, of a row group, of a column
DATA_PAGES, DICTIONARY, PACKED_SIZE = 9, 11, 7  # of a column: where they begin, and how long they are
UNPACKED, PACKED = 2, 3  # of a page: its size
# Of a page, what more it says if it holds data, a dictionary, data of the second version, and where in it the
# encoding is.
ENCODING_IN = {5: 2, 7: 2, 8: 4}
VALUES = 1  # in each of them: how many it holds
# Each value may repeat as much of the one before: its size tells nothing, and no page of ours does.
SHARED_PREFIXES = 7


class NotPages(ValueError):
    """This isn't what a Parquet file holds."""


def unpacked_size(content: memoryview) -> int:
    """Return how many bytes the tables of a Parquet file take in memory, at the most."""
    try:
        columns = list(_columns(content))
        # Columns that share their pages would be looked at, and unpacked, many times over.
        if sum(column[PACKED_SIZE] for column in columns) > len(content):
            raise NotPages("its pages lie in one another")
        return sum(_size_of_column(content, column) for column in columns)
    except (IndexError, struct.error, AttributeError, TypeError, KeyError, RecursionError) as problem:
        raise NotPages("its pages can't be told") from problem


def _columns(content: memoryview) -> Iterator[dict[int, Any]]:
    if len(content) < 12 or content[-4:] != MAGIC:
        raise NotPages("it doesn't end as a Parquet file does")
    (length,) = struct.unpack("<I", content[-8:-4])
    footer, _ = _struct(content[-8 - length : -8], 0)
    for group in footer.get(ROW_GROUPS, ()):
        for column in group[COLUMNS]:
            yield column[METADATA]


def _size_of_column(content: memoryview, column: dict[int, Any]) -> int:
    start = min(column[DATA_PAGES], column.get(DICTIONARY, column[DATA_PAGES]))
    end = start + column[PACKED_SIZE]
    if not 0 <= start <= end <= len(content):
        raise NotPages("its pages lie outside of it")
    size = 0
    while start < end:
        page, start = _struct(content, start)
        kind = next((kind for kind in ENCODING_IN if kind in page), None)
        if kind is None:
            raise NotPages("a page holds no cells")
        values = page[kind][VALUES]
        if min(page[UNPACKED], page[PACKED], values) < 0:
            raise NotPages("a page has less than no size")
        if page[kind][ENCODING_IN[kind]] == SHARED_PREFIXES:
            raise NotPages("its texts are packed as no index packs them")
        size += page[UNPACKED] + BYTES_OF_A_VALUE * values
        start += page[PACKED]
    return size


def _struct(data: memoryview, place: int) -> tuple[dict[int, Any], int]:
    """Read the fields of a structure by their numbers, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head = data[place]
        place += 1
        if head == NONE:
            return fields, place
        step, kind = head >> 4, head & 15
        if step:
            number += step
        else:
            number, place = _number(data, place)
        if kind in (TRUE, FALSE):
            fields[number] = kind == TRUE
        else:
            fields[number], place = _value(data, place, kind)


def _value(data: memoryview, place: int, kind: int) -> tuple[Any, int]:
    if kind == STRUCT:
        return _struct(data, place)
    if kind in (LIST, SET):
        return _list(data, place)
    if kind == BINARY:
        length, place = _whole(data, place)
        return None, place + length  # texts are none of our business
    if kind == DOUBLE:
        return None, place + 8
    if kind in (TRUE, FALSE, BYTE):
        return None, place + 1
    if kind < DOUBLE:
        return _number(data, place)
    raise NotPages("it holds what no Parquet file does")


def _list(data: memoryview, place: int) -> tuple[list[Any], int]:
    head = data[place]
    length, place = (head >> 4, place + 1) if head >> 4 < 15 else _whole(data, place + 1)
    values = []
    for _ in range(length):
        value, place = _value(data, place, head & 15)
        values.append(value)
        if place > len(data):
            raise NotPages("a list goes on beyond the end")
    return values, place


def _whole(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
        if shift > 63:
            raise NotPages("a number is too long")


def _number(data: memoryview, place: int) -> tuple[int, int]:
    value, place = _whole(data, place)
    return value >> 1 ^ -(value & 1), place
