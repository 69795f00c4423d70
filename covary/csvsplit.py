"""Where the records of a CSV file begin, so that parts of it are read apart."""

from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np

from covary.csvfile import Dialect, at_edges

BLOCK_BYTES = 16 << 20
WINDOW_BYTES = 256 << 10


def ranges(file: IO[bytes], size: int, dialect: Dialect, chunk_bytes: int) -> list[tuple[int, int]]:
    """The bytes of a file's data in parts of about `chunk_bytes` that each begin at a record."""
    starts = [dialect.body_start]
    for position in range(dialect.body_start + chunk_bytes, size, chunk_bytes):
        if position > starts[-1]:
            starts.append(_boundary(file, position, starts[-1], dialect))
    stops = [*starts[1:], size]
    return [(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]


def _boundary(file: IO[bytes], position: int, known: int, dialect: Dialect) -> int:
    """The first record start at or after `position`: by the bytes around it, or else by counting quotes."""
    begin = max(position - WINDOW_BYTES, known)
    file.seek(begin)
    found = record_boundary(file.read(2 * WINDOW_BYTES), position - begin, dialect)
    if found is not None:
        return begin + found
    file.seek(known)
    pieces = iter(lambda: file.read(BLOCK_BYTES), b"")
    return known + count_to_boundary(pieces, position - known, dialect)


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
    before, after = at_edges(window, quotes, dialect.delimiter, str(dialect.quote))
    return int((~before[parity::2]).sum() + (~after[1 - parity :: 2]).sum())


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
