"""What a column holds, counted: how much of it is there, how much of that is a number, how text is written.

On a small table the number of Polars calls is the cost, so the cells of several columns are stacked into one
long column, and one call serves them all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

ABSENT = frozenset(
    {"", "NA", "N/A", "n/a", "null", "NULL", "None", "NaN", "nan", "-", ".", "..", "#N/A", "#REF!"}
)
INSPECTED_RUN = 12  # neighbouring rows, at the start, in the middle and at the end
LONG_CELL = 50

# Made once, because building an expression costs more than running it on a small table.
STRIPPED = pl.all().str.strip_chars()
PRESENT = pl.when(~pl.all().is_in(list(ABSENT))).then(pl.all())
LENGTH = pl.all().str.len_bytes().mean()
_DECIMAL = re.compile(r"[-+]?(\d++\.?\d*+|\.\d++)([eE][-+]?\d++)?")


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What was found in a column."""

    present: int
    varies: bool
    values: npt.NDArray[np.float64]  # NaN where there's no finite number
    numbers: int
    low: float  # of the numbers; NaN without any
    high: float
    whole: int
    leading_zeros: bool  # of whole numbers written as text
    cells: tuple[str, ...] = ()  # a few of those present, in order; none if every cell is a plain number
    length: float = 0.0  # bytes on average; 0 if every cell is a plain number or every one inspected is short


def facts_of_numbers(columns: Sequence[pl.Series]) -> dict[str, Facts]:
    """Count through columns of numeric types, by name."""
    return _measured([column.cast(pl.Float64, strict=False) for column in columns])


def facts_of_text(columns: Sequence[pl.Series]) -> dict[str, Facts]:
    """Count through columns of text, by name.

    One cast tells which columns are plain numbers; only the others are looked at as text.
    """
    facts = _measured(columns)
    texts = [column for column in columns if facts[column.name].numbers < _present(column)]
    cells = {column.name: _inspected(column) for column in texts}
    unclear = [column for column in texts if facts[column.name].numbers or not _is_text(cells[column.name])]
    cleaned = _cleaned(unclear)
    facts |= _measured(cleaned)
    written = {column.name: column for column in (*texts, *cleaned)}
    lengths = _lengths([column for column in texts if _may_be_long(cells[column.name])])
    for name, inspected in cells.items():
        column = written[name]
        facts[name] = replace(
            facts[name],
            present=_present(column),
            varies=len(set(inspected)) > 1 or column.min() != column.max(),
            cells=inspected,
            length=lengths.get(name, 0.0),
        )
    return facts


def _is_text(cells: Sequence[str]) -> bool:
    """Whether a few cells leave no doubt."""
    distinct = set(cells)
    return len(distinct) > 1 and not any(map(_DECIMAL.fullmatch, distinct))


def _present(column: pl.Series) -> int:
    return len(column) - column.null_count()


def _inspected(column: pl.Series) -> tuple[str, ...]:
    """A few cells, stripped."""
    starts = sorted({0, len(column) // 2, max(len(column) - INSPECTED_RUN, 0)})
    found = (cell for start in starts for cell in column.slice(start, INSPECTED_RUN).to_list())
    stripped = [cell.strip() for cell in found if cell is not None]
    return tuple(cell for cell in stripped if cell not in ABSENT)


def _cleaned(columns: list[pl.Series]) -> list[pl.Series]:
    """Cells stripped, and null where they're a mark of absence."""
    if not columns:
        return []
    cells = pl.concat(columns).to_frame().select_seq(STRIPPED).select_seq(PRESENT).to_series()
    rows = len(columns[0])
    return [cells.slice(place * rows, rows).alias(column.name) for place, column in enumerate(columns)]


def _may_be_long(cells: Sequence[str]) -> bool:
    """Whether the average length is worth counting: what is short here and there is short throughout."""
    return len(cells) < INSPECTED_RUN or max(map(len, cells)) > LONG_CELL


def _lengths(columns: list[pl.Series]) -> dict[str, float]:
    """The bytes of a cell that is there, on average."""
    averages = pl.DataFrame(columns).select(LENGTH).row(0) if columns else ()
    return {column.name: average or 0.0 for column, average in zip(columns, averages, strict=True)}


def _measured(columns: Sequence[pl.Series]) -> dict[str, Facts]:
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
        column.name: Facts(count, least != most, row, count, least, most, integers, column.name in codes)
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
