"""Questions asked on Spark are answered as the embedded engine answers them."""

import math
from dataclasses import fields

import numpy as np
import polars as pl
import pytest

import covary
from covary import spark as on_spark
from covary.build.upkeep import remove_tables
from covary.query.all_pairs import list_columns
from covary.query.hits import Hit
from covary.query.options import QueryOptions
from covary.statistics.significance import benjamini_hochberg, benjamini_yekutieli

COMPARED = [field.name for field in fields(Hit) if field.name not in {"explanation", "met"}]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Tables by place, by day and by hour, some with gaps, some that move together."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(3)
    hidden = rng.normal(size=400)
    days = pl.date_range(pl.date(2013, 1, 1), pl.date(2014, 2, 4), "1d", eager=True)
    hours = pl.datetime_range(
        pl.datetime(2013, 1, 1), pl.datetime(2013, 1, 31, 23), "1h", time_unit="us", eager=True
    )
    for number in range(8):
        kept = rng.choice(400, int(rng.integers(40, 400)), replace=False)
        share = number / 8
        moving = share * hidden[kept] + math.sqrt(1 - share**2) * rng.normal(size=kept.size)
        gaps = np.where(rng.random(kept.size) < 0.2, None, rng.normal(size=kept.size))
        places = {"place": [f"p{n}" for n in kept], "moving": moving, "gaps": list(gaps)}
        pl.DataFrame(places, strict=False).write_csv(folder / f"places{number}.csv")
        dated = {"day": days[kept.tolist()], "x": hidden[kept] + number * rng.normal(size=kept.size)}
        pl.DataFrame(dated).write_parquet(folder / f"days{number}.parquet")
    pl.DataFrame({"hour": hours, "load": rng.normal(size=len(hours))}).write_parquet(folder / "hours.parquet")
    return folder


@pytest.fixture(scope="module")
def index(tables, tmp_path_factory, spark):
    folder = tmp_path_factory.mktemp("index") / "i.covary"
    covary.build_index([tables / "places0.csv", tables], folder, spark, size=256)
    covary.build_index(tables, folder, spark)
    remove_tables(folder, ["places1"])  # which must not be answered with
    return covary.open_index(folder)


def test_many_queries_at_once_answer_as_one_by_one(index, tables, spark):
    frame = pl.read_csv(tables / "places5.csv")
    questions = [
        (frame, "place", "moving"),
        (str(tables / "places6.csv"), "place", "gaps"),
        (tables / "days3.parquet", ["day"], "x"),
        (tables / "hours.parquet", "hour", "load"),
        (frame, "place", "nothing"),
        ("/no/such/file.csv", "a", "b"),
    ]
    rows = on_spark.query(index, questions, spark, top=7, min_sample=5).toArrow().to_pylist()
    for number, (table, key, value) in enumerate(questions):
        found = sorted((row for row in rows if row["query"] == number), key=lambda row: row["place"] or 0)
        if number >= 4:
            [refused] = found
            assert refused["table"] is None
            assert ("no column 'nothing'" if number == 4 else "no such file") in refused["problem"]
            continue
        hits = index.query(table, key, value, top=7, min_sample=5)
        assert len(found) == len(hits) > 0
        for row, hit in zip(found, hits, strict=True):
            assert (row["problem"], row["query_value"]) == (None, value)
            assert {name: row[name] for name in COMPARED} == {name: getattr(hit, name) for name in COMPARED}
            assert [tuple(pair) for pair in row["met"]] == list(hit.met)


def every_pair(index, settings):
    """Ask every column with the embedded engine, and keep each pair of columns once."""
    columns = list_columns(index)
    found = {}
    for column in range(columns.count):
        numbers = columns.sketches_of(column)
        queries = [index.sketch_at(int(number)) for number in numbers]
        own = np.array(
            [
                n
                for n in range(columns.of_sketch.size)
                if index.sketch_at(n).pair.table == queries[0].pair.table
            ]
        )
        answer = index.answer(queries, settings, own)
        tested = answer.ranked.tested
        for place in range(tested.sketches.size):
            other = int(columns.of_sketch[tested.sketches[place]])
            if other > column:
                left = int(numbers[tested.asked[place]])
                found[left, int(tested.sketches[place])] = (
                    answer.ranked.chance[place],
                    answer.ranked.scores[place],
                )
    return found


