import datetime as dt
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covary.columns.profile import ColumnProfile, choose_columns, profile_columns
from covary.columns.reasons import Cause, Reason
from covary.errors import UnusableColumn


def profile(values, name="x", dtype=None):
    return profile_columns(pl.DataFrame({name: pl.Series(values, dtype=dtype)}))[0]


def role(values, name="x", dtype=None):
    judged = profile(values, name, dtype)
    return "key" if judged.is_key else "number" if judged.is_number else "neither"


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["a", "b", None], "text", "key"),
        (["1.5", "2", " 3e5 ", None], "number", "number"),
        (["3", "9", "4"], "integer", "number"),
        (["1e300", "-2.5e-300"], "number", "number"),
        (["1.0", "5.0", None], "integer", "number"),
        (["07030", "10001"], "integer", "key"),
        (["2013-01-05", "2013-02-05"], "date", "key"),
        (["1/5/2013", "12/31/2013"], "date", "key"),
        (["2013-01", "2013-02"], "date", "key"),
        (["2013-01-05 10:00", "2013-01-05T11:00:00Z"], "datetime", "key"),
        (["20130105", "20131231"], "date", "key"),
        (["20130105", "20131399"], "integer", "number"),
        (["true", "false"], "boolean", "key"),
        (["a", "a"], "text", "neither"),
        ([None, None], "empty", "neither"),
        (["NA", "", "-"], "empty", "neither"),
        (["word " * 60, "other " * 60], "text", "neither"),
        ([1.5, 2.0, None], "number", "number"),
        ([1.0, 7.0, float("nan")], "integer", "number"),
        ([float("nan"), None], "empty", "neither"),
        ([True, False], "boolean", "key"),
        ([dt.date(2013, 1, 1), dt.date(2013, 1, 2)], "date", "key"),
        ([dt.datetime(2013, 1, 1), dt.datetime(2013, 1, 2)], "datetime", "key"),
        ([Decimal("1.50"), Decimal("2.25")], "number", "number"),
        ([["list"], ["list2"]], "empty", "neither"),
    ],
)
def test_the_values_decide_kind_and_role(values, kind, expected):
    assert profile(values).kind == kind
    assert role(values) == expected


def test_categories_are_keys():
    assert role(["a", "b"], dtype=pl.Categorical) == "key"
    assert role(["a", "b"], dtype=pl.Enum(["a", "b"])) == "key"
    assert role(["07030", "10001"], dtype=pl.Categorical) == "key"


@pytest.mark.parametrize(
    "mark", ["NA", "N/A", "n/a", "null", "NULL", "None", "NaN", "nan", "-", ".", "..", "#N/A"]
)
def test_marks_of_absence_do_not_count_against_numbers(mark):
    assert role(["1.5", mark, "2.5", mark]) == "number"


def test_numbers_need_nineteen_cells_in_twenty():
    assert role([*map(str, range(100, 765, 7)), *["11-12"] * 5]) == "number"
    assert role([*map(str, range(100, 730, 7)), *["11-12"] * 10]) == "key"
    assert role([*map(str, range(100, 730, 7)), *["inf"] * 10]) == "number"  # a mark of absence


@pytest.mark.parametrize(
    "name",
    [
        "id", "ID", "user_id", "userId", "UserID", "customerid", "zip", "ZIP Code", "zipcode", "zip5",
        "postcode", "geocode", "MODZCTA", "GEOID", "county_fips", "FIPS", "code", "naics-code", "uuid",
        "phone", "phone number", "house_no", "Case Num", "isbn", "key", "index", "HUD #",
    ],
)  # fmt: skip
def test_an_integer_named_as_an_identifier_is_a_key(name):
    assert role(["31", "77", "52"], name) == "key"
    assert role([31, 77, 52], name) == "key"
    assert role([31.0, 77.0, None], name) == "key"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("year", ["2011", "2013"]), ("birthYear", ["1950", "1970"]), ("year_built", ["1950", "1970"]),
        ("record_min_temp_year", ["1950", "1970"]), ("month", ["1", "12"]), ("month", ["201301", "201307"]),
        ("day", ["3", "31"]), ("day_of_week", ["1", "7"]), ("week", ["1", "52"]), ("Quarter", ["1", "4"]),
        ("hour", ["0", "23"]), ("date", ["20130101", "20130102"]), ("season", ["2011", "2013"]),
    ],
)  # fmt: skip
def test_an_integer_named_as_a_period_that_it_fits_is_a_key(name, values):
    assert role(values, name) == "key"


@pytest.mark.parametrize(
    "name",
    [
        "days", "n_days", "num_deaths", "number_of_x", "hours", "no_of_rooms", "deaths_per_day", "code_count",
        "zip_population", "total_no", "valid", "paid", "bid", "covid", "humid", "years_experience",
        "weekly_sales", "day", "month", "width", "Full_time",
    ],
)  # fmt: skip
def test_an_integer_that_measures_is_a_number(name):
    assert role(["31", "770", "52"], name) == "number"


