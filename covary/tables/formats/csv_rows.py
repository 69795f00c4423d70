"""Rows of CSV files, all as text, so that no part of a table decides on types of its own."""

import codecs
import csv
import re
from collections.abc import Iterator
from typing import IO

import polars as pl

from covary.errors import UnreadableTable
from covary.tables.formats.csv_dialect import (
    DELIMITERS,
    LINES,
    SAMPLE_BYTES,
    Dialect,
    is_text,
    looks_delimited,
    sniff,
)
from covary.tables.formats.csv_records import count_cells, split_records
from covary.tables.formats.encodings import NAMES, is_ascii
from covary.tables.formats.text_bytes import CELLS_AT_ONCE, cut_text, open_text, read_at_most, read_records
from covary.tables.reader import FileReader, FileStart, Layout, Range, RowRequest
from covary.tables.source import TableSource

MOST_CELLS_PER_BYTE = 16  # a row as wide as the header has fewer cells than bytes
LONGEST_FIRST_LINE = 4 << 20  # bytes
LONGEST_CELL = 1 << 30
MOST_COLUMNS = 250_000


class CsvReader(FileReader):
    """Text of cells between delimiters, whose dialect is found by looking."""

    name, title = "csv", "CSV"
    suffixes = (".csv", ".tsv", ".tab", ".txt")
    may_be_packed = True

    def suits(self, start: FileStart) -> bool:
        """Whether it may be CSV: a .txt file in a folder must look like it."""
        if start.undeclared:
            return is_text(start.head) and (start.explicit or looks_delimited(start.head))
        return start.explicit or start.suffix != ".txt" or not start.head or looks_delimited(start.head)

    def layout(self, source: TableSource) -> Layout:
        """The names of the columns, and how the file is written."""
        with open_text(source) as file:
            sample = _read_sample(file)
            elsewhere = b""
            if is_ascii(sample) and source.compression is None:
                quarters = (source.size * quarter // 4 for quarter in (1, 2, 3))
                elsewhere = b"".join(_read_lines_at(file, position) for position in quarters)
        if reason := _find_reason_against(sample):
            raise UnreadableTable(source.location.shown, reason)
        csv.field_size_limit(LONGEST_CELL)  # with another delimiter, a wide header is one cell
        dialect = sniff(sample, elsewhere)
        return Layout(dialect.columns, dialect, *_explain_encoding(dialect))

    def ranges(self, source: TableSource, layout: Layout, chunk_bytes: int) -> list[Range]:
        """The bytes of the parts of a table; none if it can only be read from its start."""
        return cut_text(source, layout.dialect or LINES, chunk_bytes)

    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """The rows of a part of a CSV file, with what is wrong counted."""
        source, faults = request.source, request.faults
        dialect = request.layout.dialect or LINES
        width = len(dialect.columns)
        for records in read_records(request, dialect):
            rows = bare = 0
            lines = _count_too_many_lines(records.text, dialect)
            if lines > MOST_CELLS_PER_BYTE * len(records.text) // width:
                reason = f"its header names {width:,} columns, but most of its {lines:,} lines have few cells"
                raise UnreadableTable(source.location.shown, f"{reason}: it is not one table")
            most = max(1, CELLS_AT_ONCE // width)
            for text in split_records(records.text, dialect, most) if lines else [records.text]:
                frame, beyond = _parse_records(text, dialect, request.columns)
                rows, bare = rows + frame.height, bare + beyond.null_count()
                yield frame
            if records.separators is None:
                continue
            if records.separators == rows * (width - 1) and bare == rows:
                faults.rows += rows
            else:
                count_cells(records, dialect, faults)


READER = CsvReader()


def _find_reason_against(sample: bytes) -> str | None:
    """Say why a file that begins with these bytes can't be read as CSV."""
    if not sample:
        return "the file is empty"
    if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "it is written in UTF-32; save it as UTF-8"
    if not is_text(sample):
        return "it is no text, whatever its name says"
    first = re.split(rb"[\r\n]", sample, maxsplit=1)[0]
    if len(first) >= LONGEST_FIRST_LINE:
        return f"its first line is longer than {LONGEST_FIRST_LINE >> 20} MB"
    if (cells := max(first.count(delimiter.encode()) for delimiter in DELIMITERS)) > MOST_COLUMNS:
        return f"it has {cells:,} columns; at most {MOST_COLUMNS:,} are read"
    return None


def _explain_encoding(dialect: Dialect) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say how a file is read whose encoding had to be guessed: what is wrong with it, and what is not."""
    if dialect.doubtful:
        return (f"its encoding can't be told: read as {NAMES[dialect.encoding]}; save it as UTF-8",), ()
    if dialect.guessed:
        name = NAMES[dialect.encoding]
        return (), (f"not in UTF-8: read as {name}; if its names look odd, save it as UTF-8",)
    return (), ()


def _read_lines_at(file: IO[bytes], position: int) -> bytes:
    """Whole lines about a position in a file that are not all ASCII, which tell how it is encoded."""
    if position < SAMPLE_BYTES:
        return b""
    file.seek(position)
    text = file.read(SAMPLE_BYTES)
    if text.isascii():  # as it mostly is: looking at each line takes ten times as long
        return b""
    lines = text.splitlines(keepends=True)[1:-1]
    return b"".join(line for line in lines if not line.isascii())


def _read_sample(file: IO[bytes]) -> bytes:
    """The first bytes of a file: of a very wide table enough to hold its header and a row."""
    sample = b"".join(read_at_most(file, SAMPLE_BYTES, SAMPLE_BYTES))
    line_ends = _count_line_ends(sample)
    while SAMPLE_BYTES <= len(sample) < LONGEST_FIRST_LINE and line_ends < 2:
        size = min(len(sample), LONGEST_FIRST_LINE - len(sample))
        piece = b"".join(read_at_most(file, size, size))
        if not piece:
            break
        sample, line_ends = sample + piece, line_ends + _count_line_ends(piece)
    return sample


def _count_line_ends(sample: bytes) -> int:
    return max(sample.count(b"\n"), sample.count(b"\r"))


def _count_too_many_lines(text: bytes, dialect: Dialect) -> int:
    """How many lines a text has, if they may be too many to be parsed at once; else 0."""
    width = len(dialect.columns)
    # There are fewer lines than bytes, which need no counting.
    lines = text.count(dialect.line_end.encode()) if len(text) * width > CELLS_AT_ONCE else 0
    return lines if lines * width > CELLS_AT_ONCE else 0


def _parse_records(text: bytes, dialect: Dialect, columns: list[str]) -> tuple[pl.DataFrame, pl.Series]:
    """The wanted columns of all records, and the cells right beyond those of the header."""
    # A header of our own gives every frame the same width, however ragged its first line is.
    names = [str(position) for position in range(len(dialect.columns) + 1)]
    header = dialect.delimiter.join(names) + dialect.line_end
    wanted = set(columns)
    positions = [position for position, column in enumerate(dialect.columns) if column in wanted]
    is_all = len(positions) == len(dialect.columns)  # said by None, which is faster for a very wide table
    frame = pl.read_csv(
        header.encode() + text,
        columns=None if is_all else [names[position] for position in (*positions, -1)],
        separator=dialect.delimiter,
        quote_char=dialect.quote,
        eol_char=dialect.line_end,
        null_values=[""],
        schema=dict.fromkeys(names, pl.String),
        truncate_ragged_lines=True,
    )
    beyond = frame.drop_in_place(names[-1])
    frame.columns = [dialect.columns[position] for position in positions]
    return frame if frame.columns == columns else frame[columns], beyond
