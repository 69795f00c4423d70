"""The records of CSV text told apart byte by byte, so that a stray quote costs its own row and no other.

A quote that opens a cell and isn't closed on its line either begins a cell of several lines, or is stray. It
is stray if its line and those below, each read by itself, are rows of this table: as many cells, and numbers
or times where the table has them. The lines of a proper cell hardly ever are, not even if it holds CSV: the
cells beside it make the first line or the last one too long. Failing that, the record decides: if it hasn't
the table's number of cells, or its quotes stand where none can, and most of its lines have, they are rows.

All of it goes by the lines around the quote alone, so the same rows are found wherever a file is cut.
"""

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Text = npt.NDArray[np.uint8] | bytes
Flags = npt.NDArray[np.bool_]

LINES_LOOKED_AT = 8
NEUTRAL_BYTES = 4  # what is as short and holds no digit may be a mark of absence: NA, null, -
NO_QUOTE = 256

# What is counted, by its position.
ROWS, SHORT, LONG, LONE, STRAY, UNCLOSED, LAST_IS_SHORT, COUNTS = range(8)

MEASURING = "0123456789+-.,:/%$()eETZ "  # what numbers and times are written with
DIGITS = slice(ord("0"), ord("9") + 1)
_MEASURES = np.zeros(256, dtype=np.uint8)
_MEASURES[list(MEASURING.encode())] = 1
_MEASURES[DIGITS] = 2
NO, YES, CAN_NOT_TELL, SWALLOWS = 0, 1, -1, 2

Reading = tuple[int, int, int, int, bool, int, int]  # as _read tells it


class TableMarks(NamedTuple):
    """How a table is written, and what its rows look like."""

    delimiter: int  # a byte, as are the next two
    quote: int  # or NO_QUOTE
    end: int  # of a line
    least: int  # cells that a row should have
    limit: int  # bytes of the longest record
    measured: Flags  # for each column, whether it holds numbers or times


def scan(
    text: Text,
    start: int,
    target: int,
    final: bool,
    table: TableMarks,
    counts: npt.NDArray[np.int64],
    edits: npt.NDArray[np.int64],
    alone_until: int,
) -> tuple[int, int, int]:
    """Go from record to record, until one begins at `target` or later, or text or room for edits ends.

    A record begins at `start`, and nothing follows the text if it is `final`. Lines before `alone_until` are
    rows, whatever their quotes. What is counted is added to `counts`, see ROWS and so on. Written to `edits`
    is, for each record that Polars would read otherwise: where it begins, where it ends, and which stray
    quote in it goes, or -1.

    Returns:
        Where the next record begins, how many edits were written, and `alone_until`.
    """
    delimiter, quote, end, width = table.delimiter, table.quote, table.end, len(table.measured)
    edited = 0
    while start < target and edited < len(edits):
        position, cells, filled, odd, is_open = read_record(text, start, delimiter, quote, end, False)
        stray_at, lines = -1, 0
        # Nearly every record is as it should be, and is read once.
        if is_open or odd or cells != width or position >= len(text):
            reading = _read(text, start, final, table, start < alone_until)
            what, position, cells, filled, odd, stray_at, lines = reading
            if what == CAN_NOT_TELL:
                break
            if what == SWALLOWS:
                alone_until = position
                continue
        counts[ROWS] += 1
        counts[STRAY] += stray_at >= 0
        counts[UNCLOSED] += lines
        if filled:
            is_short = 1 < cells < table.least
            counts[SHORT] += is_short
            counts[LAST_IS_SHORT] = is_short and position < len(text)
            counts[LONE] += 1 == cells < table.least
            counts[LONG] += filled > width
        if odd or stray_at >= 0:
            edits[edited, 0], edits[edited, 1], edits[edited, 2] = start, position, stray_at
            edited += 1
        start = min(position + 1, len(text))
    return start, edited, alone_until


