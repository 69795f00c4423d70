import numpy as np
import pytest

from covary.sketching.aggregate import AGGREGATES, Grouped, concatenate, fold_rows, merge_states

ALL_STATES = frozenset().union(*(aggregate.states for aggregate in AGGREGATES.values()))


def folded(values, groups, first_row=0):
    groups = np.asarray(groups)
    values = np.atleast_2d(np.asarray(values, dtype=float))
    rows = np.arange(groups.size) + first_row
    return fold_rows(values, Grouped(groups, int(groups.max()) + 1), rows, ALL_STATES)


def column(states, place=0):
    return {name: array[place] for name, array in states.items()}


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("mean", [2.0, 10.0]), ("sum", [6.0, 10.0]), ("count", [3.0, 1.0]), ("min", [1.0, 10.0]),
        ("max", [3.0, 10.0]), ("first", [3.0, 10.0]), ("last", [2.0, 10.0]),
    ],
)  # fmt: skip
def test_rows_of_a_key_become_one_number(aggregate, expected):
    states = column(folded([3.0, 10.0, 1.0, 2.0], [0, 1, 0, 0]))
    assert AGGREGATES[aggregate].finish(states).tolist() == expected


@pytest.mark.parametrize("aggregate", sorted(AGGREGATES))
def test_missing_values_change_nothing(aggregate):
    nan = float("nan")
    with_gaps = column(folded([nan, 3.0, 10.0, nan, 1.0, 2.0, nan], [0, 0, 1, 1, 0, 0, 0]))
    without = column(folded([3.0, 10.0, 1.0, 2.0], [0, 1, 0, 0]))
    finish = AGGREGATES[aggregate].finish
    assert finish(with_gaps).tolist() == finish(without).tolist()


def test_columns_are_folded_side_by_side():
    states = folded([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]], [0, 1, 0])
    assert AGGREGATES["sum"].finish(column(states, 0)).tolist() == [4.0, 2.0]
    assert AGGREGATES["sum"].finish(column(states, 1)).tolist() == [40.0, 20.0]


def test_cancelling_terms_leave_the_small_one():
    states = column(folded([1e16, 1.0, -1e16, 1e-30], [0, 0, 0, 0]))
    assert AGGREGATES["sum"].finish(states).tolist() == [1.0]
    states = column(folded([1e300, 1e-300, -1e300], [0, 0, 0]))
    assert AGGREGATES["sum"].finish(states).tolist() == [1e-300]


@pytest.mark.parametrize("aggregate", sorted(AGGREGATES))
def test_states_of_parts_merge_to_the_states_of_the_whole(aggregate):
    whole = column(folded([5.0, 1e20, -2.5, 0.125], [0, 1, 0, 1]))
    later = column(folded([-2.5, 0.125], [0, 1], first_row=2))
    earlier = column(folded([5.0, 1e20], [0, 1]))
    keys = Grouped(np.array([0, 1, 0, 1]), 2)
    merged = merge_states(concatenate([later, earlier]), keys)
    finish = AGGREGATES[aggregate].finish
    assert finish(merged).tobytes() == finish(whole).tobytes()
