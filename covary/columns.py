"""Which columns can be keys and which are numbers, told by their values and not only by their type."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from covary.aggregate import Floats
from covary.columnfacts import Facts, facts_of_numbers, facts_of_text
from covary.errors import UnusableColumn
from covary.identifiers import CALENDAR, why_identifier

NUMBER_SHARE = 0.95
LONGEST_KEY = 200  # bytes on average: more is prose
PROFILED_ROWS, PROFILED_SLICES = 100_000, 100

TRUTHS = frozenset({"true", "false", "yes", "no", "y", "n", "t", "f"})
_DAY = re.compile(r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})")
_MOMENT = re.compile(rf"({_DAY.pattern})[T ]\d{{1,2}}:\d{{2}}.*")

TEXT_KINDS: dict[str, Callable[[str], object]] = {
    "date": _DAY.fullmatch,
    "datetime": _MOMENT.fullmatch,
    "boolean": lambda cell: cell.lower() in TRUTHS,
}
TEXT_TYPES = (pl.String, pl.Categorical, pl.Enum)
DECLARED_KINDS = {pl.Boolean: "boolean", pl.Date: "date", pl.Datetime: "datetime", pl.Time: "text"}


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What a column holds and what it can serve as, with the reason in plain words."""

    name: str
    kind: str  # "text" "integer" "number" "boolean" "date" "datetime" "empty"
    is_key: bool
    is_number: bool
    reason: str
    # The numbers of the rows looked at, where each has one: they need not be read from text again.
    values: Floats | None = field(default=None, compare=False, repr=False)


def profile_columns(rows: pl.DataFrame) -> list[ColumnProfile]:
    """The role of every column, judged by an evenly spread sample of at most 100,000 rows."""
    sample = _spread(rows).get_columns()
    dtypes = [column.dtype for column in sample]
    texts = [
        c.cast(pl.String) for c, dtype in zip(sample, dtypes, strict=True) if isinstance(dtype, TEXT_TYPES)
    ]
    numbers = [column for column, dtype in zip(sample, dtypes, strict=True) if dtype.is_numeric()]
    facts = facts_of_text(texts) | facts_of_numbers(numbers)
    return [
        _profile(column.name, facts[column.name]) if column.name in facts else _declared(column)
        for column in sample
    ]


def with_numbers(rows: pl.DataFrame, profiles: Sequence[ColumnProfile], keys: Sequence[str]) -> pl.DataFrame:
    """Put the numbers that profiling found in place of the text they were read from."""
    known = {
        p.name: pl.Series(p.name, p.values)
        for p in profiles
        if p.values is not None and p.values.size == rows.height and p.name not in keys
    }
    return pl.DataFrame([known.get(column.name, column) for column in rows.get_columns()])


def choose(
    profiles: Sequence[ColumnProfile], table: str, keys: Sequence[str] = (), values: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """The key columns and the number columns of a table; those the person named, if any, and only those."""
    for profile in profiles:
        if profile.name in values and profile.kind in {"boolean", "date", "datetime"}:
            raise UnusableColumn(f"{table}: {profile.name} can't be a value: it holds {profile.kind}s")
    chosen_keys = [
        p.name for p in profiles if (p.name in keys if keys else p.is_key and p.name not in values)
    ]
    chosen_values = [
        p.name for p in profiles if (p.name in values if values else p.is_number and p.name not in keys)
    ]
    return chosen_keys, chosen_values


def _spread(rows: pl.DataFrame) -> pl.DataFrame:
    """Whole runs of rows rather than single ones, so that a row number still counts up by one."""
    if rows.height <= PROFILED_ROWS:
        return rows
    length = PROFILED_ROWS // PROFILED_SLICES
    step = (rows.height - length) // (PROFILED_SLICES - 1)
    return pl.concat([rows.slice(number * step, length) for number in range(PROFILED_SLICES)])


def _profile(name: str, facts: Facts) -> ColumnProfile:
    if not facts.present:
        return ColumnProfile(name, "empty", False, False, "no values")
    if facts.numbers < NUMBER_SHARE * facts.present:
        return _text_profile(name, facts)
    values = facts.values if facts.numbers == facts.values.size else None
    if facts.whole < facts.numbers:
        return ColumnProfile(name, "number", False, True, "numbers with a fraction", values)
    identifies = why_identifier(name, facts)
    if not identifies:
        return ColumnProfile(name, "integer", False, True, "whole numbers", values)
    reason = identifies if facts.varies else f"{identifies}, but one value only"
    return ColumnProfile(name, "date" if identifies == CALENDAR else "integer", facts.varies, False, reason)


def _text_profile(name: str, facts: Facts) -> ColumnProfile:
    kind = next(
        (kind for kind, fits in TEXT_KINDS.items() if facts.cells and all(map(fits, facts.cells))), "text"
    )
    if not facts.varies:
        return ColumnProfile(name, kind, False, False, "one value only")
    if facts.length > LONGEST_KEY:
        return ColumnProfile(name, kind, False, False, "long text")
    return ColumnProfile(name, kind, True, False, "text" if kind == "text" else f"{kind}s as text")


def _declared(column: pl.Series) -> ColumnProfile:
    """A column whose type alone tells: booleans, dates, times; lists, bytes and the like serve as nothing."""
    kind = DECLARED_KINDS.get(column.dtype.base_type())
    if kind is None:
        return ColumnProfile(column.name, "empty", False, False, f"{column.dtype} can't be a key or a number")
    if column.null_count() == len(column):
        return ColumnProfile(column.name, "empty", False, False, "no values")
    varies = column.to_physical().min() != column.to_physical().max()
    return ColumnProfile(column.name, kind, varies, False, f"{kind}s" if varies else "one value only")
