"""How dates and times are written: the forms, and the instants that cells of each form mean."""

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from covary.arrays import Integers, Truths
from covary.columns.number_forms import ABSENT
from covary.columns.periods import DAY, HOUR, find_day, find_monday

# Databases write the ends of time where there is none.
ABSENT_TIMES = ABSENT | {
    "nat", "0000-00-00", "0000-00-00 00:00:00", "00/00/0000", "9999-12-31", "9999-12-31 00:00:00",
    "9999-12-31t00:00:00", "12/31/9999", "31/12/9999", "31.12.9999", "0001-01-01", "01/01/0001", "1/1/0001",
}  # fmt: skip
LONGEST_TIME = 60  # in characters
_SECOND, _MINUTE = 1_000_000, 60_000_000  # in microseconds
_FIRST_TIME, _PAST_TIMES = (np.datetime64(year, "us").astype(np.int64) for year in ("1000", "3000"))
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
ISO, MONTH_FIRST, DAY_FIRST = "year-month-day", "month/day/year", "day/month/year"

# No cell is of two of these forms, except that either number may be the day where both stand before the year.
_FORMS = {
    ISO: rf"{_YEAR}[-/.]{_MONTH}[-/.]{_DAY}{_CLOCK}",
    MONTH_FIRST: rf"{_WEEKDAY}{_MONTH}[-/.]{_DAY}[-/.]{_ANY_YEAR}{_CLOCK}",
    DAY_FIRST: rf"{_WEEKDAY}{_DAY}[-/.]{_MONTH}[-/.]{_ANY_YEAR}{_CLOCK}",
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
UNIT_OF_FORM = {
    form: next((unit for unit in ("day", "week", "quarter") if f"<{unit}>" in pattern), "month")
    for form, pattern in _ALL_FORMS.items()
}

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
_STARTS_AS_ISO, _HAS_ZONE = re.compile(r"\d{4}-\d{2}-\d{2}"), re.compile(r"\d(?:Z|[+-]\d{2}:?\d{2})$")


def _compile_forms(forms: dict[str, str]) -> re.Pattern[str]:
    """A pattern for all of the forms, each one group."""
    groups = [f"({re.sub(r'[?]P<[a-z]+>', '?:', forms[form])})" for form in forms if form != DAY_FIRST]
    version = r"(?:[0-9]\.[0-9]{1,2}|[0-9]{2}\.[0-9])\.[0-9]{2}\b"  # 1.5.13 rather than 01.05.13
    return re.compile(f"(?!{version})(?:{'|'.join(groups)})", re.IGNORECASE)


_FORM_OF_GROUP = ["", *(form for form in _ALL_FORMS if form != DAY_FIRST)]
COMPACT_FORMATS = frozenset(_ALL_FORMS) - frozenset(_FORMS)
_SPELLED, _SPELLED_OR_COMPACT = _compile_forms(_FORMS), _compile_forms(_ALL_FORMS)
_DIGITS_TO_ONES = str.maketrans("023456789", "111111111")


def choose_pattern(compact: bool) -> re.Pattern[str]:
    """A pattern for a cell of any form, each one group; of whole numbers only if `compact` says so."""
    return _SPELLED_OR_COMPACT if compact else _SPELLED


def group_by_form(cells: Sequence[str], compact: bool) -> dict[str, list[str]]:
    """The cells that look like each form; cells that differ only in their digits are looked at once."""
    pattern = choose_pattern(compact)
    short = [cell for cell in cells if len(cell) <= LONGEST_TIME and "\n" not in cell]
    shapes = "\n".join(short).translate(_DIGITS_TO_ONES).split("\n")
    groups = {shape: match.lastindex or 0 for shape in set(shapes) if (match := pattern.fullmatch(shape))}
    by_form: dict[str, list[str]] = {}
    for cell, shape in zip(short, shapes, strict=False):
        if shape in groups:
            by_form.setdefault(_FORM_OF_GROUP[groups[shape]], []).append(cell)
    return by_form


def has_zone(cell: str) -> bool:
    """Whether an ISO time names its zone."""
    return _HAS_ZONE.search(cell) is not None


def read_iso_instants(cells: pl.Series, local: bool = False) -> Integers | None:
    """The instants of a column of nothing but ISO dates and times, by Arrow's fast reader; else None."""
    first = cells.alias("").first(ignore_nulls=True) if cells.dtype == pl.String else None
    if not isinstance(first, str) or not _STARTS_AS_ISO.match(first):
        return None
    zone = "UTC" if has_zone(first) else None
    try:
        if local and zone:
            cells, zone = cells.alias("").str.slice(0, len("2013-01-05T06:17")), None
        times = cells.alias("").to_arrow().cast(pa.timestamp("us", zone)).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    filled = times.fill_null(NO_TIME) if times.null_count else times
    instants = keep_plausible(filled.to_numpy())
    return instants if (instants != NO_TIME).any() else None


def split_parts(cells: pl.Series, form: str) -> dict[str, Integers]:
    """The numbers that the cells are made of, by name; 0 where a cell lacks one."""
    groups = cells.str.extract_groups(f"(?i)^{_ALL_FORMS[form]}$").struct.unnest()
    numbers = groups.select(_NUMBERS[part.name] for part in groups if part.null_count() < len(cells))
    lacking = dict.fromkeys((*groups.columns, "month"), np.zeros(len(cells), dtype=np.int64))
    return lacking | {column.name: column.to_numpy() for column in numbers}


def compute_instants(parts: dict[str, Integers]) -> Integers:
    """Microseconds since 1970; NO_TIME where the parts make up no time."""
    years = parts["year"] + 1900 * (parts["year"] < 100) + 100 * (parts["year"] < 69)  # 1969 to 2068
    if "week" in parts:
        days, valid = find_monday(years, parts["week"])
    elif "quarter" in parts:
        days, valid = find_day(years, 3 * parts["quarter"] - 2)
    else:
        days, valid = find_day(years, parts["month"], parts.get("day"))
    if "hour" not in parts:
        return keep_plausible(np.where(valid, days * DAY, NO_TIME))
    clock, on_clock = _compute_clock(parts)
    return keep_plausible(np.where(valid & on_clock, days * DAY + clock, NO_TIME))


def _compute_clock(parts: dict[str, Integers]) -> tuple[Integers, Truths]:
    """Microseconds since midnight in UTC, and whether a clock can show such a time."""
    hour, minute, second = parts["hour"], parts["minute"], parts["second"]
    half, zone = (parts.get(name, np.zeros_like(hour)) for name in ("half", "zone"))
    valid = (hour < 24) & (minute < 60) & (second <= 60) & ((half == 0) | (hour >= 1) & (hour <= 12))
    hour = np.where(half == 0, hour, hour % 12 + 12 * (half == 2))
    ahead = np.sign(zone) * (np.abs(zone) // 100 * HOUR + np.abs(zone) % 100 * _MINUTE)
    return hour * HOUR + minute * _MINUTE + second * _SECOND + parts.get("fraction", 0) - ahead, valid


def keep_plausible(instants: Integers) -> Integers:
    """The instants of the years 1000 to 2999, NO_TIME in place of any other."""
    return np.where((instants >= _FIRST_TIME) & (instants < _PAST_TIMES), instants, NO_TIME)
