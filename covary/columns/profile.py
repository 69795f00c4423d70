"""Which columns can be keys and which are numbers, told by their values and not only by their type."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import polars as pl

from covary.arrays import Floats
from covary.columns.column_counts import Facts, facts_of_numbers, facts_of_text
from covary.columns.identifiers import CALENDAR, PERIODS, ROW_NUMBER, why_identifier
from covary.columns.key_reading import LIKELY_YEARS, KeyReading, key_reading, year_reading
from covary.columns.numbers import NUMBER_SHARE, PLAIN, NumberReading
from covary.errors import UnusableColumn

LONGEST_KEY = 200  # bytes on average: more is prose
PROFILED_ROWS, PROFILED_RUNS = 100_000, 100
CELLS_AT_ONCE = 1 << 22  # rows x columns profiled together: bounds memory
COMPACT_WORDS = (
    "month",
    "date",
    "day",
    "period",
    "yyyymm",
    "yyyymmdd",
)  # last in the name of a column that may hold 201301
COMPACT = (180_001, 21_001_231)
YEAR_WORDS = ("year", "yr", "season")  # last in the name of a column of years
YEARS = (1000, 2200)

TEXT_TYPES = (pl.String, pl.Categorical, pl.Enum)
DECLARED_KINDS = {pl.Boolean: "boolean", pl.Date: "date", pl.Datetime: "datetime", pl.Time: "text"}


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What a column holds and what it can serve as, with the reason in plain words."""

    name: str
    kind: str  # "text" "integer" "number" "boolean" "date" "datetime" "country" "state" "empty"
    is_key: bool
    is_number: bool
    reason: str
    # The numbers of the rows looked at, where each has one: they need not be read from text again.
    values: Floats | None = field(default=None, compare=False, repr=False)
    key: KeyReading | None = field(default=None, compare=False, repr=False)
    number: NumberReading = field(default=PLAIN, compare=False, repr=False)
    is_period: bool = field(default=False, compare=False)  # a time, or a part of one