def test_a_fraction_is_a_number_whatever_its_name():
    assert role(["1.5", "2.5"], "zip") == "number"


def test_a_row_number_is_a_key():
    assert profile(list(range(20))).reason == Reason(Cause.ROW_NUMBER)
    assert profile([str(i) for i in range(50, 0, -1)]).reason == Reason(Cause.ROW_NUMBER)
    assert role(list(range(19))) == "number"
    assert role([*range(19), 18]) == "number"
    assert role([i * 3 for i in range(50)]) == "number"


def test_a_row_number_is_known_from_a_sample_of_its_table():
    pieces = [*range(1000), *range(500_000, 501_000), *range(999_000, 1_000_000)]
    assert role(pieces) == "key"
    assert role(list(range(250_000))) == "key"


def test_columns_that_a_person_names_are_chosen_whatever_they_hold():
    profiles = profile_columns(pl.DataFrame({"a": ["x", "y"], "n": [3, 8], "v": [1.5, 2.5], "zip": [1, 2]}))
    assert choose_columns(profiles, "t") == (["a", "zip"], ["n", "v"])
    assert choose_columns(profiles, "t", keys=["n"]) == (["n"], ["v"])
    assert choose_columns(profiles, "t", keys=["elsewhere"]) == ([], ["n", "v"])
    assert choose_columns(profiles, "t", values=["zip", "elsewhere"]) == (["a"], ["zip"])
    assert choose_columns(profiles, "t", keys=["a"], values=["v"]) == (["a"], ["v"])


def test_dates_named_as_values_are_refused():
    with pytest.raises(UnusableColumn, match="day"):
        choose_columns(
            [ColumnProfile("day", "date", True, False, Reason(Cause.DECLARED_TYPE))], "t", values=["day"]
        )


@given(
    st.lists(
        st.one_of(st.none(), st.text(max_size=5), st.floats().map(str), st.integers().map(str)), max_size=50
    )
)
def test_any_text_has_a_profile(cells):
    column = pl.Series("x", cells, dtype=pl.String)
    judged = profile_columns(column.to_frame())[0]
    assert not (judged.is_key and judged.is_number)


def test_a_frame_without_rows_or_columns_is_fine():
    assert profile_columns(pl.DataFrame()) == []
    assert [p.kind for p in profile_columns(pl.DataFrame(schema={"a": pl.String, "b": pl.Int64}))] == [
        "empty",
        "empty",
    ]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", " 2.5 ", "3e2", "-.5", "+4"], "number"),
        (["1,5", "2,5"], "number"),
        (["1,5", "2;5"], "key"),
        (["inf", "nan", None], "neither"),
        (["07", "-3"], "key"),
        (["0", "0.0", "-07", "+07", "3"], "number"),
        ([" 07 ", "31", "NA"], "key"),
        (["0:30", "09x", "5"], "key"),
    ],
)
def test_text_is_read_as_numbers_leniently(cells, expected):
    assert role(cells) == expected


def test_each_column_of_a_frame_has_its_own_role():
    frame = pl.DataFrame(
        {
            "plain": ["1.5", "2.5", "3.5"],
            "code": ["07", "8", "9"],
            "marked": [" 1 ", "NA", "3"],
            "word": ["a", "b", None],
            "category": pl.Series(["a", "b", "a"], dtype=pl.Categorical),
            "typed": [3, 9, 4],
            "day": [dt.date(2013, 1, 1), dt.date(2013, 1, 2), None],
            "empty": pl.Series([None, None, None], dtype=pl.String),
        }
    )
    judged = {p.name: (p.kind, p.is_key, p.is_number) for p in profile_columns(frame)}
    assert judged == {
        "plain": ("number", False, True),
        "code": ("integer", True, False),
        "marked": ("integer", False, True),
        "word": ("text", True, False),
        "category": ("text", True, False),
        "typed": ("integer", False, True),
        "day": ("date", True, False),
        "empty": ("empty", False, False),
    }


def test_text_that_is_long_on_average_is_no_key():
    assert role(["short", *["many words " * 30] * 50, "brief"]) == "neither"
    assert role([*["short", "brief"] * 50, "many words " * 30]) == "key"


def test_names_that_look_like_patterns_are_only_names():
    frame = pl.DataFrame({"^.*$": ["a", "b"], "*": ["1.5", "2.5"]})
    assert [(p.name, p.is_key) for p in profile_columns(frame)] == [("^.*$", True), ("*", False)]


@pytest.mark.parametrize("values", [[True, False], [dt.date(2020, 1, 1), dt.date(2020, 1, 2)]])
def test_a_typed_column_may_be_named_like_a_pattern(values):
    [profile] = profile_columns(pl.DataFrame({"^x$": values * 30}))
    assert profile.is_key
