import pandas as pd
import polars as pl
import pytest

import covary
from covary.errors import CovaryError, SketchError, UnreadableTable, UnusableColumn

KEYS = ["a", "b", "c", "d"]


def test_categories_may_hold_numbers():
    rows = pl.DataFrame({"k": KEYS, "v": pl.Series(["1", "2", "3", "4.5"], dtype=pl.Categorical)})
    assert sorted(covary.sketch(rows, "k", "v").values) == [1, 2, 3, 4.5]


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(pl.Series([[1.0]] * 4), id="list"),
        pytest.param(pl.Series([{"x": 1.0}] * 4), id="struct"),
        pytest.param(pl.Series([b"1"] * 4), id="bytes"),
        pytest.param(pl.Series([True, False, True, False]), id="boolean"),
        pytest.param(pl.Series([1, 2, 3, 4], dtype=pl.Duration), id="duration"),
    ],
)
def test_what_holds_no_numbers_is_refused_as_a_value(column):
    with pytest.raises(UnusableColumn, match="holds no numbers"):
        covary.sketch(pl.DataFrame({"k": KEYS, "v": column}), "k", "v")


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(pl.Series([[1]] * 4), id="list"),
        pytest.param(pl.Series([{"x": 1}] * 4), id="struct"),
        pytest.param(pl.Series([b"1"] * 4), id="bytes"),
        pytest.param(pl.Series([1, 2, 3, 4], dtype=pl.Duration), id="duration"),
    ],
)
def test_what_cannot_be_written_is_refused_as_a_key(column):
    with pytest.raises(UnusableColumn, match="can't be a key"):
        covary.sketch(pl.DataFrame({"k": column, "v": [1.0, 2.0, 3.0, 4.0]}), "k", "v")


def test_a_date_beyond_the_calendar_is_refused(capfd):
    far = pl.Series([2**31 - 1] * 4, dtype=pl.Int32).cast(pl.Date)
    with pytest.raises(CovaryError):
        covary.sketch(pl.DataFrame({"k": far, "v": [1.0, 2.0, 3.0, 4.0]}), "k", "v")
    capfd.readouterr()  # Polars prints its panic


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(pd.DataFrame([["a", 1, 2]], columns=["k", "v", "v"]), id="two columns of one name"),
        pytest.param(pd.Series([1, 2]), id="pandas series"),
        pytest.param(pl.Series([1, 2]), id="polars series"),
        pytest.param({"k": [1]}, id="dictionary"),
    ],
)
def test_anything_but_a_table_is_refused(frame):
    with pytest.raises(UnreadableTable):
        covary.sketch(frame, "k", "v")


@pytest.mark.parametrize("size", ["1024", 3.5, None, 2])
def test_a_size_must_be_a_whole_number_of_3_or_more(size):
    with pytest.raises(SketchError, match="at least 3 keys"):
        covary.sketch(pl.DataFrame({"k": KEYS, "v": [1.0, 2.0, 3.0, 4.0]}), "k", "v", size=size)
