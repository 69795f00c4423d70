import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from covary.errors import CovaryError
from covary.statistics.correlation import pearson, rin, spearman
from covary.statistics.measures import MEASURES, measure_named, why_undefined

RNG = np.random.default_rng(3)
X = RNG.normal(size=80)
Y = 0.6 * X + RNG.normal(size=80)
NUMBERS = {
    "random": st.floats(-1e6, 1e6),
    "tied": st.integers(-3, 3).map(float),
}


def pairs(numbers, sizes):
    return sizes.flatmap(lambda n: arrays(float, (2, n), elements=numbers))


def measured(name, x, y):
    return MEASURES[name].of(x, y, 0)


def both_vary(x, y):
    return x.min() < x.max() and y.min() < y.max()


@pytest.mark.parametrize("kind", sorted(NUMBERS))
@pytest.mark.parametrize("sizes", [st.integers(3, 6), st.integers(7, 60)], ids=["tiny", "larger"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_measures_equal_scipys(kind, sizes, data):
    x, y = data.draw(pairs(NUMBERS[kind], sizes))
    assume(both_vary(x, y))
    # SciPy warns, rightly, where hardly anything varies beside a large mean; its own digits are lost there.
    assume(min(x.std() / np.abs(x).max(), y.std() / np.abs(y).max()) > 1e-6)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    scores = [special.ndtri((stats.rankdata(each) - 0.5) / each.size) for each in (x, y)]
    assert rin(x, y) == pytest.approx(stats.pearsonr(*scores).statistic, abs=1e-12)


@pytest.mark.parametrize("measure", sorted(MEASURES))
@pytest.mark.parametrize("constant", [0.0, 0.1, 7.0, 1e200])
def test_a_constant_column_has_no_correlation_and_a_reason(measure, constant):
    flat = np.full(X.size, constant)
    assert np.isnan(measured(measure, flat, X))
    assert np.isnan(measured(measure, X, flat))
    assert why_undefined(X, flat, measure) == "a column has one value only on the 80 shared keys"


@pytest.mark.parametrize("measure", sorted(MEASURES))
@pytest.mark.parametrize("size", [0, 1, 2])
def test_fewer_than_three_pairs_have_no_correlation_and_a_reason(measure, size):
    assert np.isnan(measured(measure, X[:size], Y[:size]))
    assert why_undefined(X[:size], Y[:size], measure) == f"it takes 3 shared keys and there are {size}"


@pytest.mark.parametrize("measure", sorted(MEASURES))
@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-160, 1e160, 1e200, 1e300])
def test_magnitude_does_not_matter(measure, scale):
    tolerance = 2e-2 if scale == 1e-320 else 1e-11  # subnormal numbers have few digits themselves
    assert measured(measure, X * scale, Y) == pytest.approx(measured(measure, X, Y), abs=tolerance)


@pytest.mark.parametrize("measure", sorted(MEASURES))
def test_units_do_not_matter(measure):
    assert measured(measure, X, 1.8 * Y + 32) == pytest.approx(measured(measure, X, Y), abs=1e-12)


def test_an_offset_does_not_matter():
    assert pearson(X + 1e9, Y) == pytest.approx(stats.pearsonr((X + 1e9) - 1e9, Y).statistic, abs=1e-12)


def test_a_line_has_correlation_1():
    assert pearson(X, 3 * X + 1) == pytest.approx(1.0, abs=1e-15)
    assert pearson(X, -X) == pytest.approx(-1.0, abs=1e-15)
    assert abs(pearson(X, 3 * X + 1)) <= 1


@pytest.mark.parametrize("measure", ["pearson", "qn", "pm1", "kendall", "distance", "chatterjee"])
def test_values_that_are_not_finite_give_no_correlation(measure):
    infinite = np.append(X[:-1], np.inf)
    assert np.isnan(measured(measure, infinite, Y))
    assert why_undefined(infinite, Y, measure) == "a number is too large"


def test_a_column_of_mostly_one_value_has_no_qn_and_a_reason():
    mostly_zero = np.where(np.arange(80) < 50, 0.0, X)
    assert np.isnan(measured("qn", mostly_zero, Y))
    assert (
        why_undefined(mostly_zero, Y, "qn")
        == "too many values of a column are equal for qn, beside its largest"
    )


def test_an_unknown_measure_is_refused_with_the_choices():
    with pytest.raises(CovaryError, match=r"kendal.*pearson, spearman"):
        measure_named("kendal")
