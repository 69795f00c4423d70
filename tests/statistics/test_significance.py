import numpy as np
import pytest
from scipy import stats

from covary.errors import CovaryError
from covary.statistics.moments import Moments, moments_of
from covary.statistics.significance import (
    benjamini_hochberg,
    benjamini_yekutieli,
    correction_named,
    p_values,
    quick_p_values,
)

RNG = np.random.default_rng(11)


def p_of(x, y, measure="pearson"):
    return float(p_values(moments_of(np.asarray(x, float), np.asarray(y, float), measure))[0])


def test_quick_p_values_are_those_of_scipy():
    for size in (4, 10, 300):
        x, y = RNG.normal(size=(2, size))
        expected = stats.pearsonr(x, y)
        found = quick_p_values(np.array([expected.statistic]), np.array([float(size)]))
        assert found == pytest.approx(expected.pvalue, rel=1e-9)


def test_on_normal_columns_p_values_are_near_students():
    x, y = RNG.normal(size=(2, 400))
    assert p_of(x, 0.1 * x + y) == pytest.approx(stats.pearsonr(x, 0.1 * x + y).pvalue, rel=0.2)


def written_out(x, y):
    """The largest of Student's, Pitman's beta and the gamma of the skewness, as docs/decisions.md has it."""
    n, r = x.size, np.corrcoef(x, y)[0, 1]
    plain = stats.pearsonr(x, y).pvalue
    excess = [stats.kurtosis(v, bias=False) for v in (x, y)]
    first, normal = 1 / (n - 1), 3 / (n * n - 1)
    second = normal * (1 + 2 * excess[0] * excess[1] * (n - 2) * (n - 3) / (3 * n * (n - 1) ** 2))
    second = max(second, normal)
    scale = (first - second) / (second - first**2)
    heavy = stats.beta.sf(r * r, first * scale, (1 - first) * scale)
    skewness = stats.skew(x) * stats.skew(y) * np.sqrt(n - 1) / (n - 2)
    if skewness * r <= 0:
        return max(plain, heavy)
    shape = 4 / skewness**2
    return max(plain, heavy, stats.gamma.sf(shape + stats.norm.isf(plain / 2) * np.sqrt(shape), shape))


@pytest.mark.parametrize("slope", [-0.2, 0.0, 0.15, 0.3])
@pytest.mark.parametrize("power", [0.3, 1.0, 1.5])
def test_p_values_are_as_they_are_written_down(slope, power):
    z = np.random.default_rng(6).normal(size=(2, 200))
    x, y = np.exp(power * z[0]), np.exp(power * (z[1] + slope * z[0]))
    assert p_of(x, y) == pytest.approx(written_out(x, y), rel=1e-6)


def test_skewed_columns_meet_by_chance_on_the_side_they_lean_to():
    rng = np.random.default_rng(2)
    x, noise = rng.exponential(size=(2, 40))  # skewed, but for their skewness hardly heavy-tailed
    x, noise = np.minimum(x, 2.5), np.minimum(noise, 2.5)
    alike, against = (noise + slope * (x - x.mean()) for slope in (0.5, -0.5))
    for y in (alike, against):
        assert p_of(x, y) == pytest.approx(written_out(x, y), rel=1e-6)
    plain = stats.pearsonr(x, alike).pvalue
    assert p_of(x, alike) > 1.5 * plain


def test_undefined_correlations_have_no_p_value():
    assert np.isnan(p_of(np.ones(20), np.arange(20)))
    assert np.isnan(p_of([1.0, 2.0], [2.0, 1.0]))


@pytest.mark.parametrize("measure", ["pearson", "spearman", "rin"])
def test_two_outliers_that_meet_are_no_proof(measure):
    x, y = np.zeros(40), np.zeros(40)
    x[7] = y[7] = 1.0
    assert p_of(x, y, measure) > 0.01  # 1 in 40, by counting shuffles
    x[8] = y[8] = 1.0
    assert p_of(x, y, measure) < 0.01  # 1 in 780


@pytest.mark.parametrize("measure", ["pearson", "spearman", "rin"])
@pytest.mark.parametrize(
    ("size", "ones", "shift"), [(12, 2, 0), (12, 6, 0), (20, 3, 0), (20, 10, 3), (300, 12, 6)]
)
def test_flags_are_tested_by_counting_shuffles(measure, size, ones, shift):
    x, y = (np.arange(size) < ones).astype(float), (np.roll(np.arange(size), shift) < ones).astype(float)
    table = [[np.sum((x == a) & (y == b)) for b in (0, 1)] for a in (0, 1)]
    expected = stats.fisher_exact(table).pvalue
    assert p_of(x, y, measure) >= expected * (1 - 1e-9)
    assert p_of(5 * x + 2, -y, measure) == pytest.approx(p_of(x, y, measure), rel=1e-6)


def heavy(kind, shape):
    normal = RNG.normal(size=shape)
    return {"normal": normal, "lognormal": np.exp(normal), "rare": (normal > 1.6).astype(float)}[kind]


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["normal", "lognormal", "rare"])
@pytest.mark.parametrize("size", [32, 256])
def test_chance_has_small_p_values_as_seldom_as_they_say(kind, size):
    found = []
    for _ in range(40):
        x = heavy(kind, size)
        found += [p_of(x, y) for y in heavy(kind, (250, size))]
    p = np.array(found)
    p = p[~np.isnan(p)]
    assert np.mean(p <= 0.05) < 0.07
    assert np.mean(p <= 0.01) < 0.02
    assert np.mean(p <= 0.001) < 0.0021


def test_q_values_are_scipys():
    p = RNG.uniform(size=200) ** 3
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))
    assert benjamini_yekutieli(p) == pytest.approx(stats.false_discovery_control(p, method="by"))


def test_what_has_no_p_value_is_no_test():
    p = np.array([0.01, np.nan, 0.04, np.nan])
    assert benjamini_hochberg(p) == pytest.approx([0.02, np.nan, 0.04, np.nan], nan_ok=True)
    assert benjamini_hochberg(np.empty(0)).size == 0
    assert np.isnan(benjamini_yekutieli(np.full(3, np.nan))).all()


def test_correlations_of_1_are_no_more_than_the_sample_can_say():
    moments = Moments(*(np.array([float(v)]) for v in (3, 1, 0, 3, 0, 0, 0, 1.5, 1.5, 0, 1, 0, 1)))
    assert float(p_values(moments)[0]) > 0.3  # three points: one order of six is as good


def test_an_unknown_correction_is_refused_with_the_choices():
    with pytest.raises(CovaryError, match=r"holm.*bh, by"):
        correction_named("holm")
