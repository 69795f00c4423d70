"""Dates and times in the usual ways of writing them, each column read in its own way."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import polars as pl
import polars_hash  # noqa: F401  (registers the `nchash` namespace)
import pyarrow as pa

from covary.numbers import ABSENT
from covary.periods import DAY, HOUR, Integers, Truths, day_of_date, day_of_week

GRANULARITIES = ("moment", "hour", "day", "week", "month", "quarter", "year")  # finest first
AMBIGUOUS = "day or month first can't be told from the values"
TIME_SHARE = 0.95  # of the cells that are there
# Databases write the ends of time where there is none.
ABSENT_TIMES = ABSENT | {
    "nat", "0000-00-00", "0000-00-00 00:00:00", "00/00/0000", "9999-12-31", "9999-12-31 00:00:00",
    "9999-12-31t00:00:00", "12/31/9999", "31/12/9999", "31.12.9999", "0001-01-01", "01/01/0001", "1/1/0001",
}  # fmt: skip
INSPECTED_CELLS = 64
FREQUENT_CELLS = 100
JUDGED_CELLS = 500  # distinct ones; more of them would rarely change the judgement
LONGEST_TIME = 60
LOOKED_UP_ROWS = 4  # per distinct cell, from which on reading the distinct ones is quicker
SECOND, MINUTE = 1_000_000, 60_000_000  # in microseconds
FIRST_TIME, PAST_TIMES = (np.datetime64(year, "us").astype(np.int64) for year in ("1000", "3000"))
NO_TIMES = np.empty(0, dtype=np.int64)
NO_TIME = np.iinfo(np.int64).min  # what NumPy holds as a missing time

_YEAR = r"(?P<year>[12][0-9]{3})"
_ANY_YEAR = r"(?P<year>[12][0-9]{3}|[0-9]{2})"
_MONTH_NAMES = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = r"(?P<month>[0-9]{1,2})"
_NAME = (
    r"(?P<name>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_DAY = r"(?P<day>[0-9]{1,2})"
_NTH = _DAY + r"(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:(?:Mon|Tue(?:s)?|Wed(?:nes)?|Thu(?:rs?)?|Fri|Sat(?:ur)?|Sun)(?:day)?\.?,?\s+)?"
_ZONE = r"(?:\s?(?:Z|UTC|GMT|(?P<zone>[+-][0-9]{2}(?::?[0-9]{2})?)))?"
_CLOCK = (
    r"(?:(?:T|,?\s+)(?P<hour>[0-9]{1,2})"
    r"(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?)?"
    rf"(?:\s?(?P<half>[AP])\.?\s?M\.?)?{_ZONE})?"
)
_COMPACT_CLOCK = r"(?:[T\s]?(?P<hour>[0-9]{2})(?:(?P<minute>[0-9]{2})(?P<second>[0-9]{2})?)?Z?)?"
_MONTH_FIRST, _DAY_FIRST = "month/day/year", "day/month/year"

# No cell is of two of these forms, except that either number may be the day where both stand before the year.
_FORMS = {
    "year-month-day": rf"{_YEAR}[-/.]{_MONTH}[-/.]{_DAY}{_CLOCK}",
    _MONTH_FIRST: rf"{_WEEKDAY}{_MONTH}[-/.]{_DAY}[-/.]{_ANY_YEAR}{_CLOCK}",
    _DAY_FIRST: rf"{_WEEKDAY}{_DAY}[-/.]{_MONTH}[-/.]{_ANY_YEAR}{_CLOCK}",
    "day month-name year": rf"{_WEEKDAY}{_NTH}[-/.\s]*{_NAME}[-/,\s]*{_ANY_YEAR}{_CLOCK}",
    "month-name day year": rf"{_WEEKDAY}{_NAME}[-/\s]*{_NTH}[-/,\s]+{_YEAR}{_CLOCK}",
    "year-month": rf"{_YEAR}(?:[-/]|M){_MONTH}",
    "month/year": rf"{_MONTH}[-/]{_YEAR}",
    "month-name year": rf"{_NAME}[-/,\s]*{_YEAR}",
    "month-name-yy": rf"{_NAME}-(?P<year>[0-9]{{2}})",
    "year-quarter": rf"{_YEAR}[-/\s]?Q(?P<quarter>[1-4])",
    "quarter-year": rf"Q(?P<quarter>[1-4])[-/\s]?{_YEAR}",
    "quarter Q year": rf"(?P<quarter>[1-4])Q[-/\s]?{_YEAR}",
    "year-week": rf"{_YEAR}[-\s]?W(?P<week>[0-9]{{1,2}})",
}
_COMPACT_FORMS = {
    "yyyymmdd": rf"{_YEAR}(?P<month>[0-9]{{2}})(?P<day>[0-9]{{2}}){_COMPACT_CLOCK}",
    "yyyymm": rf"{_YEAR}(?P<month>[0-9]{{2}})",
}
_ALL_FORMS = _FORMS | _COMPACT_FORMS
_UNITS = {
    form: next((unit for unit in ("day", "week", "quarter") if f"<{unit}>" in pattern), "month")
    for form, pattern in _ALL_FORMS.items()
}
_TEXT_TYPES = (pl.String, pl.Categorical, pl.Enum)
_WORDS = {"moment": "times", "hour": "times to the hour", "day": "dates"}

# Made once, because building an expression costs more than running it on a small table.
_LETTERS = pl.col("name").str.slice(0, 3).str.to_lowercase()
_DIGITS = {
    "name": _LETTERS.replace_strict(_MONTH_NAMES, range(1, 13), default=0).alias("month"),
    "fraction": pl.col("fraction").str.pad_end(6, "0").str.slice(0, 6),
    "half": pl.col("half").str.to_lowercase().replace_strict(["a", "p"], [1, 2], default=0),
    "zone": pl.col("zone").str.replace(":", "", literal=True).str.pad_end(5, "0"),
}
_NUMBERS = {
    part: _DIGITS.get(part, pl.col(part)).cast(pl.Int64, strict=False).fill_null(0)
    for part in set(re.findall(r"\?P<(\w+)>", "".join(_ALL_FORMS.values())))
}
_ISO = "year-month-day"
_STARTS_AS_ISO, _HAS_ZONE = re.compile(r"\d{4}-\d{2}-\d{2}"), re.compile(r"\d(?:Z|[+-]\d{2}:?\d{2})$")
_HASH: pl.Expr = pl.col("cell").nchash.xxhash64()  # type: ignore[attr-defined]


def _any_of(forms: dict[str, str]) -> re.Pattern[str]:
    """A pattern for all of the forms, each one group."""
    groups = [f"({re.sub(r'[?]P<[a-z]+>', '?:', forms[form])})" for form in forms if form != _DAY_FIRST]
    version = r"(?:[0-9]\.[0-9]{1,2}|[0-9]{2}\.[0-9])\.[0-9]{2}\b"  # 1.5.13 rather than 01.05.13
    return re.compile(f"(?!{version})(?:{'|'.join(groups)})", re.IGNORECASE)


_FORM_OF_GROUP = ["", *(form for form in _ALL_FORMS if form != _DAY_FIRST)]
COMPACT_FORMATS = frozenset(_ALL_FORMS) - frozenset(_FORMS)
_SPELLED, _SPELLED_OR_COMPACT = _any_of(_FORMS), _any_of(_ALL_FORMS)
_DIGITS_TO_ONES = str.maketrans("023456789", "111111111")


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
            return f"{words}; {AMBIGUOUS}: read as {_MONTH_FIRST}"
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
    pattern = _SPELLED_OR_COMPACT if compact else _SPELLED
    stripped = [cell.strip() for cell in islice(cells, INSPECTED_CELLS)]
    present = [cell for cell in stripped if cell.lower() not in ABSENT_TIMES]
    return 2 * sum(pattern.fullmatch(cell) is not None for cell in present) > len(present)


def time_reading(cells: pl.Series, compact: bool = False) -> TimeReading | None:
    """How to read a column as times, whatever the order of its cells; None if they aren't times.

    Whole numbers such as 20130105 and 201301 are times only if `compact` says so.
    """
    if isinstance(cells.dtype, (pl.Date, pl.Datetime)):
        zoned = getattr(cells.dtype, "time_zone", None) is not None
        return _plainest((), zoned, lambda local: _typed_instants(cells, local))
    if not isinstance(cells.dtype, _TEXT_TYPES) and not (compact and cells.dtype.is_integer()):
        return None
    if (instants := _iso_instants(cells)) is not None:
        zoned = _HAS_ZONE.search(str(cells.alias("").first(ignore_nulls=True))) is not None
        return _plainest((_ISO,), zoned, lambda local: _iso_instants(cells, True) if local else instants)
    counts = _counts(cells)
    trials = [_trial(form, found, counts) for form, found in _by_form(list(counts), compact).items()]
    return _judged(trials, sum(counts.values()))


def _plainest(
    formats: tuple[str, ...], zoned: bool, read: Callable[[bool], Integers | None]
) -> TimeReading | None:
    """Take times that are all at midnight where they were taken for dates of that place; else go by UTC."""
    granularity = _fineness_of(read(False))
    if granularity and granularity != "day" and zoned and _fineness_of(read(True)) == "day":
        return TimeReading(formats, "day", local=True)
    return TimeReading(formats, granularity) if granularity else None


def _fineness_of(instants: Integers | None) -> str:
    understood = NO_TIMES if instants is None else instants[instants != NO_TIME]
    return _fineness(understood) if understood.size else ""


def read_times(column: pl.Series, reading: TimeReading) -> pl.Series:
    """Each row's time, in UTC if it names a zone; null where there's none or it isn't understood."""
    if isinstance(column.dtype, (pl.Date, pl.Datetime)):
        return _series(column.name, _typed_instants(column, reading.local))
    if _ISO in reading.formats and (plain := _iso_instants(column, reading.local)) is not None:
        return _series(column.name, plain)
    text = column.cast(pl.String, strict=False)
    distinct_count = text.to_frame("cell").select(pl.approx_n_unique("cell")).item()
    if LOOKED_UP_ROWS * distinct_count > len(text):
        return _series(column.name, _read(text, reading.formats))
    distinct = text.unique().drop_nulls()
    times = _series("", _read(distinct, reading.formats))
    return text.replace_strict(distinct, times, default=None, return_dtype=pl.Datetime("us"))


