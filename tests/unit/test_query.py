from dataclasses import asdict

import numpy as np
import polars as pl
import pytest

from covary.errors import CovaryError, NoSuchColumn, TableError, UnusableColumn
from covary.frames import sketch
from covary.kernel import finish, sketch_rows
from covary.query import estimate, open_index
from covary.segment import TableRecord, build_segment
from covary.segmentfiles import write_segment
from covary.sketches import SketchConfig
from covary.store import Manifest, building, commit

CONFIG = SketchConfig(256)
RNG = np.random.default_rng(17)
KEYS = [f"k{n}" for n in range(100)]
X = RNG.normal(size=100)
QUERY = pl.DataFrame({"key": KEYS, "x": X})


def column(correlation):
    noise = np.random.default_rng(int(1000 * abs(correlation))).normal(size=100)
    centred = X - X.mean()
    noise = noise - noise.mean()
    noise = noise - noise @ centred / (centred @ centred) * centred
    noise = noise / noise.std() * centred.std()
    return correlation * centred + np.sqrt(1 - correlation**2) * noise


TABLES = {
    "middle": (KEYS, column(0.6)),
    "strong": (KEYS, -column(0.9)),
    "constant": (KEYS, np.full(100, 4.0)),
    "few": (KEYS[:5], column(0.9)[:5]),
    "two": (KEYS[:2], column(0.9)[:2]),
    "half": (KEYS[:50], column(0.3)[:50]),
    "twin": (KEYS, column(0.6)),
    "elsewhere": ([f"other {n}" for n in range(50)], np.arange(50.0)),
}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    made = []
    for name, (keys, values) in TABLES.items():
        numbers = {"v": pl.Series("v", values, dtype=pl.Float64)}
        partials = sketch_rows(pl.DataFrame({"k": keys}), ["k"], numbers, CONFIG, name)
        made.append((TableRecord(name, f"/lake/{name}.csv", len(keys)), finish(partials, CONFIG)))
    folder = tmp_path_factory.mktemp("query") / "index"
    with building(folder) as scratch:
        # Two segments, so that numbers have to be carried over from one to the next.
        parts = (made[:3], made[3:])
        stored = [write_segment(build_segment(part), scratch / f"{n:06}") for n, part in enumerate(parts)]
        commit(folder, Manifest(CONFIG, tuple(stored)), scratch)
    return open_index(folder)


def names(hits):
    return [hit.table for hit in hits]


def test_the_strongest_come_first_whatever_their_sign(index):
    hits = index.query(QUERY, "key", "x")
    assert names(hits) == ["strong", "middle", "twin", "half"]
    assert hits[0].correlation == pytest.approx(-0.9, abs=1e-9)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_equal_scores_keep_the_order_of_the_index(index):
    for top in (1, 2, 3, 10):
        assert names(index.query(QUERY, "key", "x", top=top)) == ["strong", "middle", "twin", "half"][:top]


def test_joins_too_small_are_counted_and_hidden(index):
    hits = index.query(QUERY, "key", "x")
    assert (hits.candidates, hits.hidden, hits.min_sample) == (7, 2, 10)
    assert "few" in names(index.query(QUERY, "key", "x", min_sample=5))


def test_two_shared_keys_never_make_a_hit(index):
    assert "two" not in names(index.query(QUERY, "key", "x", min_sample=0))


@pytest.mark.parametrize("measure", ["pearson", "spearman"])
@pytest.mark.parametrize("rank", ["finite-population", "s1", "s2"])
def test_undefined_correlations_never_lead(index, measure, rank):
    hits = index.query(QUERY, "key", "x", measure=measure, rank=rank, min_sample=0)
    assert "constant" not in names(hits)
    flat = QUERY.with_columns(x=pl.lit(1.5))
    assert names(index.query(flat, "key", "x", measure=measure, rank=rank)) == []


def test_retrieve_scores_only_the_largest_overlaps(index):
    hits = index.query(QUERY, "key", "x", retrieve=4, min_sample=3)
    assert hits.candidates == 4
    assert names(hits) == ["strong", "middle", "twin"]


def test_a_hit_says_what_estimating_the_pair_says(index):
    for hit in index.query(QUERY, "key", "x", measure="spearman"):
        pair = index.sketch(hit.table, hit.key, hit.value)
        found = estimate(sketch(QUERY, "key", "x", size=256), pair, "spearman")
        assert asdict(found).items() <= asdict(hit).items()
        assert hit.exact
        assert hit.low == hit.correlation == hit.high


