from math import log, sqrt

import numpy as np
import pytest

from covary import sketch
from covary.statistics.correlation import pearson
from covary.statistics.hoeffding import deviation, hoeffding_ends, small_sample_lengths

RNG = np.random.default_rng(5)
X = RNG.uniform(2, 6, 70_000)
Y = 0.8 * X + RNG.uniform(0, 2, 70_000)
RANGES = (2.0, 6.0), (1.6, 6.8)


def papers_ends(x, y, low, high, alpha, small):
    """The equations of section 4.3, in the units they are written in."""
    c, n = high - low, x.size
    a, b = x - low, y - low
    t, t2 = sqrt(log(10 / alpha) * c**2 / (2 * n)), sqrt(log(10 / alpha) * c**4 / (2 * n))
    ma, mb, va, vb, vab = a.mean(), b.mean(), (a * a).mean(), (b * b).mean(), (a * b).mean()
    num_low, num_high = vab - t2 - (ma + t) * (mb + t), vab + t2 - (ma - t) * (mb - t)
    den_low = sqrt(max(0, va - t2 - (ma + t) ** 2) * max(0, vb - t2 - (mb + t) ** 2))
    den_high = sqrt(max(0, va + t2 - (ma - t) ** 2) * max(0, vb + t2 - (mb - t) ** 2))
    if small:
        den_low = den_high = sqrt(va - ma**2) * sqrt(vb - mb**2)
    return (
        num_low / (den_high if num_low >= 0 else den_low),
        num_high / (den_low if num_high >= 0 else den_high),
    )


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.001])
@pytest.mark.parametrize("small", [False, True])
def test_the_ends_are_the_papers(alpha, small):
    ends = hoeffding_ends(X, Y, *RANGES, 1 - alpha, small_sample=small)
    assert ends == pytest.approx(papers_ends(X, Y, 1.6, 6.8, alpha, small), rel=1e-9)


def test_the_true_bound_says_nothing_of_a_thousand_pairs():
    low, high = hoeffding_ends(X[:1024], Y[:1024], *RANGES, 0.95)
    assert low <= -1
    assert high >= 1


def test_the_true_bound_holds_on_seventy_thousand():
    low, high = hoeffding_ends(X, Y, *RANGES, 0.95)
    assert 0 < low < pearson(X, Y) < high


def test_lengths_of_many_are_those_of_each():
    samples = [(X[:500], Y[:500]), (X[500:600], Y[500:600])]
    each = np.diff([hoeffding_ends(x, y, *RANGES, 0.95, small_sample=True) for x, y in samples])[:, 0]
    xs, ys = zip(*samples, strict=True)
    found = small_sample_lengths(
        tuple(np.array([v.mean() for v in side]) for side in (xs, ys)),
        tuple(np.array([v.std() for v in side]) for side in (xs, ys)),
        np.full(2, 1.6),
        np.full(2, 6.8),
        np.array([500.0, 100.0]),
    )
    assert found == pytest.approx(each, rel=1e-9)


def test_a_range_that_is_unknown_or_overflows_gives_no_bound():
    unknown = (-np.inf, np.inf)
    assert hoeffding_ends(X, Y, unknown, unknown, 0.95) == (-1.0, 1.0)
    huge = (-1.7e308, 1.7e308)
    low, high = hoeffding_ends(X[:100], Y[:100], huge, huge, 0.95, small_sample=True)
    assert low < 0 < high


def test_the_deviation_shrinks_with_the_sample():
    assert float(deviation(1024, 0.95)) == pytest.approx(sqrt(log(200) / 2048))


@pytest.mark.parametrize("middle", [-100, -1, 100])
@pytest.mark.parametrize("size", [16, 4096])
@pytest.mark.parametrize("aggregate", ["mean", "sum", "count", "min", "max", "first", "last"])
def test_the_range_of_a_sketch_bounds_the_values_of_all_keys(aggregate, size, middle):
    import polars as pl  # noqa: PLC0415

    rows = 600
    keys = np.minimum(RNG.integers(0, 300, rows), RNG.integers(0, 300, rows))
    frame = pl.DataFrame({"k": [f"k{key}" for key in keys], "v": middle + RNG.normal(0, 2, rows)})
    whole = sketch(frame, "k", "v", size=100_000, aggregate=aggregate)
    low, high = sketch(frame, "k", "v", size=size, aggregate=aggregate).value_range
    assert low <= whole.values.min()
    assert high >= whole.values.max()
    if size > 300:
        assert (low, high) == (whole.values.min(), whole.values.max())


@pytest.mark.parametrize("value", [100.0, -100.0])
@pytest.mark.parametrize("aggregate", ["sum", "count"])
def test_the_range_allows_for_a_key_that_was_cut_and_has_most_rows(aggregate, value):
    import polars as pl  # noqa: PLC0415

    keys = [f"k{n}" for n in range(60)]
    alone = [sketch(pl.DataFrame({"k": [key], "v": [1.0]}), "k", "v").units[0] for key in keys]
    last = keys[int(np.argmax(alone))]
    frame = pl.DataFrame({"k": keys + [last] * 500, "v": [value] * 560})
    cut = sketch(frame, "k", "v", size=16, aggregate=aggregate)
    assert np.ptp(cut.values) == 0  # the key with all those rows is not held
    low, high = cut.value_range
    largest = 501.0 if aggregate == "count" else 501 * value
    assert low <= largest <= high


def test_a_deviation_that_overflowed_takes_no_length_away():
    lengths = small_sample_lengths(
        (np.array([0.0, 0.0]), np.array([1e-310, 10.0])),
        (np.array([np.inf, np.inf]), np.array([1e-310, 5.0])),
        np.array([-1.7e308, -1.7e308]),
        np.array([1.7e308, 1.7e308]),
        np.array([30.0, 30.0]),
    )
    assert np.isfinite(lengths).all()
    assert (lengths > 1e290).all()
