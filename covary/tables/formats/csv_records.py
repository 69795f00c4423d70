"""Where the records of a CSV file begin, so that parts of it are read apart, each as in the whole."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from covary.tables.arrow_frames import BLOCK_BYTES
from covary.tables.faults import LONE, LONG, OVERLONG, SHORT, STRAY, UNCLOSED, Faults
from covary.tables.formats import csv_scan
from covary.tables.formats.csv_dialect import Dialect

WINDOW_BYTES = 256 << 10
NEAR_BYTES = 8 << 10
LINES_THAT_TELL = 40
LONGEST_RECORD = 16 << 20
COMPILED_FROM = 1 << 20  # bytes: less is scanned before compiled code is loaded
EDITS_AT_ONCE = 4096

Edit = tuple[int, int, int]  # where a record begins, where it ends, and which stray quote goes, or -1
Bits = npt.NDArray[np.uint64]
KINDS = {
    csv_scan.SHORT: SHORT,
    csv_scan.LONG: LONG,
    csv_scan.LONE: LONE,
    csv_scan.STRAY: STRAY,
    csv_scan.UNCLOSED: UNCLOSED,
}


class Records(NamedTuple):
    """Some records of a file, with no quote where none can be."""

    text: bytes
    separators: int | None  # how many delimiters stand between cells; None if its cells have been counted
    ends_file: bool  # whether the last record of the file is in it


def find_ranges(file: IO[bytes], size: int, dialect: Dialect, chunk_bytes: int) -> list[tuple[int, int]]:
    """The bytes of a file's data in parts of about `chunk_bytes` that each begin at a record."""
    starts = [dialect.body_start]
    for position in range(dialect.body_start + chunk_bytes, size, chunk_bytes):
        if position > starts[-1]:
            starts.append(_find_boundary(file, position, starts[-1], dialect))
    return [(start, stop) for start, stop in pairwise([*starts, size]) if start < stop]


def _find_boundary(file: IO[bytes], position: int, known: int, dialect: Dialect) -> int:
    """The first record start at or after `position`: by the bytes around it, or else from a known one."""
    begin = max(position - WINDOW_BYTES, known)
    file.seek(begin)
    boundary = find_record_boundary(file.read(2 * WINDOW_BYTES), position - begin, dialect)
    if boundary is not None:
        return begin + boundary
    file.seek(known)
    pieces = iter(lambda: file.read(BLOCK_BYTES), b"")
    return known + count_to_boundary(pieces, position - known, dialect)


def find_record_boundary(window: bytes, at: int, dialect: Dialect) -> int | None:
    """The first byte at or after window[at] where a record begins, judged by the window alone.

    A window may open outside of a quoted cell, in one, or between two quotes that stand for one, or in a line
    with a stray quote. Only what all of these lead to is true. None if the window can't tell.
    """
    line_end = dialect.line_end.encode()
    if not dialect.quote:
        return _find_after_line_end(window, at, line_end)
    quote = dialect.quote.encode()
    if quote not in window:
        return _find_after_line_end(window, at, line_end) if _lines_are_records(window, dialect) else None
    scanner = _Scanner(dialect)
    for to in dict.fromkeys((min(NEAR_BYTES, at), at)):
        near = window[at - to :]
        first = [_find_after_line_end(near, 1, line_end)]
        in_quotes = () if _begins_with_rows(near, quote, dialect) else (quote, quote + b"-" + quote)
        for before in (b"", b"-", *in_quotes):
            end = scanner.find_end_of_record(before + near)
            first.append(None if end is None else end - len(before))
        stops = {-1 if start is None else scanner.advance(near, start, to, False)[0] for start in set(first)}
        if len(stops) == 1 and min(stops) >= to:
            return at - to + stops.pop()
    return None


def _lines_are_records(window: bytes, dialect: Dialect) -> bool:
    lines = window.split(dialect.line_end.encode())[1:-1]
    separators = len(dialect.columns) - 1
    alike = sum(line.count(dialect.delimiter.encode()) == separators for line in lines)
    return len(lines) > 0 and separators > 0 and alike >= 0.9 * len(lines)


def _begins_with_rows(window: bytes, quote: bytes, dialect: Dialect) -> bool:
    """Whether so many rows stand before the first quote that it can't be the end of a cell."""
    plain = window[: window.find(quote)]
    return plain.count(dialect.line_end.encode()) >= LINES_THAT_TELL and _lines_are_records(plain, dialect)