def _read(text: Text, start: int, final: bool, table: TableMarks, alone: bool) -> Reading:
    """Read a record, or its first line if that is a row whose quote is stray.

    Returns:
        YES; where it ends; its cells, and those up to the last filled one; whether Polars would read it
        otherwise; where its stray quote is, or -1; how many lines a quote that is never closed takes in.
        SWALLOWS if it must be read again line by line, up to the position that follows. CAN_NOT_TELL.
    """
    delimiter, quote, end, measured = table.delimiter, table.quote, table.end, table.measured
    too_long = len(text) - start >= table.limit
    position, cells, filled, odd, open_ = read_record(text, start, delimiter, quote, end, False)
    verdict = NO
    if open_ and position < len(text):
        verdict = YES
        if not alone:
            verdict = _swallows(text, start, position, final, table)
        if verdict == YES:
            return _read_first_line(text, start, position, table)
        position, cells, filled, odd, open_ = read_record(text, start, delimiter, quote, end, True)
    waits = position >= len(text) and not final and not (open_ and too_long)
    if waits or (verdict == CAN_NOT_TELL and not too_long):
        return CAN_NOT_TELL, start, 0, 0, False, -1, 0
    lines = 0
    if open_ or odd or cells != len(measured):
        rows, lines, last = _count_rows_alone(text, start, position, table)
        if open_ and not final and last == start:  # a line longer than any record
            return CAN_NOT_TELL, start, 0, 0, False, -1, 0
        are_rows = 2 * rows > lines or (open_ and not final)
        if are_rows and lines > 1:
            return SWALLOWS, len(text) if open_ and final else last, 0, 0, False, -1, 0
        if are_rows and open_:
            return _read_first_line(text, start, position, table)
    return YES, position, cells, filled, odd or open_, -1, lines if open_ else 0


def _read_first_line(text: Text, start: int, stop: int, table: TableMarks) -> Reading:
    """Read a line whose quote is stray, as `_read` tells it."""
    delimiter, quote, measured = table.delimiter, table.quote, table.measured
    cells, filled, odd, stray_at, _ = read_line(text, start, stop, delimiter, quote, measured)
    return YES, stop, cells, filled, odd, stray_at, 0


def read_record(
    text: Text, start: int, delimiter: int, quote: int, end: int, past_line_ends: bool
) -> tuple[int, int, int, bool, bool]:
    """Read a record: where it ends, its cells, those up to the last filled one, odd quotes, an open quote.

    It ends at its line end, or, if its quotes are open there and no line end is to be passed, right there.
    """
    position, cells, filled, odd = start, 0, 0, False
    while True:
        begin = position
        if position < len(text) and text[position] == quote:
            position = _find_closing(text, position + 1, len(text), quote, -1 if past_line_ends else end)
            if position >= len(text) or text[position] != quote:
                return position, cells + 1, cells + 1, odd, True
            position += 1
            odd |= not _ends_cell(text, position, delimiter, end)
        while position < len(text) and text[position] != delimiter and text[position] != end:
            odd |= text[position] == quote
            position += 1
        cells += 1
        if not _is_empty(text, begin, position, quote):
            filled = cells
        if position >= len(text) or text[position] == end:
            return position, cells, filled, odd, False
        position += 1


def read_line(
    text: Text, start: int, stop: int, delimiter: int, quote: int, measured: Flags
) -> tuple[int, int, bool, int, bool]:
    """Read a line by itself: its cells, those up to the last filled, odd quotes, its stray quote, its fit.

    A quote that isn't closed on it is stray. It fits if no cell differs in kind from its column.
    """
    position, cells, filled, odd, stray_at = start, 0, 0, False, -1
    measures, differs = 0, 0
    while True:
        begin = position
        if position < stop and text[position] == quote:
            closing = _find_closing(text, position + 1, stop, quote, -1)
            if closing < stop:
                position = closing + 1
                odd |= not (position >= stop or _ends_cell(text, position, delimiter, NO_QUOTE))
            else:
                stray_at = position
        while position < stop and text[position] != delimiter:
            odd |= text[position] == quote
            position += 1
        if cells < len(measured) and measured[cells]:
            kind = _tell_kind(text, begin, position, quote)
            measures += kind == YES
            differs += kind == NO
        cells += 1
        if not _is_empty(text, begin, position, quote):
            filled = cells
        if position >= stop:
            return cells, filled, odd, stray_at, measures > 0 and not differs
        position += 1


