import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covary.index.commit import commit, open_draft
from covary.index.manifest import Manifest
from covary.index.merge import merge_segments, take_tables
from covary.index.segment_files import write_segment
from covary.index.segment_layout import build_segment
from covary.index.table_records import TableRecord
from covary.query.ask import Index
from covary.query.open_segment import OpenSegment
from covary.sketching.hashing import SCHEMES
from covary.sketching.kernel import finish, sketch_rows
from covary.sketching.key_columns import exact_key
from covary.sketching.sketch_types import SketchConfig
from covary.statistics.estimate import estimate
from covary.statistics.join import join
from covary.statistics.moments import moments_of

SIZE = 32
TOLERANCE = {"pearson": 1e-9, "spearman": 1e-12, "rin": 1e-12}


def sketches_of(keys, columns, config, table="t"):
    frame = pl.DataFrame({"k": [str(key) for key in keys]})
    numbers = {name: pl.Series(name, values, dtype=pl.Float64) for name, values in columns.items()}
    return finish(sketch_rows(frame, [exact_key("k")], numbers, config, table), config)


def one(keys, values, config):
    return sketches_of(keys, {"v": np.asarray(values, dtype=float)}, config)[0]


def random_tables(seed, config, count=5):
    rng = np.random.default_rng(seed)
    tables = []
    for number in range(count):
        rows = int(rng.integers(1, 90))
        keys = rng.integers(0, int(rng.integers(2, 80)), rows)
        with_gaps = rng.normal(size=rows)
        with_gaps[rng.random(rows) < 0.3] = np.nan
        columns = {"a": rng.normal(size=rows), "gaps": with_gaps, "b": rng.integers(0, 3, rows).astype(float)}
        name = f"t{number}"
        tables.append((TableRecord(name, f"/{name}.csv", rows), sketches_of(keys, columns, config, name)))
    return tables


def assert_same_sketch(found, expected):
    assert (found.pair, found.aggregate, found.config) == (expected.pair, expected.aggregate, expected.config)
    assert found.key_hashes.dtype == expected.key_hashes.dtype
    assert found.key_hashes.tobytes() == expected.key_hashes.tobytes()
    assert found.values.tobytes() == expected.values.tobytes()
    assert found.counts == expected.counts
    assert found.complete == expected.complete


def assert_same_scores(query, candidates, measure):
    records = [(TableRecord(f"t{n}", f"/t{n}"), [c]) for n, c in enumerate(candidates)]
    scored = OpenSegment(build_segment(records), query.config).score(query, measure)
    by_number = dict(zip(scored.sketches.tolist(), range(scored.sketches.size), strict=True))
    for number, candidate in enumerate(candidates):
        expected = estimate(query, candidate, measure)
        if not expected.sample_size:
            assert number not in by_number
            continue
        at = by_number[number]
        assert scored.sample_sizes[at] == expected.sample_size
        share = 1.0 if expected.exact else min(query.threshold, candidate.threshold)
        assert scored.join_sizes[at] == pytest.approx(expected.sample_size / share)
        if expected.correlation is None:
            assert np.isnan(scored.correlations[at])
        else:
            assert scored.correlations[at] == pytest.approx(expected.correlation, abs=TOLERANCE[measure])


def assert_same_moments(query, candidates, measure):
    records = [(TableRecord(f"t{n}", f"/t{n}"), [c]) for n, c in enumerate(candidates)]
    opened = OpenSegment(build_segment(records), query.config)
    scored = opened.score(query, measure)
    some = np.sort(scored.sketches)[::2]
    found = opened.moments(query, measure, some)
    for place, number in enumerate(some):
        sample = join(query, candidates[number])
        expected = moments_of(sample.x, sample.y, measure)
        assert found.size[place] == expected.size[0]
        if np.isnan(expected.correlation[0]):
            assert np.isnan(found.correlation[place])
            continue
        for name in (
            "correlation",
            "x_skewness",
            "y_skewness",
            "x_kurtosis",
            "y_kurtosis",
            "effective",
            "bias",
        ):
            of_all, of_one = getattr(found, name)[place], getattr(expected, name)[0]
            assert of_all == pytest.approx(of_one, rel=1e-6, abs=1e-9), name
        if abs(expected.correlation[0]) < 0.999:  # on a line there is no error around it
            assert found.error[place] == pytest.approx(expected.error[0], rel=1e-6)
        if measure == "pearson":
            for name in ("x_mean", "x_deviation", "y_mean", "y_deviation"):
                scale = expected.x_deviation[0] if name[0] == "x" else expected.y_deviation[0]
                of_all, of_one = getattr(found, name)[place], getattr(expected, name)[0]
                assert of_all / scale == pytest.approx(of_one / scale, rel=1e-6, abs=1e-9), name


