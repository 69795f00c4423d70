import numpy as np
import pytest
from scipy import stats

from covary.errors import CovaryError
from covary.statistics.correlation import pearson
from covary.statistics.influence import influence_ends, t_quantile, unseen_share
from covary.statistics.intervals import INTERVALS, Interval, Sampled, fisher, interval_named
from covary.statistics.measures import MEASURES
from covary.statistics.moments import moments_of

RNG = np.random.default_rng(3)
X = RNG.normal(size=103)
Y = 0.6 * X + RNG.normal(size=103)
RANGES = (-5.0, 5.0), (-5.0, 5.0)
CHOICES = [(measure, name) for measure, each in MEASURES.items() for name in each.intervals]


def sampled(x=X, y=Y, measure="pearson", join_size=2000.0, **more):
    x_range, y_range = (float(x.min()), float(x.max())), (float(y.min()), float(y.max()))
    given = {"x_range": x_range, "y_range": y_range} | more
    return Sampled(x, y, MEASURES[measure].of(x, y, 0), measure, join_size, **given)


def length(interval):
    return interval.high - interval.low


def test_fishers_interval_of_an_unknown_join_is_the_textbooks():
    expected = stats.pearsonr(X, Y).confidence_interval(0.95)
    found = fisher(Sampled(X, Y, pearson(X, Y)))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    expected = stats.pearsonr(X, Y).confidence_interval(0.8)
    found = fisher(Sampled(X, Y, pearson(X, Y), confidence=0.8))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(("measure", "name"), CHOICES)
def test_the_whole_join_leaves_nothing_open(measure, name):
    sample = sampled(measure=measure, join_size=float(X.size))
    assert interval_named(name, sample) == Interval(sample.correlation, sample.correlation)


@pytest.mark.parametrize(("measure", "name"), CHOICES)
def test_an_interval_holds_the_estimate_and_stays_in_range(measure, name):
    for slope in (-3, 0, 0.5, 20):
        sample = sampled(y=slope * X + RNG.normal(size=X.size), measure=measure)
        found = interval_named(name, sample)
        assert -1 <= found.low <= sample.correlation <= found.high <= 1


@pytest.mark.parametrize("measure", ["pearson", "spearman", "rin", "kendall"])
def test_our_interval_narrows_as_more_of_the_join_is_seen(measure):
    lengths = [
        length(interval_named("influence", sampled(measure=measure, join_size=size)))
        for size in (104.0, 150.0, 2000.0, 1e9, np.inf)
    ]
    assert lengths == sorted(lengths)
    assert len(set(lengths[:4])) == 4
    assert lengths[-1] == pytest.approx(lengths[-2], rel=1e-6)


@pytest.mark.parametrize(("measure", "name"), [choice for choice in CHOICES if "hoeffding" not in choice[1]])
def test_units_do_not_matter(measure, name):
    found = interval_named(name, sampled(measure=measure))
    other = interval_named(name, sampled(1e-3 * X - 40, 1e6 * Y + 7, measure))
    assert (other.low, other.high) == pytest.approx((found.low, found.high), abs=1e-8)


@pytest.mark.parametrize("name", ["influence", "fisher", "hoeffding-small"])
def test_more_confidence_takes_a_longer_interval(name):
    x, y = RNG.uniform(-1, 1, (2, 4000))
    lengths = [
        length(interval_named(name, sampled(x, y, join_size=1e6, confidence=confidence)))
        for confidence in (0.6, 0.8, 0.95, 0.99)
    ]
    assert lengths == sorted(lengths)
    assert len(set(lengths)) == 4


@pytest.mark.parametrize("measure", ["pearson", "spearman", "rin", "kendall"])
@pytest.mark.parametrize("size", [3, 4])
def test_three_or_four_of_many_pairs_say_little(measure, size):
    found = interval_named("influence", sampled(X[:size], Y[:size], measure))
    assert length(found) > 1.2


