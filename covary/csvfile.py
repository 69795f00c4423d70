"""How a CSV file is written, found by looking; and where its records begin, so that parts are read apart."""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final, Literal

import numpy as np

SAMPLE_BYTES = 64 << 10
SNIFFED_RECORDS = 30
SNIFFED_LINES = 200  # more than the records, because quoted cells may hold line ends
HEADER_EVIDENCE = 10
BLOCK_BYTES = 16 << 20
# Where several split every record alike, the later ones are likelier to be part of a cell ("1,5;2,5").
DELIMITERS = ("\t", ";", "|", ",")
QUOTING: Final[tuple[Literal[0], Literal[3]]] = (csv.QUOTE_MINIMAL, csv.QUOTE_NONE)
WEAK_DELIMITERS = (" ", ":")

_NUMBER = re.compile(r"[-+$€£]?\(?[-+]?(\d[\d,]*\.?\d*|\.\d+)([eE][-+]?\d+)?\)?\s?%?")
_YEAR = re.compile(r"(1[89]|20)\d\d")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}([-/.]\d{1,4})?([T ]\d{1,2}:\d{2}.*)?")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one CSV file is written; `body_start` is the byte where its first record of data begins."""

    delimiter: str
    quote: str | None
    encoding: str  # "utf-8", "cp1252", "utf-16-le" or "utf-16-be"
    line_end: str  # "\n" (also for "\r\n") or "\r"
    has_header: bool
    columns: tuple[str, ...]
    body_start: int


@dataclass(frozen=True, slots=True)
class _Record:
    cells: list[str]
    stop: int  # the byte after it


def sniff(sample: bytes) -> Dialect:
    """The dialect of a CSV file that begins with these bytes; UTF-16 is judged by its text in UTF-8."""
    encoding = _encoding(sample)
    if encoding.startswith("utf-16"):
        sample = sample.decode(encoding, "replace").encode()
    start = len(codecs.BOM_UTF8) if sample.startswith(codecs.BOM_UTF8) else 0
    text_encoding = "cp1252" if encoding == "cp1252" else "utf-8"
    line_end = "\n" if b"\n" in sample or b"\r" not in sample else "\r"
    lines = _first_lines(sample[start:], line_end, len(sample) >= SAMPLE_BYTES)
    seen = b"".join(lines)
    quote: str | None = _quote(seen)
    parses: dict[str, list[_Record]] = {}
    for delimiters in (DELIMITERS, WEAK_DELIMITERS):
        tried = [name for name in delimiters if name.encode() in seen]
        parses |= {name: _records(lines, name, quote, text_encoding, start) for name in tried}
        delimiter = _delimiter({name: [len(record.cells) for record in parses[name]] for name in parses})
        if delimiter:
            break
    # One column: a delimiter that never occurs, lest commas in its text cut it.
    delimiter = delimiter or next(name for name in (",", *DELIMITERS, "\x1f") if name.encode() not in seen)
    if quote and quote.encode() in seen and _only_marks(seen, delimiter, quote):
        quote = None
        parses[delimiter] = _records(lines, delimiter, quote, text_encoding, start)
    records = parses.get(delimiter) or _records(lines, delimiter, quote, text_encoding, start)
    has_header, columns, body_start = _header(records, start)
    return Dialect(delimiter, quote, encoding, line_end, has_header, columns, body_start)


def looks_delimited(sample: bytes) -> bool:
    """Whether text without a telling suffix reads as a table: at least two columns."""
    return b"\0" not in sample and len(sniff(sample).columns) > 1


def utf16_byte_order(sample: bytes) -> str | None:
    """UTF-16 by its byte order mark, or by the zero bytes that western text has in every other place."""
    if sample.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if sample.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    zeros = sample.count(0)
    if zeros * 5 < len(sample) * 2:
        return None
    odd = sample[1::2].count(0)
    return "utf-16-le" if odd > 0.9 * zeros else "utf-16-be" if odd < 0.1 * zeros else None


def _encoding(sample: bytes) -> str:
    if sample.isascii() and b"\0" not in sample:
        return "utf-8"
    if utf16 := utf16_byte_order(sample):
        return utf16
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(sample)
    broken = text.count("\ufffd")
    # Western Europe's is by far the commonest other encoding, its bytes are all printable, and a key needs
    # only the same text everywhere: a statistical guess would cost milliseconds and could vary by sample.
    return "cp1252" if broken * 10 > sum(map(len, re.findall(r"[^\x00-\x7f]+", text))) else "utf-8"


