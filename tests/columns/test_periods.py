from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covary.columns.periods import (
    find_day,
    find_monday,
    list_coarser,
    name_periods,
    number_periods,
    write_periods,
)
from covary.columns.times import GRANULARITIES

MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(2999, 12, 31, 23, 59, 59, 999_999))
# The days around New Year are where ISO weeks and calendar years part.
NEW_YEARS = st.builds(
    lambda year, hours: datetime(year, 1, 1) + timedelta(hours=hours),
    st.integers(1001, 2999),
    st.integers(-8 * 24, 8 * 24),
)
AROUND_1970 = st.builds(
    lambda us: datetime(1970, 1, 1) + timedelta(microseconds=us), st.integers(-(10**11), 10**11)
)
TIMES = st.lists(st.one_of(st.none(), MOMENTS, NEW_YEARS, AROUND_1970)).map(
    lambda times: pl.Series("when", times, dtype=pl.Datetime("us"))
)


def names_of(times, granularity):
    """Name the periods of times by their numbers, as the rows of a table are."""
    (numbers,) = number_periods(times.drop_nulls().to_physical().to_numpy(), [granularity])
    names = iter(name_periods(numbers, granularity))
    return [None if time is None else next(names) for time in times.to_list()]


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        ("moment", "2012-12-31T06:17:33"),
        ("hour", "2012-12-31T06"),
        ("day", "2012-12-31"),
        ("week", "2013-W01"),
        ("month", "2012-12"),
        ("quarter", "2012-Q4"),
        ("year", "2012"),
    ],
)
def test_periods_are_written_by_granularity(granularity, expected):
    times = pl.Series([datetime(2012, 12, 31, 6, 17, 33), None])
    assert write_periods(times, granularity).to_list() == [expected, None]


def test_a_fraction_of_a_second_is_written_without_trailing_zeros():
    times = pl.Series([datetime(2013, 1, 5, 6, 17, 30, us) for us in (0, 500_000, 1, 120)])
    seconds = [text.removeprefix("2013-01-05T06:17:") for text in write_periods(times, "moment")]
    assert seconds == ["30", "30.5", "30.000001", "30.00012"]


def test_weeks_nest_in_nothing_and_everything_else_nests():
    assert list_coarser("moment") == ("hour", "day", "week", "month", "quarter", "year")
    assert list_coarser("day") == ("week", "month", "quarter", "year")
    assert list_coarser("week") == ()
    assert list_coarser("month") == ("quarter", "year")
    assert list_coarser("quarter") == ("year",)
    assert list_coarser("year") == ()


@pytest.mark.parametrize("granularity", GRANULARITIES)
@settings(max_examples=40)
@given(times=TIMES)
def test_names_by_number_are_the_texts_of_the_times(granularity, times):
    assert names_of(times, granularity) == write_periods(times, granularity).to_list()


@settings(max_examples=50)
@given(times=TIMES)
def test_periods_roll_up_into_every_coarser_one(times):
    texts = {granularity: names_of(times, granularity) for granularity in GRANULARITIES}
    for granularity, fine in texts.items():
        for rolled_up in list_coarser(granularity):
            assert len(set(zip(fine, texts[rolled_up], strict=True))) == len(set(fine))


@given(MOMENTS)
def test_text_agrees_with_the_standard_library(moment):
    times = pl.Series([moment], dtype=pl.Datetime("us"))
    week_year, week, _ = moment.isocalendar()
    assert write_periods(times, "week").item() == f"{week_year}-W{week:02}"
    assert write_periods(times, "day").item() == moment.date().isoformat()
    assert write_periods(times, "quarter").item() == f"{moment.year}-Q{(moment.month + 2) // 3}"


@given(st.integers(1000, 2999), st.integers(-1, 14), st.integers(-1, 33))
def test_a_day_exists_if_the_standard_library_knows_it(year, month, day):
    try:
        expected = (date(year, month, day) - date(1970, 1, 1)).days
    except ValueError:
        expected = None
    days, valid = find_day(np.array([year]), np.array([month]), np.array([day]))
    assert (days.item() if valid.item() else None) == expected


@given(st.integers(1000, 2999), st.integers(-1, 55))
def test_a_week_exists_if_the_standard_library_knows_it(year, week):
    try:
        expected = (date.fromisocalendar(year, week, 1) - date(1970, 1, 1)).days
    except ValueError:
        expected = None
    days, valid = find_monday(np.array([year]), np.array([week]))
    assert (days.item() if valid.item() else None) == expected