@pytest.mark.parametrize("hash_name", sorted(SCHEMES))
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), cut=st.integers(1, 4))
def test_folding_segments_equals_building_all_at_once(hash_name, seed, cut):
    config = SketchConfig(SIZE, ("mean", "count"), hash_name)
    tables = random_tables(seed, config)
    whole = build_segment(tables)
    parts = build_segment(tables[:cut]), build_segment([]), build_segment(tables[cut:])
    [folded] = merge_segments(map(take_tables, parts), config.scheme)
    assert folded.tables.equals(whole.tables)
    assert folded.names.equals(whole.names)
    assert {name: (array.dtype, array.tobytes()) for name, array in folded.arrays.items()} == {
        name: (array.dtype, array.tobytes()) for name, array in whole.arrays.items()
    }
    opened, expected = OpenSegment(folded, config), OpenSegment(whole, config)
    for number in range(whole.sketches.height):
        assert_same_sketch(opened.sketch(number), expected.sketch(number))
        scores, expected_scores = (
            each.score(expected.sketch(number), "pearson") for each in (opened, expected)
        )
        assert rounded_scores(scores) == rounded_scores(expected_scores)


def rounded_scores(candidates):
    """Scores by sketch, in no order; undefined correlations made equal to each other."""
    correlations = np.nan_to_num(candidates.correlations, nan=9.0).round(12).tolist()
    rows = zip(correlations, candidates.sample_sizes, candidates.join_sizes, strict=True)
    return dict(zip(candidates.sketches.tolist(), rows, strict=True))


@pytest.mark.parametrize("hash_name", sorted(SCHEMES))
def test_an_index_returns_the_sketches_that_were_put_in(hash_name, tmp_path):
    config = SketchConfig(SIZE, ("mean", "last"), hash_name)
    parts = [random_tables(seed, config, 3) for seed in (1, 2)]
    for seed, part in enumerate(parts):
        part[:] = [(TableRecord(f"{seed}{record.name}", record.path), sketches) for record, sketches in part]
    folder = tmp_path / "index"
    with open_draft(folder) as draft:
        stored = [write_segment(build_segment(part), draft.folder) for part in parts]
        commit(draft, Manifest(config, tuple(stored)))
    index = Index.open(folder)
    put_in = [(record.name, each) for part in parts for record, made in part for each in made if each.size]
    assert index.sketch_count == len(put_in)
    for table, expected in put_in:
        found = index.sketch(table, expected.pair.key, expected.pair.value, expected.aggregate)
        assert found.pair.table == table
        assert found.key_hashes.tobytes() == expected.key_hashes.tobytes()
        assert found.values.tobytes() == expected.values.tobytes()
        assert (found.counts, found.complete) == (expected.counts, expected.complete)


@pytest.mark.parametrize("hash_name", sorted(SCHEMES))
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_a_segment_returns_the_sketches_that_were_put_in(hash_name, seed):
    config = SketchConfig(SIZE, ("mean",), hash_name)
    tables = random_tables(seed, config)
    segment = OpenSegment(build_segment(tables), config)
    by_name = {(s.pair, s.aggregate): s for _, made in tables for s in made if s.size}
    assert segment.sketch_count == len(by_name)
    for number in range(segment.sketch_count):
        found = segment.sketch(number)
        assert_same_sketch(found, by_name[found.pair, found.aggregate])


@pytest.mark.parametrize("measure", sorted(TOLERANCE))
@pytest.mark.parametrize("hash_name", sorted(SCHEMES))
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_scoring_all_at_once_equals_estimating_one_by_one(hash_name, measure, seed):
    config = SketchConfig(SIZE, ("mean",), hash_name)
    candidates = [sketch for _, made in random_tables(seed, config) for sketch in made if sketch.size]
    rng = np.random.default_rng(seed + 1)
    query = one(rng.integers(0, 70, 80), rng.normal(size=80), config)
    assert_same_scores(query, candidates, measure)
    assert_same_moments(query, candidates, measure)


