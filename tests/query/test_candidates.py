import numpy as np
import polars as pl
import pytest

from covary.query.candidates import describe_candidates, order_best_first
from covary.query.open_segment import Candidates
from covary.sketching.sketch_table import sketch
from covary.sketching.sketch_types import SketchConfig
from covary.statistics.bootstrap import pm1, pm1_ends
from covary.statistics.estimate import estimate
from covary.statistics.hoeffding import hoeffding_ends
from covary.statistics.join import join
from covary.statistics.moments import moments_of
from covary.statistics.ranking import RANKERS
from covary.statistics.significance import benjamini_hochberg, benjamini_yekutieli, p_values, quick_p_values

CONFIG = SketchConfig(64)
RNG = np.random.default_rng(23)
KEYS = [f"k{n}" for n in range(400)]
X = np.exp(RNG.normal(size=400))
QUERY = pl.DataFrame({"key": KEYS, "x": X})
COLUMNS = 60


def column(number):
    """Heavy-tailed noise, the first few with some of X in it, over as many keys as it likes."""
    held = np.random.default_rng(number).permutation(400)[: 60 + 5 * number]
    noise = np.exp(np.random.default_rng(number + 100).normal(size=400))
    return [KEYS[place] for place in held], (noise + (X * (6 - number) / 6 if number < 6 else 0))[held]


@pytest.fixture(scope="module")
def index(tmp_path_factory, write_index):
    tables = {f"t{number}": column(number) for number in range(COLUMNS)}
    return write_index(tmp_path_factory.mktemp("listing") / "index", tables, CONFIG)


@pytest.fixture(scope="module")
def query():
    return sketch(QUERY, "key", "x", size=64)


def scores_of(index, query, rank):
    scored = index.score(query)
    given = describe_candidates(index, [query], scored, 5, lambda done, total: None)
    return scored, RANKERS[rank].score(given)


def samples(index, query, scored):
    return [join(query, index.sketch_at(int(number))) for number in scored.sketches]


def test_no_sample_is_the_whole_join(index, query):
    scored = index.score(query)
    assert not any(sample.exact for sample in samples(index, query, scored))
    assert scored.sample_sizes.min() >= 3


@pytest.mark.parametrize("top", [1, 5, 14, 15, 59, 100])
@pytest.mark.parametrize("measure", ["pearson", "spearman"])
def test_the_best_are_the_first_of_the_whole_list(index, top, measure):
    whole = index.query(QUERY, "key", "x", top=1000, min_sample=3, measure=measure)
    assert [hit.table for hit in index.query(QUERY, "key", "x", top=top, min_sample=3, measure=measure)] == [
        hit.table for hit in whole[:top]
    ]


def test_q_values_count_every_column(index, query):
    hits = index.query(QUERY, "key", "x", top=5, min_sample=3)
    scored = index.score(query)
    p = quick_p_values(scored.correlations, scored.sample_sizes)
    shown = {hit.table for hit in hits}
    for place, sample in enumerate(samples(index, query, scored)):
        name = index.sketch_at(int(scored.sketches[place])).pair.table
        if p[place] < 0.2 or name in shown:
            p[place] = p_values(moments_of(sample.x, sample.y))[0]
    expected = {
        index.sketch_at(int(number)).pair.table: q
        for number, *q in zip(scored.sketches, p, benjamini_hochberg(p), benjamini_yekutieli(p), strict=True)
    }
    for hit in hits:
        assert [hit.p_value, hit.q_value, hit.q_value_by] == pytest.approx(expected[hit.table], rel=1e-6)
    assert hits.survivors == np.count_nonzero(benjamini_hochberg(p) <= 0.05)
    by = index.query(QUERY, "key", "x", top=5, min_sample=3, correction="by", max_q=0.3)
    assert by.survivors == np.count_nonzero(benjamini_yekutieli(p) <= 0.3)
    assert by.survivors < np.count_nonzero(benjamini_hochberg(p) <= 0.3)


@pytest.mark.parametrize("max_q", [0.01, 0.3, 0.9])
def test_the_largest_q_is_kept_to_in_every_hit_but_not_in_chance(index, max_q):
    hits = index.query(QUERY, "key", "x", top=100, min_sample=3, max_q=max_q, null=True)
    assert all(hit.q_value <= max_q for hit in hits)
    assert len(hits) == hits.survivors
    assert len(hits.by_chance) == COLUMNS


def test_a_hit_says_what_estimating_the_pair_says(index, query):
    for measure in ("pearson", "kendall", "qn", "distance"):
        for hit in index.query(QUERY, "key", "x", top=3, min_sample=3, measure=measure):
            found = estimate(query, index.sketch(hit.table, hit.key, hit.value), measure)
            assert (hit.correlation, hit.low, hit.high) == (found.correlation, found.low, found.high)
            assert hit.p_value == found.p_value
            assert hit.join_size == found.join_size


def test_moments_come_in_the_order_asked_for(index, query):
    scored = index.score(query)
    some = scored.only(RNG.permutation(scored.sketches.size)[:30])
    found = index.moments([query], "pearson", some)
    for place, number in enumerate(some.sketches):
        sample = join(query, index.sketch_at(int(number)))
        assert found.correlation[place] == pytest.approx(moments_of(sample.x, sample.y).correlation[0])
    assert index.moments([query], "pearson", some.only(np.arange(0))).size.size == 0


def test_s3_is_of_pm1s_own_estimate(index, query):
    scored, scores = scores_of(index, query, "s3")
    for place in (0, 7, 31):
        sample = join(query, index.sketch_at(int(scored.sketches[place])))
        low, high = pm1_ends(sample.x, sample.y, 5)
        expected = abs(pm1(sample.x, sample.y, 5)) * (1 - (high - low) / 2)
        assert scores[place] == pytest.approx(expected)


def test_s4_bounds_both_columns_by_one_range(index, query):
    scored, scores = scores_of(index, query, "s4")
    lengths = []
    for sample in samples(index, query, scored):
        ranges = sample.x_range, sample.y_range
        low, high = hoeffding_ends(sample.x, sample.y, *ranges, 0.95, small_sample=True)
        lengths.append(high - low)
    lengths = np.array(lengths)
    expected = 1 - (lengths - lengths.min()) / (lengths.max() - lengths.min())
    assert scores == pytest.approx(np.abs(scored.correlations) * expected, rel=1e-6)


def test_jc_is_the_share_of_the_querys_keys(index, query):
    scored, scores = scores_of(index, query, "jc")
    assert scores.max() <= 1
    assert scores[scored.sketches == 0] == pytest.approx(60 / 400, abs=0.12)
    assert scores[scored.sketches == 59] > 0.7


def test_scores_that_differ_in_the_last_digits_tie():
    candidates = Candidates(
        np.array([4, 2, 9]), np.full(3, 20.0), np.zeros(3), np.full(3, 20.0), np.zeros(3, int)
    )
    order, scores = order_best_first(candidates, np.array([0.5, 0.5 + 1e-13, np.nan]), 3)
    assert order.tolist() == [1, 0]
    assert scores.tolist() == [0.5, 0.5]


def test_huge_ranges_are_ranked_last_by_s4_and_not_lost(tmp_path, write_index):
    tables = {"huge": (KEYS, X.clip(0, 1) * 1.7e308), "plain": (KEYS, X + RNG.normal(size=400))}
    hits = write_index(tmp_path / "index", tables, CONFIG).query(QUERY, "key", "x", rank="s4")
    assert sorted(hit.table for hit in hits) == ["huge", "plain"]
