import math
from importlib import import_module
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covary.sketching.aggregate import AGGREGATES
from covary.sketching.hashing import SCHEMES
from covary.sketching.kernel import finish, merge_partials, sketch_rows
from covary.sketching.key_columns import exact_key
from covary.sketching.sketch_types import SketchConfig
from covary.statistics.join import join

SIZE = 8
KERNEL = import_module("covary.sketching.kernel")
HASHES = sorted(SCHEMES)
numbers = st.one_of(
    st.none(),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 5e-324, -5e-324, 1e300, -1e300, 1e-300, 2.0**53, 1e16]),
    st.sampled_from([math.nan, math.inf, -math.inf]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-1000, 1000).map(float),
)
# Around n distinct keys, so that both complete and cut sketches are common.
keys = st.one_of(st.none(), st.just(""), st.integers(0, 3).map(str), st.integers(0, 24).map("k{}".format))
tables = st.lists(st.tuples(keys, numbers), max_size=60)


def merge(partials, config):
    return merge_partials([[partial] for partial in partials], config)[0]


def config_of(hash_name, size=SIZE):
    return SketchConfig(size, tuple(AGGREGATES), hash_name)


def partial_of(rows, config, first_row=0):
    frame = pl.DataFrame({"k": [key for key, _ in rows]}, schema={"k": pl.String})
    column = pl.Series("v", [value for _, value in rows], dtype=pl.Float64)
    return sketch_rows(frame, [exact_key("k")], {"v": column}, config, first_row=first_row)[0]


def bits(partial, config):
    """Everything a finished sketch says, as bytes."""
    made = finish([partial], config)
    counts = partial.counts
    ends = np.array([counts.minimum, counts.maximum]).tobytes()
    whole = (counts.rows, counts.null_keys, counts.null_values, counts.not_finite, ends, partial.complete)
    return whole, [(s.aggregate, s.key_hashes.tobytes(), s.values.tobytes()) for s in made]


@pytest.mark.parametrize("hash_name", HASHES)
@settings(max_examples=150)
@given(
    rows=st.lists(st.tuples(keys, numbers, numbers, st.integers(-9, 9).map(float)), max_size=60),
    order=st.permutations([1, 2, 3]),
    clean_keys=st.booleans(),
)
def test_columns_sketched_together_equal_each_alone(hash_name, rows, order, clean_keys):
    config = config_of(hash_name)
    if clean_keys:
        rows = [(row[0] or "k", *row[1:]) for row in rows]
    frame = pl.DataFrame({"k": [row[0] for row in rows]}, schema={"k": pl.String})
    columns = {f"v{n}": pl.Series([row[n] for row in rows], dtype=pl.Float64) for n in order}
    together = sketch_rows(frame, [exact_key("k")], columns, config)
    assert [partial.pair.value for partial in together] == list(columns)
    for partial, n in zip(together, order, strict=True):
        alone = partial_of([(row[0], row[n]) for row in rows], config)
        assert bits(partial, config) == bits(alone, config)


def cut_up(rows, cuts, config):
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    return [partial_of(rows[start:stop], config, start) for start, stop in pairwise(edges)]


def usable(rows):
    """The finite numbers of every key, in row order, by a plain loop."""
    found = {}
    for key, value in rows:
        if key and value is not None and math.isfinite(value):
            found.setdefault(key, []).append(value)
    return found


def smallest_by_brute_force(names, hash_name, size):
    scheme = SCHEMES[hash_name]
    hashes = scheme.identify([pl.Series(list(names), dtype=pl.String)])[0].hashes
    ordered = sorted(zip(scheme.order(hashes).tolist(), hashes.tolist(), names, strict=True))
    return [(each, name) for _, each, name in ordered[:size]]


@pytest.mark.parametrize("hash_name", HASHES)
@given(rows=tables, cuts=st.lists(st.integers(0, 60), max_size=6), shuffled=st.randoms(use_true_random=False))
def test_any_chunking_merged_in_any_order_gives_the_same_bits(hash_name, rows, cuts, shuffled):
    config = config_of(hash_name)
    whole = bits(partial_of(rows, config), config)
    parts = cut_up(rows, cuts, config)
    shuffled.shuffle(parts)
    assert bits(merge(parts, config), config) == whole


