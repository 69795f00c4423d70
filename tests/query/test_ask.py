from dataclasses import asdict

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covary.errors import CovaryError, NoSuchColumn, TableError, UnusableColumn
from covary.sketching.sketch_table import sketch
from covary.sketching.sketch_types import SketchConfig
from covary.statistics.estimate import estimate
from covary.statistics.measures import MEASURES
from covary.statistics.ranking import RANKERS
from covary.statistics.significance import benjamini_hochberg, benjamini_yekutieli

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

CHOICES = [
    (measure, rank)
    for measure in sorted(MEASURES)
    for rank in sorted(RANKERS)
    if not RANKERS[rank].of_pearson or MEASURES[measure].scores_by == "pearson"
]
OF_ANY_UNITS = [
    (measure, rank)
    for measure, rank in CHOICES
    if rank != "s4" and (measure == "pearson" or rank == "finite-population")
]


@pytest.fixture(scope="module")
def index(tmp_path_factory, write_index):
    return write_index(tmp_path_factory.mktemp("query") / "index", TABLES, CONFIG)


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
    assert index.query(QUERY, "key", "x", min_sample=0).min_sample == 3
    assert "few" in names(index.query(QUERY, "key", "x", min_sample=5))


def test_two_shared_keys_never_make_a_hit(index):
    assert "two" not in names(index.query(QUERY, "key", "x", min_sample=0))


@pytest.mark.parametrize(("measure", "rank"), CHOICES)
def test_undefined_correlations_never_lead(index, measure, rank):
    hits = index.query(QUERY, "key", "x", measure=measure, rank=rank, min_sample=0)
    assert "constant" not in names(hits)
    flat = QUERY.with_columns(x=pl.lit(1.5))
    assert names(index.query(flat, "key", "x", measure=measure, rank=rank)) == []


def test_retrieve_scores_only_the_largest_overlaps(index):
    hits = index.query(QUERY, "key", "x", retrieve=4, min_sample=3)
    assert (hits.candidates, hits.retrieve, hits.shown_of) == (7, 4, 4)
    assert names(hits) == ["strong", "middle", "twin"]


def test_a_hit_says_what_estimating_the_pair_says(index):
    for hit in index.query(QUERY, "key", "x", measure="spearman"):
        pair = index.sketch(hit.table, hit.key, hit.value)
        found = estimate(sketch(QUERY, "key", "x", size=256), pair, "spearman")
        assert asdict(found).items() <= asdict(hit).items()
        assert hit.exact
        assert hit.low == hit.correlation == hit.high


@pytest.mark.parametrize("measure", sorted(MEASURES))
def test_every_measure_finds_the_strongest(index, measure):
    hits = index.query(QUERY, "key", "x", measure=measure)
    assert hits[0].table == "strong"
    assert hits[0].measure == measure
    cheap = measure in ("pearson", "spearman", "rin")
    assert hits.shortlist == (None if cheap else 4)
    assert hits.scored_by == ("pearson" if measure == "pm1" else measure if cheap else "spearman")
    own_test = cheap or measure in ("distance", "chatterjee")
    assert hits.tested_by == (measure if own_test else hits.scored_by)


def test_a_dearer_measure_ranks_a_shortlist(index):
    hits = index.query(QUERY, "key", "x", measure="kendall", shortlist=2)
    assert hits.shortlist == 2
    assert names(hits) == ["strong", "middle"]
    seen = []
    index.query(QUERY, "key", "x", measure="kendall", on_progress=lambda *step: seen.append(step))
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4)]


def test_any_kind_of_number_will_do(index):
    of_numpy = {
        "top": np.int64(2),
        "seed": np.int32(1),
        "max_q": np.float32(0.5),
        "confidence": np.float64(0.9),
    }
    assert len(index.query(QUERY, "key", "x", **of_numpy)) == 2


@pytest.mark.parametrize("measure", ["distance", "chatterjee"])
def test_dependence_of_any_form_is_tested_by_its_own_measure(tmp_path, write_index, measure):
    tables = {f"noise {n}": (KEYS, np.random.default_rng(n).normal(size=100)) for n in range(8)}
    parabola = write_index(tmp_path / "index", tables | {"square": (KEYS, X**2)}, CONFIG)
    hits = parabola.query(QUERY, "key", "x", measure=measure, max_q=0.05)
    assert names(hits) == ["square"]
    assert hits[0].p_value < 1e-4
    assert hits[0].q_value == pytest.approx(9 * hits[0].p_value, rel=0.01)
    rest = parabola.query(QUERY, "key", "x", measure=measure, shortlist=1, max_q=0.05)
    assert rest.tested == 9  # of which one is measured; the others count as chance
    assert len(rest) <= 1