def _find_after_line_end(window: bytes, at: int, line_end: bytes) -> int | None:
    line_end_at = window.find(line_end, max(at - 1, 0))
    return line_end_at + 1 if line_end_at >= 0 else None


def count_to_boundary(pieces: Iterable[bytes], at: int, dialect: Dialect) -> int:
    """The first record start at or after byte `at` of a stream that begins at one, from record to record."""
    line_end = dialect.line_end.encode()
    scanner, text, passed, skipping = _Scanner(dialect), b"", 0, False
    for piece, final in _with_last(pieces):
        text += piece
        if skipping:
            start = text.find(line_end) + 1 or len(text)
            skipping = text[start - 1 : start] != line_end
            passed, text = passed + start, text[start:]
        stop = scanner.advance(text, 0, max(at - passed, 0), final)[0]
        passed, text = passed + stop, text[stop:]
        if passed >= at and not skipping:
            break
        if len(text) >= LONGEST_RECORD:
            passed, text, skipping = passed + len(text), b"", True
    return passed


def _with_last(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    yield from ((piece, False) for piece in pieces)
    yield b"", True


def cut_records(
    pieces: Iterable[bytes],
    dialect: Dialect,
    faults: Faults,
    size: int,
    beyond: Iterator[bytes] | None = None,
) -> Iterator[Records]:
    """The records of a record-aligned stream, about `size` bytes at a time, with what is wrong counted.

    `beyond` is what follows the stream in its file, to tell a stray quote at its end; None if nothing does.
    """
    line_end, scanner = dialect.line_end.encode(), _Scanner(dialect)
    waiting, held, wanted, skipping = [b""], 0, size, False
    for piece, final in _with_last(pieces):
        waiting.append(piece.partition(line_end)[2] if skipping else piece)
        skipping = skipping and line_end not in piece
        held += len(waiting[-1])
        if held < wanted and not final:
            continue
        text = b"".join(waiting)
        stop, records = scanner.cut(text, final, beyond, faults)
        if records.text:
            yield records
        text = text[stop:]
        if len(text) >= LONGEST_RECORD and not stop:
            faults.rows += 1
            faults.add(OVERLONG)
            skipping = line_end not in text
            text = text.partition(line_end)[2]
        waiting, held, wanted = [text], len(text), max(size, 2 * len(text))


def split_records(text: bytes, dialect: Dialect, most: int) -> Iterator[bytes]:
    """Records again, in pieces of so many: a wide table makes many cells of short lines."""
    line_end = dialect.line_end.encode()
    if text.count(line_end) <= most:
        yield text
        return
    content = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(content == line_end[0])
    if dialect.quote:
        quotes = np.flatnonzero(content == ord(dialect.quote))
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    start = 0
    for end in (*ends[most - 1 :: most].tolist(), len(text) - 1):
        if start <= end:
            yield text[start : end + 1]
        start = end + 1


class _Scanner:
    """Reads text of a dialect from record to record."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        quote = ord(dialect.quote) if dialect.quote else csv_scan.NO_QUOTE
        self.marks = (ord(dialect.delimiter), quote, ord(dialect.line_end))
        self.measured = np.zeros(max(len(dialect.columns), 1), dtype=np.bool_)
        self.measured[list(dialect.measured)] = True
        self.counts = np.zeros(csv_scan.COUNTS, dtype=np.int64)

    def advance(self, text: bytes, start: int, target: int, final: bool) -> tuple[int, list[Edit]]:
        """Read records until one begins at `target` or later; say where, and which must be written otherwise.

        It ends before that where it depends on what follows the text.
        """
        seen: csv_scan.Text = text
        scan = csv_scan.scan
        if len(text) - start >= COMPILED_FROM:  # of which a single record may be all
            scan, seen = csv_scan.compile_scan(), np.frombuffer(text, np.uint8)
        edits: list[Edit] = []
        room = np.empty((EDITS_AT_ONCE, 3), dtype=np.int64)
        alone_until = 0
        table = csv_scan.TableMarks(*self.marks, self.dialect.fewest_cells, LONGEST_RECORD, self.measured)
        while True:
            stop = min(target, len(text))
            start, edited, alone_until = scan(seen, start, stop, final, table, self.counts, room, alone_until)
            edits += map(tuple, room[:edited].tolist())
            if edited < len(room):
                return start, edits

    def find_end_of_record(self, text: bytes) -> int | None:
        """The byte after the first record, or None if the text doesn't hold its end."""
        stop = csv_scan.read_record(text, 0, *self.marks, True)[0]
        return stop + 1 if stop < len(text) else None

    def cut(
        self, text: bytes, final: bool, beyond: Iterator[bytes] | None, faults: Faults
    ) -> tuple[int, Records]:
        """The records that the text holds as a whole, and where they end."""
        stop = len(text) if final else text.rfind(self.dialect.line_end.encode()) + 1
        whole, ends_file = text[:stop], final and beyond is None
        separators = count_separators(whole, self.dialect)
        if separators is not None:
            return stop, Records(whole, separators, ends_file)
        if len(whole) < COMPILED_FROM and (rows := self.count_sound_records(whole)):
            faults.rows += rows
            return stop, Records(whole, None, False)
        stop, edits = self.advance(text, 0, len(text), ends_file)
        if final and beyond is not None:
            stop, edits = self._look_beyond(text, stop, edits, beyond)
        whole = text[:stop]
        self.note(whole, ends_file, faults)
        strays = [text[start:end] for start, end, stray_at in edits if stray_at >= 0]
        if strays:
            faults.add(STRAY, 0, min(strays).decode(self.dialect.text_encoding, "replace"))
        return stop, Records(_rewrite(whole, edits, self.dialect) if edits else whole, None, False)

    def count_sound_records(self, text: bytes) -> int:
        """How many records a text has, some of several lines, if none can be doubted; else 0.

        This is what the scan would find, at a fraction of the time where no code is compiled.
        """
        marks = _find_marks(text, self.dialect)
        if not marks.well_placed:
            return 0
        size = len(text)
        inside, delimiters, line_ends = (
            np.unpackbits(bits.view(np.uint8), count=size, bitorder="little").astype(np.bool_)
            for bits in (marks.inside, marks.delimiters, marks.line_ends)
        )
        ends = np.flatnonzero(line_ends & ~inside)
        if not ends.size or ends[-1] != size - 1:
            ends = np.append(ends, size)
        before = np.searchsorted(np.flatnonzero(delimiters & ~inside), ends)
        if (np.diff(before, prepend=0) + 1 != len(self.measured)).any():
            return 0
        stops = np.flatnonzero(line_ends)
        starts = np.append(0, stops[:-1] + 1)
        opens = inside[stops] & np.append(True, ~inside[stops[:-1]])
        within = np.flatnonzero(delimiters)
        opens &= np.searchsorted(within, stops) - np.searchsorted(within, starts) + 1 >= len(self.measured)
        delimiter, quote, _ = self.marks
        for start, stop in zip(starts[opens].tolist(), stops[opens].tolist(), strict=True):
            cells, *_, fits = csv_scan.read_line(text, start, stop, delimiter, quote, self.measured)
            if fits and cells == len(self.measured):
                return 0
        return len(ends)

    def _look_beyond(
        self, text: bytes, start: int, edits: list[Edit], beyond: Iterator[bytes]
    ) -> tuple[int, list[Edit]]:
        """Go on to the end of a text, reading what follows it in the file as far as it takes."""
        stop, seen = len(text), text
        while start < stop:
            # As much again as was looked at, so that no record is read from its start more than a few times.
            held = len(seen) - start
            piece = _read_at_least(min(held, LONGEST_RECORD - held), beyond)
            seen += piece
            start, more = self.advance(seen, start, stop, not piece)
            edits = edits + more
            if not piece:
                break
        # Were it no record's end, the last one would end there all the same: the next part begins there.
        return stop, [(begin, min(end, stop), stray_at) for begin, end, stray_at in edits]

    def note(self, text: bytes, ends_file: bool, faults: Faults) -> None:
        """Add what was counted in a text to the faults of its table."""
        counts = self.counts.tolist()
        self.counts[:] = 0
        # A last line of fewer cells is a total or a remark, unless it breaks off.
        if ends_file and text.endswith(self.dialect.line_end.encode()):
            counts[csv_scan.SHORT] -= counts[csv_scan.LAST_IS_SHORT]
        faults.rows += counts[csv_scan.ROWS]
        for position, kind in KINDS.items():
            faults.add(kind, counts[position])


def _read_at_least(size: int, pieces: Iterator[bytes]) -> bytes:
    """The next piece, and more until they are so many bytes; none if there is none."""
    read = [next(pieces, b"")]
    held = len(read[0])
    while held < size and (piece := next(pieces, b"")):
        read.append(piece)
        held += len(piece)
    return b"".join(read)


def count_cells(records: Records, dialect: Dialect, faults: Faults) -> None:
    """Count the rows, and those that have too few cells or too many."""
    scanner = _Scanner(dialect)
    scanner.advance(records.text, 0, len(records.text), True)
    scanner.note(records.text, records.ends_file, faults)


def count_separators(text: bytes, dialect: Dialect) -> int | None:
    """Delimiters between cells, if each line is a record and quotes stand only where they can; else None."""
    if not text or not dialect.quote or dialect.quote.encode() not in text:
        return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord(dialect.delimiter)))
    marks = _find_marks(text, dialect)
    if not marks.well_placed or (marks.line_ends & marks.inside).any():
        return None
    return int(np.bitwise_count(marks.delimiters & ~marks.inside).sum())