@pytest.mark.parametrize("hash_name", HASHES)
@given(rows=tables, first=st.integers(0, 60), second=st.integers(0, 60))
def test_merge_associates_and_commutes(hash_name, rows, first, second):
    config = config_of(hash_name)
    a, b, c = cut_up(rows, [first, second], config)
    left = merge([merge([a, b], config), c], config)
    right = merge([a, merge([b, c], config)], config)
    turned = merge([c, merge([b, a], config)], config)
    assert bits(left, config) == bits(right, config) == bits(turned, config)


@pytest.mark.parametrize("hash_name", HASHES)
@given(rows=tables)
def test_sketch_holds_the_n_smallest_keys_and_nothing_else(hash_name, rows):
    config = config_of(hash_name)
    values = usable(rows)
    partial = partial_of(rows, config)
    expected = smallest_by_brute_force(values, hash_name, SIZE)
    assert partial.hashes.tolist() == [each for each, _ in expected]
    assert partial.complete == (len(values) <= SIZE)


@pytest.mark.parametrize("hash_name", HASHES)
@given(rows=tables)
def test_values_are_the_aggregates_of_each_keys_rows(hash_name, rows):
    config = config_of(hash_name)
    values = usable(rows)
    order = [values[name] for _, name in smallest_by_brute_force(values, hash_name, SIZE)]
    found = {s.aggregate: s.values.tolist() for s in finish([partial_of(rows, config)], config)}
    assert found["count"] == [len(each) for each in order]
    assert found["min"] == [min(each) for each in order]
    assert found["max"] == [max(each) for each in order]
    assert found["first"] == [each[0] for each in order]
    assert found["last"] == [each[-1] for each in order]


moderate = st.floats(-1e9, 1e9, allow_subnormal=False)


@given(rows=st.lists(st.tuples(st.sampled_from("abc"), moderate), min_size=1, max_size=40))
def test_sums_are_within_one_unit_in_the_last_place_of_the_exact_sum(rows):
    config = SketchConfig(SIZE, ("sum", "mean"), "murmur3")
    values = usable(rows)
    order = [values[name] for _, name in smallest_by_brute_force(values, "murmur3", SIZE)]
    found = {s.aggregate: s.values for s in finish([partial_of(rows, config)], config)}
    exact = np.array([math.fsum(each) for each in order])
    assert np.all(np.abs(found["sum"] - exact) <= np.spacing(np.abs(exact)))
    means = found["sum"] / [len(each) for each in order]
    assert found["mean"].tolist() == means.tolist()


def test_sums_are_correctly_rounded():
    rng = np.random.default_rng(0)
    config = SketchConfig(SIZE, ("sum",))
    for _ in range(500):
        values = rng.normal(size=12) * 10.0 ** rng.integers(-12, 12, size=12)
        partial = partial_of([("a", value) for value in values.tolist()], config)
        assert finish([partial], config)[0].values.tolist() == [math.fsum(values)]


def test_a_tiny_sum_survives_beside_a_huge_one():
    config = SketchConfig(SIZE, ("sum", "mean"))
    for made in finish([partial_of([("a", 5e-324), ("b", 1e300)], config)], config):
        assert sorted(made.values.tolist()) == [5e-324, 1e300]


def test_a_mean_is_finite_where_its_sum_is_not():
    config = SketchConfig(SIZE, ("sum", "mean"))
    total, mean = finish([partial_of([("a", 1.5e308), ("a", 1.5e308)], config)], config)
    assert total.values.tolist() == [math.inf]
    assert mean.values.tolist() == [1.5e308]


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0]])
@pytest.mark.parametrize("aggregate", ["min", "max"])
def test_which_zero_comes_first_changes_no_bit(zeros, aggregate):
    config = SketchConfig(SIZE, (aggregate,))
    partial = partial_of([("a", zero) for zero in zeros], config)
    assert not np.signbit(finish([partial], config)[0].values).any()
    assert not np.signbit([partial.counts.minimum, partial.counts.maximum]).any()


