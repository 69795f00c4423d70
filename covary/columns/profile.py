"""Which columns can be keys and which are numbers: their values decide, and not only their type."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import polars as pl

from covary.arrays import Floats
from covary.columns.column_counts import ColumnCounts, count_numbers, count_text
from covary.columns.identifiers import PERIODS, find_identifier_reason
from covary.columns.key_reading import LIKELY_YEARS, YEAR_READING, KeyReading, decide_key_reading
from covary.columns.numbers import NUMBER_SHARE, PLAIN, NumberReading
from covary.columns.reasons import Cause, Reason
from covary.errors import UnusableColumn

LONGEST_KEY = 200  # bytes on average: more is prose
PROFILED_ROWS, PROFILED_RUNS = 100_000, 100
CELLS_AT_ONCE = 1 << 22  # rows x columns profiled together: bounds memory
# Last in the name of a column that may hold 201301 or 20130105.
COMPACT_WORDS = ("month", "date", "day", "period", "yyyymm", "yyyymmdd")
COMPACT = (180_001, 21_001_231)
YEAR_WORDS = ("year", "yr", "season")  # last in the name of a column of years
YEARS = (1000, 2200)

TEXT_TYPES = (pl.String, pl.Categorical, pl.Enum)
DECLARED_KINDS = {pl.Boolean: "boolean", pl.Date: "date", pl.Datetime: "datetime", pl.Time: "text"}


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What a column holds, what it can serve as, and why."""

    name: str
    kind: str  # "text" "integer" "number" "boolean" "date" "datetime" "country" "state" "empty"
    is_key: bool
    is_number: bool
    reason: Reason
    # The numbers of the rows looked at, where each has one: they need not be read from text again.
    values: Floats | None = field(default=None, compare=False, repr=False)
    key: KeyReading | None = field(default=None, compare=False, repr=False)
    number: NumberReading = field(default=PLAIN, compare=False, repr=False)
    is_period: bool = field(default=False, compare=False)  # a time, or a part of one
    is_left_out: bool = False  # it could serve, but the index would grow out of proportion


