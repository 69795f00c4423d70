"""The joined sample is uniform (Theorem 1), and what sketches say of a join's size is right on average."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

from covary.sketching.hashing import SCHEMES
from covary.sketching.kernel import finish, sketch_rows
from covary.sketching.key_columns import exact_key
from covary.sketching.sketch_types import SketchConfig
from covary.statistics.join import join

pytestmark = pytest.mark.statistical
SALTS = 300


def salted_sketch(numbers, salt, config):
    numbers = [*numbers, *numbers]  # else no estimate of distinct keys could be above their number
    frame = pl.DataFrame({"k": [f"{salt}/{number}" for number in numbers]})
    values = pl.Series("v", numbers, dtype=pl.Float64)
    return finish(sketch_rows(frame, [exact_key("k")], {"v": values}, config), config)[0]


@pytest.mark.parametrize("hash_name", sorted(SCHEMES))
def test_every_joined_key_is_equally_likely(hash_name):
    config = SketchConfig(24, ("mean",), hash_name)
    left, right = range(90), range(40, 160)
    seen = np.zeros(50)
    sizes = []
    for salt in range(2 * SALTS):
        # The value of a key is its number, so the sample itself says which keys it holds.
        sample = join(salted_sketch(left, salt, config), salted_sketch(right, salt, config))
        assert sample.x.tolist() == sample.y.tolist()
        seen[sample.x.astype(int) - 40] += 1
        sizes.append(sample.size)
    expected = seen.sum() / seen.size
    # A sample is drawn without replacement, so counts vary less than independent draws would.
    share = np.mean(sizes) / seen.size
    statistic = np.sum((seen - expected) ** 2) / (expected * (1 - share)) * (seen.size - 1) / seen.size
    low, high = chi2.ppf([0.001, 0.999], seen.size - 1)
    assert low < statistic < high


def assert_unbiased(estimates, truth):
    estimates = np.asarray(estimates)
    standard_error = estimates.std(ddof=1) / np.sqrt(estimates.size)
    assert abs(estimates.mean() - truth) <= 4 * standard_error


@pytest.mark.parametrize("hash_name", sorted(SCHEMES))
@pytest.mark.parametrize(
    ("left", "right", "overlap"),
    [(range(100), range(60, 600), 40), (range(900), range(500, 1700), 400)],
    ids=["complete and cut", "cut and cut"],
)
def test_estimates_of_the_join_are_right_on_average(hash_name, left, right, overlap):
    config = SketchConfig(128, ("mean",), hash_name)
    joins = []
    for salt in range(SALTS):
        joins.append(join(salted_sketch(left, salt, config), salted_sketch(right, salt, config)).keys)
    assert not any(each.join_size.exact for each in joins)
    assert_unbiased([each.right_distinct.value for each in joins], len(right))
    assert_unbiased([each.join_size.value for each in joins], overlap)
    assert_unbiased([each.left_containment.value for each in joins], overlap / len(left))
    if len(left) <= 128:
        assert {each.left_distinct.value for each in joins} == {float(len(left))}
    else:
        assert_unbiased([each.left_distinct.value for each in joins], len(left))
