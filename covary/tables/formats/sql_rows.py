"""What reading by SQL has in common: names and texts in statements, and the rows that drivers give.

Python's database drivers give rows of Python's values. They are taken as frames of text, like the cells of a
CSV file: a column's may be of several types, and a batch may hold none but nulls, so that no type fits all.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import polars as pl

from covary.tables.arrow_frames import gather_frames
from covary.tables.reader import Range, Reader
from covary.tables.source import TableSource

FetchRows = Callable[[int], Sequence[Sequence[object]]]  # a cursor's fetchmany
ROWS_AT_ONCE, CELLS_AT_ONCE = 4096, 1 << 18
FIRST_ROWS = 64  # after which it is known what a row weighs


def fetch_text_frames(fetch: FetchRows, columns: Sequence[str], size: int) -> Iterator[pl.DataFrame]:
    """What a cursor's fetchmany gives, until it gives no more, in frames that weigh about `size`."""
    return gather_frames(_fetch_frames(fetch, columns, size), size)


def _fetch_frames(fetch: FetchRows, columns: Sequence[str], size: int) -> Iterator[pl.DataFrame]:
    most = max(1, min(ROWS_AT_ONCE, CELLS_AT_ONCE // len(columns)))
    wanted = min(FIRST_ROWS, most)
    while rows := fetch(wanted):
        cells = zip(*rows, strict=True)
        frame = pl.DataFrame([_make_text(name, column) for name, column in zip(columns, cells, strict=True)])
        wanted = max(1, min(most, int(size * len(rows) / (frame.estimated_size() + 1))))
        del rows
        yield frame


def _make_text(name: str, cells: Sequence[object]) -> pl.Series:
    try:
        return pl.Series(name, cells, dtype=pl.String, strict=False)  # bytes become null
    except (ValueError, TypeError):  # of a type that Polars does not know, such as UUID
        return pl.Series(name, [None if cell is None else str(cell) for cell in cells], dtype=pl.String)


def share_file(file: TableSource, reader: Reader, tables: Collection[tuple[str, int]]) -> list[TableSource]:
    """The tables of a file, each by its name and weight, with their shares of the file's size."""
    total = max(1, sum(weight for _, weight in tables))
    version = reader.version(file)
    return [
        replace(file, format=reader.name, member=name, size=file.size * weight // total, version=version)
        for name, weight in tables
    ]


def cut_numbers(first: int, stop: int, size: int, chunk_bytes: int) -> list[Range]:
    """Ranges of the numbers of rows or blocks, each of about `chunk_bytes` where all weigh `size`."""
    parts = max(1, -(-size // chunk_bytes))
    bounds = sorted({first + (stop - first) * part // parts for part in range(parts + 1)})
    return list(pairwise(bounds))


def quote_name(name: str) -> str:
    """Write the name of a table or a column into a statement, where no driver takes a parameter for it."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Write a text into a statement."""
    return "'" + text.replace("'", "''") + "'"