def profile_columns(rows: pl.DataFrame, whole: bool = True) -> list[ColumnProfile]:
    """The role of every column, judged by an evenly spread sample of at most 100,000 rows.

    `whole` says whether these are all rows of the table.
    """
    whole = whole and rows.height <= PROFILED_ROWS
    sample = take_runs(rows, PROFILED_ROWS, PROFILED_RUNS)
    at_once = max(1, CELLS_AT_ONCE // max(sample.height, 1))
    columns = sample.get_columns()
    profiles: list[ColumnProfile] = []
    for start in range(0, len(columns), at_once):
        some = columns[start : start + at_once]
        texts = [column.cast(pl.String) for column in some if isinstance(column.dtype, TEXT_TYPES)]
        numbers = [column for column in some if column.dtype.is_numeric()]
        counts = count_text(texts) | count_numbers(numbers)
        profiles += [_profile_column(column, counts.get(column.name), whole) for column in some]
    return profiles


def use_numbers_read(
    rows: pl.DataFrame, profiles: Sequence[ColumnProfile], keys: Collection[str]
) -> pl.DataFrame:
    """Put the numbers that profiling has read in place of their text."""
    numbers = {
        p.name: pl.Series(p.name, p.values)
        for p in profiles
        if p.values is not None and p.values.size == rows.height and p.name not in keys
    }
    return pl.DataFrame([numbers.get(column.name, column) for column in rows.get_columns()])


def choose_columns(
    profiles: Sequence[ColumnProfile],
    table: str,
    keys: Sequence[str] | None = None,
    values: Sequence[str] = (),
) -> tuple[list[str], list[str]]:
    """The key columns and the number columns of a table; those the person named, if any, and only those."""
    for profile in profiles:
        if profile.name in values and profile.kind in {"boolean", "date", "datetime"}:
            raise UnusableColumn(f"{table}: {profile.name} can't be a value: it holds {profile.kind}s")
    if keys is None:
        chosen_keys = [p.name for p in profiles if p.is_key and p.name not in values]
    else:
        chosen_keys = [p.name for p in profiles if p.name in keys]
    if values:
        chosen_values = [p.name for p in profiles if p.name in values]
    else:
        chosen_values = [p.name for p in profiles if p.is_number and p.name not in (keys or ())]
    return chosen_keys, chosen_values


def take_runs(rows: pl.DataFrame, most: int, runs: int) -> pl.DataFrame:
    """Spread out runs of rows rather than single ones, so that a row number still counts up by one."""
    if rows.height <= most:
        return rows
    length = most // runs
    step = (rows.height - length) // (runs - 1)
    return pl.concat([rows.slice(number * step, length) for number in range(runs)])


def _profile_column(column: pl.Series, counts: ColumnCounts | None, whole: bool) -> ColumnProfile:
    name = column.name
    if counts is None:
        return _profile_type(column, whole)
    if not counts.present:
        return _make_unused(name, "empty", Cause.NO_VALUES)
    if counts.numbers < NUMBER_SHARE * counts.present:
        return _profile_text(column, counts, whole)
    number = counts.reading
    values = counts.values if counts.numbers == counts.values.size else None
    if counts.whole < counts.numbers or number.dressed:
        kind = "number" if counts.whole < counts.numbers else "integer"
        return ColumnProfile(name, kind, False, True, Reason(Cause.FRACTIONS), values, number=number)
    identifies = find_identifier_reason(name, counts)
    if not identifies:
        reason = Reason(Cause.WHOLE_NUMBERS)
        return ColumnProfile(name, "integer", False, True, reason, values, number=number)
    if _are_years(identifies, counts):
        key = YEAR_READING
    else:
        is_named = identifies.detail.endswith(COMPACT_WORDS) and counts.fits(COMPACT)
        compact = is_named or identifies.cause is Cause.CALENDAR_DATES
        key = decide_key_reading(name, column, compact=compact, whole=whole)
    kind = "date" if key.time else "integer"
    is_period = key.time is not None or identifies.detail in PERIODS
    return ColumnProfile(
        name, kind, counts.varies, False, identifies, key=key, number=number, is_period=is_period
    )


def _make_unused(name: str, kind: str, cause: Cause, detail: str = "") -> ColumnProfile:
    return ColumnProfile(name, kind, False, False, Reason(cause, detail))


def _are_years(identifies: Reason, counts: ColumnCounts) -> bool:
    """Whether whole numbers are years by their name; or count up by one, within the last two centuries."""
    if identifies.detail.endswith(YEAR_WORDS):
        return counts.fits(YEARS)
    return identifies.cause is Cause.ROW_NUMBER and counts.fits(LIKELY_YEARS)


def _profile_text(column: pl.Series, counts: ColumnCounts, whole: bool) -> ColumnProfile:
    name = column.name
    if counts.sample and counts.sample.length > LONGEST_KEY:
        return _make_unused(name, "text", Cause.LONG_TEXT)
    key = decide_key_reading(name, column, sample=counts.sample, whole=whole)
    kind = key.kind
    if key.time:
        kind = "datetime" if key.time.granularity in ("moment", "hour") else "date"
    reason = Reason(Cause.TEXT if counts.varies else Cause.ONE_VALUE)
    is_period = counts.varies and key.time is not None
    return ColumnProfile(name, kind, counts.varies, False, reason, key=key, is_period=is_period)


def _profile_type(column: pl.Series, whole: bool) -> ColumnProfile:
    """Profile a column by its type: booleans, dates and times are keys; lists, bytes and the like are not."""
    kind = DECLARED_KINDS.get(column.dtype.base_type())
    if kind is None:
        return _make_unused(column.name, "empty", Cause.UNUSABLE_TYPE, str(column.dtype))
    if column.null_count() == len(column):
        return _make_unused(column.name, "empty", Cause.NO_VALUES)
    values = column.alias("").to_physical()  # Polars takes a name such as ^x$ for a pattern
    varies = bool(values.min() != values.max())
    reason = Reason(Cause.DECLARED_TYPE if varies else Cause.ONE_VALUE)
    key = decide_key_reading(column.name, column, whole=whole)
    return ColumnProfile(column.name, kind, varies, False, reason, key=key, is_period=key.time is not None)