def profile_columns(rows: pl.DataFrame, whole: bool = True) -> list[ColumnProfile]:
    """The role of every column, judged by an evenly spread sample of at most 100,000 rows.

    `whole` says whether these are all rows of the table.
    """
    whole = whole and rows.height <= PROFILED_ROWS
    sample = in_runs(rows, PROFILED_ROWS, PROFILED_RUNS)
    at_once = max(1, CELLS_AT_ONCE // max(sample.height, 1))
    columns = sample.get_columns()
    return [
        profile
        for start in range(0, len(columns), at_once)
        for profile in _profiles(columns[start : start + at_once], whole)
    ]


def _profiles(sample: Sequence[pl.Series], whole: bool) -> list[ColumnProfile]:
    """Profile some columns together: on a small table the calls of Polars are the cost."""
    dtypes = [column.dtype for column in sample]
    texts = [
        c.cast(pl.String) for c, dtype in zip(sample, dtypes, strict=True) if isinstance(dtype, TEXT_TYPES)
    ]
    numbers = [column for column, dtype in zip(sample, dtypes, strict=True) if dtype.is_numeric()]
    facts = facts_of_text(texts) | facts_of_numbers(numbers)
    return [
        _profile(column, facts[column.name], whole) if column.name in facts else _declared(column, whole)
        for column in sample
    ]


def with_numbers(
    rows: pl.DataFrame, profiles: Sequence[ColumnProfile], keys: Collection[str]
) -> pl.DataFrame:
    """Put the numbers that profiling found in place of the text they were read from."""
    known = {
        p.name: pl.Series(p.name, p.values)
        for p in profiles
        if p.values is not None and p.values.size == rows.height and p.name not in keys
    }
    return pl.DataFrame([known.get(column.name, column) for column in rows.get_columns()])


def choose(
    profiles: Sequence[ColumnProfile],
    table: str,
    keys: Sequence[str] | None = None,
    values: Sequence[str] = (),
) -> tuple[list[str], list[str]]:
    """The key columns and the number columns of a table; those the person named, if any, and only those."""
    for profile in profiles:
        if profile.name in values and profile.kind in {"boolean", "date", "datetime"}:
            raise UnusableColumn(f"{table}: {profile.name} can't be a value: it holds {profile.kind}s")
    chosen_keys = [
        p.name for p in profiles if (p.is_key and p.name not in values if keys is None else p.name in keys)
    ]
    chosen_values = [
        p.name
        for p in profiles
        if (p.name in values if values else p.is_number and p.name not in (keys or ()))
    ]
    return chosen_keys, chosen_values


def in_runs(rows: pl.DataFrame, most: int, runs: int) -> pl.DataFrame:
    """Spread out runs of rows rather than single ones, so that a row number still counts up by one."""
    if rows.height <= most:
        return rows
    length = most // runs
    step = (rows.height - length) // (runs - 1)
    return pl.concat([rows.slice(number * step, length) for number in range(runs)])


def _profile(column: pl.Series, facts: Facts, whole: bool) -> ColumnProfile:
    name = column.name
    if not facts.present:
        return ColumnProfile(name, "empty", False, False, "no values")
    if facts.numbers < NUMBER_SHARE * facts.present:
        return _text_profile(column, facts, whole)
    values = facts.values if facts.numbers == facts.values.size else None
    dressed = facts.reading.description
    if facts.whole < facts.numbers or facts.reading.dressed:
        kind = "number" if facts.whole < facts.numbers else "integer"
        return ColumnProfile(
            name, kind, False, True, dressed or "numbers with a fraction", values, number=facts.reading
        )
    identifies = why_identifier(name, facts)
    if not identifies:
        reason = dressed or "whole numbers"
        return ColumnProfile(name, "integer", False, True, reason, values, number=facts.reading)
    if _are_years(identifies, facts):
        reading = year_reading()
    else:
        compact = _may_be_compact_dates(identifies, facts)
        reading = key_reading(name, column, compact=compact, whole=whole)
    told = re.sub(r": (\S+)$", r': "\1"', identifies)
    reason = "; ".join(part for part in (told, reading.description) if part)
    return ColumnProfile(
        name,
        "date" if reading.time else "integer",
        facts.varies,
        False,
        reason if facts.varies else f"{reason}, but one value only",
        key=reading,
        number=facts.reading,
        is_period=reading.time is not None or identifies.rpartition(" ")[2] in PERIODS,
    )


def _are_years(identifies: str, facts: Facts) -> bool:
    """Whether whole numbers are years by their name; or count up by one, within the last two centuries."""
    if identifies.endswith(YEAR_WORDS):
        return YEARS[0] <= facts.low and facts.high <= YEARS[1]
    return identifies == ROW_NUMBER and LIKELY_YEARS[0] <= facts.low and facts.high <= LIKELY_YEARS[1]


def _may_be_compact_dates(identifies: str, facts: Facts) -> bool:
    return identifies == CALENDAR or (
        identifies.endswith(COMPACT_WORDS) and COMPACT[0] <= facts.low and facts.high <= COMPACT[1]
    )


def _text_profile(column: pl.Series, facts: Facts, whole: bool) -> ColumnProfile:
    name = column.name
    if facts.length > LONGEST_KEY:
        return ColumnProfile(name, "text", False, False, "long text")
    reading = key_reading(name, column, looks=facts.looks, whole=whole)
    kind = _kind_of(reading)
    if not facts.varies:
        return ColumnProfile(name, kind, False, False, "one value only", key=reading)
    return ColumnProfile(
        name, kind, True, False, _why_text(kind, reading), key=reading, is_period=reading.time is not None
    )


def _kind_of(reading: KeyReading) -> str:
    if reading.time:
        return "datetime" if reading.time.granularity in ("moment", "hour") else "date"
    return reading.kind


def _why_text(kind: str, reading: KeyReading) -> str:
    return reading.description or ("text" if kind == "text" else f"{kind}s as text")


def _declared(column: pl.Series, whole: bool) -> ColumnProfile:
    """A column whose type alone tells: booleans, dates, times; lists, bytes and the like serve as nothing."""
    kind = DECLARED_KINDS.get(column.dtype.base_type())
    if kind is None:
        return ColumnProfile(column.name, "empty", False, False, f"{column.dtype} can't be a key or a number")
    if column.null_count() == len(column):
        return ColumnProfile(column.name, "empty", False, False, "no values")
    varies = column.to_physical().min() != column.to_physical().max()
    reason = f"{kind}s" if varies else "one value only"
    reading = key_reading(column.name, column, whole=whole)
    return ColumnProfile(
        column.name, kind, varies, False, reason, key=reading, is_period=reading.time is not None
    )