class _Marks(NamedTuple):
    """Where the marks of a dialect stand in a text, sixty-four bytes at a time: a bit for each."""

    delimiters: Bits  # in quotes or not
    line_ends: Bits  # likewise
    inside: Bits  # whether the quotes up to a byte are odd
    well_placed: bool  # whether all quotes are closed, and each opens a cell, closes one, or is one of two


def _find_marks(text: bytes, dialect: Dialect) -> _Marks:
    seen = np.frombuffer(text, np.uint8)
    quotes, delimiters, line_ends = (
        _pack_bits(seen == ord(mark)) for mark in (str(dialect.quote), dialect.delimiter, dialect.line_end)
    )
    inside = quotes.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        inside ^= inside << np.uint64(shift)
    odd = np.bitwise_xor.accumulate(inside >> np.uint64(63))
    inside[1:] ^= np.uint64(0) - odd[:-1]
    ends = line_ends
    if dialect.line_end != "\r":
        ends = ends | (_pack_bits(seen == ord("\r")) & _shift_back(line_ends))
    may_precede = _shift_on(delimiters | line_ends | quotes)
    may_precede[0] |= np.uint64(1)
    may_follow = _shift_back(delimiters | ends | quotes)
    may_follow[-1] |= np.uint64(1) << np.uint64((len(text) - 1) % 64)
    misplaced = (quotes & inside & ~may_precede) | (quotes & ~inside & ~may_follow)
    return _Marks(delimiters, line_ends, inside, not odd[-1] and not misplaced.any())


