from math import comb

import numpy as np
import pytest
from scipy import stats

from covary.statistics.independence import chatterjee_p_value, distance_p_value

RNG = np.random.default_rng(14)
X = RNG.normal(size=80)


@pytest.mark.parametrize("y", [RNG.normal(size=80), X**2, np.round(X + RNG.normal(size=80)), X > 0.5])
def test_the_test_of_xi_is_scipys(y):
    y = np.asarray(y, dtype=float)
    expected = stats.chatterjeexi(X, y, y_continuous=False).pvalue
    assert chatterjee_p_value(X, y) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def naive_unbiased_distance_correlation(x, y):
    n = x.size
    centred = []
    for values in (x, y):
        distances = np.abs(values[:, None] - values[None, :])
        rows = distances.sum(axis=1)
        matrix = (
            distances - rows[:, None] / (n - 2) - rows[None, :] / (n - 2) + rows.sum() / ((n - 1) * (n - 2))
        )
        np.fill_diagonal(matrix, 0.0)
        centred.append(matrix)
    a, b = centred
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


@pytest.mark.parametrize("y", [RNG.normal(size=80), X**2, np.round(X)])
def test_the_test_of_distances_is_by_the_unbiased_correlation(y):
    statistic = 80 * naive_unbiased_distance_correlation(X, y) + 1
    assert distance_p_value(X, y) == pytest.approx(stats.chi2.sf(max(0, statistic), 1), rel=1e-6)


@pytest.mark.parametrize("p_value", [distance_p_value, chatterjee_p_value])
def test_any_dependence_is_no_chance(p_value):
    assert p_value(X, np.cos(3 * X)) < 1e-3
    assert p_value(X, X) < 1e-9


@pytest.mark.parametrize("p_value", [distance_p_value, chatterjee_p_value])
def test_units_do_not_matter(p_value):
    y = X**2 + RNG.normal(size=80)
    assert p_value(1e200 * X, -1e-200 * y) == pytest.approx(p_value(X, -y), rel=1e-6)


@pytest.mark.parametrize("p_value", [distance_p_value, chatterjee_p_value])
def test_what_can_not_be_compared_has_no_p_value(p_value):
    assert np.isnan(p_value(X, np.ones(80)))
    assert np.isnan(p_value(X[:2], X[:2]))


@pytest.mark.statistical
@pytest.mark.parametrize("p_value", [distance_p_value, chatterjee_p_value])
@pytest.mark.parametrize("change", [np.array, np.exp, np.round], ids=["normal", "lognormal", "rounded"])
def test_chance_has_small_p_values_as_seldom_as_they_say(p_value, change):
    p = np.array([p_value(*change(RNG.normal(size=(2, 60)))) for _ in range(2000)])
    assert np.mean(p <= 0.05) < 0.065
    assert np.mean(p <= 0.01) < 0.02


def test_three_pairs_are_too_few_to_test_but_no_gap_in_the_list():
    assert distance_p_value(np.array([1.0, 2.0, 4.0]), np.array([2.0, 3.0, 9.0])) == 1.0


@pytest.mark.parametrize("size", [30, 100, 1000])
def test_columns_with_one_odd_value_have_no_distances_to_test(size):
    one, other = np.zeros(size), np.zeros(size)
    one[0] = other[1] = 1.0
    assert distance_p_value(one, other) == 1.0
    outlier = np.random.default_rng(size).normal(size=(2, size))
    outlier[0, 0] = outlier[1, 1] = 1e17
    assert distance_p_value(*outlier) == 1.0


@pytest.mark.parametrize(("size", "rare"), [(100, 1), (200, 2), (1000, 3), (1000, 10), (1000, 30)])
def test_xi_of_rare_values_is_not_taken_for_more_than_chance(size, rare):
    rng = np.random.default_rng(rare)
    y = np.zeros(size)
    y[:rare] = 1.0
    p = np.array([chatterjee_p_value(rng.permutation(size).astype(float), y) for _ in range(2000)])
    for level in (0.05, 0.01, 0.001):
        assert np.mean(p <= level) < level + 3 * np.sqrt(level / 2000)
    together = chatterjee_p_value(np.arange(size, dtype=float), y)
    assert together == pytest.approx(max(together, 2 / comb(size, rare)))
    assert together < 2 / size + 1e-9
