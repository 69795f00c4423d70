import pickle
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covary.columns.periods import write_periods
from covary.columns.times import GRANULARITIES, TimeReading, decide_time_reading, may_be_times, read_times

MANY_CELLS = 10_000
DAYS = st.dates(date(1000, 1, 1), date(2999, 12, 31))
RECENT_DAYS = st.dates(date(1969, 1, 1), date(2068, 12, 31))
MOMENTS = st.datetimes(datetime(1000, 1, 2), datetime(2999, 12, 30))
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))

DAY_FORMATS = {
    "2013-01-05": lambda d: d.isoformat(),
    "2013/1/5": lambda d: f"{d.year}/{d.month}/{d.day}",
    "2013.01.05": lambda d: d.strftime("%Y.%m.%d"),
    "1/5/2013": lambda d: f"{d.month}/{d.day}/{d.year}",
    "01-05-2013": lambda d: d.strftime("%m-%d-%Y"),
    "01.05.2013": lambda d: d.strftime("%m.%d.%Y"),
    "5/1/2013": lambda d: f"{d.day}/{d.month}/{d.year}",
    "05-01-2013": lambda d: d.strftime("%d-%m-%Y"),
    "5.1.2013": lambda d: f"{d.day}.{d.month}.{d.year}",
    "5 Jan 2013": lambda d: f"{d.day} {d:%b %Y}",
    "5-JAN-2013": lambda d: f"{d.day}-{d:%b-%Y}".upper(),
    "5th January 2013": lambda d: f"{d.day}{nth(d.day)} {d:%B %Y}",
    "Jan 5, 2013": lambda d: f"{d:%b} {d.day}, {d.year}",
    "January 5 2013": lambda d: f"{d:%B} {d.day} {d.year}",
    "Sat, 5 Jan 2013": lambda d: f"{d:%a}, {d.day} {d:%b %Y}",
    "Saturday, January 5, 2013": lambda d: f"{d:%A, %B} {d.day}, {d.year}",
    " 2013-01-05 00:00 ": lambda d: f" {d} 00:00 ",
    "1/5/2013 12:00:00 AM": lambda d: f"{d.month}/{d.day}/{d.year} 12:00:00 AM",
}
SHORT_YEAR_FORMATS = {
    "1/5/13": lambda d: f"{d.month}/{d.day}/{d:%y}",
    "05-01-13": lambda d: d.strftime("%d-%m-%y"),
    "05.01.13": lambda d: d.strftime("%d.%m.%y"),
    "05-Jan-13": lambda d: d.strftime("%d-%b-%y"),
}
CLOCK_FORMATS = {
    "2013-01-05T18:17:33": "%Y-%m-%dT%H:%M:%S",
    "2013-01-05 18:17:33": "%Y-%m-%d %H:%M:%S",
    "2013-01-05T18:17:33Z": "%Y-%m-%dT%H:%M:%SZ",
    "2013-01-05 18:17:33.5": "%Y-%m-%d %H:%M:%S.%f",
    "01/05/2013 06:17:33 PM": "%m/%d/%Y %I:%M:%S %p",
    "05/01/2013 18:17:33": "%d/%m/%Y %H:%M:%S",
    "5 Jan 2013 6:17:33PM": "%d %b %Y %I:%M:%S%p",
    "January 5, 2013, 18:17:33": "%B %d, %Y, %H:%M:%S",
}


def nth(day):
    return "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def with_a_late_day(days):
    return st.lists(days, min_size=20, max_size=30).filter(lambda column: any(d.day > 12 for d in column))


def text(*cells):
    return pl.Series("when", cells, dtype=pl.String)


def canonical(cells, compact=False):
    reading = decide_time_reading(cells, compact)
    assert reading is not None
    return write_periods(read_times(cells, reading), reading.granularity).to_list()


@pytest.mark.parametrize("example", DAY_FORMATS)
@settings(max_examples=10)
@given(days=with_a_late_day(DAYS))
def test_dates_in_any_format_read_back_as_themselves(example, days):
    assert canonical(text(*map(DAY_FORMATS[example], days))) == [d.isoformat() for d in days]


@pytest.mark.parametrize("example", SHORT_YEAR_FORMATS)
@settings(max_examples=10)
@given(days=with_a_late_day(RECENT_DAYS))
def test_years_of_two_digits_fall_between_1969_and_2068(example, days):
    assert canonical(text(*map(SHORT_YEAR_FORMATS[example], days))) == [d.isoformat() for d in days]


@pytest.mark.parametrize("example", CLOCK_FORMATS)
@settings(max_examples=10)
@given(moments=with_a_late_day(MOMENTS))
def test_times_in_any_format_read_back_as_themselves(example, moments):
    kept = [m if "%f" in CLOCK_FORMATS[example] else m.replace(microsecond=0) for m in moments]
    cells = text(*(m.strftime(CLOCK_FORMATS[example]) for m in kept))
    assert read_times(cells, decide_time_reading(cells)).to_list() == kept


