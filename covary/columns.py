"""Which columns can be keys and which are numbers, told by their values and not only by their type."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import polars as pl

from covary.errors import UnusableColumn

ABSENT = ("", "NA", "N/A", "n/a", "null", "NULL", "None", "NaN", "nan", "-", ".", "..", "#N/A", "#REF!")
NUMBER_SHARE = 0.95
LONGEST_KEY = 200  # bytes on average: more is prose
FEWEST_ROW_NUMBERS = 20
PROFILED_ROWS, PROFILED_SLICES = 100_000, 100
CALENDAR = "dates as YYYYMMDD"
INSPECTED_RUN = 12  # neighbouring rows, at the start, in the middle and at the end

# Made once, because building an expression costs more than running it on a small table.
_CELL = pl.all()
STRIPPED = _CELL.str.strip_chars()
PRESENT = pl.when(~_CELL.is_in(ABSENT)).then(_CELL)
NUMBER = _CELL.cast(pl.Float64, strict=False)
FINITE = pl.when(_CELL.is_finite()).then(_CELL)
LENGTH = _CELL.str.len_bytes().mean()
WRITTEN = [_CELL.count().name.suffix("\0present"), (_CELL.min() != _CELL.max()).name.suffix("\0varies")]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# An integer column whose name has one of these words identifies rather than measures ...
IDENTIFIERS = _words(
    "id ids uid uuid guid pk fk code codes cd zip zipcode postcode postal zcta modzcta fips geoid gid oid "
    "cusip isin isbn issn ean upc sku ssn ein vin npi phone fax tel telephone naics serial timestamp datetime"
)
# ... or ends in "id" without a space, after one of these ...
IDENTIFIED = _words(
    "account booking building case city client county customer device employee event game item location "
    "match member object order parcel patient person place player product record respondent route row school "
    "session site source state station store student team transaction trip unit user vehicle year zone"
)
# ... or ends in one of these ...
LAST_WORDS = _words("number num no nr key index idx ref")
# ... or ends in, or begins with, a period that its values fit (202301 and 20230105 fit all of them) ...
PERIODS = {
    "year": (1000, 2200), "yr": (0, 2200), "season": (1000, 2200), "decade": (0, 2200), "date": (1000, 2200),
    "month": (1, 12), "day": (1, 366), "week": (0, 53), "quarter": (1, 4), "qtr": (1, 4), "hour": (0, 24),
}  # fmt: skip
FULL_PERIODS = (180_000, 21_001_231)
DAYS = (18_000_101, 21_001_231)
AFTER_PERIOD = _words(
    "of built start end ending started ended founded established published num number no id"
)
# ... unless another word says that something is measured, or the name begins by counting: num_days.
MEASURES = _words(
    "count counts total totals sum avg average mean median std var pct percent percentage share rate ratio "
    "per amount population change difference score"
)
COUNTING = _words("n no nr num number")
TRUTHS = _words("true false yes no y n t f")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_DAY = re.compile(r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})")
_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_INTEGER = re.compile(r"[-+]?\d{1,15}(\.0*)?")
_MOMENT = re.compile(rf"({_DAY.pattern})[T ]\d{{1,2}}:\d{{2}}.*")


TEXT_KINDS: dict[str, Callable[[str], object]] = {
    "date": _DAY.fullmatch,
    "datetime": _MOMENT.fullmatch,
    "boolean": lambda cell: cell.lower() in TRUTHS,
}
DECLARED_KINDS = {pl.Boolean: "boolean", pl.Date: "date", pl.Datetime: "datetime", pl.Time: "text"}


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What a column holds and what it can serve as, with the reason in plain words."""

    name: str
    kind: str  # "text" "integer" "number" "boolean" "date" "datetime" "empty"
    is_key: bool
    is_number: bool
    reason: str


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a pass over a column found."""

    cells: list[str]  # a few of those present, in order
    present: int
    varies: bool
    numbers: int
    low: float  # of the numbers; NaN without any
    high: float
    whole: int
    length: float = 0.0  # bytes on average; 0 if every cell is a number


def profile_columns(rows: pl.DataFrame) -> list[ColumnProfile]:
    """The role of every column, judged by an evenly spread sample of at most 100,000 rows."""
    sample = _spread(rows)
    readable = [_plain(column) for column in sample if _may_hold_numbers(column.dtype)]
    facts = _facts(pl.DataFrame(readable)) if readable else {}
    return [
        _profile(column, facts[column.name]) if column.name in facts else _declared(column)
        for column in sample
    ]


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


def as_number(column: pl.Series) -> pl.Series:
    """The column as Float64; a cell that isn't a finite number is null."""
    if not _may_hold_numbers(column.dtype):
        return pl.repeat(None, len(column), dtype=pl.Float64, eager=True).rename(column.name)
    cells = _plain(column).to_frame()
    return _numbers(cells.select(STRIPPED) if cells.dtypes == [pl.String] else cells).to_series()