def _pack_bits(mask: npt.NDArray[np.bool_]) -> Bits:
    """A bit for each byte, sixty-four to a word, the first lowest."""
    packed = np.packbits(mask, bitorder="little")
    return np.pad(packed, (0, -len(packed) % 8)).view("<u8")


def _shift_back(bits: Bits) -> Bits:
    """Each bit as the one after it is."""
    shifted = bits >> np.uint64(1)
    shifted[:-1] |= bits[1:] << np.uint64(63)
    return shifted


def _shift_on(bits: Bits) -> Bits:
    """Each bit as the one before it is."""
    shifted = bits << np.uint64(1)
    shifted[1:] |= bits[:-1] >> np.uint64(63)
    return shifted


def _rewrite(text: bytes, edits: Sequence[Edit], dialect: Dialect) -> bytes:
    """Text with some records' cells in proper quotes, and without the quotes that are stray."""
    delimiter, quote = dialect.delimiter, str(dialect.quote)
    cell = re.compile(
        f"{quote}((?:[^{quote}]++|{quote}{quote})*){quote}?([^{re.escape(delimiter)}]*+)"
        f"|([^{re.escape(delimiter)}]*+)"
    )
    pieces, at = [], 0
    for start, stop, stray_at in edits:
        record = text[start:stop] if stray_at < 0 else text[start:stray_at] + text[stray_at + 1 : stop]
        written, position = record.removesuffix(b"\r").decode("latin-1"), 0
        cells = []
        while position <= len(written):
            match = cell.match(written, position)
            assert match
            quoted, rest, plain = match.groups()
            cells.append(plain if quoted is None else quoted.replace(2 * quote, quote) + rest)
            position = match.end() + 1
        quoted_cells = (f"{quote}{each.replace(quote, 2 * quote)}{quote}" for each in cells)
        pieces += [text[at:start], delimiter.join(quoted_cells).encode("latin-1")]
        at = stop
    return b"".join([*pieces, text[at:]])