def test_pm1_of_a_whole_join_is_the_joins_own_correlation(index):
    by_pearson = {hit.table: hit.correlation for hit in index.query(QUERY, "key", "x")}
    by_pm1 = {hit.table: hit.correlation for hit in index.query(QUERY, "key", "x", measure="pm1")}
    assert by_pm1 == by_pearson


def test_columns_without_a_value_of_a_dearer_measure_are_counted(tmp_path, write_index):
    flat = np.where(np.arange(100) < 60, 0.0, X)
    hits = write_index(tmp_path / "index", {"flat": (KEYS, flat), "fine": (KEYS, -X)}, CONFIG).query(
        QUERY, "key", "x", measure="qn"
    )
    assert (names(hits), hits.undefined, hits.shortlist) == (["fine"], 1, 2)


def test_q_values_are_over_all_columns_tested(index):
    hits = index.query(QUERY, "key", "x")
    assert (hits.tested, hits.constant) == (4, 1)
    p = np.array([hit.p_value for hit in hits])
    assert [hit.q_value for hit in hits] == pytest.approx(benjamini_hochberg(p))
    assert [hit.q_value_by for hit in hits] == pytest.approx(benjamini_yekutieli(p))
    assert all(hit.q_value >= hit.p_value for hit in hits)


def test_the_largest_q_leaves_weak_hits_out(index):
    weakest = index.query(QUERY, "key", "x")[-1]
    assert weakest.table == "half"
    hits = index.query(QUERY, "key", "x", max_q=weakest.q_value * 0.9)
    assert names(hits) == ["strong", "middle", "twin"]
    assert (hits.survivors, hits.level) == (3, weakest.q_value * 0.9)
    stricter = index.query(QUERY, "key", "x", max_q=weakest.q_value * 1.1, correction="by")
    assert "half" not in names(stricter)
    assert names(index.query(QUERY, "key", "x", max_q=1)) == names(index.query(QUERY, "key", "x"))


def test_shuffled_numbers_show_what_chance_finds(index):
    hits = index.query(QUERY, "key", "x", null=True, seed=1)
    assert index.query(QUERY, "key", "x").by_chance is None
    assert len(hits.by_chance) == 4
    assert abs(hits.by_chance[0].correlation) < 0.4 < abs(hits[0].correlation)
    again = index.query(QUERY, "key", "x", null=True, seed=1)
    assert again.by_chance == hits.by_chance
    assert index.query(QUERY, "key", "x", null=True, seed=2).by_chance != hits.by_chance


# Columns that share some keys with a query of which, as of them, a sketch holds only a part.
MANY = [f"key {n}" for n in range(400)]
MANY_X = np.exp(RNG.normal(size=400))


def some_column(number):
    held = np.random.default_rng(number).permutation(400)[: 60 + 25 * number]
    noise = np.exp(np.random.default_rng(number + 100).normal(size=400))
    return [MANY[place] for place in held], (noise + MANY_X * (6 - number) / 6)[held]


CUT_TABLES = {f"t{number}": some_column(number) for number in range(6)}
CUT = SketchConfig(64)


@pytest.fixture(scope="module")
def cut_index(tmp_path_factory, write_index):
    return write_index(tmp_path_factory.mktemp("cut") / "index", CUT_TABLES, CUT)


@pytest.mark.parametrize(("measure", "rank"), OF_ANY_UNITS)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    scales=st.lists(st.floats(1e-9, 1e9), min_size=7, max_size=7),
    offsets=st.lists(st.floats(-1e3, 1e3), min_size=7, max_size=7),
    sign=st.sampled_from([1, -1]),
)
def test_units_do_not_change_the_order(
    cut_index, tmp_path_factory, write_index, measure, rank, scales, offsets, sign
):
    query = pl.DataFrame({"key": MANY, "x": MANY_X})
    expected = cut_index.query(query, "key", "x", rank=rank, measure=measure, min_sample=3)
    assert len(expected) == len(CUT_TABLES)
    assert not any(hit.exact for hit in expected)
    other = query.with_columns(x=sign * scales[0] * (pl.col("x") + offsets[0]))
    tables = {
        name: (keys, scale * (values + offset))
        for (name, (keys, values)), scale, offset in zip(
            CUT_TABLES.items(), scales[1:], offsets[1:], strict=True
        )
    }
    found = write_index(tmp_path_factory.mktemp("units") / "index", tables, CUT).query(
        other, "key", "x", rank=rank, measure=measure, min_sample=3
    )
    assert names(found) == names(expected)
    from_zero = measure in ("distance", "chatterjee")
    if not (measure == "chatterjee" and sign < 0):  # whose ties are broken by the order of the values
        assert [hit.correlation for hit in found] == pytest.approx(
            [hit.correlation if from_zero else sign * hit.correlation for hit in expected], abs=1e-8
        )


