import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from covary.statistics.bootstrap import PM1_DRAWS, _drawn_rows, pm1, pm1_ends, resample
from covary.statistics.correlation import pearson

RNG = np.random.default_rng(3)
X = RNG.normal(size=81)
Y = 0.6 * X + RNG.normal(size=81)
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "reference.json").read_text())["vectors"]
VARYING = [
    pytest.param(np.array(v["x"]), np.array(v["y"]), v["pm1_10000_draws"], id=v["name"])
    for v in GOLDEN
    if v["pearson"] != "NaN"
]
ONE_ODD = np.where(np.arange(X.size) == 7, 1.0, 0.0)


def places_of(draw, size, seed=0):
    return _drawn_rows(size, np.uint64(seed), draw)


@pytest.mark.parametrize("size", [3, 4, 80, 81])
def test_a_resample_is_pearsons_r_of_its_pairs(size):
    x, y = X[:size], Y[:size]
    expected = [pearson(x[i], y[i]) for i in (places_of(draw, size) for draw in range(50))]
    assert resample(x, y, 50) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_every_pair_is_as_likely_as_another():
    places = np.concatenate([places_of(draw, 81) for draw in range(1000)])
    counts = np.bincount(places, minlength=81)
    assert counts.size == 81
    assert abs(((counts - 1000) ** 2 / 1000).sum() - 80) < 5 * np.sqrt(160)  # chi squared


def test_the_same_seed_draws_the_same_bits():
    assert resample(X, Y, 100, seed=5).tobytes() == resample(X, Y, 100, seed=5).tobytes()
    assert pm1(X, Y, seed=5) == pm1(X, Y, seed=5)
    assert pm1_ends(X, Y, seed=5) == pm1_ends(X, Y, seed=5)


def test_another_seed_draws_others():
    assert not np.isin(resample(X, Y, 100, seed=5), resample(X, Y, 100, seed=6)).any()
    assert pm1(X, Y, seed=5) != pm1(X, Y, seed=-6)


def test_more_draws_append_to_the_same():
    assert resample(X, Y, 100)[:30].tobytes() == resample(X, Y, 30).tobytes()


def test_a_constant_resample_has_no_r():
    draws = resample(ONE_ODD, Y, 200)
    lacks_the_odd = [7 not in places_of(draw, X.size) for draw in range(200)]
    assert np.isnan(draws).tolist() == lacks_the_odd


def test_a_resample_without_the_outlier_keeps_its_digits():
    x = X.copy()
    x[7] = 1e250
    lacks_the_outlier = [draw for draw in range(50) if 7 not in places_of(draw, X.size)]
    expected = resample(X, Y, 50)[lacks_the_outlier]
    assert resample(x, Y, 50)[lacks_the_outlier] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("x", "y", "golden"), VARYING)
def test_the_mean_is_that_of_the_authors_program(x, y, golden):
    draws = np.nan_to_num(resample(x, y, 10_000))
    error = draws.std() / np.sqrt(10_000)
    assert draws.mean() == pytest.approx(golden["value_mean"], abs=5 * error)
    assert pm1(x, y) == pytest.approx(golden["value_mean"], abs=0.02)


@pytest.mark.parametrize(("x", "y", "golden"), VARYING)
def test_the_ends_are_those_of_the_authors_program(x, y, golden):
    assert pm1_ends(x, y) == pytest.approx((golden["lb"], golden["ub"]), abs=0.03)


def test_a_constant_resample_counts_as_0_in_the_mean():
    """Of the 256 resamples of the golden sample of four pairs, 4 are constant."""
    x, y, _ = VARYING[-1].values
    places = np.array(list(product(range(4), repeat=4)))
    exact = np.mean([0.0 if np.ptp(i) == 0 else pearson(x[i], y[i]) for i in places])
    assert np.mean([pm1(x, y, seed) for seed in range(20)]) == pytest.approx(exact, abs=0.005)


