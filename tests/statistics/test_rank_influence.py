"""Intervals of rank correlations, against the influence functions written out as double sums."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from covary.statistics.intervals import Sampled, influence
from covary.statistics.measures import MEASURES

RNG = np.random.default_rng(8)
SMOOTH = RNG.normal(size=(2, 60)) + RNG.normal(size=60)
TIED = np.round(SMOOTH * 1.5)
FLAGS = (SMOOTH > 0.3).astype(float)
JOIN, CONFIDENCE = 500.0, 0.9


def shares(values):
    return (stats.rankdata(values) - 0.5) / values.size


def shifts(values, weights):
    """The mean over j of (1 if x_i < x_j, 1/2 if equal, less the share of x_j) times weight j."""
    above = (values[:, None] < values[None, :]) + 0.5 * (values[:, None] == values[None, :])
    return ((above - shares(values)[None, :]) * weights[None, :]).mean(axis=1)


def influences(x, y, scores, slopes, r):
    u, v = ((score - score.mean()) / score.std() for score in scores)
    x_slope, y_slope = (slope / score.std() for slope, score in zip(slopes, scores, strict=True))
    through = shifts(x, (v - r * u) * x_slope) + shifts(y, (u - r * v) * y_slope)
    leverage = (1 + (u * u - 2 * r * u * v + v * v) / (1 - r * r)) / u.size
    return u * v - r / 2 * (u * u + v * v) + through, leverage


def ends(r, error, n, pull=0.0):
    unseen = (JOIN - n) / (JOIN - 1)
    half = stats.t.ppf(0.5 + CONFIDENCE / 2, n - 2) * error * np.sqrt(unseen)
    z = np.arctanh(r)
    outward = pull * z * abs(z) * unseen
    return np.tanh(z - half + min(outward, 0)), np.tanh(z + half + max(outward, 0))


def error_of(influence, r):
    n = influence.size
    return np.sqrt((influence**2).sum() / (n * (n - 1))) / (1 - r * r)


def found(x, y, measure):
    r = MEASURES[measure].of(x, y, 0)
    interval = influence(Sampled(x, y, r, measure, JOIN, confidence=CONFIDENCE))
    return r, (interval.low, interval.high)


@pytest.mark.parametrize("columns", [SMOOTH, TIED, FLAGS], ids=["smooth", "tied", "flags"])
@pytest.mark.parametrize("sign", [1, -1])
def test_spearmans_interval_is_that_of_its_influence_function(columns, sign):
    x, y = columns[0], sign * columns[1]
    r, interval = found(x, y, "spearman")
    each, _ = influences(x, y, (shares(x), shares(y)), (1.0, 1.0), r)
    error = max(error_of(each, r), 1 / np.sqrt(x.size - 3))
    assert interval == pytest.approx(ends(r, error, x.size), rel=1e-6)


@pytest.mark.parametrize("columns", [SMOOTH, TIED, FLAGS], ids=["smooth", "tied", "flags"])
@pytest.mark.parametrize("sign", [1, -1])
def test_rins_interval_is_that_of_its_influence_function(columns, sign):
    x, y = columns[0], sign * columns[1]
    r, interval = found(x, y, "rin")
    scores = ndtri(shares(x)), ndtri(shares(y))
    slopes = [np.sqrt(2 * np.pi) * np.exp(score**2 / 2) for score in scores]
    each, leverage = influences(x, y, scores, slopes, r)
    error = max(error_of(each / np.sqrt(np.maximum(1 - leverage, 0.1)), r), 1 / np.sqrt(x.size - 3))
    assert interval == pytest.approx(ends(r, error, x.size, 0.36 * np.log(x.size) / x.size), rel=1e-6)


UNRELATED = [np.random.default_rng(seed).normal(size=(2, 60)) for seed in range(6)]


@pytest.mark.parametrize("columns", [SMOOTH, TIED, FLAGS, *UNRELATED])
def test_kendalls_interval_is_that_of_its_influence_function(columns):
    x, y = columns
    n = x.size
    tau, interval = found(x, y, "kendall")
    agree = (np.sign(x[:, None] - x) * np.sign(y[:, None] - y)).sum(axis=1)
    apart_x, apart_y = ((v[:, None] != v).sum(axis=1) for v in (x, y))
    x_share, y_share = apart_x.sum() / (n * (n - 1)), apart_y.sum() / (n * (n - 1))
    each = 2 * agree / ((n - 1) * np.sqrt(x_share * y_share))
    each = each - tau * (apart_x / x_share + apart_y / y_share) / (n - 1)
    factors = []
    for values in (x, y):
        p = np.unique(values, return_counts=True)[1] / n
        factors.append((1 - (p**3).sum()) / (1 - (p**2).sum()))
    least = np.sqrt(0.437 / (n - 4) * factors[0] * factors[1])
    assert interval == pytest.approx(ends(tau, max(error_of(each, tau), least), n), rel=1e-6)


def test_kendalls_interval_is_shorter_than_spearmans():
    x, y = RNG.normal(size=(2, 400))
    lengths = {measure: np.diff(found(x, y, measure)[1])[0] for measure in ("kendall", "spearman")}
    assert lengths["kendall"] < 0.8 * lengths["spearman"]


def test_pairs_in_one_order_leave_room_for_others_by_the_confidence():
    x = np.arange(40.0)
    for measure in ("spearman", "rin", "kendall"):
        sure, surer = (
            influence(Sampled(x, x**3, 1.0, measure, JOIN, confidence=share)).low for share in (0.9, 0.99)
        )
        assert 0.5 < surer < sure < 0.95
