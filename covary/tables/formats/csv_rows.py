"""Rows of CSV and JSON Lines files, all as text, so that no part of a table decides on types of its own."""

import codecs
import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

import polars as pl

from covary.errors import UnreadableTable
from covary.tables.faults import NOT_OBJECTS, Faults
from covary.tables.formats.csv_dialect import DELIMITERS, LINES, SAMPLE_BYTES, Dialect, is_text, sniff
from covary.tables.formats.csv_records import count_cells, of_few_records
from covary.tables.formats.encodings import is_ascii, utf16_byte_order
from covary.tables.formats.text_bytes import opened, text_blocks
from covary.tables.source import TableSource

CELLS_AT_ONCE = 1 << 25  # of a block of text, once parsed: 16 bytes each at least
MOST_CELLS_PER_BYTE = 16  # a row as wide as the header has fewer cells than bytes
LONGEST_FIRST_LINE = 4 << 20  # bytes
LONGEST_CELL = 1 << 30
MOST_COLUMNS = 250_000
HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")
LONGEST_INTEGER = 38  # digits, so that it fits in 128 bits: Polars reads no block with a longer one


def csv_layout(source: TableSource) -> tuple[tuple[str, ...], Dialect | None]:
    """The names of the columns, and how the file is written."""
    with opened(source) as file:
        sample = _sample(file)
        elsewhere = b""
        if is_ascii(sample) and source.compression is None:
            elsewhere = b"".join(_lines_at(file, source.size * quarter // 4) for quarter in (1, 2, 3))
    if not sample:
        raise UnreadableTable(source.place, "the file is empty")
    if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise UnreadableTable(source.place, "it is written in UTF-32; save it as UTF-8")
    if not is_text(sample):
        raise UnreadableTable(source.place, "it is no text, whatever its name says")
    first = sample[: _line_end_in(sample)]
    if len(first) >= LONGEST_FIRST_LINE:
        raise UnreadableTable(source.place, f"its first line is longer than {LONGEST_FIRST_LINE >> 20} MB")
    if (cells := max(first.count(delimiter.encode()) for delimiter in DELIMITERS)) > MOST_COLUMNS:
        raise UnreadableTable(source.place, f"it has {cells:,} columns; at most {MOST_COLUMNS:,} are read")
    csv.field_size_limit(LONGEST_CELL)  # with another delimiter, a wide header is one cell
    dialect = sniff(sample, elsewhere)
    return dialect.columns, dialect


def _lines_at(file: IO[bytes], place: int) -> bytes:
    """Whole lines about a place in a file that are not all ASCII, which tell how it is encoded."""
    if place < SAMPLE_BYTES:
        return b""
    file.seek(place)
    text = file.read(SAMPLE_BYTES)
    if text.isascii():  # as it mostly is: looking at each line takes ten times as long
        return b""
    lines = text.splitlines(keepends=True)[1:-1]
    return b"".join(line for line in lines if not line.isascii())


def _sample(file: IO[bytes]) -> bytes:
    """The first bytes of a file: of a very wide table enough to hold its header and a row."""
    pieces = [_read_up_to(file, SAMPLE_BYTES)]
    size = len(pieces[0])
    while SAMPLE_BYTES <= size < LONGEST_FIRST_LINE and sum(map(_line_ends, pieces)) < 2:
        piece = _read_up_to(file, min(size, LONGEST_FIRST_LINE - size))
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _read_up_to(file: IO[bytes], size: int) -> bytes:
    """So many bytes, or what is left: a stream may give fewer at a time."""
    pieces = []
    while size and (piece := file.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _line_ends(sample: bytes) -> int:
    return max(sample.count(b"\n"), sample.count(b"\r"))


def _line_end_in(sample: bytes) -> int:
    """Where the first line ends."""
    ends = [place for end in (b"\n", b"\r") if (place := sample.find(end)) >= 0]
    return min(ends, default=len(sample))


def csv_frames(
    source: TableSource,
    part: tuple[int, int],
    dialect: Dialect | None,
    columns: list[str],
    size: int,
    faults: Faults,
) -> Iterator[pl.DataFrame]:
    """The rows of a part of a CSV file, block by block, with what is wrong counted."""
    dialect = dialect or LINES
    width = len(dialect.columns)
    for block in text_blocks(source, part, dialect, size, faults):
        rows = bare = 0
        if (lines := _too_many_lines(block.text, dialect)) > MOST_CELLS_PER_BYTE * len(block.text) // width:
            lengths = f"its header names {width:,} columns, but most of its {lines:,} lines have few cells"
            raise UnreadableTable(source.place, f"{lengths}: it is not one table")
        most = max(1, CELLS_AT_ONCE // width)
        for text in of_few_records(block.text, dialect, most) if lines else [block.text]:
            frame, beyond = _parsed(text, dialect, columns)
            rows, bare = rows + frame.height, bare + beyond.null_count()
            yield frame
        if block.separators is None:
            continue
        if block.separators == rows * (width - 1) and bare == rows:
            faults.rows += rows
        else:
            count_cells(block, dialect, faults)


def _too_many_lines(text: bytes, dialect: Dialect) -> int:
    """How many lines a text has, if they may be too many to be parsed at once; else 0."""
    width = len(dialect.columns)
    # There are fewer lines than bytes, which need no counting.
    lines = text.count(dialect.line_end.encode()) if len(text) * width > CELLS_AT_ONCE else 0
    return lines if lines * width > CELLS_AT_ONCE else 0


def _parsed(text: bytes, dialect: Dialect, columns: list[str]) -> tuple[pl.DataFrame, pl.Series]:
    """The wanted columns of all records, and the cells right beyond those of the header."""
    # A header of our own gives every block the same width, however ragged its first line is.
    names = [str(place) for place in range(len(dialect.columns) + 1)]
    header = dialect.delimiter.join(names) + dialect.line_end
    wanted = set(columns)
    places = [place for place, column in enumerate(dialect.columns) if column in wanted]
    frame = pl.read_csv(
        header.encode() + text,
        columns=None if len(places) == len(dialect.columns) else [names[place] for place in (*places, -1)],
        separator=dialect.delimiter,
        quote_char=dialect.quote,
        eol_char=dialect.line_end,
        null_values=[""],
        schema=dict.fromkeys(names, pl.String),
        truncate_ragged_lines=True,
    )
    beyond = frame.drop_in_place(names[-1])
    frame.columns = [dialect.columns[place] for place in places]
    return frame if frame.columns == columns else frame[columns], beyond


def json_layout(source: TableSource) -> tuple[tuple[str, ...], Dialect | None]:
    """The names of the plain fields in the first lines; one that mostly holds lists or objects goes."""
    with opened(source) as file:
        sample = file.read(4 * SAMPLE_BYTES).removeprefix(codecs.BOM_UTF8)
        if source.compression is None and source.size > 8 * SAMPLE_BYTES:
            file.seek(source.size - 4 * SAMPLE_BYTES)
            sample = sample.rpartition(b"\n")[0] + b"\n" + file.read().partition(b"\n")[2]
    if utf16_byte_order(sample):
        raise UnreadableTable(source.place, "JSON Lines in UTF-16; convert it to UTF-8")
    nested: Counter[str] = Counter()
    plain: Counter[str] = Counter()
    for row in _json_objects(sample):
        for name, value in row.items():
            nested[name] += isinstance(value, dict | list)
            plain[name] += isinstance(value, bool | int | float | str)
    if not nested:
        raise UnreadableTable(source.place, "no JSON object on any of its first lines")
    # One odd cell is no reason to lose a column.
    return tuple(name for name in nested if _is_a_name(name) and nested[name] <= plain[name]), None


def _is_a_name(name: str) -> bool:
    """Whether a field's name can be a column's: Polars reads none that is empty or half a character."""
    return name != "" and not HALF_A_CHARACTER.search(name)


def json_frames(
    source: TableSource,
    part: tuple[int, int],
    dialect: Dialect | None,
    columns: list[str],
    size: int,
    faults: Faults,
) -> Iterator[pl.DataFrame]:
    """The rows of a part of a JSON Lines file, block by block, with what is wrong counted."""
    schema = dict.fromkeys(columns, pl.String)  # whatever the type, so that no part infers its own
    most = max(1, CELLS_AT_ONCE // max(len(columns), 1))
    blocks = text_blocks(source, part, LINES, size, faults)
    for piece in (piece for block in blocks for piece in of_few_records(block.text, LINES, most)):
        text = piece.removeprefix(codecs.BOM_UTF8)
        try:
            frame = pl.read_ndjson(text, schema=schema)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            rows = ({name: row[name] for name in columns if name in row} for row in _json_objects(text))
            good = [json.dumps(row).encode() for row in rows]
            frame = pl.read_ndjson(b"\n".join(good), schema=schema) if good else pl.DataFrame(schema=schema)
            lines = sum(map(bool, map(bytes.strip, text.split(b"\n"))))
            faults.rows += lines - frame.height
            faults.add(NOT_OBJECTS, lines - frame.height)
        faults.rows += frame.height
        yield frame


def _json_objects(text: bytes) -> Iterator[dict[str, Any]]:
    """The objects of JSON Lines; a line that isn't one (a truncated last one, say) is passed over."""
    for line in text.split(b"\n"):
        try:
            # NaN and Infinity, which JSON does not have, and numbers that Polars does not are left as text.
            row = json.loads(line, parse_constant=str, parse_int=_integer, parse_float=_decimal)
        except (ValueError, RecursionError):  # no JSON, or so deeply nested that none can be read
            continue
        if isinstance(row, dict):
            yield row


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= LONGEST_INTEGER else text


def _decimal(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text