def test_pairs_are_those_that_asking_every_column_finds(index, spark):
    settings = QueryOptions(top=10_000)
    expected = every_pair(index, settings)
    found = on_spark.pairs(index, 10_000, spark)
    chance = np.array([p for p, _ in expected.values()])
    assert found.compared == np.count_nonzero(~np.isnan(chance)) > 50
    bh, by = benjamini_hochberg(chance), benjamini_yekutieli(chance)
    by_columns = {}
    for (left, right), q, q_by in zip(expected, bh, by, strict=True):
        sketches = index.sketch_at(left), index.sketch_at(right)
        name = tuple((sketch.pair.table, sketch.pair.value, sketch.pair.granularity) for sketch in sketches)
        by_columns[name] = (covary.estimate(*sketches), q, q_by)
    assert len(found) == len(by_columns)
    for pair in found:
        left, right = pair.left, pair.right
        name = ((left.table, left.value, left.granularity), (right.table, right.value, right.granularity))
        estimate, q, q_by = by_columns[name]
        assert (right.correlation, right.low, right.high) == (
            estimate.correlation,
            estimate.low,
            estimate.high,
        )
        assert q <= right.q_value * (1 + 1e-12)
        assert right.q_value <= min(1, q * 1.002)
        assert right.q_value_by == pytest.approx(min(1.0, q_by), rel=0.01)
    scores = [pair.right.score for pair in found]
    assert scores == sorted(scores, reverse=True)
    assert found.survivors == pytest.approx(np.count_nonzero(bh <= 0.05), abs=2)


def test_the_best_pairs_are_the_first_of_all(index, spark):
    every, best = on_spark.pairs(index, 10_000, spark), on_spark.pairs(index, 5, spark)
    assert best.pairs == every.pairs[:5]
    assert (best.compared, best.survivors) == (every.compared, every.survivors)
    few = on_spark.pairs(index, 10_000, spark, max_q=0.05)
    assert 0 < len(few) < len(every)
    assert max(pair.right.q_value for pair in few) <= 0.05


def test_pairs_that_may_be_chance_do_not_crowd_out_others(index, spark):
    every = on_spark.pairs(index, 10_000, spark, rank="jc", max_q=0.05)
    few = on_spark.pairs(index, 5, spark, rank="jc", max_q=0.05)
    crowded = on_spark.pairs(index, 5, spark, rank="jc")
    assert any(pair.right.q_value > 0.05 for pair in crowded)
    assert few.pairs == every.pairs[:5]
    assert (few.compared, few.survivors) == (every.compared, every.survivors)


def test_pairs_hold_each_pair_of_columns_once_and_none_of_one_table(index, spark):
    found = on_spark.pairs(index.path, 10_000, spark)
    names = [
        frozenset(
            [
                (pair.left.table, pair.left.key, pair.left.value),
                (pair.right.table, pair.right.key, pair.right.value),
            ]
        )
        for pair in found
    ]
    assert len(set(names)) == len(names)
    assert all(pair.left.table != pair.right.table for pair in found)
    assert not any("places1" in (pair.left.table, pair.right.table) for pair in found)
    tables = {pair.left.table for pair in found} | {pair.right.table for pair in found}
    assert {"places6", "places7", "days0", "days7"} <= tables
    assert "hours" in tables


def test_pairs_tell_how_far_they_are_from_the_start(index, spark):
    told = []
    columns = on_spark.pairs(index, 5, spark, on_progress=lambda *step: told.append(step)).columns
    assert (told[0], told[-1]) == ((0, columns), (columns, columns))


def test_pairs_print_as_a_short_list(index, spark):
    found = on_spark.pairs(index, 10_000, spark)
    first, best, *_, last = str(found).splitlines()
    assert len(str(found).splitlines()) == 22 < len(found)
    assert first == f"{found.compared:,} pairs of {found.columns} columns compared"
    left, right = found[0].left, found[0].right
    assert f"{left.table}.{left.value} and {right.table}.{right.value} (mean per" in best
    assert last == f"... and {len(found) - 20} more"
    assert len(str(on_spark.pairs(index, 5, spark)).splitlines()) == 6
    assert len(repr(found)) < 500


def test_a_job_begun_before_a_change_says_so(tables, tmp_path, spark):
    index = covary.build_index(tables / "days1.parquet", tmp_path / "i", spark, size=32)
    rows = on_spark.query(index, [(tables / "days2.parquet", "day", "x")], spark)
    covary.build_index(tables, tmp_path / "i", spark, fresh=True)
    with pytest.raises(Exception, match="was changed since this was asked; ask again"):
        rows.collect()
