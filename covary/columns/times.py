"""A column of times: by which forms it is read, decided from its cells, and the reading of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import polars as pl
import polars_hash  # noqa: F401  (registers the `nchash` namespace)

from covary.arrays import Integers
from covary.columns.number_forms import LONGEST_CELL
from covary.columns.periods import DAY, HOUR
from covary.columns.time_forms import (
    ABSENT_TIMES,
    DAY_FIRST,
    ISO,
    LONGEST_TIME,
    MONTH_FIRST,
    NO_TIME,
    UNIT_OF_FORM,
    choose_pattern,
    compute_instants,
    group_by_form,
    has_zone,
    keep_plausible,
    read_iso_instants,
    split_parts,
)

GRANULARITIES = ("moment", "hour", "day", "week", "month", "quarter", "year")  # finest first
AMBIGUOUS = "day or month first can't be told from the values"
TIME_SHARE = 0.95  # of the cells that are there
INSPECTED_CELLS = 64
FREQUENT_CELLS = 100
JUDGED_CELLS = 500  # distinct ones; more of them would rarely change the judgement
LOOKED_UP_ROWS = 4  # per distinct cell, from which on reading the distinct ones is quicker

_WORDS = {"moment": "times", "hour": "times to the hour", "day": "dates"}
_HASH: pl.Expr = pl.col("cell").nchash.xxhash64()  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class TimeReading:
    """How the times of a column are written, and how fine they are."""

    formats: tuple[str, ...] = ()  # tried in order; none for a column of a date or time type
    granularity: str = "day"  # the finest that the values support
    ambiguous: bool = False  # whether the values leave open which number is the day
    local: bool = False  # whether zones are left out: every time is at midnight where it was taken

    @property
    def description(self) -> str:
        """The reading in words."""
        words = _WORDS.get(self.granularity, f"{self.granularity}s")
        if self.ambiguous:
            return f"{words}; {AMBIGUOUS}: read as {MONTH_FIRST}"
        return f"{words} written {' or '.join(self.formats)}" if self.formats else words


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """What one form makes of the cells that look like it."""

    form: str
    rows: int  # those understood
    instants: Integers  # of the distinct cells understood
    ambiguous: bool = False


def may_be_times(cells: Iterable[str], compact: bool = False) -> bool:
    """Whether the first few cells look like times: a cheap test that spares other columns the full one."""
    pattern = choose_pattern(compact)
    stripped = [cell.strip() for cell in islice(cells, INSPECTED_CELLS)]
    present = [cell for cell in stripped if cell.lower() not in ABSENT_TIMES]
    fitting = sum(len(cell) <= LONGEST_TIME and pattern.fullmatch(cell) is not None for cell in present)
    return 2 * fitting > len(present)


def decide_time_reading(cells: pl.Series, compact: bool = False) -> TimeReading | None:
    """How to read a column as times, whatever the order of its cells; None if they aren't times.

    Whole numbers such as 20130105 and 201301 are times only if `compact` says so.
    """
    if isinstance(cells.dtype, (pl.Date, pl.Datetime)):
        zoned = getattr(cells.dtype, "time_zone", None) is not None
        return _choose_zone((), zoned, lambda local: _convert_typed(cells, local))
    if cells.dtype != pl.String and not (compact and cells.dtype.is_integer()):
        return None
    if (instants := read_iso_instants(cells)) is not None:
        zoned = has_zone(str(cells.alias("").first(ignore_nulls=True)))
        return _choose_zone(
            (ISO,), zoned, lambda local: read_iso_instants(cells, True) if local else instants
        )
    counts = _count_cells(cells)
    trials = [_try_form(form, some, counts) for form, some in group_by_form(list(counts), compact).items()]
    return _judge_trials(trials, sum(counts.values()))


def read_times(column: pl.Series, reading: TimeReading) -> pl.Series:
    """Each row's time, in UTC if it names a zone; null where there's none or it isn't understood."""
    if isinstance(column.dtype, (pl.Date, pl.Datetime)):
        return _to_series(column.name, _convert_typed(column, reading.local))
    if ISO in reading.formats and (plain := read_iso_instants(column, reading.local)) is not None:
        return _to_series(column.name, plain)
    text = column.cast(pl.String, strict=False)
    distinct_count = text.to_frame("cell").select(pl.approx_n_unique("cell")).item()
    if LOOKED_UP_ROWS * distinct_count > len(text):
        return _to_series(column.name, _read_forms(text, reading.formats))
    distinct = text.unique().drop_nulls()
    times = _to_series("", _read_forms(distinct, reading.formats))
    return text.replace_strict(distinct, times, default=None, return_dtype=pl.Datetime("us"))


