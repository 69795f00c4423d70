import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from covary.statistics.dependence import chatterjee, distance, kendall, qn

RNG = np.random.default_rng(3)
X = RNG.normal(size=80)
Y = 0.6 * X + RNG.normal(size=80)
MEASURES = [qn, kendall, distance, chatterjee]
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "reference.json").read_text())["vectors"]

any_values = st.integers(-(10**9), 10**9).map(lambda value: value / 1000)
tied_values = st.integers(0, 4).map(float)
samples = st.one_of(
    st.lists(st.tuples(values, values), min_size=3, max_size=60) for values in (any_values, tied_values)
).map(lambda pairs: np.array(pairs).T)
some_examples = settings(deadline=None, max_examples=100)


def golden(measure):
    return [pytest.param(np.array(v["x"]), np.array(v["y"]), float(v[measure]), id=v["name"]) for v in GOLDEN]


def naive_scale(values):
    half = len(values) // 2 + 1
    differences = np.abs(values[:, None] - values)[np.triu_indices(len(values), 1)]
    return np.sort(differences)[half * (half - 1) // 2 - 1]


def naive_qn(x, y):
    x, y = x / naive_scale(x), y / naive_scale(y)
    plus, minus = naive_scale(x + y) ** 2, naive_scale(x - y) ** 2
    return (plus - minus) / (plus + minus)


def naive_distance(x, y):
    def centred(values):
        d = np.abs(values[:, None] - values)
        return d - d.mean(0) - d.mean(1)[:, None] + d.mean()

    a, b = centred(x), centred(y)
    return np.sqrt(max(0, (a * b).mean()) / np.sqrt((a * a).mean() * (b * b).mean()))


def is_constant(values):
    return values.min() == values.max()


@pytest.mark.parametrize(("x", "y", "expected"), golden("qn"))
def test_qn_equals_the_authors_program(x, y, expected):
    assert qn(x, y) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(("x", "y", "expected"), golden("kendall_tau_b"))
def test_kendall_equals_the_authors_program(x, y, expected):
    assert kendall(x, y) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@some_examples
@given(samples)
def test_kendall_equals_scipys(sample):
    x, y = sample
    if is_constant(x) or is_constant(y):
        assert np.isnan(kendall(x, y))
    else:
        assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


@some_examples
@given(samples)
def test_chatterjee_equals_scipys_where_x_has_no_ties(sample):
    _, y = sample
    x = np.random.default_rng(y.size).permutation(y.size) * 1.0
    if not is_constant(y):
        assert chatterjee(x, y) == pytest.approx(stats.chatterjeexi(x, y).statistic, abs=1e-12)


def test_chatterjee_leaves_equal_x_in_their_order():
    assert chatterjee(np.repeat(np.arange(20.0), 4), Y) == chatterjee(np.arange(80.0), Y)


@some_examples
@given(samples)
def test_distance_equals_its_definition(sample):
    x, y = sample
    if not (is_constant(x) or is_constant(y)):
        # A square root magnifies what rounding leaves of a zero.
        assert distance(x, y) ** 2 == pytest.approx(naive_distance(x, y) ** 2, abs=1e-9)


@pytest.mark.parametrize("size", [3, 4, 5, 8, 9, 63, 64, 65, 200, 501])
@pytest.mark.parametrize("distribution", ["normal", "standard_cauchy", "lognormal"])
def test_qn_equals_its_definition(distribution, size):
    x, y = getattr(np.random.default_rng(size), distribution)(size=(2, size))
    assert qn(x, x + y) == pytest.approx(naive_qn(x, x + y), abs=1e-9)


@pytest.mark.parametrize("size", [40, 100, 501])
def test_qn_of_tied_values_equals_its_definition(size):
    x, y = np.random.default_rng(size).integers(0, 50, (2, size)) * 1.0
    assert qn(x, x + y) == pytest.approx(naive_qn(x, x + y), abs=1e-9)


def test_qn_is_undefined_when_most_of_a_column_is_equal():
    mostly_zero = np.where(np.arange(80) < 60, 0.0, X)
    assert np.isnan(qn(mostly_zero, Y))
    assert np.isnan(qn(Y, mostly_zero))


def test_qn_is_undefined_when_neither_sum_nor_difference_has_a_scale():
    corners = np.array([(1, 0), (-1, 0), (0, 1), (0, -1)] * 3) * 0.1
    assert np.isnan(qn(*corners.T))


def test_qn_resists_outliers():
    x, y = X.copy(), X + 0.1 * Y
    before = qn(x, y)
    x[:4], y[:4] = 1e6, -1e6
    assert qn(x, y) == pytest.approx(before, abs=0.1)


def test_distance_and_chatterjee_see_a_parabola():
    x = np.random.default_rng(1).uniform(-1, 1, 1000)
    assert abs(kendall(x, x**2)) < 0.1
    assert distance(x, x**2) > 0.4
    assert chatterjee(x, x**2) > 0.9


@pytest.mark.parametrize(("measure", "of_falling"), [(qn, -1), (kendall, -1), (distance, 1)])
def test_a_line_scores_1(measure, of_falling):
    assert measure(X, 3 * X + 1) == pytest.approx(1.0, abs=1e-12)
    assert measure(X, -X) == pytest.approx(of_falling, abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
@some_examples
@given(sample=samples)
def test_scores_stay_in_range(measure, sample):
    score = measure(*sample)
    assert np.isnan(score) or -1 <= score <= 1


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e200, 1e-320])
def test_a_constant_column_has_no_score(measure, constant):
    flat = np.full(X.size, constant)
    assert np.isnan(measure(flat, X))
    assert np.isnan(measure(X, flat))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("size", [0, 1, 2])
def test_fewer_than_three_pairs_have_no_score(measure, size):
    assert np.isnan(measure(X[:size], Y[:size]))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_have_no_score(measure, value):
    assert np.isnan(measure(np.append(X[:-1], value), Y))
    assert np.isnan(measure(X, np.append(Y[:-1], value)))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-160, 1e160, 1e200, 1e300, 1.7e307])
def test_magnitude_does_not_matter(measure, scale):
    tolerance = 2e-2 if scale == 1e-320 else 1e-12  # subnormal numbers have few digits themselves
    assert measure(X * scale, Y) == pytest.approx(measure(X, Y), abs=tolerance)
    assert measure(X, Y * scale) == pytest.approx(measure(X, Y), abs=tolerance)


@pytest.mark.parametrize("measure", MEASURES)
def test_units_do_not_matter(measure):
    assert measure(1.8 * X + 32, 1e-3 * Y - 273.15) == pytest.approx(measure(X, Y), abs=1e-10)
    assert measure(X + 1e9, Y) == pytest.approx(measure((X + 1e9) - 1e9, Y), abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_huge_and_tiny_values_together_raise_no_warning(measure):
    wild = X.copy()
    wild[:6] = 1e300, -1e300, 1e-320, 1.7e308, -1.7e308, 0.0
    for score in (measure(wild, Y), measure(Y, wild), measure(wild, wild)):
        assert np.isnan(score) or -1 <= score <= 1


@pytest.mark.parametrize("measure", [qn, kendall, distance])
def test_columns_may_change_places(measure):
    assert measure(Y, X) == pytest.approx(measure(X, Y), abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_columns_are_left_as_they_were_and_may_be_read_only_views(measure):
    x, y = np.repeat(X, 2)[::2], Y.copy()
    x.flags.writeable = y.flags.writeable = False
    assert measure(x, y) == measure(X, Y)
