import numpy as np
import pytest
from scipy import stats

from covary.correlation import MEASURES, measure_named, pearson, spearman
from covary.errors import CovaryError

RNG = np.random.default_rng(3)
X = RNG.normal(size=80)
Y = 0.6 * X + RNG.normal(size=80)


def test_measures_equal_scipys():
    assert pearson(X, Y) == pytest.approx(stats.pearsonr(X, Y).statistic, abs=1e-14)
    assert spearman(X, Y) == pytest.approx(stats.spearmanr(X, Y).statistic, abs=1e-14)


def test_ties_share_their_average_rank():
    x, y = np.round(X), np.round(Y)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-14)


@pytest.mark.parametrize("measure", sorted(MEASURES))
@pytest.mark.parametrize("constant", [0.0, 0.1, 7.0, 1e200])
def test_a_constant_column_has_no_correlation(measure, constant):
    flat = np.full(X.size, constant)
    assert np.isnan(MEASURES[measure](flat, X))
    assert np.isnan(MEASURES[measure](X, flat))


@pytest.mark.parametrize("measure", sorted(MEASURES))
@pytest.mark.parametrize("size", [0, 1, 2])
def test_fewer_than_three_pairs_have_no_correlation(measure, size):
    assert np.isnan(MEASURES[measure](X[:size], Y[:size]))


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-160, 1e160, 1e300])
def test_magnitude_does_not_matter(scale):
    tolerance = 1e-2 if scale == 1e-320 else 1e-12  # subnormal numbers have few digits themselves
    assert pearson(X * scale, Y) == pytest.approx(pearson(X, Y), abs=tolerance)


def test_an_offset_does_not_matter():
    assert pearson(X + 1e9, Y) == pytest.approx(stats.pearsonr((X + 1e9) - 1e9, Y).statistic, abs=1e-12)


def test_a_line_has_correlation_1():
    assert pearson(X, 3 * X + 1) == pytest.approx(1.0, abs=1e-15)
    assert pearson(X, -X) == pytest.approx(-1.0, abs=1e-15)
    assert abs(pearson(X, 3 * X + 1)) <= 1


def test_values_that_are_not_finite_give_no_correlation():
    assert np.isnan(pearson(np.append(X[:-1], np.inf), Y))


def test_an_unknown_measure_is_refused_with_the_choices():
    with pytest.raises(CovaryError, match=r"kendal.*pearson, spearman"):
        measure_named("kendal")
