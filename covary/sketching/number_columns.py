"""Number columns read, and made ready to be folded: a matrix, and what of each is missing or not finite."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from covary.arrays import Floats
from covary.columns.numbers import NumberReading, NumbersRead, read_numbers
from covary.columns.unused_cells import Tallies, Tally
from covary.sketching.sketch_types import Counts


@dataclass(frozen=True, slots=True, eq=False)
class NumberColumns:
    """Number columns ready to be folded: one row of the matrix each, NaN where no finite number stands."""

    names: tuple[str, ...]
    values: Floats
    has_gaps: npt.NDArray[np.bool_]
    counts: list[Counts]
    odd_rows: list[npt.NDArray[np.intp]]  # per column, where a NaN or an infinity stood

    def without(self, columns: Sequence[str]) -> "NumberColumns":
        """Leave some columns out."""
        kept = [row for row, name in enumerate(self.names) if name not in columns]
        if len(kept) == len(self.names):
            return self
        return NumberColumns(
            tuple(self.names[row] for row in kept),
            self.values[kept],
            self.has_gaps[kept],
            [self.counts[row] for row in kept],
            [self.odd_rows[row] for row in kept],
        )

    def counts_of(self, column: int, with_key: npt.NDArray[np.intp] | None) -> Counts:
        """Count what a column lacks in the rows that have a key: a row is dropped for one reason only."""
        counts = self.counts[column]
        if with_key is None:
            return counts
        missing = int(np.count_nonzero(np.isnan(self.values[column][with_key])))
        odd = int(np.count_nonzero(np.isin(self.odd_rows[column], with_key)))
        null_keys = counts.rows - with_key.size
        return replace(counts, null_keys=null_keys, null_values=missing - odd, not_finite=odd)


def stack_numbers(columns: Mapping[str, pl.Series]) -> NumberColumns:
    """Stack Float64 columns, counting what is missing and what is not finite."""
    values = np.stack([column.to_numpy() for column in columns.values()])  # nulls arrive as NaN
    finite = np.isfinite(values)
    present = np.count_nonzero(finite, axis=1)
    has_gaps = present < values.shape[1]
    if has_gaps.any():
        values = np.where(finite, values, np.nan)
    lows = np.fmin.reduce(values, axis=1, initial=np.inf) + 0.0  # never -0, which would depend on the order
    highs = np.fmax.reduce(values, axis=1, initial=-np.inf) + 0.0
    rows = values.shape[1]
    counts: list[Counts] = []
    odd_rows: list[npt.NDArray[np.intp]] = []
    ranges = zip(columns.values(), present.tolist(), lows.tolist(), highs.tolist(), strict=True)
    for column, count, low, high in ranges:
        nulls = column.null_count()
        odd = rows - nulls - count
        counts.append(Counts(rows, 0, nulls, odd, low, high))
        is_odd = column.is_not_null().to_numpy() & ~np.isfinite(column.to_numpy()) if odd else ()
        odd_rows.append(np.flatnonzero(is_odd))
    return NumberColumns(tuple(columns), values, has_gaps, counts, odd_rows)


def read_number_columns(
    rows: pl.DataFrame, readings: Mapping[str, NumberReading], tallies: Tallies
) -> dict[str, pl.Series]:
    """Read columns as Float64, each in its own way: what is not a number becomes null, and is counted."""
    columns: dict[str, pl.Series] = {}
    for name, reading in readings.items():
        read = _read_column(rows[name], reading)
        columns[name] = read.values
        tallies.add(name, read.unused)
    return columns


def _read_column(column: pl.Series, reading: NumberReading) -> NumbersRead:
    column = column.alias("")  # Polars would take a name like ^x$ for a pattern
    if isinstance(column.dtype, pl.Categorical | pl.Enum):
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        return read_numbers(column, reading)
    if not column.dtype.is_numeric():
        nothing = pl.Series([None], dtype=pl.Float64).new_from_index(0, column.len())
        return NumbersRead(nothing, Tally(column.null_count(), column.len() - column.null_count()))
    numbers = column.cast(pl.Float64, strict=False)
    return NumbersRead(numbers, Tally(column.len() - int(np.isfinite(numbers.to_numpy()).sum())))