def _swallows(text: Text, start: int, line_end: int, final: bool, table: TableMarks) -> int:
    """Whether a cell open at its record's first line end swallows rows: lines around it look like some."""
    delimiter, quote, measured = table.delimiter, table.quote, table.measured
    cells, _, _, _, fits = read_line(text, start, line_end, delimiter, quote, measured)
    if cells != len(measured) or not fits:
        return NO
    begin, lines, unlike, closed = line_end + 1, 0, 0, False
    while lines < LINES_LOOKED_AT and not closed:
        if begin >= len(text):
            if not final:
                return CAN_NOT_TELL
            break
        stop = _find(text, begin, table.end)
        if stop == len(text) and not final:
            return CAN_NOT_TELL
        cells, filled, _, _, fits = read_line(text, begin, stop, delimiter, quote, measured)
        closed = _find_closing(text, begin, stop, quote, -1) < stop
        if filled or closed:
            lines += 1
            unlike += cells != len(measured) or not fits
            if 4 * unlike > LINES_LOOKED_AT:
                return NO
        begin = stop + 1
    return YES if 4 * unlike <= lines else NO


def _count_rows_alone(text: Text, start: int, stop: int, table: TableMarks) -> tuple[int, int, int]:
    """How many of a record's lines are rows by themselves, how many there are, where the last begins."""
    delimiter, quote, measured = table.delimiter, table.quote, table.measured
    rows, lines, begin, last = 0, 0, start, start
    while begin < stop:
        line_end = min(_find(text, begin, table.end), stop)
        cells, filled, _, _, _ = read_line(text, begin, line_end, delimiter, quote, measured)
        lines += filled > 0
        rows += cells == len(measured) and filled > 0
        last = begin
        begin = line_end + 1
    return rows, lines, last


def _find(text: Text, position: int, byte: int) -> int:
    """The next position of a byte, or the text's end."""
    while position < len(text) and text[position] != byte:
        position += 1
    return position


def _find_closing(text: Text, position: int, stop: int, quote: int, end: int) -> int:
    """Where a quoted cell that goes on at `position` is closed, or `stop`; a doubled quote doesn't close it.

    A line end, too, ends the search, unless that is -1.
    """
    while position < stop:
        if text[position] == quote:
            if position + 1 >= stop or text[position + 1] != quote:
                return position
            position += 1
        elif text[position] == end:
            return position
        position += 1
    return stop


def _ends_cell(text: Text, position: int, delimiter: int, end: int) -> bool:
    """Whether a cell ends here: at a delimiter, a line end, or the text's."""
    if position < len(text) and text[position] == ord("\r"):
        position += 1
        return position >= len(text) or text[position] == end or text[position] == ord("\n")
    return position >= len(text) or text[position] == delimiter or text[position] == end


def _is_empty(text: Text, start: int, stop: int, quote: int) -> bool:
    if stop > start and text[stop - 1] == ord("\r"):
        stop -= 1
    return stop == start or (stop == start + 2 and text[start] == quote and text[start + 1] == quote)


def _tell_kind(text: Text, start: int, stop: int, quote: int) -> int:
    """Whether a cell looks like a number or a time; of what may be a mark of absence that can't be told."""
    size, digits, others = 0, 0, 0
    for position in range(start, stop):
        byte = text[position]
        if byte != quote and byte != ord("\r"):
            size += 1
            digits += _MEASURES[byte] == 2
            others += _MEASURES[byte] == 0
    if digits == 0 and size <= NEUTRAL_BYTES:
        return CAN_NOT_TELL
    return YES if digits > 0 and others == 0 else NO


def find_stray_quote(text: bytes, delimiter: int, quote: int) -> int:
    """Where the quote stands that is opened on a line, but not closed, or -1."""
    return int(read_line(text, 0, len(text), delimiter, quote, np.zeros(0, dtype=np.bool_))[3])


@cache
def compile_scan() -> Callable[..., tuple[int, int, int]]:
    """The same functions, compiled, each calling the others."""
    from covary.compiled import compiled

    names = dict(globals())
    called = (_ends_cell, _is_empty, _tell_kind, _find_closing, _find, read_record, read_line)
    callers = (_swallows, _count_rows_alone, _read_first_line, _read, scan)
    for function in called + callers:
        names[function.__name__] = compiled(FunctionType(function.__code__, names, function.__name__))
    loop: Callable[..., tuple[int, int, int]] = names["scan"]
    return loop
