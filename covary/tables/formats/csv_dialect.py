"""How a CSV file is written, found by looking: its encoding, line ends, delimiter, quotes and header."""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice

import numpy as np

from covary.tables.formats import csv_scan
from covary.tables.formats.csv_header import Record, find_header
from covary.tables.formats.encodings import detect_encoding, is_ascii, is_recoded, utf16_byte_order

SAMPLE_BYTES = 64 << 10
SNIFFED_RECORDS = 30
MEASURED_RECORDS = 10
SNIFFED_LINES = 200  # more than the records, because quoted cells may hold line ends
# Where several split every record alike, the later ones are likelier to be part of a cell ("1,5;2,5").
DELIMITERS = ("\t", ";", "|", ",")
WEAK_DELIMITERS = (" ", ":")
CONTROLS = bytes({*range(32), 127} - {*b"\t\n\v\f\r\x1a\x1b"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one CSV file is written."""

    delimiter: str
    quote: str | None
    encoding: str
    line_end: str  # "\n" (also for "\r\n") or "\r"
    has_header: bool
    columns: tuple[str, ...]
    body_start: int  # the byte where its first record of data begins
    measured: tuple[int, ...] = ()  # positions of the columns that hold numbers or times where it begins
    guessed: bool = False  # the encoding: nothing in the file says so
    doubtful: bool = False  # and none fits well

    @property
    def fewest_cells(self) -> int:
        """How many cells a row should have: not those for which the header has no name but a delimiter."""
        if not self.has_header:
            return len(self.columns)
        named = (position for position, name in enumerate(self.columns, 1) if name != f"column_{position}")
        return max(named, default=0)

    @property
    def recoded(self) -> bool:
        """Whether a byte of a longer character may look like a delimiter: such text is read as UTF-8."""
        return is_recoded(self.encoding)

    @property
    def text_encoding(self) -> str:
        """The encoding of the text that is taken apart."""
        return "utf-8" if self.recoded else self.encoding


LINES = Dialect(",", None, "utf-8", "\n", False, (), 0)  # JSON Lines: a line end always ends a record


@dataclass(frozen=True, slots=True)
class _Lines:
    """The first lines of a file, as text."""

    lines: list[str]
    starts: list[int]  # the byte where each begins, and the one after the last

    def read(self, delimiter: str, quote: str | None) -> list[Record]:
        """The first records, as their quotes have it."""
        records = islice(self._read_from(0, delimiter, quote), SNIFFED_RECORDS)
        return [Record(cells, self.starts[stop]) for stop, cells in records]

    def read_apart(self, delimiter: str, quote: str) -> list[Record]:
        """The first records, lines that a stray quote makes one told apart."""
        records: list[Record] = []
        usual = self._find_usual_width(delimiter, quote)
        line = 0
        while line < len(self.lines) and len(records) < SNIFFED_RECORDS:
            stop, cells = next(self._read_from(line, delimiter, quote))
            alone = []
            # Of the last record of all there may be more to come.
            if stop - line > 1 < usual and (len(cells) != usual or stop == len(self.lines)):
                alone = [self._read_alone(each, delimiter, quote) for each in range(line, stop)]
            if 2 * sum(len(each) == usual for each in alone) > stop - line:
                # The last of the lines may begin a cell of several lines of its own.
                records += map(Record, alone[:-1], self.starts[line + 1 : stop])
                line = stop - 1
            else:
                records.append(Record(cells, self.starts[stop]))
                line = stop
        return records[:SNIFFED_RECORDS]

    def _find_usual_width(self, delimiter: str, quote: str) -> int:
        """How many cells most records have, or, if each has another number, most lines by themselves."""
        widths = Counter(len(record.cells) for record in self.read(delimiter, quote) if record.cells)
        usual, times = next(iter(widths.most_common(1)), (0, 0))
        if times == 1:  # the quote is on the first line of all
            lines = Counter(len(self._read_alone(line, delimiter, quote)) for line in range(len(self.lines)))
            usual = lines.most_common(1)[0][0]
        return usual

    def _read_from(self, first: int, delimiter: str, quote: str | None) -> Iterator[tuple[int, list[str]]]:
        """The records from a line on, each with the number of the line after it."""
        reader = csv.reader(
            self.lines[first:],
            delimiter=delimiter,
            quotechar=quote,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        )
        for cells in reader:
            yield first + reader.line_num, cells

    def _read_alone(self, line: int, delimiter: str, quote: str) -> list[str]:
        """The cells of a line read by itself, without a quote that isn't closed on it."""
        text = self.lines[line].rstrip("\n").encode()
        stray_at = csv_scan.find_stray_quote(text, ord(delimiter), ord(quote))
        if stray_at >= 0:
            text = text[:stray_at] + text[stray_at + 1 :]
        return next(csv.reader([text.decode()], delimiter=delimiter, quotechar=quote))


def sniff(sample: bytes, elsewhere: bytes = b"") -> Dialect:
    """The dialect of a CSV file that begins with these bytes.

    Lines from `elsewhere`, further down, tell the encoding if the first bytes are all ASCII.
    """
    encoding = detect_encoding(elsewhere.replace(b"\0", b"") if elsewhere and is_ascii(sample) else sample)
    text_encoding = encoding.name
    if is_recoded(encoding.name):
        sample, text_encoding = sample.decode(encoding.name, "replace").encode(), "utf-8"
    start = len(codecs.BOM_UTF8) if sample.startswith(codecs.BOM_UTF8) else 0
    line_end = "\n" if b"\n" in sample or b"\r" not in sample else "\r"
    written = _split_first_lines(sample[start:], line_end, len(sample) >= SAMPLE_BYTES)
    text = [line.decode(text_encoding, "replace").replace("\r", "") for line in written]
    lines = _Lines(text, list(accumulate(map(len, written), initial=start)))
    seen = b"".join(written)
    quote = _choose_quote(seen)
    delimiter, records = _split_into_records(lines, seen, quote)
    no_quotes = quote.encode() in seen and _are_only_marks(seen, delimiter, quote)
    if no_quotes:
        records = lines.read(delimiter, None)
    has_header, columns, body_start = find_header(records, start)
    body = [record.cells for record in records if record.stop > body_start]
    measured = _find_measured_columns(body, len(columns))
    return Dialect(
        delimiter, None if no_quotes else quote, encoding.name, line_end,
        has_header, columns, body_start, measured, encoding.guessed, encoding.doubtful,
    )  # fmt: skip


def _find_measured_columns(body: list[list[str]], width: int) -> tuple[int, ...]:
    """The positions of the columns that hold numbers or times, marks of absence aside."""
    whole = [cells for cells in body if len(cells) == width][:MEASURED_RECORDS]
    positions = []
    for position in range(width):
        kinds = [_is_measure(cells[position]) for cells in whole]
        if False not in kinds and kinds.count(True) >= 3:
            positions.append(position)
    return tuple(positions)


def _is_measure(cell: str) -> bool | None:
    """Whether a cell looks like a number or a time, as the scan sees it; None if it may stand for nothing."""
    digits = any(map(str.isdecimal, cell))
    if not digits and len(cell) <= csv_scan.NEUTRAL_BYTES:
        return None
    return digits and not cell.strip(csv_scan.MEASURING)


def is_text(sample: bytes) -> bool:
    """Whether bytes are text: hardly any is a control character, unless half are the zeros of UTF-16."""
    controls = len(sample) - len(sample.translate(None, CONTROLS))
    return controls < 8 or controls * 20 < len(sample) or utf16_byte_order(sample) is not None


def looks_delimited(sample: bytes) -> bool:
    """Whether text without a telling suffix reads as a table: at least two columns."""
    return b"\0" not in sample and len(sniff(sample).columns) > 1


def _split_first_lines(sample: bytes, line_end: str, truncated: bool) -> list[bytes]:
    """The first lines with their ends; the last of a truncated sample may be half a line and goes."""
    end = line_end.encode()
    limit = SNIFFED_LINES if b'"' in sample else SNIFFED_RECORDS
    lines = [line + end for line in sample.split(end, limit)]
    complete = len(lines) <= limit and not truncated
    if len(lines) > 1 and (not complete or lines[-1] == end):
        lines.pop()
    return lines


def _choose_quote(sample: bytes) -> str:
    if b'"' in sample or sample.count(b"'") < 4:
        return '"'
    opened = len(re.findall(rb"(?:^|[\n\r,;\t|])'", sample))
    closed = len(re.findall(rb"'(?=[\n\r,;\t|]|$)", sample))
    return "'" if opened >= 2 and opened == closed and 2 * opened == sample.count(b"'") else '"'


def _split_into_records(lines: _Lines, seen: bytes, quote: str) -> tuple[str, list[Record]]:
    """The delimiter, and the records that it makes."""
    parses: dict[str, list[Record]] = {}
    for delimiters in (DELIMITERS, WEAK_DELIMITERS):
        parses |= {name: lines.read(name, quote) for name in delimiters if name.encode() in seen}
        widths = {name: [len(record.cells) for record in records] for name, records in parses.items()}
        if delimiter := _choose_delimiter(widths):
            records = parses[delimiter]
            if records[-1].stop != lines.starts[len(records)]:  # some have several lines
                records = lines.read_apart(delimiter, quote)
            return delimiter, records
    if quote.encode() in seen and (split := _split_apart(lines, quote)):
        return split
    # One column: a delimiter that never occurs, lest commas in its text cut it.
    unused = next((name for name in (",", *DELIMITERS, "\x1f") if name.encode() not in seen), "\x1f")
    return unused, lines.read(unused, quote)


def _split_apart(lines: _Lines, quote: str) -> tuple[str, list[Record]] | None:
    """The delimiter and the records of lines that a quote in the first one makes one; None if none does."""
    whole = lines.read("\x1f", quote)
    if 2 * len(whole) > len(lines.lines):
        return None
    widths = {name: [len(record.cells) for record in lines.read(name, None)] for name in DELIMITERS}
    delimiter = _choose_delimiter(widths)
    records = lines.read_apart(delimiter, quote) if delimiter else []
    return (delimiter, records) if len(records) > len(whole) else None


def _choose_delimiter(widths: dict[str, list[int]]) -> str:
    """The delimiter that gives most records the same number of cells, two or more; "" if none."""
    best, best_score = "", 0.0
    for delimiter, counts in widths.items():
        present = [width for width in counts if width]
        if not present:
            continue
        width, alike = Counter(present).most_common(1)[0]
        score = alike / len(present) + min(width, 20) / 1000
        if delimiter in WEAK_DELIMITERS and alike < max(3, len(present)):
            continue
        if delimiter in DELIMITERS and alike == len(present) > 2:
            score = max(score, 1.05 - DELIMITERS.index(delimiter) / 1000)
        if width > 1 and score > best_score:
            best, best_score = delimiter, score
    return best


def _are_only_marks(sample: bytes, delimiter: str, quote: str) -> bool:
    """Whether quotes are mere marks (5" pipe): none opens a cell, or most stand in the middle of one."""
    padded = np.frombuffer(b"\n" + sample + b"\n", np.uint8)
    borders_on_cell = np.isin(padded, list(f"{delimiter}{quote}\n\r".encode()))
    quotes = np.flatnonzero(padded == ord(quote))
    before, after = borders_on_cell[quotes - 1], borders_on_cell[quotes + 1]
    return bool(not before.any() or 2 * (before | after).sum() < len(quotes))
