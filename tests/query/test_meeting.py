"""Tables that write the same keys in different ways meet, at the finest granularity that both have."""

import io
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import covary
from covary.cli.join_words import explanations_view, how_it_joins
from covary.errors import UnusableColumn

build_index = partial(covary.build_index, runner="process")

RNG = np.random.default_rng(7)
HOURS = [datetime(2013, 1, 1) + timedelta(hours=hour) for hour in range(24 * 120)]
DAYS = sorted({hour.date() for hour in HOURS})
RAIN = dict(zip(DAYS, RNG.gamma(2.0, size=len(DAYS)), strict=True))
PLACES = ["Newark", "Kennedy", "La Guardia"]
ZIPS = [f"{zip_code:05}" for zip_code in range(7001, 7061)]


def noisy(number, spread=0.3):
    return number + RNG.normal(scale=spread)


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("meeting")
    us_days = [f"{day.month}/{day.day}/{day.year}" for day in DAYS]
    pl.DataFrame({"date": us_days, "rain": [noisy(RAIN[day]) for day in DAYS]}).write_csv(
        folder / "daily.csv"
    )
    pl.DataFrame(
        {
            "time": [f"{hour:%Y-%m-%d %H}:00:00" for hour in HOURS],
            "wet": [noisy(RAIN[hour.date()], 0.8) for hour in HOURS],
        }
    ).write_csv(folder / "hourly.csv")
    pl.DataFrame(
        {
            "stamp": [f"{hour:%Y-%m-%dT%H:%M:%S}" for hour in (h + timedelta(minutes=17) for h in HOURS)],
            "drops": [noisy(RAIN[hour.date()]) for hour in HOURS],
        }
    ).write_csv(folder / "moments.csv")
    both = [(place, day) for place in PLACES for day in DAYS]
    pl.DataFrame(
        {
            "AIRPORT": [place.upper() for place, _ in both],
            "DAY": [f"{day:%d %b %Y}" for _, day in both],
            "delay": [f"${1000 * (len(place) + RAIN[day]):,.2f} " for place, day in both],
        }
    ).write_csv(folder / "by_airport.csv")
    pl.DataFrame({"zip": [code.lstrip("0") for code in ZIPS], "income": RNG.normal(size=60)}).write_csv(
        folder / "zips.csv"
    )
    for number in range(12):
        pl.DataFrame({"month": range(1, 13), "level": RNG.normal(size=12)}).write_csv(
            folder / f"monthly_{number:02}.csv"
        )
    return folder


@pytest.fixture(scope="module")
def index(lake, tmp_path_factory):
    return build_index(lake, into=tmp_path_factory.mktemp("meeting") / "i.covary")


@pytest.fixture
def by_hour():
    return pl.DataFrame({"when": HOURS, "x": [noisy(RAIN[hour.date()]) for hour in HOURS]})


def best(hits, table):
    return next(hit for hit in hits if hit.table == table)


def test_times_meet_at_the_finest_granularity_that_both_sides_have(index, by_hour):
    hits = index.query(by_hour, "when", "x")
    found = {hit.table: hit.granularity for hit in hits}
    assert found == {"daily": "day", "by_airport": "day", "hourly": "hour", "moments": "hour"}
    assert len([hit for hit in hits if hit.table == "hourly"]) == 1
    daily = best(hits, "daily")
    assert (daily.exact, daily.sample_size, daily.query_rows_per_key) == (True, len(DAYS), 24)


def test_what_was_joined_by_day_is_the_correlation_of_daily_means(index, by_hour, lake):
    daily = best(index.query(by_hour, "when", "x"), "daily")
    means = by_hour.group_by(pl.col("when").dt.date().alias("day")).agg(pl.col("x").mean())
    other = pl.read_csv(lake / "daily.csv").select(
        pl.col("date").str.to_date("%m/%d/%Y").alias("day"), "rain"
    )
    both = means.join(other, on="day")
    assert daily.correlation == pytest.approx(np.corrcoef(both["x"], both["rain"])[0, 1])


def test_a_person_may_choose_a_coarser_granularity(index, by_hour):
    hits = index.query(by_hour, "when", "x", by="week")
    assert {hit.granularity for hit in hits} == {"week"}
    assert {hit.table for hit in hits} == {"daily", "by_airport", "hourly", "moments"}
    with pytest.raises(UnusableColumn, match="no granularity 'fortnight'; there are: moment, hour, day"):
        index.query(by_hour, "when", "x", by="fortnight")
    with pytest.raises(UnusableColumn, match="'moment': its times are by hour, day, week"):
        index.query(by_hour, "when", "x", by="moment")
    assert len(index.query(by_hour, "when", "x", by="year")) == 0
    with pytest.raises(UnusableColumn, match="it holds no times"):
        index.query(pl.DataFrame({"k": ZIPS, "x": range(60)}), "k", "x", by="day")


