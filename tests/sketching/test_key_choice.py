import numpy as np
import polars as pl
import pytest

from covary.columns.key_text import NORMALISERS
from covary.columns.profile import profile_columns
from covary.sketching.hashing import SCHEMES
from covary.sketching.key_choice import MOST_JOINT_KEYS, decide_keys, find_joint_keys, split_key
from covary.sketching.key_columns import collect_readings, read_columns

SCHEME = SCHEMES["xxhash64"]


def joint_keys_of(rows):
    profiles = profile_columns(rows)
    names = [(profile.name,) for profile in profiles if profile.is_key]
    keys = decide_keys(names, rows, profiles, NORMALISERS["canonical"])
    read = read_columns(rows, collect_readings(keys), SCHEME)
    return find_joint_keys(keys, read, profiles, SCHEME)


def panel(countries=12, years=15):
    names = [f"Land {n}" for n in range(countries)]
    return pl.DataFrame(
        {
            "country": [name for name in names for _ in range(years)],
            "year": [1990 + year for _ in names for year in range(years)],
            "gdp": np.random.default_rng(1).normal(size=countries * years),
        }
    )


def test_two_columns_that_identify_rows_together_become_a_joint_key():
    assert [key.columns for key in joint_keys_of(panel())] == [("country", "year")]


def test_no_joint_key_is_made_with_a_column_that_identifies_rows_by_itself():
    rows = panel().with_row_index("row_id").with_columns(pl.col("row_id").cast(pl.String))
    assert [key.columns for key in joint_keys_of(rows)] == [("country", "year")]


def test_a_joint_key_of_many_rows_each_is_not_worth_having():
    assert [key.columns for key in joint_keys_of(pl.concat([panel()] * 2))] == [("country", "year")]
    assert joint_keys_of(pl.concat([panel()] * 8)) == []


def test_columns_that_meet_at_random_come_after_those_of_a_panel():
    rng = np.random.default_rng(3)
    random = {f"code_{n}": [f"c{each}" for each in rng.integers(0, 90, 180)] for n in range(4)}
    assert joint_keys_of(panel().with_columns(**{k: pl.Series(v) for k, v in random.items()}))[0].columns == (
        "country",
        "year",
    )


def test_joint_keys_are_few_those_with_a_time_first():
    rng = np.random.default_rng(2)
    texts = {f"text_{n}": [f"t{n} {each}" for each in rng.integers(0, 150, 300)] for n in range(5)}
    rows = pl.DataFrame(texts | {"day": [f"2013-01-{day:02}" for day in rng.integers(1, 31, 300)]})
    keys = joint_keys_of(rows)
    assert 0 < len(keys) <= MOST_JOINT_KEYS


def test_a_joint_key_is_sketched_where_a_granularity_brings_keys_together():
    days = pl.date_range(pl.date(2012, 1, 1), pl.date(2013, 12, 31), eager=True).cast(pl.String)
    zips = ["10001", "10002", "10003"]
    dense = pl.DataFrame({"zip": zips * days.len(), "day": [day for day in days for _ in zips]})
    (key,) = joint_keys_of(dense)
    assert key.granularities == ("day", "month", "year")


@pytest.mark.parametrize(
    "periods",
    [
        [f"{year}Q{quarter}" for year in range(2015, 2020) for quarter in range(1, 5)],
        [f"2013-W{week:02}" for week in range(1, 41)],
    ],
)
def test_a_panel_by_quarter_or_week_keeps_its_own_granularity(periods):
    lands = [f"Land {n}" for n in range(8)]
    rows = pl.DataFrame({"land": lands * len(periods), "when": [each for each in periods for _ in lands]})
    (key,) = joint_keys_of(rows)
    assert key.granularities[0] in ("quarter", "week")


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        (" a , b ", ("a", "b")),
        ("b,a", ("b", "a")),
        ("x,y", ("x,y",)),
        ("a,a", ()),
        ("a,c", ()),
        ("c", ()),
    ],
)
def test_a_key_names_one_column_or_several(key, columns):
    assert split_key(key, ["a", "b", "x,y"]) == columns