def _iso_instants(cells: pl.Series, local: bool = False) -> Integers | None:
    """The instants of a column of nothing but ISO dates and times, by Arrow's fast reader; else None."""
    first = cells.alias("").first(ignore_nulls=True) if cells.dtype == pl.String else None
    if not isinstance(first, str) or not _STARTS_AS_ISO.match(first):
        return None
    zone = "UTC" if _HAS_ZONE.search(first) else None
    try:
        if local and zone:
            cells, zone = cells.alias("").str.slice(0, len("2013-01-05T06:17")), None
        times = cells.to_arrow().cast(pa.timestamp("us", zone)).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    filled = times.fill_null(NO_TIME) if times.null_count else times
    instants = _plausible(filled.to_numpy())
    return instants if (instants != NO_TIME).any() else None


def _counts(cells: pl.Series) -> dict[str, int]:
    """How many rows hold each cell that is there; of many distinct cells, a random choice."""
    text = cells.drop_nulls().cast(pl.String).str.strip_chars().alias("cell")
    distinct = text.value_counts(name="rows")
    if distinct.height > JUDGED_CELLS:
        # Of those that are not frequent some, by hash: the same for any order of rows and on every machine.
        one_in = -(-distinct.height // JUDGED_CELLS)
        frequent = distinct.sort("rows", "cell", descending=True).head(FREQUENT_CELLS)
        others = distinct.join(frequent, on="cell", how="anti").filter(_HASH % one_in == 0)
        distinct = pl.concat([frequent, others.with_columns(pl.col("rows") * one_in)])
    pairs = zip(distinct["cell"].to_list(), distinct["rows"].to_list(), strict=True)
    return {cell: rows for cell, rows in pairs if cell.lower() not in ABSENT_TIMES}


def _by_form(cells: Sequence[str], compact: bool) -> dict[str, list[str]]:
    """The cells that look like each form; cells that differ only in their digits are looked at once."""
    pattern = _SPELLED_OR_COMPACT if compact else _SPELLED
    short = [cell for cell in cells if len(cell) <= LONGEST_TIME and "\n" not in cell]
    shapes = "\n".join(short).translate(_DIGITS_TO_ONES).split("\n")
    groups = {shape: match.lastindex for shape in set(shapes) if (match := pattern.fullmatch(shape))}
    found: dict[str, list[str]] = {}
    for cell, shape in zip(short, shapes, strict=False):
        if shape in groups:
            found.setdefault(_FORM_OF_GROUP[groups[shape] or 0], []).append(cell)
    return found


def _trial(form: str, cells: list[str], counts: dict[str, int]) -> _Trial:
    rows = np.array([counts[cell] for cell in cells])
    parts = _parts(pl.Series(cells), form)
    trial = _trial_of(form, parts, rows)
    if form == "year-month" and len(cells) > 2 and (parts["month"] == (parts["year"] + 1) % 100).all():
        return replace(trial, rows=0)  # seasons: 2001-02, 2002-03, 2003-04
    if form != _MONTH_FIRST:
        return trial
    day_first = _trial_of(_DAY_FIRST, parts | {"month": parts["day"], "day": parts["month"]}, rows)
    if day_first.rows == trial.rows:
        return replace(trial, ambiguous=True)
    return max(trial, day_first, key=lambda either: either.rows)


def _trial_of(form: str, parts: dict[str, Integers], rows: Integers) -> _Trial:
    instants = _instants(parts)
    understood = instants != NO_TIME
    return _Trial(form, int(rows[understood].sum()), instants[understood])


def _judged(trials: Sequence[_Trial], present: int) -> TimeReading | None:
    """The reading if forms of one unit understand nearly all rows: a month among days isn't a day."""
    for unit in ("day", "week", "month", "quarter"):
        fitting = [trial for trial in trials if trial.rows and _UNITS[trial.form] == unit]
        if fitting and sum(trial.rows for trial in fitting) >= TIME_SHARE * present:
            fitting.sort(key=lambda trial: (-trial.rows, trial.form))
            instants = np.concatenate([trial.instants for trial in fitting])
            return TimeReading(
                formats=tuple(trial.form for trial in fitting),
                granularity=_fineness(instants) if unit == "day" else unit,
                ambiguous=any(trial.ambiguous for trial in fitting),
            )
    return None


def _fineness(instants: Integers) -> str:
    if (instants % HOUR).any():
        return "moment"
    return "hour" if (instants % DAY).any() else "day"


def _typed_instants(column: pl.Series, local: bool = False) -> Integers:
    column = column.alias("")
    if local and getattr(column.dtype, "time_zone", None):
        column = column.dt.replace_time_zone(None)
    # Whatever its zone, what a time holds is UTC.
    times = column.cast(pl.Datetime("us", getattr(column.dtype, "time_zone", None)), strict=False)
    return _plausible(times.to_physical().fill_null(NO_TIME).to_numpy())


def _series(name: str, instants: Integers) -> pl.Series:
    return pl.Series(name, instants.view("datetime64[us]"))


def _read(cells: pl.Series, formats: Sequence[str]) -> Integers:
    """The instant of each cell, by the first of the formats that understands it."""
    text = cells.str.strip_chars()
    instants = np.full(len(text), NO_TIME)
    for form in formats:
        left = np.flatnonzero(instants == NO_TIME)
        if left.size:
            instants[left] = _instants(_parts(text if left.size == len(text) else text.gather(left), form))
    return instants


def _parts(cells: pl.Series, form: str) -> dict[str, Integers]:
    """The numbers that the cells are made of, by name; 0 where a cell lacks one."""
    groups = cells.str.extract_groups(f"(?i)^{_ALL_FORMS[form]}$").struct.unnest()
    numbers = groups.select(_NUMBERS[part.name] for part in groups if part.null_count() < len(cells))
    lacking = dict.fromkeys((*groups.columns, "month"), np.zeros(len(cells), dtype=np.int64))
    return lacking | {column.name: column.to_numpy() for column in numbers}


def _instants(parts: dict[str, Integers]) -> Integers:
    """Microseconds since 1970; NO_TIME where the parts make up no time."""
    years = parts["year"] + 1900 * (parts["year"] < 100) + 100 * (parts["year"] < 69)  # 1969 to 2068
    if "week" in parts:
        days, valid = day_of_week(years, parts["week"])
    elif "quarter" in parts:
        days, valid = day_of_date(years, 3 * parts["quarter"] - 2)
    else:
        days, valid = day_of_date(years, parts["month"], parts.get("day"))
    if "hour" not in parts:
        return _plausible(np.where(valid, days * DAY, NO_TIME))
    clock, on_clock = _clock(parts)
    return _plausible(np.where(valid & on_clock, days * DAY + clock, NO_TIME))


def _clock(parts: dict[str, Integers]) -> tuple[Integers, Truths]:
    """Microseconds since midnight in UTC, and whether a clock can show such a time."""
    hour, minute, second = parts["hour"], parts["minute"], parts["second"]
    half, zone = (parts.get(name, np.zeros_like(hour)) for name in ("half", "zone"))
    valid = (hour < 24) & (minute < 60) & (second <= 60) & ((half == 0) | (hour >= 1) & (hour <= 12))
    hour = np.where(half == 0, hour, hour % 12 + 12 * (half == 2))
    ahead = np.sign(zone) * (np.abs(zone) // 100 * HOUR + np.abs(zone) % 100 * MINUTE)
    return hour * HOUR + minute * MINUTE + second * SECOND + parts.get("fraction", 0) - ahead, valid


def _plausible(instants: Integers) -> Integers:
    return np.where((instants >= FIRST_TIME) & (instants < PAST_TIMES), instants, NO_TIME)