@pytest.mark.parametrize("key", ["place,day", "day,place", ["day", "place"]])
def test_a_key_of_two_columns_is_found_in_any_order(index, key):
    rows = pl.DataFrame(
        {
            "place": [place for place in PLACES for _ in DAYS],
            "day": [day for _ in PLACES for day in DAYS],
            "x": [len(place) + RAIN[day] for place in PLACES for day in DAYS],
        }
    )
    (hit,) = [hit for hit in index.query(rows, key, "x") if hit.table == "by_airport"]
    assert (hit.key, hit.query_key) == ("AIRPORT,DAY", "place,day")
    assert hit.granularity == "day"
    assert hit.correlation == pytest.approx(1.0, abs=1e-4)
    assert (hit.sample_size, hit.rows_per_key) == (3 * len(DAYS), 1.0)


def test_leading_zeros_do_not_keep_zip_codes_apart(index):
    hits = index.query(pl.DataFrame({"zip": ZIPS, "x": RNG.normal(size=60)}), "zip", "x", explain=True)
    (hit,) = [hit for hit in hits if hit.table == "zips"]
    assert (hit.sample_size, hit.exact) == (60, True)
    (met,) = hit.explanation.columns
    assert (met.query, met.column, len(met.examples)) == ("zip", "zip", 3)
    for mine, other, text in met.examples:
        assert mine == f"0{other}" and other == text


def test_an_explanation_shows_how_times_were_written(index, by_hour):
    daily = best(index.query(by_hour, "when", "x", explain=True), "daily")
    (met,) = daily.explanation.columns
    assert "month/day/year" in met.reading
    for mine, other, text in met.examples:
        day = datetime.fromisoformat(text)
        assert other == f"{day.month}/{day.day}/{day.year}"
        assert datetime.fromisoformat(mine).date() == day.date()


def test_no_explanation_is_made_unless_asked_for(index, by_hour):
    assert {hit.explanation for hit in index.query(by_hour, "when", "x")} == {None}


def test_few_keys_that_many_tables_share_are_labelled_and_ranked_as_a_sample(index):
    level = RNG.normal(size=12)
    hits = index.query(pl.DataFrame({"month": range(1, 13), "x": level}), "month", "x", top=20)
    months = [hit for hit in hits if hit.table.startswith("monthly")]
    assert len(months) == hits.common == hits.hosts == 12
    for hit in months:
        assert (hit.hosts, hit.exact) == (12, True)
        assert hit.score == pytest.approx(abs(hit.correlation) / (1 + 1 / 3), abs=1e-6)


def test_joins_on_fewer_keys_are_hidden_and_counted(index):
    query = pl.DataFrame({"month": range(1, 9), "x": RNG.normal(size=8)})
    hits = index.query(query, "month", "x")
    assert (len(hits), hits.hidden) == (0, 12)
    assert len(index.query(query, "month", "x", min_sample=3, top=20)) == 12


def test_numbers_are_read_as_they_are_dressed(index):
    sketch = index.sketch("by_airport", "AIRPORT,DAY", "delay")
    assert sketch.counts.minimum > 1000
    record = index.tables.filter(pl.col("name") == "by_airport").to_dicts()[0]
    delay = next(column for column in record["columns"] if column["name"] == "delay")
    assert (delay["role"], delay["not_understood"]) == ("number", 0)
    assert "$" in delay["reason"]


def test_exact_keys_meet_only_as_they_are_written(lake, tmp_path, by_hour):
    exact = build_index(lake, into=tmp_path / "i.covary", key_text="exact")
    assert exact.config.normaliser == "text-1"
    assert len(exact.query(pl.DataFrame({"zip": ZIPS, "x": range(60)}), "zip", "x", min_sample=3)) == 0
    bare = pl.DataFrame({"zip": [code.lstrip("0") for code in ZIPS], "x": RNG.normal(size=60)})
    assert len(exact.query(bare, "zip", "x")) == 1
    assert set(exact.tables["columns"].explode().struct.field("keys").explode().drop_nulls()) >= {"zip"}


def test_murmur3_takes_raw_text_unless_told_otherwise():
    rows = pl.DataFrame({"k": ["A", "B", "C"], "v": [1.0, 2.0, 3.0]})
    raw = covary.sketch(rows, "k", "v", hash="murmur3")
    assert raw.config.normaliser == "text-1"
    same = covary.sketch(rows, "k", "v", hash="murmur3", key_text="exact")
    assert raw.key_hashes.tolist() == same.key_hashes.tolist()
    canonical = covary.sketch(rows, "k", "v", hash="murmur3", key_text="canonical")
    assert set(raw.key_hashes.tolist()).isdisjoint(canonical.key_hashes.tolist())


def test_an_estimate_of_two_tables_finds_the_order_of_columns_and_the_granularity(by_hour, tmp_path):
    from covary.sketching.sketch_types import SketchConfig  # noqa: PLC0415
    from covary.statistics.join import sketch_both  # noqa: PLC0415

    daily = pl.DataFrame({"day": DAYS, "y": [RAIN[day] for day in DAYS]})
    left, right = sketch_both((by_hour, "when", "x"), (daily, "day", "y"), SketchConfig())
    assert left.pair.granularity == right.pair.granularity == "day"
    assert covary.estimate(left, right).sample_size == len(DAYS)
    one = pl.DataFrame({"a": ["x", "y"] * 20, "b": [str(n) for n in range(40)], "v": range(40)})
    left, right = sketch_both((one, "a,b", "v"), (one, "b,a", "v"), SketchConfig())
    assert covary.estimate(left, right).correlation == pytest.approx(1.0)


