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

from covary.arrays import Floats, starts_of_runs
from covary.columns.number_forms import ABSENT, LONGEST_CELL, mark_leading_zeros
from covary.columns.numbers import PLAIN, NumberReading, decide_number_reading, may_be_numbers, read_numbers
from covary.columns.times import may_be_times

SAMPLED_CELLS = 32  # distinct ones, which show whether a closer look at a column is worth while
NEAR = 4096
# Made once, because building an expression costs more than running it on a small table.
HASH = pl.all().hash()
LENGTH = pl.all().str.len_bytes().mean().name.suffix(" length")


@dataclass(frozen=True)
class TextSample:
    """A few cells of a column of text, and how long its text is.

    Attributes:
        cells: distinct cells, stripped, without those that mean missing (n/a, -), chosen by hash: the same
            in any order of rows. All, if fewer than 32. A long one is cut, and stays too long for a number.
        varies: whether at least two of them differ.
        length: bytes on average.
    """

    cells: tuple[str, ...] = ()
    varies: bool = False
    length: float = 0.0

    @cached_property
    def like_times(self) -> bool:
        """Whether they look like times."""
        return may_be_times(self.cells)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnCounts:
    """How many cells of a column are there, and its numbers."""

    present: int  # cells that are not missing; of a column of text, the distinct ones among them
    varies: bool
    values: Floats  # NaN where there's no finite number
    numbers: int
    low: float  # of the numbers; NaN without any
    high: float
    whole: int
    leading_zeros: bool  # of whole numbers written as text
    sample: TextSample | None = None  # of a column of text that is more than plain numbers
    reading: NumberReading = PLAIN

    @property
    def finite(self) -> Floats:
        """The numbers alone."""
        return self.values[np.isfinite(self.values)]

    def fits(self, bounds: tuple[int, int]) -> bool:
        """Whether all numbers lie within bounds."""
        return bounds[0] <= self.low and self.high <= bounds[1]


def count_numbers(columns: Sequence[pl.Series]) -> dict[str, ColumnCounts]:
    """Count through columns of numeric types, by name."""
    return _count_plain([column.cast(pl.Float64, strict=False) for column in columns])


def count_text(columns: Sequence[pl.Series]) -> dict[str, ColumnCounts]:
    """Count through columns of text, by name.

    One cast shows which columns are plain numbers; only the others are looked at as text.
    """
    counts = _count_plain(columns)
    texts = [column for column in columns if counts[column.name].numbers < len(column) - column.null_count()]
    for column, sample in zip(texts, _sample_columns(texts), strict=True):
        may_be = not sample.like_times and may_be_numbers(sample.cells)
        if may_be and (reading := decide_number_reading(column)):
            read = read_numbers(column, reading)
            plain = _count_plain([read.values])[column.name]
            present = len(column) - read.unused.missing
            counts[column.name] = replace(plain, present=present, reading=reading, sample=sample)
        else:
            counts[column.name] = ColumnCounts(
                len(sample.cells), sample.varies, np.empty(0), 0, np.nan, np.nan, 0, False, sample
            )
    return counts


def sample_text(column: pl.Series) -> TextSample:
    """Look at a few cells of a column of text."""
    return _sample_columns([column])[0]


def _sample_columns(columns: Sequence[pl.Series]) -> list[TextSample]:
    if not columns:
        return []
    rows = pl.DataFrame([column.alias(str(number)) for number, column in enumerate(columns)])
    hashes_and_lengths = rows.select_seq(HASH, LENGTH).get_columns()
    hashes, lengths = hashes_and_lengths[: len(columns)], hashes_and_lengths[len(columns) :]
    return [
        _sample_cells(column, of_column.to_numpy(), length[0] if length.len() else None)
        for column, of_column, length in zip(columns, hashes, lengths, strict=True)
    ]


def _sample_cells(column: pl.Series, hashes: npt.NDArray[np.uint64], length: float | None) -> TextSample:
    if column.null_count():
        rows = np.flatnonzero(column.alias("").is_not_null().to_numpy())
        chosen = rows[_rows_of_smallest(hashes[rows])]
    else:
        chosen = _rows_of_smallest(hashes)
    cells = [column[row].strip() for row in chosen.tolist()]
    present = [cell for cell in cells if len(cell) > LONGEST_CELL or cell.lower() not in ABSENT]
    cut = tuple(cell[: LONGEST_CELL + 1] for cell in present)
    return TextSample(cut, len(set(present)) > 1, length or 0.0)


def _rows_of_smallest(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
    """Return a row of each of the smallest distinct hashes, at most as many as are sampled."""
    near = np.argpartition(hashes, NEAR)[:NEAR] if hashes.size > NEAR else np.arange(hashes.size)
    ascending = near[np.argsort(hashes[near], kind="stable")]
    first: npt.NDArray[np.intp] = ascending[starts_of_runs(hashes[ascending])]
    if first.size < SAMPLED_CELLS and hashes.size > NEAR:  # few distinct cells, often repeated
        first = np.unique(hashes, return_index=True)[1].astype(np.intp)
    return first[:SAMPLED_CELLS]


def _count_plain(columns: Sequence[pl.Series]) -> dict[str, ColumnCounts]:
    """Count the plain numbers in columns of text, or of Float64; other cells don't count as present."""
    if not columns:
        return {}
    stacked = pl.concat(columns).cast(pl.Float64, strict=False).to_numpy()
    cells = stacked.reshape(len(columns), len(columns[0]))
    finite = np.isfinite(cells)
    values = np.where(finite, cells, np.nan)
    numbers = finite.sum(axis=1)
    whole = (values == np.floor(values)).sum(axis=1)
    lows = np.fmin.reduce(values, axis=1, initial=np.nan).tolist()
    highs = np.fmax.reduce(values, axis=1, initial=np.nan).tolist()
    all_whole = np.flatnonzero((numbers > 0) & (numbers == whole)).tolist()
    codes = [columns[number] for number in all_whole if columns[number].dtype == pl.String]
    padded: set[str] = set()
    if codes and mark_leading_zeros(pl.concat(codes)).any():
        padded = {column.name for column in codes if mark_leading_zeros(column).any()}
    rows = zip(columns, values, numbers.tolist(), lows, highs, whole.tolist(), strict=True)
    return {
        column.name: ColumnCounts(count, low != high, row, count, low, high, integers, column.name in padded)
        for column, row, count, low, high, integers in rows
    }