def test_the_mean_of_draws_that_differ_little_needs_few_of_them():
    assert pm1(X, X + 0.1 * Y) == resample(X, X + 0.1 * Y, 50).mean()


@pytest.mark.parametrize("size", [3, 12, 80])
def test_the_mean_is_settled(size):
    x, y = X[:size], Y[:size]
    means = [pm1(x, y, seed) for seed in range(20)]
    long_run = np.nan_to_num(resample(x, y, 100_000, seed=99)).mean()
    assert means == pytest.approx([long_run] * 20, abs=0.02)


@pytest.mark.parametrize(
    ("size", "low", "high"),
    [(39, 7, 593), (40, 8, 592), (79, 8, 592), (80, 11, 588), (180, 14, 585), (250, 15, 584)],
)
def test_the_ends_move_inward_as_the_sample_grows(size, low, high):
    x, noise = np.random.default_rng(size).normal(size=(2, size))
    y = x + noise
    ascending = np.sort(resample(x, y, PM1_DRAWS))
    assert pm1_ends(x, y) == (ascending[low - 1], ascending[high - 1])


def test_constant_resamples_are_drawn_anew_for_the_ends():
    draws = resample(ONE_ODD, Y, 2000)
    defined = np.sort(draws[~np.isnan(draws)][:PM1_DRAWS])
    assert pm1_ends(ONE_ODD, Y) == (defined[10], defined[587])


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e200, 1e300])
def test_magnitude_does_not_matter(scale):
    tolerance = 1e-2 if scale == 1e-320 else 1e-12  # subnormal numbers have few digits themselves
    assert pm1(X * scale, Y) == pytest.approx(pm1(X, Y), abs=tolerance)
    assert pm1_ends(X, Y * scale) == pytest.approx(pm1_ends(X, Y), abs=tolerance)


def test_units_do_not_matter():
    expected = resample(X, Y, 100)
    assert resample(1.8 * X + 32, 1e-3 * Y - 273.15, 100) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        pytest.param(np.full(81, 0.1), Y, id="constant"),
        pytest.param(X, np.full(81, 1e200), id="constant and huge"),
        pytest.param(np.append(X[:-1], np.nan), Y, id="NaN"),
        pytest.param(X, np.append(Y[:-1], np.inf), id="infinite"),
        pytest.param(X[:2], Y[:2], id="two pairs"),
        pytest.param(X[:0], Y[:0], id="no pairs"),
    ],
)
def test_without_a_correlation_there_is_nothing_to_resample(x, y):
    assert np.isnan(resample(x, y, 5)).tolist() == [True] * 5
    assert np.isnan(pm1(x, y))
    assert np.isnan(pm1_ends(x, y)).all()


def test_columns_may_be_read_only_views():
    x = np.repeat(X, 2)[::2]
    x.flags.writeable = False
    assert pm1(x, Y) == pm1(X, Y)


def test_the_mean_moves_by_a_hundredth_once_in_two_thousand_times():
    x, y = np.random.default_rng(4).normal(size=(2, 20))
    found = [pm1(x, y, seed) for seed in range(60)]
    # 0.01 is 3.48 standard deviations of a mean that was settled just so.
    assert 0.0015 < np.std(found) < 0.0038


def test_any_whole_number_is_a_seed():
    x, y = np.random.default_rng(3).normal(size=(2, 20))
    assert pm1(x, y, np.int64(3)) == pm1(x, y, 3)
    assert pm1(x, y, np.uint64(2**63)) == pm1(x, y, 2**63)


def test_resamples_without_the_outlier_lose_no_digits():
    x, y = np.random.default_rng(3).normal(size=(2, 20))
    x[0] = y[1] = 1e9
    found = resample(x, y, 200)
    assert np.abs(found).max() <= 1
    assert np.sum(np.abs(found) > 0.2) > 20  # those without either outlier