def _may_hold_numbers(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)


def _plain(column: pl.Series) -> pl.Series:
    return column if column.dtype.is_numeric() else column.cast(pl.String)


def _numbers(cells: pl.DataFrame) -> pl.DataFrame:
    return cells.select(NUMBER).select(FINITE)


def _spread(rows: pl.DataFrame) -> pl.DataFrame:
    """Whole runs of rows rather than single ones, so that a row number still counts up by one."""
    if rows.height <= PROFILED_ROWS:
        return rows
    length = PROFILED_ROWS // PROFILED_SLICES
    step = (rows.height - length) // (PROFILED_SLICES - 1)
    return pl.concat([rows.slice(number * step, length) for number in range(PROFILED_SLICES)])


def _facts(columns: pl.DataFrame) -> dict[str, _Facts]:
    """One pass over all columns; a second, slower one only over those that it leaves in doubt."""
    facts = {}
    for column, cells, measured in zip(columns, _inspected(columns), _measured(columns), strict=True):
        present = measured[0] if column.dtype.is_numeric() else len(column) - column.null_count()
        facts[column.name] = _Facts(cells, present, measured[1] != measured[2], *measured)
    texts = [column for column in columns if facts[column.name].numbers < facts[column.name].present]
    unclear = [column for column in texts if not _is_plainly_text(facts[column.name])]
    if unclear:
        facts |= _cleaned_facts(pl.DataFrame(unclear).select(STRIPPED).select(PRESENT), facts)
    if texts:
        lengths = pl.DataFrame(texts).select(LENGTH).row(0)
        for column, length in zip(texts, lengths, strict=True):
            facts[column.name] = replace(facts[column.name], length=length or 0.0)
    return facts


def _is_plainly_text(facts: _Facts) -> bool:
    return facts.numbers == 0 and len(set(facts.cells)) > 1 and not any(map(_DECIMAL.fullmatch, facts.cells))


def _cleaned_facts(texts: pl.DataFrame, facts: dict[str, _Facts]) -> dict[str, _Facts]:
    """The facts once cells are stripped and marks of absence are gone."""
    written = texts.select(WRITTEN).row(0)
    by_column = zip(written[: texts.width], written[texts.width :], _measured(texts), strict=True)
    return {
        column.name: _Facts(facts[column.name].cells, present, bool(varies), *measured)
        for column, (present, varies, measured) in zip(texts, by_column, strict=True)
    }


def _measured(columns: pl.DataFrame) -> list[tuple[int, float, float, int]]:
    """How many cells of each column are finite numbers, the least, the greatest, and how many are whole."""
    numbers = columns.select(NUMBER).to_numpy()
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    counted = np.isfinite(numbers).sum(axis=0), (numbers == np.floor(numbers)).sum(axis=0)
    low, high = (extreme.reduce(numbers, axis=0, initial=np.nan) for extreme in (np.fmin, np.fmax))
    return list(zip(counted[0].tolist(), low.tolist(), high.tolist(), counted[1].tolist(), strict=True))