def _choose_zone(
    formats: tuple[str, ...], zoned: bool, read: Callable[[bool], Integers | None]
) -> TimeReading | None:
    """Take times that are all at midnight where they were taken for dates there; else go by UTC."""
    granularity = _find_granularity(read(False))
    if granularity and granularity != "day" and zoned and _find_granularity(read(True)) == "day":
        return TimeReading(formats, "day", local=True)
    return TimeReading(formats, granularity) if granularity else None


def _find_granularity(instants: Integers | None) -> str:
    if instants is None or not (instants != NO_TIME).any():
        return ""
    return _find_finest(instants[instants != NO_TIME])


def _count_cells(cells: pl.Series) -> dict[str, int]:
    """How many rows hold each cell that is there; of many distinct cells, a random choice."""
    text = cells.drop_nulls().cast(pl.String).str.strip_chars().alias("cell")
    if _measure_longest(text) > LONGEST_CELL:
        text = text.str.head(LONGEST_TIME + 1)  # enough to tell that it's no time
    distinct = text.value_counts(name="rows")
    if distinct.height > JUDGED_CELLS:
        # Of those that are not frequent some, by hash: the same for any order of rows and on every machine.
        one_in = -(-distinct.height // JUDGED_CELLS)
        frequent = distinct.sort("rows", "cell", descending=True).head(FREQUENT_CELLS)
        others = distinct.join(frequent, on="cell", how="anti").filter(_HASH % one_in == 0)
        distinct = pl.concat([frequent, others.with_columns(pl.col("rows") * one_in)])
    counted = distinct.select("cell", "rows").rows()
    return {cell: rows for cell, rows in counted if cell.lower() not in ABSENT_TIMES}


def _measure_longest(text: pl.Series) -> int:
    """The bytes of the longest cell; 0 if there's none."""
    return int(text.str.len_bytes().max() or 0)  # type: ignore[arg-type]


def _try_form(form: str, cells: list[str], counts: dict[str, int]) -> _Trial:
    rows = np.array([counts[cell] for cell in cells])
    parts = split_parts(pl.Series(cells), form)
    trial = _count_understood(form, parts, rows)
    if form == "year-month" and len(cells) > 2 and (parts["month"] == (parts["year"] + 1) % 100).all():
        return replace(trial, rows=0)  # seasons: 2001-02, 2002-03, 2003-04
    if form != MONTH_FIRST:
        return trial
    day_first = _count_understood(DAY_FIRST, parts | {"month": parts["day"], "day": parts["month"]}, rows)
    if day_first.rows == trial.rows:
        return replace(trial, ambiguous=True)
    return max(trial, day_first, key=lambda either: either.rows)


def _count_understood(form: str, parts: dict[str, Integers], rows: Integers) -> _Trial:
    instants = compute_instants(parts)
    understood = instants != NO_TIME
    return _Trial(form, int(rows[understood].sum()), instants[understood])


def _judge_trials(trials: Sequence[_Trial], present: int) -> TimeReading | None:
    """The reading if forms of one unit understand nearly all rows: a month among days isn't a day."""
    for unit in ("day", "week", "month", "quarter"):
        fitting = [trial for trial in trials if trial.rows and UNIT_OF_FORM[trial.form] == unit]
        if fitting and sum(trial.rows for trial in fitting) >= TIME_SHARE * present:
            fitting.sort(key=lambda trial: (-trial.rows, trial.form))
            instants = np.concatenate([trial.instants for trial in fitting])
            return TimeReading(
                formats=tuple(trial.form for trial in fitting),
                granularity=_find_finest(instants) if unit == "day" else unit,
                ambiguous=any(trial.ambiguous for trial in fitting),
            )
    return None


def _find_finest(instants: Integers) -> str:
    if (instants % HOUR).any():
        return "moment"
    return "hour" if (instants % DAY).any() else "day"


def _convert_typed(column: pl.Series, local: bool = False) -> Integers:
    column = column.alias("")
    if local and getattr(column.dtype, "time_zone", None):
        column = column.dt.replace_time_zone(None)
    # Whatever its zone, what a time holds is UTC.
    times = column.cast(pl.Datetime("us", getattr(column.dtype, "time_zone", None)), strict=False)
    return keep_plausible(times.to_physical().fill_null(NO_TIME).to_numpy())


def _to_series(name: str, instants: Integers) -> pl.Series:
    return pl.Series(name, instants.view("datetime64[us]"))


def _read_forms(cells: pl.Series, formats: Sequence[str]) -> Integers:
    """The instant of each cell, by the first of the formats that understands it."""
    text = cells.str.strip_chars()
    if _measure_longest(text) > LONGEST_CELL:
        text = text.set(text.str.len_bytes() > LONGEST_CELL, None)
    instants = np.full(len(text), NO_TIME)
    for form in formats:
        left = np.flatnonzero(instants == NO_TIME)
        if left.size:
            cells_left = text if left.size == len(text) else text.gather(left)
            instants[left] = compute_instants(split_parts(cells_left, form))
    return instants
