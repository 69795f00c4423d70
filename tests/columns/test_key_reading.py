from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covary.columns.key_reading import KeyReading, decide_exact_reading, decide_key_reading, write_keys
from covary.columns.key_text import make_canonical
from covary.sketching.hashing import SCHEMES
from covary.sketching.key_columns import read_columns

SCHEME = SCHEMES["xxhash64"]


def texts_of(cells, name="k", dtype=pl.String):
    column = pl.Series(name, cells, dtype=dtype)
    read = read_columns(column.to_frame(), {name: decide_key_reading(name, column)}, SCHEME)[name]
    present = next(iter(read.levels.values())).present
    texts = read.texts_of(np.arange(len(cells)))
    return texts if present is None else [t if p else None for t, p in zip(texts, present, strict=True)]


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("MANHATTAN ", "manhattan"),
        ("\tNew\u00a0 York\n", "new york"),
        ("Coeur d’Alene", "coeur d'alene"),
        ("“quoted”", '"quoted"'),
        ("Winston–Salem", "winston-salem"),
        ("Sa\u0303o Paulo", "são paulo"),
        ("ﬁle №５", "file no5"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("soft\u00adhyphen", "softhyphen"),
        ("07030", "7030"),
        ("7030.0", "7030"),
        ("7030.", "7030"),
        ("+5", "5"),
        ("-007", "-7"),
        ("000", "0"),
        ("01M292", "01m292"),
        ("1.50", "1.50"),
        ("1e5", "1e5"),
        ("007-1", "007-1"),
        ("", ""),
        (None, None),
    ],
)
def test_key_text_is_made_canonical(written, canonical):
    assert make_canonical(pl.Series([written, "x"], dtype=pl.String)).to_list()[0] == canonical


@given(st.lists(st.one_of(st.none(), st.text(max_size=12), st.from_regex(r"\A[+-]?0*\d{1,4}(\.0*)?\Z"))))
def test_making_canonical_twice_is_making_it_once(cells):
    once = make_canonical(pl.Series(cells, dtype=pl.String))
    assert make_canonical(once).to_list() == once.to_list()


@given(st.lists(st.text(max_size=8), min_size=1), st.randoms())
def test_a_cell_is_read_the_same_whatever_stands_beside_it(cells, random):
    together = dict(zip(cells, make_canonical(pl.Series(cells)).to_list(), strict=True))
    random.shuffle(cells)
    for cell in cells[:3]:
        assert make_canonical(pl.Series([cell])).to_list() == [together[cell]]


def test_yes_and_true_are_one_key_in_a_column_of_booleans():
    assert texts_of(["Yes", "NO", "yes"]) == ["true", "false", "true"]
    assert texts_of([True, False, None], dtype=pl.Boolean) == ["true", "false", None]
    assert texts_of(["yes", "no", "maybe"]) == ["yes", "no", "maybe"]


def test_marks_of_absence_are_no_keys():
    assert texts_of(["Bronx", "N/A", "-", "Queens", "null"]) == ["bronx", None, None, "queens", None]


def test_na_is_namibia_among_countries_codes_and_absent_elsewhere():
    codes = ["NA", "ZA", "BW", "ZW", "MZ", "AO", "ZM", "FR"]
    assert texts_of(codes, name="country")[:2] == ["country:nam", "country:zaf"]
    assert texts_of(["NA", "Bronx", "Queens"])[0] is None


def test_countries_and_states_meet_under_any_name():
    names = texts_of(["Côte d’Ivoire", "United States", "France"], name="country")
    codes = texts_of(["CIV", "USA", "FRA"], name="country_code")
    assert names == codes == ["country:civ", "country:usa", "country:fra"]
    states = ["New York", "Texas", "Ohio", "Iowa", "Utah"]
    assert texts_of(states, "state") == texts_of(["NY", "TX", "OH", "IA", "UT"], "st")


def test_exact_keys_stay_as_they_are_written():
    column = pl.Series("k", [" 007 ", "A", "N/A"])
    reading = decide_exact_reading(column)
    assert reading == KeyReading()
    assert write_keys(column.to_frame(), {"k": reading})[0].to_list() == [" 007 ", "A", "N/A"]


def test_coarser_granularities_are_offered_where_they_leave_enough_keys():
    start = datetime(2013, 1, 1)
    year = pl.Series("t", [start + timedelta(hours=hour) for hour in range(0, 365 * 24, 7)])
    assert decide_key_reading("t", year).offered == ("hour", "day", "week", "month")
    weeks = pl.Series("t", [date(2013, 1, 1) + timedelta(days=day) for day in range(9)])
    assert decide_key_reading("t", weeks).offered == ("day",)
    decades = pl.Series("t", [f"{year}-01" for year in range(1990, 2020)])
    assert decide_key_reading("t", decades).offered == ("month", "quarter", "year")


def test_compact_dates_are_read_only_where_the_caller_knows_them():
    cells = pl.Series("date", [20130105, 20130106, 20131231])
    assert decide_key_reading("date", cells).kind == "text"
    assert decide_key_reading("date", cells, compact=True).time.granularity == "day"