def _inspected(columns: pl.DataFrame) -> list[list[str]]:
    """A few cells of each column, stripped."""
    starts = sorted({0, columns.height // 2, max(columns.height - INSPECTED_RUN, 0)})
    rows = [row for start in starts for row in columns.slice(start, INSPECTED_RUN).rows()]
    by_column = zip(*rows, strict=True) if rows else [()] * columns.width
    stripped = ([str(cell).strip() for cell in cells if cell is not None] for cells in by_column)
    return [[cell for cell in cells if cell not in ABSENT] for cells in stripped]


def _profile(column: pl.Series, facts: _Facts) -> ColumnProfile:
    if not facts.present:
        return ColumnProfile(column.name, "empty", False, False, "no values")
    if facts.numbers < NUMBER_SHARE * facts.present:
        return _text_profile(column.name, facts)
    if facts.whole < facts.numbers:
        return ColumnProfile(column.name, "number", False, True, "numbers with a fraction")
    identifies = _identifies(column, facts)
    if not identifies:
        return ColumnProfile(column.name, "integer", False, True, "whole numbers")
    reason = identifies if facts.varies else f"{identifies}, but one value only"
    return ColumnProfile(
        column.name, "date" if identifies == CALENDAR else "integer", facts.varies, False, reason
    )


def _text_profile(name: str, facts: _Facts) -> ColumnProfile:
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
    varies = column.min() != column.max()
    return ColumnProfile(column.name, kind, varies, False, f"{kind}s" if varies else "one value only")


def _identifies(column: pl.Series, facts: _Facts) -> str:
    """Why an integer column identifies rather than measures; "" if it doesn't."""
    if word := _identifier_word(column.name, facts):
        return f"named like an identifier: {word}"
    if column.dtype == pl.String and column.str.contains(r"^\s*0[0-9]").any():
        return "looks like a code: leading zeros"
    if _fits(facts, DAYS) and _all_dates(column):
        return CALENDAR
    if facts.numbers >= FEWEST_ROW_NUMBERS and _may_count_up(facts) and _counts_up(column):
        return "unique row number"
    return ""


def _identifier_word(name: str, facts: _Facts) -> str:
    """The word that says that a column identifies: zip_code, GEOID, birthYear, but not codes_per_day."""
    if name == "Unnamed: 0":  # pandas, reading back the index that it wrote
        return "unnamed"
    if name.rstrip().endswith("#"):
        return "#"
    words: list[str] = [word.lower() for word in _WORD.findall(name)]
    words = [word for word in words if not word.isdigit()] or [""]
    first, last = words[0], words[-1]
    if last in IDENTIFIERS or last.endswith("code") or (last.endswith("id") and last[:-2] in IDENTIFIED):
        return last
    period = last if last in PERIODS else first if words[1:2] and words[1] in AFTER_PERIOD else ""
    if MEASURES & set(words) or (first in COUNTING and len(words) > 1):
        return ""
    if period in PERIODS and (_fits(facts, PERIODS[period]) or _fits(facts, FULL_PERIODS)):
        return period
    return last if last in LAST_WORDS else next((word for word in words if word in IDENTIFIERS), "")


def _fits(facts: _Facts, bounds: tuple[int, int]) -> bool:
    return bounds[0] <= facts.low and facts.high <= bounds[1]


def _all_dates(column: pl.Series) -> bool:
    """Whether every number reads as YYYYMMDD."""
    days = as_number(column).drop_nulls().unique().cast(pl.Int64).cast(pl.String)
    return days.str.to_date("%Y%m%d", strict=False).null_count() == 0


def _may_count_up(facts: _Facts) -> bool:
    """A cheap test first: dense in its range, or one more in each of the first rows (of a sample)."""
    first = [float(cell) for cell in facts.cells[:INSPECTED_RUN] if _INTEGER.fullmatch(cell)]
    in_order = len(first) == INSPECTED_RUN and all(after - before == 1 for before, after in pairwise(first))
    return in_order or facts.numbers - 1 <= facts.high - facts.low <= 1.02 * facts.numbers


def _counts_up(column: pl.Series) -> bool:
    """Whether no value repeats and sorted neighbours differ by one, but for the gaps that sampling leaves."""
    steps = as_number(column).sort().diff().drop_nulls()
    return not (steps == 0).any() and int((steps > 1).sum()) <= len(steps) // 50
