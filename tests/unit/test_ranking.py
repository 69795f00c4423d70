import numpy as np
import pytest

from covary.errors import CovaryError
from covary.ranking import RANKERS, ranker_named


def scores(name, *candidates):
    return ranker_named(name)(*np.array(candidates, dtype=float).T).tolist()


def test_s1_is_the_absolute_correlation():
    assert scores("s1", (-0.8, 10, 100), (0.3, 500, 500)) == [0.8, 0.3]


def test_s2_takes_off_the_standard_error_of_fishers_z():
    assert scores("s2", (-0.8, 28, 100)) == pytest.approx([0.8 * (1 - 1 / 5)])
    assert scores("s2", (0.9, 3, 100), (0.9, 4, 100)) == [0.0, 0.0]


def test_the_default_takes_nothing_off_a_whole_join():
    assert scores("finite-population", (-0.8, 28, 28)) == [0.8]


def test_the_default_divides_by_one_plus_the_error_left():
    error = np.sqrt((101 - 28) / 100) / 5
    assert scores("finite-population", (-0.8, 28, 101)) == pytest.approx([0.8 / (1 + error)])


@pytest.mark.parametrize("name", sorted(RANKERS))
def test_undefined_correlations_have_no_score(name):
    assert np.isnan(scores(name, (np.nan, 50, 100)))


def test_an_unknown_ranker_is_refused_with_the_choices():
    with pytest.raises(CovaryError, match=r"s9.*finite-population, s1, s2"):
        ranker_named("s9")
