from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covary.columns.key_reading import KeyReading, decide_exact_reading, decide_key_reading, write_keys
from covary.columns.key_text import make_canonical
from covary.columns.unused_cells import Tallies, Tally
from covary.sketching.hashing import SCHEMES
from covary.sketching.key_columns import Key, collect_readings, exact_key, hash_keys, read_columns

SCHEME = SCHEMES["xxhash64"]


def texts_of(cells, name="k", dtype=pl.String):
    column = pl.Series(name, cells, dtype=dtype)
    read = read_columns(column.to_frame(), {name: decide_key_reading(name, column)}, SCHEME, Tallies())[name]
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


def test_truths_are_one_text_each_in_a_column_of_truths():
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


def test_times_that_cannot_be_read_are_counted_and_are_no_keys():
    column = pl.Series("day", [*[f"1/{day}/2013" for day in range(1, 31)], "31/31/2013", "n/a", None])
    key = Key.of(("day",), (decide_key_reading("day", column),))
    tallies = Tallies()
    read = read_columns(column.to_frame(), collect_readings([key]), SCHEME, tallies)
    (levels,) = hash_keys([key], read, SCHEME)
    assert [level.rows.size for level in levels] == [30] * len(levels)
    assert tallies == {"day": Tally(2, 1, ("31/31/2013",))}


def test_a_key_of_several_columns_needs_all_of_them_and_their_order():
    rows = pl.DataFrame({"a": ["x", "y", None, "x"], "b": ["y", "x", "x", "y"]})
    one, other = (Key.of(names, (KeyReading(), KeyReading())) for names in (("a", "b"), ("b", "a")))
    read = read_columns(rows, collect_readings([one]), SCHEME, Tallies())
    (forth,), (back,) = hash_keys([one, other], read, SCHEME)
    assert forth.rows.tolist() == back.rows.tolist() == [0, 1, 3]
    assert forth.hashes[0] == forth.hashes[2] != forth.hashes[1]
    assert forth.hashes[0] == back.hashes[1]  # (x, y) and (y, x) are two keys


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_a_key_of_one_column_is_hashed_as_its_text(name):
    scheme, rows = SCHEMES[name], pl.DataFrame({"k": ["a", "b"]})
    read = read_columns(rows, collect_readings([exact_key("k")]), scheme, Tallies())
    ((level,),) = hash_keys([exact_key("k")], read, scheme)
    assert level.hashes.tolist() == scheme.identify([rows["k"]])[0].hashes.tolist()


def test_examples_are_the_keys_first_in_the_order_of_sampling():
    column = pl.Series("k", [f" Place {n % 40} " for n in range(200)])
    read = read_columns(column.to_frame(), {"k": decide_key_reading("k", column)}, SCHEME, Tallies())["k"]
    examples = read.examples(column, SCHEME, 5)
    assert all(text == written.strip().lower() for written, text in examples)
    texts = pl.Series([f"place {n}" for n in range(40)])
    units = SCHEME.unit(SCHEME.identify([texts])[0].hashes)
    first = [text for _, text in sorted(zip(units, texts, strict=True))[:5]]
    assert [text for _, text in examples] == first


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_a_long_column_of_repeated_cells_is_read_as_each_of_its_cells(name):
    cells = [["Bronx ", "N/A", None, "007", "Queens", ""][n % 6] for n in range(40_000)]
    column = pl.Series("k", cells)
    reading, scheme = decide_key_reading("k", column), SCHEMES[name]
    tallies, few = Tallies(), Tallies()
    long = read_columns(column.to_frame(), {"k": reading}, scheme, tallies)["k"].levels[""]
    short = read_columns(column[:6].to_frame(), {"k": reading}, scheme, few)["k"].levels[""]
    assert long.present[:6].tolist() == short.present.tolist() == [True, False, False, True, True, False]
    kept = short.present
    assert long.hashes[:6][kept].tolist() == short.hashes[kept].tolist()
    assert tallies["k"].missing == int((~long.present).sum())
