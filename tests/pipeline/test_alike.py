"""The same keys and numbers are read alike from text, from typed columns and from pandas."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest

import covary
from covary.columns.numbers import PLAIN, decide_number_reading, read_numbers
from covary.columns.profile import profile_columns
from covary.columns.times import decide_time_reading
from covary.columns.unused_cells import Tallies, Tally
from covary.index.reason_words import explain_column
from covary.sketching.key_choice import decide_keys
from covary.sketching.sketch_table import sketch_batches
from covary.sketching.sketch_types import SketchConfig
from covary.statistics.join import sketch_both

RNG = np.random.default_rng(11)
DAYS = [date(2001, 1, 1) + timedelta(days=37 * n) for n in range(200)]


def profile(name, cells, **more):
    return profile_columns(pl.DataFrame({name: pl.Series(cells, **more)}))[0]


COLUMNS = {
    "state_fips": [number for number in range(1, 57) if number not in (3, 7, 14, 43, 52)],
    "country_code": [4, 8, 12, 20, 24, 28, 31, 32, 36, 40, 44, 48],
    "zip": list(range(7001, 7101)),
    "year": list(range(1980, 2020)),
    "date": [int(f"{day:%Y%m%d}") for day in DAYS],
    "month": [int(f"{day:%Y%m}") for day in DAYS],
    "day": DAYS,
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_key_is_the_same_in_text_typed_columns_and_pandas(name, tmp_path):
    cells = COLUMNS[name]
    numbers = RNG.normal(size=len(cells))
    frame = pl.DataFrame({name: cells, "v": numbers})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_csv(tmp_path / "t.csv")
    tables = [frame, frame.to_pandas(), tmp_path / "t.parquet", tmp_path / "t.csv"]
    if frame[name].dtype.is_integer():
        with_gaps = pd.DataFrame({name: [*map(float, cells), None], "v": [*numbers, 0.0]})
        with_gaps.to_csv(tmp_path / "gaps.csv", index=False)  # 7001.0
        tables += [with_gaps, tmp_path / "gaps.csv"]
    made = [covary.sketch(table, name, "v") for table in tables]
    for other in made[1:]:
        assert other.pair.granularity == made[0].pair.granularity
        assert other.key_hashes.tolist() == made[0].key_hashes.tolist()
        assert other.values.tolist() == made[0].values.tolist()


def test_a_query_has_a_sketch_of_full_size_at_every_granularity():
    rows = pl.DataFrame({"d": [date(1900, 1, 1) + timedelta(days=n) for n in range(36_500)]})
    rows = rows.with_columns(v=pl.int_range(36_500).cast(pl.Float64))
    assert covary.sketch(rows, "d", "v", by="month").size == 1024
    assert covary.sketch(rows, "d", "v", by="year").size == 100


@pytest.mark.parametrize("mark", ["n/a", "not available", "missing", "*", "9999-12-31", "NaT"])
def test_marks_of_absence_do_not_make_dates_text(mark):
    cells = [day.isoformat() for day in DAYS]
    cells[::8] = [mark] * len(cells[::8])
    assert decide_time_reading(pl.Series(cells)).granularity == "day"


def test_a_frequent_word_is_never_overlooked_among_many_dates():
    days = [(date(1990, 1, 1) + timedelta(days=n)).isoformat() for n in range(5000)]
    for word in ("Open", "Closed", "ongoing", "TBC"):
        assert decide_time_reading(pl.Series(days + [word] * 20_000)) is None


def test_dates_beyond_reason_are_missing_whatever_their_type():
    cells = [*DAYS, *[date(9999, 12, 31)] * 20]
    for column in (pl.Series(cells), pl.Series([day.isoformat() for day in cells])):
        assert decide_time_reading(column).granularity == "day"


@pytest.mark.parametrize(
    ("name", "values", "is_key"),
    [
        ("volume", RNG.integers(2_000_000_000, 9_999_999_999, 10_000), False),
        ("hotline", 2_122_000_000 + RNG.permutation(7_000_000)[:200], True),
        ("final_grade", RNG.integers(40, 100, 200), False),
        ("grade_level", RNG.integers(1, 12, 200), True),
        ("votes_by_precinct", RNG.integers(0, 900, 200), False),
        ("council_district", RNG.integers(1, 51, 200), True),
        ("period", np.repeat([201301, 201302, 201303, 201304], 50), True),
    ],
)
def test_whole_numbers_are_codes_only_where_name_or_digits_say_so(name, values, is_key):
    assert profile(name, values).is_key is is_key


def test_a_reason_says_how_whole_numbers_are_read():
    assert explain_column(profile("state_fips", COLUMNS["state_fips"])).endswith("US states")
    assert explain_column(profile("year", COLUMNS["year"])).endswith("years")


def test_a_column_that_is_key_and_number_is_counted_once():
    rows = pl.DataFrame({"k": ["a", None, "b"], "n": ["1", "N/A", "x"]})
    keys = decide_keys([("k",), ("n",)], rows, profile_columns(rows), SketchConfig().normaliser)
    tallies = Tallies()
    sketch_batches([rows], keys, {"n": PLAIN}, SketchConfig(), tallies)
    assert tallies == {"k": Tally(1), "n": Tally(1, 1, ("x",))}


def test_numbers_that_are_not_finite_are_missing_in_typed_columns_too():
    rows = pl.DataFrame({"k": ["a", "b", "c"], "v": [1.0, float("nan"), float("inf")]})
    keys = decide_keys([("k",)], rows, profile_columns(rows), SketchConfig().normaliser)
    tallies = Tallies()
    sketch_batches([rows], keys, {"v": PLAIN}, SketchConfig(), tallies)
    assert tallies["v"] == Tally(2)


def test_two_tables_meet_at_a_granularity_with_enough_shared_keys():
    start = np.datetime64("2013-01-01T00:00:00", "us")
    moments = [
        start + RNG.integers(0, 30 * 86_400, 3000).astype("timedelta64[s]").astype("timedelta64[us]")
        for _ in range(2)
    ]
    moments[1][0] = moments[0][0]
    tables = [pl.DataFrame({"t": each, "v": RNG.normal(size=3000)}) for each in moments]
    left, right = sketch_both(*((table, "t", "v") for table in tables), SketchConfig())
    assert left.pair.granularity == right.pair.granularity == "hour"


def test_a_key_of_a_list_names_each_column_once():
    rows = pl.DataFrame({"a": ["x", "y"], "v": [1.0, 2.0]})
    with pytest.raises(covary.CovaryError, match="twice"):
        covary.sketch(rows, ["a", "a"], "v")


def test_a_mistyped_thousands_comma_does_not_make_commas_decimal():
    cells = [f"{n:,}" for n in range(300, 9000, 9)]
    for slip in ("1,23", "12,5"):
        read = read_numbers(pl.Series([*cells, slip]), decide_number_reading(pl.Series([*cells, slip])))
        assert read.values.to_list()[:-1] == [float(n) for n in range(300, 9000, 9)]
        assert (read.unused.not_understood, read.unused.examples) == (1, (slip,))


def test_midnights_with_a_zone_are_the_days_of_that_place():
    days = [date(2013, 1, 1) + timedelta(days=n) for n in range(60)]
    numbers = RNG.normal(size=60)
    plain = covary.sketch(pl.DataFrame({"d": days, "v": numbers}), "d", "v")
    zoned = pl.Series("d", days).cast(pl.Datetime("us")).dt.replace_time_zone("America/New_York")
    written = [f"{day}T00:00:00+02:00" for day in days]
    for column in (zoned, pl.Series("d", written)):
        other = covary.sketch(pl.DataFrame([column, pl.Series("v", numbers)]), "d", "v")
        assert other.pair.granularity == "day"
        assert other.key_hashes.tolist() == plain.key_hashes.tolist()
        assert other.values.tolist() == plain.values.tolist()


def test_a_large_file_is_read_by_cells_from_all_over_it(tmp_path, monkeypatch):
    monkeypatch.setattr("covary.sketching.open_table.SAMPLED_CHUNK_BYTES", 4_000)
    days = [date(2013, 1, 1) + timedelta(days=n // 40) for n in range(2400)]
    frame = pl.DataFrame({"d": [f"{day:%d/%m/%Y}" for day in days], "v": RNG.normal(size=2400)})
    frame.write_csv(tmp_path / "t.csv")
    assert covary.sketch(tmp_path / "t.csv", "d", "v").counts.null_keys == 0
    assert covary.sketch(tmp_path / "t.csv", "d", "v").key_hashes.tolist() == (
        covary.sketch(frame, "d", "v").key_hashes.tolist()
    )


def test_sketches_of_other_granularities_are_not_joined():
    rows = pl.DataFrame({"d": DAYS, "v": RNG.normal(size=200)})
    with pytest.raises(covary.CovaryError, match='by day, of the other by month; make both with by="month"'):
        covary.join(covary.sketch(rows, "d", "v"), covary.sketch(rows, "d", "v", by="month"))


def test_a_key_of_marks_alone_is_named_as_what_is_wrong():
    with pytest.raises(covary.CovaryError, match="key column 'a' of the table holds no keys but"):
        covary.sketch(pl.DataFrame({"a": ["N/A", "-"], "v": [1.5, 2.5]}), "a", "v")


def test_periods_of_pandas_are_times():
    periods = pd.period_range("2013-01", periods=30, freq="M")
    frame = pd.DataFrame({"p": periods, "v": RNG.normal(size=30)})
    assert covary.sketch(frame, "p", "v").pair.granularity == "month"


@pytest.mark.parametrize("wrong", ["", 0, ["exact"]])
def test_a_wrong_way_to_write_keys_is_refused(wrong):
    with pytest.raises(covary.CovaryError, match="there are: canonical, exact"):
        covary.sketch(pl.DataFrame({"a": ["x"], "v": [1.0]}), "a", "v", key_text=wrong)
