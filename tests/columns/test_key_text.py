from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from covary import join, sketch
from covary.columns.key_text import (
    MANY_CELLS,
    holds_dates,
    make_canonical,
    write_dates,
    write_key_text,
)


def text_of(values, kind=None):
    return write_key_text(pl.Series(values, dtype=kind, strict=False)).to_list()


def test_text_stays_as_it_is():
    assert text_of(["007", " a ", "", None]) == ["007", " a ", "", None]


@pytest.mark.parametrize("kind", [pl.Int8, pl.Int64, pl.UInt32, pl.Float32, pl.Float64])
def test_whole_numbers_have_no_fraction_whatever_their_type(kind):
    assert text_of([7, 0, None, 100], kind) == ["7", "0", None, "100"]


def test_floats_keep_their_fraction_and_drop_nan():
    assert text_of([1.5, -0.0, -3.0, float("nan"), 1e15]) == ["1.5", "0", "-3", None, "1000000000000000"]


@pytest.mark.parametrize("value", [1e300, float("inf"), 2.0**63])
def test_floats_beyond_integers_are_still_keys(value):
    (text,) = text_of([value])
    assert float(text) == value


def test_dates_are_written_in_iso_form():
    assert text_of([date(2021, 1, 2), None]) == ["2021-01-02", None]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_are_the_same_text_in_any_unit(unit):
    moments = [datetime(2021, 1, 2, 3, 4, 5), datetime(2021, 1, 2, 3, 4, 5, 250_000)]
    assert text_of(moments, pl.Datetime(unit)) == ["2021-01-02T03:04:05", "2021-01-02T03:04:05.250"]


def test_the_same_instant_is_the_same_text_in_any_zone():
    instant = datetime(2021, 1, 2, 3, 4, 5, tzinfo=UTC)
    elsewhere = instant.astimezone(timezone(timedelta(hours=9)))
    zoned = pl.Series([elsewhere]).dt.convert_time_zone("Asia/Tokyo")
    assert write_key_text(zoned).to_list() == text_of([instant]) == ["2021-01-02T03:04:05Z"]


def test_categories_and_truths_are_written_as_text():
    assert text_of(["a", "b", None], pl.Categorical) == ["a", "b", None]
    assert text_of([True, False, None]) == ["true", "false", None]


def test_times_all_at_midnight_are_dates():
    days = pl.Series("day", [datetime(2013, 7, 1), None, datetime(2013, 7, 2)])
    hours = pl.Series("hour", [datetime(2013, 7, 1), datetime(2013, 7, 1, 5), None])
    assert (holds_dates(days), holds_dates(hours)) == (True, False)
    assert write_dates(days).to_list() == ["2013-07-01", None, "2013-07-02"]
    assert write_key_text(hours).to_list()[0] == "2013-07-01T00:00:00"


def test_a_pandas_date_joins_a_date_written_as_text():
    days = [f"2013-07-{day:02}" for day in range(1, 29)]
    pandas_frame = pd.DataFrame({"day": pd.to_datetime(days), "x": range(28)})
    text_frame = pl.DataFrame({"day": days, "x": range(28)})
    assert join(sketch(pandas_frame, "day", "x"), sketch(text_frame, "day", "x")).size == 28


def test_a_decimal_key_is_written_without_trailing_zeros():
    column = pl.Series([Decimal("7030.00"), Decimal("1.50"), Decimal("100.00")], dtype=pl.Decimal(10, 2))
    assert write_key_text(column).to_list() == ["7030", "1.5", "100"]


@pytest.mark.parametrize(
    "cell", ["A", " x", "x ", "x\t", "007", "1.0", "+5", "-0", "a  b", "É", "o`clock", "plain", "7.5", None]
)
def test_a_long_column_is_written_as_a_short_one(cell):
    cells = [f"key-{number % 70}" for number in range(MANY_CELLS + 1)]
    cells[MANY_CELLS // 2] = cell
    written = make_canonical(pl.Series(cells))
    assert written[MANY_CELLS // 2] == make_canonical(pl.Series([cell], dtype=pl.String))[0]
    assert written[:100].to_list() == cells[:100]


def test_a_mark_of_absence_in_a_long_column_is_no_key():
    keys = [f"key-{number}" for number in range(50)] * 2000
    keys[7::1000] = ["N/A"] * 100
    sketched = sketch(pl.DataFrame({"k": keys, "v": np.arange(1e5)}), "k", "v")
    assert sketched.size == 50
    assert sketched.counts.null_keys == 100