def test_a_build_reports_ambiguous_dates_and_what_was_not_understood(tmp_path):
    from covary.cli.index_view import build_view, columns_view  # noqa: PLC0415
    from covary.index.history import read_history  # noqa: PLC0415
    from covary.query.describe import describe_index  # noqa: PLC0415

    tables = tmp_path / "tables"
    tables.mkdir()
    days = [f"{1 + n % 12}/{1 + n // 12}/2013" for n in range(144)]
    costs = [f"${n},000" for n in range(1, 141)] + ["13-21", "9/9", "N/A", "s"]
    pl.DataFrame({"day": days, "cost": costs}).write_csv(tables / "costs.csv")
    build_index(tables, into=tmp_path / "i.covary")
    [change] = read_history(tmp_path / "i.covary")
    facts = describe_index(tmp_path / "i.covary")
    assert (facts.ambiguous, facts.not_understood) == (["costs.day"], (2, 1))
    assert facts.to_dict()["ambiguous"] == ["costs.day"]
    said = text_of(build_view(facts, change, 1.0))
    assert "Day or month first can't be told in 1 column of dates, read as month first: costs.day." in said
    assert "2 cells of 1 column not understood" in said
    shown = text_of(columns_view(facts.find_table("costs")))
    assert "cost: not understood, for example '13-21', '9/9'" in shown
    cost = next(column for column in facts.contents[0].columns if column.name == "cost")
    assert (cost.missing, cost.not_understood) == (2, 2)


def text_of(view):
    console = Console(file=io.StringIO(), width=200)
    console.print(view)
    return console.file.getvalue()


def test_explanations_name_columns_readings_and_fan_out_once_for_hits_found_alike(index, by_hour):
    said = text_of(explanations_view(index.query(by_hour, "when", "x", explain=True)))
    assert said.count("daily.date (dates written month/day/year)") == 1
    assert "times joined by day" in said
    assert "your table: 2,880 rows, 120 keys, 24 rows per key averaged" in said
    assert "daily: 120 rows, 120 keys, one row per key" in said
    assert "120 keys in both" in said


def test_a_line_says_by_what_tables_were_joined_and_how_rows_were_folded(index, by_hour):
    hits = index.query(by_hour, "when", "x")
    assert how_it_joins(best(hits, "daily"), hits.query) == (
        "when = daily.date, by day; 24 of your rows per day averaged"
    )
    assert how_it_joins(best(hits, "hourly"), hits.query) == "when = hourly.time, by hour"


@pytest.mark.parametrize("kind", [pl.Int64, pl.String, pl.Float64])
def test_whole_numbers_that_a_person_takes_for_a_key_are_years_whatever_their_type(kind):
    years = pl.Series("cohort", range(1990, 2020)).cast(pl.Int64).cast(kind)
    rows = pl.DataFrame({"cohort": years, "v": RNG.normal(size=30)})
    named = pl.DataFrame({"year": range(1990, 2020), "v": RNG.normal(size=30)})
    left, right = covary.sketch(rows, "cohort", "v"), covary.sketch(named, "year", "v")
    assert left.pair.granularity == right.pair.granularity == "year"
    assert covary.join(left, right).size == 30
    dates = pl.DataFrame({"d": [datetime(year, 7, 1) for year in range(1990, 2020)], "v": range(30)})
    assert covary.join(left, covary.sketch(dates, "d", "v", by="year")).size == 30


def test_ids_that_look_like_years_are_no_years():
    ids = pl.DataFrame({"station_id": range(1990, 2300), "v": RNG.normal(size=310)})
    years = pl.DataFrame({"year": range(1990, 2020), "v": RNG.normal(size=30)})
    left, right = covary.sketch(ids, "station_id", "v"), covary.sketch(years, "year", "v")
    assert covary.join(left, right).size == 0


def test_the_finest_granularity_wins_though_a_coarser_one_shares_more_keys(tmp_path):
    start = datetime(2013, 1, 1, 6)
    mine = [start + timedelta(days=day) for day in range(60)]
    theirs = [moment + timedelta(hours=int(day >= 15)) for day, moment in enumerate(mine)]
    (tmp_path / "tables").mkdir()
    pl.DataFrame({"t": theirs, "v": RNG.normal(size=60)}).write_parquet(tmp_path / "tables" / "late.parquet")
    index = build_index(tmp_path / "tables", into=tmp_path / "i.covary")
    query = pl.DataFrame({"t": mine, "x": RNG.normal(size=60)})
    (hit,) = index.query(query, "t", "x")
    assert (hit.granularity, hit.sample_size) == ("hour", 15)
    (hit,) = index.query(query, "t", "x", min_sample=20)
    assert (hit.granularity, hit.sample_size) == ("day", 60)