def related(rows=200, seed=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    return np.arange(rows), x, 0.5 * x + rng.normal(size=rows)


@pytest.mark.parametrize("measure", sorted(TOLERANCE))
def test_scoring_holds_for_constants_ties_offsets_and_magnitudes(measure):
    keys, x, y = related()
    config = SketchConfig(1024)
    columns = [
        y, -y, np.round(y), np.full(200, 7.0), np.full(200, 0.1), np.full(200, 1e200), 1e9 + y,
        1e9 + 1e-3 * y, 1e200 * y, 1e-200 * y, 1e300 * y, y > 0, np.where(keys == 3, 1e12, y),
        np.where(keys == 3, np.finfo(float).max, y), np.where(keys == 5, -np.finfo(float).max, 1e300 * y),
    ]  # fmt: skip
    candidates = [one(keys, column, config) for column in columns]
    for values in (x, np.round(x), 1e9 + x, 1e200 * x, 1e-300 * x, np.full(200, 3.3)):
        assert_same_scores(one(keys, values, config), candidates, measure)
        assert_same_moments(one(keys, values, config), candidates, measure)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda y: y + 9000, id="offset"),
        pytest.param(lambda y: y * 1e-160, id="tiny"),
    ],
)
def test_pearson_of_all_keeps_nine_digits_where_cancellation_is_worst(change):
    keys, x, y = related(800, seed=0)
    config = SketchConfig(1024)
    assert_same_scores(one(keys, x, config), [one(keys, change(y), config)], "pearson")


@pytest.mark.parametrize("measure", sorted(TOLERANCE))
@pytest.mark.parametrize("outlier", [1e5, 1e13, 1e17, 1e30])
def test_a_query_value_outside_the_join_leaves_the_score_alone(measure, outlier):
    keys, x, y = related()
    config = SketchConfig(1024)
    query = one([*keys, "elsewhere"], [*x, outlier], config)
    assert_same_scores(query, [one(keys, y, config)], measure)


@pytest.mark.parametrize("measure", sorted(TOLERANCE))
def test_small_query_values_in_the_join_keep_their_digits_beside_large_ones_outside(measure):
    keys, x, y = related()
    config = SketchConfig(1024)
    query = one([*keys, "elsewhere", "nowhere"], [*(1e-160 * x), 1.0, -1.0], config)
    assert_same_scores(query, [one(keys, y, config)], measure)


def test_a_column_with_a_sum_beyond_a_doubles_range_never_leads():
    keys, x, y = related()
    config = SketchConfig(1024, ("sum",))
    frame = np.where(keys == 0, 1.7e308, y)
    huge = sketches_of([*keys, 0], {"v": np.array([*frame, 1.7e308])}, config)[0]
    assert np.isinf(huge.values).any()
    records = [(TableRecord("t", "/t"), [huge])]
    scored = OpenSegment(build_segment(records), config).score(one(keys, x, config), "pearson")
    assert np.isnan(scored.correlations).all()


units = st.tuples(st.sampled_from([0.001, 0.5, 1.8, 60.0, 1e6]), st.sampled_from([0.0, 32.0, -5.0, 273.15]))


@pytest.mark.parametrize("measure", sorted(TOLERANCE))
@settings(max_examples=25)
@given(query_units=units, candidate_units=units)
def test_units_change_neither_correlations_nor_order(measure, query_units, candidate_units):
    config = SketchConfig(64)
    rng = np.random.default_rng(11)
    keys = np.arange(150)
    x = rng.normal(size=150)
    columns = [share * x + rng.normal(size=150) for share in (3.0, -1.5, 0.8, 0.3, 0.0)]

    def scored(query, candidates):
        records = [(TableRecord(f"t{n}", f"/t{n}"), [one(keys, c, config)]) for n, c in enumerate(candidates)]
        sketch = one(keys, query, config)
        return OpenSegment(build_segment(records), config).score(sketch, measure).correlations

    (scale, shift), (other_scale, other_shift) = query_units, candidate_units
    plain = scored(x, columns)
    changed = scored(scale * x + shift, [other_scale * column + other_shift for column in columns])
    if measure == "pearson" and abs(other_shift) > 100 * other_scale:
        return  # cancellation: held by the test of nine digits above
    assert changed == pytest.approx(plain, abs=1e-9)
    assert np.argsort(-np.abs(changed)).tolist() == np.argsort(-np.abs(plain)).tolist()