def _first_lines(sample: bytes, line_end: str, truncated: bool) -> list[bytes]:
    """The first lines with their ends; the last of a truncated sample may be half a line and goes."""
    end = line_end.encode()
    limit = SNIFFED_LINES if b'"' in sample else SNIFFED_RECORDS
    lines = [line + end for line in sample.split(end, limit)]
    complete = len(lines) <= limit and not truncated
    if len(lines) > 1 and (not complete or lines[-1] == end):
        lines.pop()
    return lines


def _quote(sample: bytes) -> str:
    if b'"' in sample or sample.count(b"'") < 4:
        return '"'
    opened = len(re.findall(rb"(?:^|[\n\r,;\t|])'", sample))
    closed = len(re.findall(rb"'(?=[\n\r,;\t|]|$)", sample))
    return "'" if opened >= 2 and opened == closed and 2 * opened == sample.count(b"'") else '"'


def _records(
    lines: Sequence[bytes], delimiter: str, quote: str | None, encoding: str, start: int
) -> list[_Record]:
    stops = list(accumulate(map(len, lines), initial=start))
    text = (line.decode(encoding, "replace").replace("\r", "") for line in lines)
    reader = csv.reader(text, delimiter=delimiter, quotechar=quote, quoting=QUOTING[not quote])
    records = []
    for cells in reader:
        records.append(_Record(cells, stops[reader.line_num]))
        if len(records) == SNIFFED_RECORDS:
            break
    return records


def _delimiter(widths: dict[str, list[int]]) -> str:
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


def _header(records: list[_Record], start: int) -> tuple[bool, tuple[str, ...], int]:
    """Whether there's a header, the columns' names, and where the data begins."""
    filled = [number for number, record in enumerate(records) if any(record.cells)]
    if not filled:
        return False, (), start
    width = Counter(len(records[number].cells) for number in filled).most_common(1)[0][0]
    first = next((number for number in filled if not _is_preamble(records[number].cells, width)), filled[0])
    body = [records[number].cells for number in filled if number > first][:HEADER_EVIDENCE]
    names = records[first].cells
    if not _is_header(names, body):
        width = max(width, len(names))
        before = records[first - 1].stop if first else start
        return False, _unique_names([""] * width), before
    if len(names) == width - 1 and body:  # R leaves the name of the row names out
        names = ["", *names]
    return True, _unique_names([*names, *[""] * (width - len(names))]), records[first].stop


def _is_preamble(cells: list[str], width: int) -> bool:
    """A title or a comment above the header: at most one cell filled, or marked."""
    title = sum(map(bool, cells)) <= 1 and (width > 2 or len(cells) < width)
    comment = cells[0].startswith("#") and len(cells) < width
    return width > 1 and (title or comment)


def _is_header(names: list[str], body: list[list[str]]) -> bool:
    """Column by column: a name where data follow is for it, a cell of the data's kind against it."""
    votes = 0
    counting_up = _counts_up(names) and not any(map(_counts_up, body[:1]))
    for name, *cells in zip(names, *(row for row in body if len(row) == len(names)), strict=False):
        kinds = Counter(_kind(cell) for cell in cells if cell)
        if not kinds or not name.strip():
            continue
        kind, alike = kinds.most_common(1)[0]
        a_year_on_top = bool(_YEAR.fullmatch(name)) and not any(map(_YEAR.fullmatch, cells))
        if kind == "text":
            votes -= 2 * (name in cells)
        elif alike >= 0.8 * kinds.total() and not (name.isdecimal() and counting_up) and not a_year_on_top:
            votes += 1 if _kind(name) != kind else -1
    return votes >= 0


def _counts_up(cells: list[str]) -> bool:
    """Whether 1, 2, 3, ... stand across a line: those are names, data hardly ever do."""
    numbers = [int(cell) for cell in cells if cell.isdecimal() and len(cell) < 10]
    return len(numbers) > 2 and all(after - before == 1 for before, after in pairwise(numbers))


def _kind(cell: str) -> str:
    cell = cell.strip()
    return "number" if _NUMBER.fullmatch(cell) else "date" if _DATE.fullmatch(cell) else "text"


