from datetime import datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covary.columns.key_reading import YEAR, KeyReading, decide_key_reading
from covary.columns.periods import name_periods, number_periods
from covary.columns.times import GRANULARITIES
from covary.columns.unused_cells import Tally
from covary.sketching.hashing import SCHEMES
from covary.sketching.key_columns import (
    Key,
    collect_readings,
    exact_key,
    hash_keys,
    hash_periods,
    read_columns,
)

SCHEME = SCHEMES["xxhash64"]
MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(2999, 12, 31, 23, 59, 59, 999_999))
AROUND_1970 = st.datetimes(datetime(1969, 12, 30), datetime(1970, 1, 3))
TIMES = st.lists(MOMENTS | AROUND_1970).map(lambda times: pl.Series(times, dtype=pl.Datetime("us")))


def test_times_that_cannot_be_read_are_counted_and_are_no_keys():
    column = pl.Series("day", [*[f"1/{day}/2013" for day in range(1, 31)], "31/31/2013", "n/a", None])
    key = Key.of(("day",), (decide_key_reading("day", column),))
    read = read_columns(column.to_frame(), collect_readings([key]), SCHEME)
    (levels,) = hash_keys([key], read, SCHEME)
    assert [level.rows.size for level in levels] == [30] * len(levels)
    assert read["day"].unused == Tally(2, 1, ("31/31/2013",))


def test_a_key_of_several_columns_needs_all_of_them_and_their_order():
    rows = pl.DataFrame({"a": ["x", "y", None, "x"], "b": ["y", "x", "x", "y"]})
    one, other = (Key.of(names, (KeyReading(), KeyReading())) for names in (("a", "b"), ("b", "a")))
    read = read_columns(rows, collect_readings([one]), SCHEME)
    (forth,), (back,) = hash_keys([one, other], read, SCHEME)
    assert forth.rows.tolist() == back.rows.tolist() == [0, 1, 3]
    assert forth.hashes[0] == forth.hashes[2] != forth.hashes[1]
    assert forth.hashes[0] == back.hashes[1]  # (x, y) and (y, x) are two keys


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_a_key_of_one_column_is_hashed_as_its_text(name):
    scheme, rows = SCHEMES[name], pl.DataFrame({"k": ["a", "b"]})
    read = read_columns(rows, collect_readings([exact_key("k")]), scheme)
    ((level,),) = hash_keys([exact_key("k")], read, scheme)
    assert level.hashes.tolist() == scheme.identify([rows["k"]])[0].hashes.tolist()


def test_examples_are_the_keys_first_in_the_order_of_sampling():
    column = pl.Series("k", [f" Place {n % 40} " for n in range(200)])
    read = read_columns(column.to_frame(), {"k": decide_key_reading("k", column)}, SCHEME)["k"]
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
    read = read_columns(column.to_frame(), {"k": reading}, scheme)["k"]
    long = read.levels[""]
    short = read_columns(column[:6].to_frame(), {"k": reading}, scheme)["k"].levels[""]
    assert long.present[:6].tolist() == short.present.tolist() == [True, False, False, True, True, False]
    kept = short.present
    assert long.hashes[:6][kept].tolist() == short.hashes[kept].tolist()
    assert read.unused.missing == int((~long.present).sum())


@pytest.mark.parametrize("hash_name", sorted(SCHEMES))
@pytest.mark.parametrize("granularity", GRANULARITIES)
@settings(max_examples=20)
@given(times=TIMES)
def test_hashed_periods_are_the_hashes_of_their_names(granularity, hash_name, times):
    scheme = SCHEMES[hash_name]
    (numbers,) = number_periods(times.to_physical().to_numpy(), [granularity])
    names = name_periods(numbers, granularity)
    expected = scheme.identify([YEAR + names if granularity == "year" else names])[0].hashes
    assert hash_periods(numbers, granularity, scheme).tolist() == expected.tolist()
    near = numbers[np.abs(numbers) < 10**5]  # few spans, kept from one call to the next
    assert hash_periods(near, granularity, scheme).size == near.size