def written_out(x, y, join_size, confidence):
    """Our interval, step by step as docs/decisions.md has it."""
    n, r = x.size, np.corrcoef(x, y)[0, 1]
    u, v = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    influence = u * v - r / 2 * (u * u + v * v)
    leverage = np.minimum(0.9, 1 / n + (u * u - 2 * r * u * v + v * v) / (1 - r * r) / n)
    b = influence**2 / (1 - leverage)
    carriers = b.sum() ** 2 / (b**2).sum()
    error = max(np.sqrt(b.sum() / (n * (n - 1))) / (1 - r * r), 1 / np.sqrt(n - 3))
    t = stats.t.ppf(0.5 + confidence / 2, max(2.5, min(n - 2, 0.04 * (carriers - 1) ** 4 / np.sqrt(n))))
    unseen = (join_size - n) / (join_size - 1)
    half = t * error * np.sqrt(unseen + (1 - unseen) * min(1, 3 * n / carriers**4))
    fourth = np.mean(r * (0.375 * (u**4 + v**4) + 0.25 * u**2 * v**2) - 0.5 * (u**3 * v + u * v**3))
    inward = 16 * max(0, np.sign(r) * fourth / n / (1 - r * r)) * unseen
    z = np.arctanh(r)
    return np.tanh(z - half - (inward if r > 0 else 0)), np.tanh(z + half + (inward if r < 0 else 0))


@pytest.mark.parametrize("change", [np.array, np.exp, np.round, lambda v: np.exp(2 * v)])
@pytest.mark.parametrize("join_size", [150.0, 2000.0])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_our_interval_is_as_it_is_written_down(change, join_size, confidence):
    for x, y in ((change(X), change(Y)), (change(X), -Y), (X, change(Y))):
        found = interval_named("influence", sampled(x, y, join_size=join_size, confidence=confidence))
        assert (found.low, found.high) == pytest.approx(written_out(x, y, join_size, confidence), rel=1e-6)


def test_our_interval_is_longer_where_one_pair_decides():
    x, y = X.copy(), RNG.normal(size=X.size)
    x[0] = y[0] = 30.0
    ours, fishers = (length(interval_named(name, sampled(x, y))) for name in ("influence", "fisher"))
    assert ours > 2 * fishers


def test_our_interval_is_never_shorter_than_fishers():
    for seed in range(50):
        x, y = np.random.default_rng(seed).normal(size=(2, 40))
        ours, fishers = (length(interval_named(name, sampled(x, y))) for name in ("influence", "fisher"))
        assert ours >= fishers


def test_our_interval_of_many_samples_is_that_of_each():
    samples = [RNG.normal(size=(2, size)) for size in (3, 4, 10, 200)]
    each = [interval_named("influence", sampled(x, y, join_size=900.0)) for x, y in samples]
    moments = [np.concatenate(m) for m in zip(*(moments_of(x, y) for x, y in samples), strict=True)]
    low, high = influence_ends(type(moments_of(X, Y))(*moments), np.full(4, 900.0), 0.95)
    assert list(zip(low, high, strict=True)) == [(interval.low, interval.high) for interval in each]


@pytest.mark.parametrize("sign", [1, -1])
def test_pairs_on_a_line_leave_room_for_some_that_are_not(sign):
    found = interval_named("influence", sampled(y=sign * (2 * X + 1)))
    inner, outer = sorted((found.low, found.high), key=abs)
    assert abs(outer) == pytest.approx(1.0)
    assert 0.9 < abs(inner) < 0.99
    few_ones = (np.arange(103) < 5).astype(float)
    rare = interval_named("influence", sampled(few_ones, sign * few_ones))
    seen = 103 / stats.kurtosis(few_ones, fisher=False)
    unseen = unseen_share(103.0, sampled().join_size)
    assert min(abs(rare.low), abs(rare.high)) == pytest.approx(seen / (seen + -np.log(0.025) * unseen / 2))


def test_an_unknown_interval_is_refused_with_the_choices():
    with pytest.raises(CovaryError, match=r"wald.*influence, fisher"):
        interval_named("wald", sampled())
    assert set(INTERVALS) == {"influence", "fisher", "pm1", "hoeffding", "hoeffding-small"}


def test_the_table_of_students_quantiles_is_exact_enough():
    freedom = np.array([2.5, 2.61, 3.3, 7.7, 29.9, 1e3, 1e9])
    for confidence in (0.5, 0.95, 0.99):
        expected = stats.t.ppf(0.5 + confidence / 2, freedom)
        assert t_quantile(freedom, confidence) == pytest.approx(expected, rel=1e-6)


def test_the_share_unseen_is_that_of_sampling_without_replacement():
    assert unseen_share(50, 101) == pytest.approx(51 / 100)
    assert unseen_share(50, 50) == 0
    assert unseen_share(50, 40) == 0
    assert unseen_share(1, 1) == 0
    assert unseen_share(50, np.inf) == 1