@given(rows=tables)
def test_counts_say_what_was_seen_and_dropped(rows):
    counts = partial_of(rows, config_of("xxhash64")).counts
    numbers_seen = [value for _, value in rows if value is not None and math.isfinite(value)]
    assert counts.rows == len(rows)
    assert counts.null_keys == sum(not key for key, _ in rows)
    keyed = [value for key, value in rows if key]  # a row is dropped for one reason only
    assert counts.null_values == sum(value is None for value in keyed)
    assert counts.not_finite == sum(value is not None and not math.isfinite(value) for value in keyed)
    assert counts.minimum == min(numbers_seen, default=math.inf)
    assert counts.maximum == max(numbers_seen, default=-math.inf)


@pytest.mark.parametrize("hash_name", HASHES)
@given(rows=tables, size=st.integers(3, SIZE))
def test_the_first_keys_of_a_sketch_are_the_smaller_sketch(hash_name, rows, size):
    large, small = config_of(hash_name), config_of(hash_name, size)
    for big, little in zip(
        finish([partial_of(rows, large)], large), finish([partial_of(rows, small)], small), strict=True
    ):
        assert big.key_hashes[:size].tobytes() == little.key_hashes.tobytes()
        assert big.values[:size].tobytes() == little.values.tobytes()


@pytest.mark.parametrize("hash_name", HASHES)
@given(left=tables, right=tables)
def test_the_joined_sample_is_part_of_the_true_join(hash_name, left, right):
    config = SketchConfig(SIZE, ("last",), hash_name)
    sketches = [finish([partial_of(rows, config)], config)[0] for rows in (left, right)]
    sample = join(*sketches)
    mine, theirs = usable(left), usable(right)
    both = sorted(set(mine) & set(theirs))
    identities = SCHEMES[hash_name].identify([pl.Series(both, dtype=pl.String)])[0].hashes.tolist()
    true_join = {each: (mine[k][-1], theirs[k][-1]) for each, k in zip(identities, both, strict=True)}
    found = zip(sample.key_hashes.tolist(), sample.x.tolist(), sample.y.tolist(), strict=True)
    assert all(true_join[each] == (x, y) for each, x, y in found)
    assert sample.size <= sample.keys.join_size.value or not both
    if sample.exact:
        assert sample.size == sample.keys.join_size.value == len(both)


@pytest.mark.parametrize("hash_name", HASHES)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), distinct=st.sampled_from([3, 7, 8, 9, 500]), gaps=st.booleans())
def test_many_rows_take_the_same_way_as_few(hash_name, seed, distinct, gaps):
    """The branches for large inputs, with their limits lowered, change nothing."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=700).tolist()
    if gaps:
        values = [None if rng.random() < 0.2 else value for value in values]
    rows = list(zip(rng.integers(0, distinct, 700).astype(str).tolist(), values, strict=True))
    config = config_of(hash_name)
    plain = bits(partial_of(rows, config), config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KERNEL, "ROWS_AT_ONCE", 97)
        patch.setattr(KERNEL, "FEWEST_AT_ONCE", 4)
        patch.setattr(KERNEL, "MOST_AT_ONCE", 16)
        assert bits(partial_of(rows, config), config) == plain


def test_keys_of_equal_order_neither_evict_each_other_nor_depend_on_the_rows():
    names = np.array([f"key {number}" for number in range(60_000)])
    scheme = SCHEMES["murmur3"]
    hashes = scheme.identify([pl.Series(names)])[0].hashes
    ordered = np.unique(hashes)
    ordered = ordered[np.lexsort((ordered, scheme.order(ordered)))]
    tied = np.flatnonzero(np.diff(scheme.order(ordered)) == 0)
    size = int(tied[0]) + 1  # the sketch ends between two keys of equal h_u
    config = SketchConfig(size, ("count",), "murmur3")
    for rows in (names, names[::-1]):
        frame = pl.DataFrame({"k": rows})
        column = pl.Series("v", np.ones(rows.size))
        partial = sketch_rows(frame, [exact_key("k")], {"v": column}, config)[0]
        assert partial.hashes.tolist() == ordered[:size].tolist()
        halves = [
            sketch_rows(frame[part], [exact_key("k")], {"v": column[part]}, config)[0]
            for part in (slice(0, 30_000), slice(30_000, None))
        ]
        assert merge(halves, config).hashes.tolist() == ordered[:size].tolist()