def _unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names as written; the empty become column_N, the repeated get _2, _3, ..."""
    taken = set(names)
    given: dict[str, None] = {}  # in order
    for number, written in enumerate(names, start=1):
        name = wanted = written if written.strip() else f"column_{number}"
        repeat = 1
        while name in given or (name != written and name in taken):
            repeat += 1
            name = f"{wanted}_{repeat}"
        given[name] = None
    return tuple(given)


def record_boundary(window: bytes, at: int, dialect: Dialect) -> int | None:
    """The first byte at or after window[at] where a record begins, judged by the window alone.

    Both hypotheses, that the window opens inside a quoted field and outside one, are held against its quotes:
    the true one never puts an opening quote in mid-cell. None if the window can't tell.
    """
    if not dialect.quote:
        return _after_line_end(window, at, dialect)
    quotes = np.flatnonzero(np.frombuffer(window, np.uint8) == ord(dialect.quote))
    if not len(quotes):
        return _after_line_end(window, at, dialect) if _lines_are_records(window, dialect) else None
    outside, inside = (_misplacements(window, quotes, parity, dialect) for parity in (0, 1))
    if outside == inside:
        return None
    return _even_line_end(window, at, dialect, 0 if outside < inside else 1)


def _misplacements(window: bytes, quotes: np.ndarray, parity: int, dialect: Dialect) -> int:
    """How many quotes stand where none can if `parity` quotes (of two) precede the window."""
    before, after = _at_edges(window, quotes, dialect.delimiter, str(dialect.quote))
    return int((~before[parity::2]).sum() + (~after[1 - parity :: 2]).sum())


def _at_edges(text: bytes, quotes: np.ndarray, delimiter: str, quote: str) -> tuple[np.ndarray, np.ndarray]:
    """For each quote, whether what precedes it and what follows it can border on a cell."""
    edge = np.zeros(256, dtype=bool)
    edge[list(f"{delimiter}{quote}\n\r".encode())] = True
    padded = np.frombuffer(b"\n" + text + b"\n", np.uint8)
    return edge[padded[quotes]], edge[padded[quotes + 2]]


def _only_marks(sample: bytes, delimiter: str, quote: str) -> bool:
    """Whether quotes are mere marks (5" pipe): none opens a cell, or most stand in the middle of one."""
    quotes = np.flatnonzero(np.frombuffer(sample, np.uint8) == ord(quote))
    before, after = _at_edges(sample, quotes, delimiter, quote)
    return bool(not before.any() or 2 * (before | after).sum() < len(quotes))


def _lines_are_records(window: bytes, dialect: Dialect) -> bool:
    lines = window.split(dialect.line_end.encode())[1:-1]
    separators = len(dialect.columns) - 1
    alike = sum(line.count(dialect.delimiter.encode()) == separators for line in lines)
    return len(lines) > 0 and separators > 0 and alike >= 0.9 * len(lines)


def _after_line_end(window: bytes, at: int, dialect: Dialect) -> int | None:
    found = window.find(dialect.line_end.encode(), max(at - 1, 0))
    return found + 1 if found >= 0 else None


def _even_line_end(window: bytes, at: int, dialect: Dialect, parity: int) -> int | None:
    """The first line end from window[at - 1] on that an even number of quotes precedes."""
    quote, line_end = str(dialect.quote).encode(), dialect.line_end.encode()
    position = max(at - 1, 0)
    seen = parity + window.count(quote, 0, position)
    while (found := window.find(line_end, position)) >= 0:
        seen += window.count(quote, position, found)
        if seen % 2 == 0:
            return found + 1
        position = found + 1
    return None


def blocks(pieces: Iterable[bytes], dialect: Dialect, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The bytes of a record-aligned stream again, in blocks of about `size` that end at a record's end."""
    waiting = b""
    for piece in pieces:
        waiting = waiting + piece if waiting else piece
        if len(waiting) < size:
            continue
        stop = _last_record_end(waiting, dialect)
        if stop == 0 and len(waiting) >= 4 * size:  # an unclosed quote: better a wrong cell than all memory
            stop = waiting.rfind(dialect.line_end.encode()) + 1 or len(waiting)
        if stop:
            yield waiting[:stop]
            waiting = waiting[stop:]
    if waiting:
        yield waiting


def _last_record_end(block: bytes, dialect: Dialect) -> int:
    quote, line_end = (dialect.quote or "").encode(), dialect.line_end.encode()
    stop = block.rfind(line_end)
    if not quote or stop < 0:
        return stop + 1
    seen = block.count(quote, 0, stop)
    while seen % 2 and stop >= 0:
        earlier = block.rfind(line_end, 0, stop)
        seen -= block.count(quote, max(earlier, 0), stop)
        stop = earlier
    return stop + 1


def count_to_boundary(pieces: Iterable[bytes], at: int, dialect: Dialect) -> int:
    """The first record start at or after byte `at` of a stream that begins at one, by counting its quotes."""
    quote, passed, parity = str(dialect.quote).encode(), 0, 0
    for piece in pieces:
        found = _even_line_end(piece, at - passed, dialect, parity) if passed + len(piece) >= at else None
        if found is not None:
            return passed + found
        passed += len(piece)
        parity = (parity + piece.count(quote)) % 2
    return passed