@settings(max_examples=50)
@given(st.lists(MOMENTS, min_size=1), ZONES)
def test_times_with_an_offset_become_utc(moments, zone):
    cells = text(*(m.replace(tzinfo=UTC).astimezone(zone).isoformat() for m in moments))
    assert read_times(cells, TimeReading(("year-month-day",))).to_list() == moments


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["2013-01-05 06:00", "2013-01-05T07Z"], ["2013-01-05T06", "2013-01-05T07"]),
        (["1/5/2013 6:17 a.m.", "1/15/2013 12:17 P.M."], ["2013-01-05T06:17:00", "2013-01-15T12:17:00"]),
        (["2013-01-05 06:17:33.250"], ["2013-01-05T06:17:33.25"]),
        (["2013-01-05 06:17:33,5"], ["2013-01-05T06:17:33.5"]),
        (["2013-01-05T06:17:33\u202fPM"], ["2013-01-05T18:17:33"]),
        (["2013-01", "2013/02", "2013M03"], ["2013-01", "2013-02", "2013-03"]),
        (["Jan 2013", "February 2013", "Mar-13", "Sept. 2013"], ["2013-01", "2013-02", "2013-03", "2013-09"]),
        (["01/2013", "12/2013"], ["2013-01", "2013-12"]),
        (["2013Q1", "2013-Q2", "2013 Q3"], ["2013-Q1", "2013-Q2", "2013-Q3"]),
        (["Q4 2013", "1Q2014"], ["2013-Q4", "2014-Q1"]),
        (["2013-W05", "2013W52", "2015-W53"], ["2013-W05", "2013-W52", "2015-W53"]),
        (["1/31/2013", "2013-02-01", "3 Feb 2013"], ["2013-01-31", "2013-02-01", "2013-02-03"]),
        (["2013-01-05", None, "n/a", "NaT", " - ", ""], ["2013-01-05", None, None, None, None, None]),
    ],
)  # fmt: skip
def test_each_way_of_writing_has_its_canonical_text(cells, expected):
    assert canonical(text(*cells)) == expected
    assert may_be_times([cell for cell in cells if cell and cell[0].isalnum() and cell != "n/a"])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["20130105", "20130106"], ["2013-01-05", "2013-01-06"]),
        (["20130105T061733", "20130105061734"], ["2013-01-05T06:17:33", "2013-01-05T06:17:34"]),
        (["201301", "201302"], ["2013-01", "2013-02"]),
        ([20130105, 20130106], ["2013-01-05", "2013-01-06"]),
    ],
)
def test_whole_numbers_are_times_only_if_asked(cells, expected):
    assert decide_time_reading(pl.Series(cells)) is None
    assert not may_be_times(map(str, cells))
    assert may_be_times(map(str, cells), compact=True)
    assert canonical(pl.Series(cells), compact=True) == expected


@pytest.mark.parametrize(
    "cells",
    [
        ["2013", "2014"],
        ["06:17", "18:00"],
        ["1-Jul", "2-Jul"],
        ["Jan 13", "May 5"],
        ["13-21", "22-30"],
        ["1.5", "10.12"],
        ["10.12.13.14", "192.168.1.1"],
        ["1.5.13", "2.10.12"],
        ["555-123-4567", "212-555-0101"],
        ["1/2", "3/4"],
        ["2001-02", "2002-03", "2003-04"],
        ["2013-02-30", "2013-13-01"],
        ["0999-01-01", "3000-01-01"],
        ["Midtown", "5 May Street"],
        ["2013-01-05", "somewhere"],
        ["n/a", ""],
        [],
    ],
)
def test_other_text_is_no_time(cells):
    assert decide_time_reading(text(*cells)) is None


def test_other_cells_of_the_column_show_which_number_is_the_day():
    assert decide_time_reading(text("1/5/2013", "1/13/2013")).formats == ("month/day/year",)
    assert decide_time_reading(text("1/5/2013", "13/1/2013")).formats == ("day/month/year",)
    unclear = decide_time_reading(text("1/5/2013", "2/6/2013"))
    assert (unclear.formats, unclear.ambiguous) == (("month/day/year",), True)


def test_a_reading_describes_itself():
    assert decide_time_reading(text("1/13/2013")).description == "dates written month/day/year"
    assert TimeReading((), "hour").description == "times to the hour"
    assert TimeReading((), "quarter").description == "quarters"
    assert decide_time_reading(text("1/5/2013")).description == (
        "dates; day or month first can't be told from the values: read as month/day/year"
    )


def test_one_cell_in_twenty_may_be_something_else():
    assert decide_time_reading(text(*["2013-01-05"] * 19, "soon")) is not None
    assert decide_time_reading(text(*["2013-01-05"] * 18, "soon", "later")) is None


