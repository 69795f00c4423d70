import numpy as np
import pytest

from covary.intervals import Interval, fisher, unseen_factor


def test_an_unknown_join_gives_the_textbook_interval():
    interval = fisher(0.5, 103)
    assert interval.low == pytest.approx(np.tanh(np.arctanh(0.5) - 0.1959963984540054))
    assert interval.high == pytest.approx(np.tanh(np.arctanh(0.5) + 0.1959963984540054))


def test_the_whole_join_leaves_nothing_open():
    assert fisher(0.5, 100, 100) == Interval(0.5, 0.5)
    assert fisher(0.5, 3, 3) == Interval(0.5, 0.5)


def test_the_interval_narrows_as_more_of_the_join_is_seen():
    widths = [fisher(0.5, 100, size).high - fisher(0.5, 100, size).low for size in (100, 110, 200, 10_000)]
    assert widths == sorted(widths)
    assert len(set(widths)) == 4
    textbook = fisher(0.5, 100)
    assert widths[-1] < textbook.high - textbook.low


def test_three_of_many_pairs_say_nothing():
    assert fisher(0.9, 3, 50) == Interval(-1.0, 1.0)


@pytest.mark.parametrize("correlation", [-1.0, -0.999999, 0.0, 0.7, 1.0])
def test_the_interval_holds_the_estimate_and_stays_in_range(correlation):
    interval = fisher(correlation, 20, 400)
    assert -1 <= interval.low <= correlation <= interval.high <= 1


def test_the_share_unseen_is_that_of_sampling_without_replacement():
    assert unseen_factor(50, 101) == pytest.approx(np.sqrt(51 / 100))
    assert unseen_factor(50, 50) == 0
    assert unseen_factor(50, 40) == 0
    assert unseen_factor(1, 1) == 0
