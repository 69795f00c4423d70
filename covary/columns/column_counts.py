"""What a column holds, counted: how much of it is there, how much of that is a number, how text is written.

On a small table the number of Polars calls is the cost, so the cells of several columns are stacked into one
long column, and one call serves them all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from covary.columns.number_forms import ABSENT, LONGEST_CELL
from covary.columns.numbers import PLAIN, NumberReading, decide_number_reading, may_be_numbers, read_numbers
from covary.columns.times import may_be_times

PROBED = 32  # distinct cells that tell whether a closer look at a column is worth while
NO_VALUES = np.empty(0)
NEAR = 4096
# Made once, because building an expression costs more than running it on a small table.
HASH = pl.all().hash()
LENGTH = pl.all().str.len_bytes().mean().name.suffix(" length")


@dataclass(frozen=True, slots=True, eq=False)
class ColumnCounts:
    """What was found in a column."""

    present: int  # cells that are there; of text, distinct ones
    varies: bool
    values: npt.NDArray[np.float64]  # NaN where there's no finite number
    numbers: int
    low: float  # of the numbers; NaN without any
    high: float
    whole: int
    leading_zeros: bool  # of whole numbers written as text
    looks: "TextSample | None" = None  # of a column of text
    length: float = 0.0  # bytes on average; 0 if the column is of numbers
    reading: NumberReading = PLAIN


def count_numbers(columns: Sequence[pl.Series]) -> dict[str, ColumnCounts]:
    """Count through columns of numeric types, by name."""
    return _measured([column.cast(pl.Float64, strict=False) for column in columns])


def count_text(columns: Sequence[pl.Series]) -> dict[str, ColumnCounts]:
    """Count through columns of text, by name.

    One cast tells which columns are plain numbers; only the others are looked at as text.
    """
    facts = _measured(columns)
    texts = [column for column in columns if facts[column.name].numbers < len(column) - column.null_count()]
    for column, looks in zip(texts, _looks_of(texts), strict=True):
        cells = looks.present
        reading = decide_number_reading(column) if not looks.like_times and may_be_numbers(cells) else None
        if reading:
            read = read_numbers(column, reading)
            found = _measured([read.values])[column.name]
            present = len(column) - read.missing
            facts[column.name] = replace(
                found, present=present, reading=reading, looks=looks, length=looks.length
            )
        else:
            facts[column.name] = ColumnCounts(
                len(cells), looks.varies, NO_VALUES, 0, np.nan, np.nan, 0, False, looks, looks.length
            )
    return facts


@dataclass(frozen=True)
class TextSample:
    """What the text of a column looks like."""

    # Distinct cells that are no marks of absence, stripped, chosen by their hash: the same in any order of
    # rows. All, if fewer than PROBED. Of a long one only so much that it is seen to be long.
    present: tuple[str, ...] = ()
    varies: bool = False  # whether there are two of them
    length: float = 0.0  # bytes on average

    @cached_property
    def like_times(self) -> bool:
        """Whether they look like times."""
        return may_be_times(self.present)


def sample_text(column: pl.Series) -> TextSample:
    """Look at a column of text."""
    return _looks_of([column])[0]


def _looks_of(columns: Sequence[pl.Series]) -> list[TextSample]:
    if not columns:
        return []
    rows = pl.DataFrame([column.alias(str(place)) for place, column in enumerate(columns)])
    found = rows.select_seq(HASH, LENGTH).get_columns()
    return [
        _look(column, hashes.to_numpy(), length[0] if length.len() else None)
        for column, hashes, length in zip(columns, found, found[len(columns) :], strict=False)
    ]


def _look(column: pl.Series, hashes: npt.NDArray[np.uint64], length: float | None) -> TextSample:
    rows = np.flatnonzero(column.alias("").is_not_null().to_numpy()) if column.null_count() else None
    first = _first_distinct(hashes if rows is None else hashes[rows])
    chosen = (first if rows is None else rows[first]).tolist()
    cells = [column[row].strip() for row in chosen]
    present = [cell for cell in cells if len(cell) > LONGEST_CELL or cell.lower() not in ABSENT]
    return TextSample(
        tuple(cell[: LONGEST_CELL + 1] for cell in present), len(set(present)) > 1, length or 0.0
    )


def _first_distinct(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
    """Return a place of each of the smallest distinct hashes, at most as many as are probed."""
    near = np.argpartition(hashes, NEAR)[:NEAR] if hashes.size > NEAR else np.arange(hashes.size)
    ascending = near[np.argsort(hashes[near], kind="stable")]
    ordered = hashes[ascending]
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: ordered.size]
    first: npt.NDArray[np.intp] = ascending[is_new]
    if first.size < PROBED and hashes.size > NEAR:  # few distinct cells, often repeated
        first = np.unique(hashes, return_index=True)[1].astype(np.intp)
    return first[:PROBED]


def _measured(columns: Sequence[pl.Series]) -> dict[str, ColumnCounts]:
    """The facts about the numbers in columns of text, or of Float64; other cells don't count as present."""
    if not columns:
        return {}
    cells = (
        pl.concat(columns).cast(pl.Float64, strict=False).to_numpy().reshape(len(columns), len(columns[0]))
    )
    finite = np.isfinite(cells)
    values = np.where(finite, cells, np.nan)
    numbers = finite.sum(axis=1).tolist()
    whole = (values == np.floor(values)).sum(axis=1).tolist()
    low, high = (
        reduce(values, axis=1, initial=np.nan).tolist() for reduce in (np.fmin.reduce, np.fmax.reduce)
    )
    codes = _with_leading_zeros(
        [column for place, column in enumerate(columns) if 0 < numbers[place] == whole[place]]
    )
    return {
        column.name: ColumnCounts(
            count, least != most, row, count, least, most, integers, column.name in codes
        )
        for column, row, count, least, most, integers in zip(
            columns, values, numbers, low, high, whole, strict=True
        )
    }


def _with_leading_zeros(columns: list[pl.Series]) -> set[str]:
    """The columns of text with a cell like 07030; one like 0, 0.5 or -07 doesn't count."""
    texts = [column for column in columns if column.dtype == pl.String]
    if not texts or not _any_leading_zero(pl.concat(texts)):
        return set()
    return {column.name for column in texts if _any_leading_zero(column)}


def _any_leading_zero(cells: pl.Series) -> bool:
    # In the order of text, 00, 01, ..., 09 and what begins with them lie in between; a pattern costs more.
    return bool(((cells >= "00") & (cells < "0:")).any())
