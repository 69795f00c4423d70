"""The calendar: times rolled up into periods, the text that names each, and the days they begin with."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from covary.arrays import Integers, Truths

HOUR, DAY = 3_600_000_000, 86_400_000_000  # in microseconds

_COARSER = {  # weeks don't nest in months or years
    "moment": ("hour", "day", "week", "month", "quarter", "year"),
    "hour": ("day", "week", "month", "quarter", "year"),
    "day": ("week", "month", "quarter", "year"),
    "month": ("quarter", "year"),
    "quarter": ("year",),
}
_MICROSECONDS = {"moment": 1, "hour": HOUR, "day": DAY}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_TEXT_FORMATS = {
    "moment": "%Y-%m-%dT%H:%M:%S%.6f",
    "hour": "%Y-%m-%dT%H",
    "day": "%Y-%m-%d",
    "week": "%G-W%V",
    "month": "%Y-%m",
    "quarter": "%Y-Q",
    "year": "%Y",
}


def list_coarser(granularity: str) -> tuple[str, ...]:
    """The granularities that periods of this one can be rolled up to, finest first."""
    return _COARSER.get(granularity, ())


def write_periods(times: pl.Series, granularity: str) -> pl.Series:
    """The name of the period that each time falls in; null stays null."""
    text = times.dt.to_string(_TEXT_FORMATS[granularity])
    if granularity == "moment":
        return text.str.strip_chars_end("0").str.strip_suffix(".")
    return text + times.dt.quarter().cast(pl.String) if granularity == "quarter" else text


def number_periods(instants: Integers, granularities: Sequence[str]) -> list[Integers]:
    """The period of each time at several granularities, counted from that of the first of January 1970."""
    days = instants // DAY
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    number_by: dict[str, Callable[[], Integers]] = {
        "moment": lambda: instants,
        "hour": lambda: instants // HOUR,
        "day": lambda: days,
        "week": lambda: (days + 3) // 7,  # 1970 began on a Thursday
        "month": lambda: months,
        "quarter": lambda: months // 3,
        "year": lambda: months // 12,
    }
    return [number_by[granularity]() for granularity in granularities]


def name_periods(numbers: Integers, granularity: str) -> pl.Series:
    """Name periods by their numbers, as `write_periods` names those of times."""
    if granularity in _MONTHS:
        starts = _find_first_day(numbers * _MONTHS[granularity], "M") * DAY
    elif granularity == "week":
        starts = (numbers * 7 - 3) * DAY  # 1970 began on a Thursday
    else:
        starts = numbers * _MICROSECONDS[granularity]
    return write_periods(pl.Series(starts.view("datetime64[us]")), granularity)


def find_day(years: Integers, months: Integers, days: Integers | None = None) -> tuple[Integers, Truths]:
    """Days since 1970, by default at the start of the month; and whether there's such a day."""
    since_1970 = (years - 1970) * 12 + months - 1
    first, next_first = _find_first_day(since_1970, "M"), _find_first_day(since_1970 + 1, "M")
    in_year = (months >= 1) & (months <= 12)
    if days is None:
        return first, in_year
    return first + days - 1, in_year & (days >= 1) & (days <= next_first - first)


def find_monday(years: Integers, weeks: Integers) -> tuple[Integers, Truths]:
    """The Monday of each ISO week, in days since 1970; and whether the year has such a week."""
    # A week belongs to the year of its Thursday, and 1970 began with one.
    thursdays = -(-_find_first_day(years - 1970, "Y") // 7) * 7 + 7 * (weeks - 1)
    return thursdays - 3, (weeks >= 1) & (thursdays < _find_first_day(years - 1969, "Y"))


def _find_first_day(periods: Integers, unit: str) -> Integers:
    """The first day of each month or year since 1970, in days since then."""
    return periods.astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.int64)