def test_s4_depends_on_units_as_the_paper_has_it(index):
    scores = [hit.score for hit in index.query(QUERY, "key", "x", rank="s4")]
    moved = QUERY.with_columns(x=pl.col("x") + 10_000)
    assert [hit.score for hit in index.query(moved, "key", "x", rank="s4")] != pytest.approx(scores)


def test_an_answer_is_plain_data(index):
    answer = index.query(QUERY, "key", "x", top=1).to_dict()
    assert {"query", "candidates", "hits", "elapsed_ms"} <= answer.keys()
    assert {"table", "key", "value", "aggregate", "rows", "distinct_keys"} <= answer["query"].keys()
    wanted = "table key value aggregate correlation low high measure sample_size overlap containment"
    assert {*wanted.split(), "join_size", "exact", "score"} <= answer["hits"][0].keys()
    assert {"p_value", "q_value", "q_value_by", "interval", "confidence", "reason"} <= answer["hits"][
        0
    ].keys()


def test_own_columns_are_left_out_unless_asked_for(lake, tmp_path):
    from covary import build_index  # noqa: PLC0415

    index = build_index(lake.folder, tmp_path / "index", runner="process")
    own = lake.folder / "strong.csv"
    hits = index.query(own, "place", "y")
    assert "strong" not in names(hits)
    assert hits.own == 2
    with_own = index.query(own, "place", "y", include_own=True)
    assert with_own[0].table == "strong"
    assert with_own[0].correlation == pytest.approx(1.0)
    assert with_own.own == 0


def test_known_correlations_are_found_in_every_format(lake, tmp_path):
    from covary import build_index  # noqa: PLC0415

    index = build_index(lake.folder, tmp_path / "index", runner="process")
    hits = index.query(lake.query, "place", "x", top=100)
    found = {hit.table: hit.correlation for hit in hits if hit.value == "y"}
    assert found == pytest.approx(lake.correlations, abs=1e-9)
    assert hits[0].table == "strong"


def test_an_undefined_estimate_has_no_ends(index):
    flat = sketch(QUERY.with_columns(x=pl.lit(1.5)), "key", "x", size=256)
    found = estimate(flat, index.sketch("middle", "k", "v"))
    assert (found.correlation, found.low, found.high, found.sample_size) == (None, None, None, 100)
    assert found.p_value is None
    assert found.reason == "a column has one value only on the 100 shared keys"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top": 0}, "at least 1"), ({"measure": "kendal"}, "no measure"), ({"rank": "s9"}, "no ranker"),
        ({"aggregate": "mode"}, "no aggregate"), ({"top": "ten"}, "whole number"),
        ({"measure": ["pearson"]}, "no measure"),
        ({"min_sample": -1}, "at least 0"), ({"retrieve": 0}, "at least 1"), ({"rank": 1}, "no ranker"),
        ({"interval": "wald"}, "no interval"), ({"measure": "qn", "interval": "fisher"}, "is known"),
        ({"interval": "pm1", "confidence": 0.9}, "made for"), ({"top": True}, "whole number"),
        ({"confidence": 95.0}, "below 1"), ({"confidence": "high"}, "below 1"), ({"seed": -1}, "seed"),
        ({"max_q": 0}, "above 0"), ({"max_q": 5}, "at most 1"), ({"max_q": "small"}, "above 0"),
        ({"correction": "holm"}, "no correction"), ({"shortlist": 0}, "at least 1"),
        ({"rank": "s3", "measure": "spearman"}, "Pearson"), ({"rank": "s4", "measure": "qn"}, "Pearson"),
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
    text = pl.DataFrame([QUERY["key"], QUERY["x"].cast(pl.String).alias(name)])
    assert sketch(text, "key", name).values.tobytes() == expected
    keyed = pl.DataFrame([QUERY["key"].alias(name), QUERY["x"]])
    assert sketch(keyed, name, "x").values.tobytes() == expected