def test_an_answer_is_plain_data(index):
    answer = index.query(QUERY, "key", "x", top=1).to_dict()
    assert {"query", "candidates", "hits", "elapsed_ms"} <= answer.keys()
    assert {"table", "key", "value", "aggregate", "rows", "distinct_keys"} <= answer["query"].keys()
    wanted = "table key value aggregate correlation low high measure sample_size overlap containment"
    assert {*wanted.split(), "join_size", "exact", "score"} <= answer["hits"][0].keys()


def test_own_columns_are_left_out_unless_asked_for(spark, lake, tmp_path):
    from covary import build_index  # noqa: PLC0415

    index = build_index(lake.folder, tmp_path / "index", spark)
    own = lake.folder / "strong.csv"
    hits = index.query(own, "place", "y")
    assert "strong" not in names(hits)
    assert hits.own == 2
    with_own = index.query(own, "place", "y", include_own=True)
    assert with_own[0].table == "strong"
    assert with_own[0].correlation == pytest.approx(1.0)
    assert with_own.own == 0


def test_known_correlations_are_found_in_every_format(spark, lake, tmp_path):
    from covary import build_index  # noqa: PLC0415

    index = build_index(lake.folder, tmp_path / "index", spark)
    hits = index.query(lake.query, "place", "x", top=100)
    found = {hit.table: hit.correlation for hit in hits if hit.value == "y"}
    assert found == pytest.approx(lake.correlations, abs=1e-9)
    assert hits[0].table == "strong"


def test_an_undefined_estimate_has_no_ends(index):
    flat = sketch(QUERY.with_columns(x=pl.lit(1.5)), "key", "x", size=256)
    found = estimate(flat, index.sketch("middle", "k", "v"))
    assert (found.correlation, found.low, found.high, found.sample_size) == (None, None, None, 100)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top": 0}, "at least 1"), ({"measure": "kendal"}, "no measure"), ({"rank": "s9"}, "no ranker"),
        ({"aggregate": "mode"}, "no aggregate"), ({"top": "ten"}, "whole number"),
        ({"measure": ["pearson"]}, "no measure"),
        ({"min_sample": -1}, "at least 0"), ({"retrieve": 0}, "at least 1"), ({"rank": 1}, "no ranker"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused(index, settings, message):
    with pytest.raises(CovaryError, match=message):
        index.query(QUERY, "key", "x", **settings)


def test_a_wrong_column_is_refused(index):
    with pytest.raises(NoSuchColumn, match="did you mean key"):
        index.query(QUERY, "kee", "x")
    with pytest.raises(UnusableColumn, match="measures"):
        index.query(QUERY, "x", "key")
    with pytest.raises(TableError, match="holds no table"):
        index.sketch("nowhere", "k", "v")
    with pytest.raises(NoSuchColumn, match="k / v"):
        index.sketch("middle", "k", "w")


def test_a_dropped_row_is_counted_once(index):
    rows = pl.concat([QUERY, pl.DataFrame({"key": [None], "x": [None]}, schema=QUERY.schema)])
    assert index.query(rows, "key", "x").query.dropped_rows == 1


def test_a_sample_that_holds_every_key_of_a_complete_sketch_is_exact():
    wide = pl.DataFrame({"key": [f"k{n}" for n in range(400)], "x": RNG.normal(size=400)})
    cut = sketch(wide, "key", "x", size=256)
    kept = set(cut.key_hashes.tolist())
    all_keys = [key for key in wide["key"] if sketch(wide.filter(key=key), "key", "x").key_hashes[0] in kept]
    whole = sketch(wide.filter(pl.col("key").is_in(all_keys[:40])), "key", "x", size=256)
    found = estimate(whole, cut)
    assert found.sample_size == 40
    assert found.exact


@pytest.mark.parametrize("name", ["*", "^x$"])
def test_a_column_may_have_any_name(name):
    rows = pl.DataFrame([QUERY["key"], QUERY["x"].alias(name), QUERY["x"].alias("other")])
    expected = sketch(QUERY, "key", "x").values.tobytes()
    assert sketch(rows, "key", name).values.tobytes() == expected