def test_a_month_among_days_is_not_a_day():
    cells = text(*["2013-01-05"] * 39, "2013-01")
    assert read_times(cells, decide_time_reading(cells)).to_list()[-1] is None


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_columns_of_times_are_read_by_what_they_hold(unit, zone):
    noon = pl.Series([datetime(2013, 1, 5, 12), None]).dt.replace_time_zone("UTC")
    column = noon.dt.convert_time_zone(zone) if zone else noon.dt.replace_time_zone(None)
    column = column.dt.cast_time_unit(unit)
    assert decide_time_reading(column) == TimeReading((), "hour")
    assert read_times(column, TimeReading()).to_list() == [datetime(2013, 1, 5, 12), None]


def test_midnights_are_days():
    assert decide_time_reading(pl.Series([date(2013, 1, 5)])) == TimeReading((), "day")
    assert decide_time_reading(pl.Series([datetime(2013, 1, 5)])) == TimeReading((), "day")
    assert decide_time_reading(text("2013-01-05 00:00:00")).granularity == "day"
    assert decide_time_reading(pl.Series([None], dtype=pl.Date)) is None


def test_years_far_off_are_no_times():
    column = pl.Series([date(2013, 1, 5), date(9999, 12, 31), date(1, 1, 1)])
    assert decide_time_reading(column[1:]) is None
    assert read_times(column, TimeReading()).to_list() == [datetime(2013, 1, 5), None, None]


def test_other_types_are_no_times():
    for column in (pl.Series([1.5]), pl.Series([2013]), pl.Series([True]), pl.Series([[1]])):
        assert decide_time_reading(column) is None


def test_a_long_column_is_read_like_a_short_one():
    odd = [
        "2013-01- 5 06:17:33",
        "2013-01-05  6:17:33",
        "2013-01-05 06:17:60",
        "0013-01-05 06:17:33",
        "x",
        None,
    ]
    seconds = np.arange(2 * MANY_CELLS).astype("datetime64[s]").astype(str).tolist()
    reading = TimeReading(("year-month-day",), "moment")
    short = [read_times(text(cell), reading).item() for cell in odd]
    assert read_times(text(*seconds, *odd), reading).to_list()[len(seconds) :] == short
    assert read_times(text(*odd * MANY_CELLS), reading).to_list() == short * MANY_CELLS
    assert read_times(text(*seconds), reading).to_physical().to_list() == [
        second * 1_000_000 for second in range(2 * MANY_CELLS)
    ]


def test_a_reading_survives_pickling_and_serves_as_a_key():
    reading = decide_time_reading(text("1/13/2013"))
    assert {pickle.loads(pickle.dumps(reading)): 1}[reading] == 1


WRITTEN = st.sampled_from([*DAY_FORMATS.values(), *SHORT_YEAR_FORMATS.values(), str.upper])
MIXED_CELLS = st.lists(
    st.one_of(
        st.builds(lambda d, write: write(d) if write != str.upper else "N/A", RECENT_DAYS, WRITTEN), st.text()
    ),
    max_size=60,
)


@given(MIXED_CELLS, st.randoms(use_true_random=False))
def test_the_order_of_cells_never_changes_the_reading(cells, random):
    shuffled = random.sample(cells, len(cells))
    assert decide_time_reading(text(*cells)) == decide_time_reading(text(*shuffled))


def test_the_order_of_very_many_cells_never_changes_the_reading():
    cells = text(*(f"{1 + n % 12}/{1 + n % 28}/{1900 + n % 131}" for n in range(5_000)))
    readings = {decide_time_reading(cells.sample(fraction=1, shuffle=True, seed=seed)) for seed in range(5)}
    assert readings == {TimeReading(("month/day/year",))}


ALL_FORMATS = ["year-month-day", "month/day/year", "day/month/year", "year-month", "month/year", "yyyymm"]
ALL_FORMATS += ["year-quarter", "quarter-year", "quarter Q year", "year-week", "yyyymmdd", "month-name-yy"]
ALL_FORMATS += ["day month-name year", "month-name day year", "month-name year"]
ODD_TEXT = st.one_of(st.text(), st.text("0123456789-/.: TZWQM+JanPM,", max_size=24), st.none())


@given(st.lists(ODD_TEXT), st.permutations(ALL_FORMATS))
def test_no_text_is_too_odd_to_read(cells, formats):
    column = text(*cells)
    times = read_times(column, TimeReading(tuple(formats)))
    assert (times.dtype, times.name, len(times)) == (pl.Datetime("us"), "when", len(cells))
    decide_time_reading(column, compact=True)
    may_be_times(cell for cell in cells if cell is not None)


@pytest.mark.parametrize("granularity", [g for g in GRANULARITIES if g != "year"])
@settings(max_examples=40)
@given(moments=st.lists(MOMENTS, min_size=1))
def test_canonical_text_is_its_own_canonical_text(granularity, moments):
    # An hour, a minute and a second other than 0, so that the finest granularity is the one asked for.
    times = pl.Series([*moments, datetime(2013, 5, 20, 6, 17, 33)])
    written = write_periods(times, granularity)
    assert decide_time_reading(written).granularity == granularity
    assert canonical(written) == written.to_list()
