import numpy as np
import pytest

from covary.errors import CovaryError
from covary.statistics.ranking import RANKERS, CandidateList, ranker_named


def candidates(*rows, containments=None, bootstrap=None, lengths=None, seed=0):
    correlations, sizes, joins = np.array(rows, dtype=float).T
    shares = np.array(containments if containments is not None else np.ones(len(rows)))
    estimates, spans = bootstrap if bootstrap is not None else (correlations, np.ones(len(rows)))
    return CandidateList(
        correlations,
        sizes,
        joins,
        shares,
        lambda: (np.array(estimates), np.array(spans)),
        lambda: np.array(lengths if lengths is not None else np.arange(len(rows)), dtype=float),
        seed,
    )


def scores(name, *rows, **more):
    return ranker_named(name).score(candidates(*rows, **more)).tolist()


def test_s1_is_the_absolute_correlation():
    assert scores("s1", (-0.8, 10, 100), (0.3, 500, 500)) == [0.8, 0.3]


def test_s2_takes_off_the_standard_error_of_fishers_z():
    assert scores("s2", (-0.8, 28, 100)) == pytest.approx([0.8 * (1 - 1 / 5)])
    assert scores("s2", (0.9, 3, 100), (0.9, 4, 100)) == [0.0, 0.0]


def test_s3_takes_half_the_length_of_pm1s_interval_off_its_estimate():
    found = scores("s3", (0.9, 30, 100), (0.9, 30, 100), bootstrap=([-0.8, 0.7], [0.5, 2.0]))
    assert found == pytest.approx([0.8 * 0.75, 0.0])


def test_s4_scales_lengths_over_the_whole_list():
    found = scores("s4", (0.8, 30, 100), (-0.8, 30, 100), (0.8, 30, 100), lengths=[1.0, 2.0, 5.0])
    assert found == pytest.approx([0.8, 0.8 * 0.75, 0.0])


def test_s4_of_equally_long_intervals_is_the_absolute_correlation():
    assert scores("s4", (0.8, 30, 100), (-0.5, 30, 100), lengths=[2.0, 2.0]) == [0.8, 0.5]
    assert scores("s4", (0.8, 30, 100), lengths=[2.0]) == [0.8]


def test_s4_leaves_undefined_candidates_out_of_the_scale():
    found = scores("s4", (0.8, 30, 100), (np.nan, 30, 100), (0.6, 30, 100), lengths=[1.0, np.nan, 3.0])
    assert found == pytest.approx([0.8, np.nan, 0.0], nan_ok=True)


def test_jc_is_the_containment():
    assert scores("jc", (0.8, 30, 100), (0.1, 30, 100), containments=[0.2, 0.9]) == [0.2, 0.9]


def test_random_scores_are_the_same_for_the_same_seed():
    rows = [(0.8, 30, 100)] * 20
    assert scores("random", *rows, seed=4) == scores("random", *rows, seed=4)
    assert scores("random", *rows, seed=4) != scores("random", *rows, seed=5)
    assert 0 <= min(scores("random", *rows)) < max(scores("random", *rows)) < 1


def test_the_default_takes_nothing_off_a_whole_join():
    assert scores("finite-population", (-0.8, 28, 28)) == [0.8]


def test_the_default_divides_by_one_plus_the_error_left():
    error = np.sqrt((101 - 28) / 100) / 5
    assert scores("finite-population", (-0.8, 28, 101)) == pytest.approx([0.8 / (1 + error)])


@pytest.mark.parametrize("name", sorted(RANKERS))
def test_undefined_correlations_have_no_score(name):
    nothing = ([np.nan, 0.5], [np.nan, 1.0])
    found = scores(name, (np.nan, 50, 100), (0.5, 50, 100), bootstrap=nothing, lengths=[np.nan, 1.0])
    assert np.isnan(found[0])
    assert not np.isnan(found[1])


def test_an_unknown_ranker_is_refused_with_the_choices():
    with pytest.raises(CovaryError, match=r"s9.*finite-population, s1, s2, s3, s4, jc, random"):
        ranker_named("s9")
