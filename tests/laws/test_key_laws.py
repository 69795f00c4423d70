"""Keys of times and of several columns: neither the order of rows nor of chunks matters, and periods nest."""

from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covary.columns.key_reading import YEAR, decide_key_reading
from covary.columns.periods import write_periods
from covary.sketching.aggregate import AGGREGATES
from covary.sketching.kernel import finish, merge_partials, sketch_rows
from covary.sketching.key_columns import Key, exact_key
from covary.sketching.sketch_types import SketchConfig

CONFIG = SketchConfig(64, tuple(AGGREGATES))
START = datetime(2009, 12, 28)
hours = st.integers(0, 24 * 365 * 12)
rows_of = st.lists(
    st.tuples(hours, st.sampled_from(["a", "b", "c", None]), st.integers(-99, 99)), min_size=2, max_size=60
)
# So that every granularity is offered, whatever was drawn.
EDGES = [(0, "a", 1), (24 * 365 * 12, "b", 2), (5, "c", 3)]


def merge(partials, config):
    return merge_partials([[partial] for partial in partials], config)[0]


def frame_of(rows):
    times = [START + timedelta(hours=hour) for hour, _, _ in rows]
    return pl.DataFrame(
        {"t": times, "place": [place for _, place, _ in rows], "v": [float(value) for _, _, value in rows]},
        schema={"t": pl.Datetime("us"), "place": pl.String, "v": pl.Float64},
    )


def keys_of(rows):
    time, place = decide_key_reading("t", rows["t"]), decide_key_reading("place", rows["place"])
    return [Key.of(("t",), (time,)), Key.of(("place", "t"), (place, time))]


def bits(partials):
    finished = finish(partials, CONFIG)
    return [(s.pair, s.aggregate, s.key_hashes.tobytes(), s.values.tobytes(), s.complete) for s in finished]


def sketched(rows, keys, first_row=0):
    return sketch_rows(rows, keys, {"v": rows["v"]}, CONFIG, first_row=first_row)


@settings(max_examples=60)
@given(rows_of, st.lists(st.integers(0, 60), max_size=3))
def test_chunks_of_any_size_give_the_same_sketches(drawn, cuts):
    rows = frame_of(EDGES + drawn)
    keys = keys_of(rows)
    assert {len(key.granularities) for key in keys} == {6}
    edges = sorted({0, rows.height, *(min(cut, rows.height) for cut in cuts)})
    parts = [sketched(rows[start:stop], keys, start) for start, stop in pairwise(edges)]
    assert bits([merge(of_pair, CONFIG) for of_pair in zip(*parts, strict=True)]) == bits(
        sketched(rows, keys)
    )


@settings(max_examples=60)
@given(rows_of, st.randoms())
def test_the_order_of_rows_gives_the_same_keys_and_numbers(drawn, random):
    rows = frame_of(EDGES + drawn)
    keys = keys_of(rows)
    shuffled = list(range(rows.height))
    random.shuffle(shuffled)

    def but_for_order(partials):
        return [each for each in bits(partials) if each[1] not in ("first", "last")]

    assert but_for_order(sketched(rows, keys)) == but_for_order(sketched(rows[shuffled], keys))


@pytest.mark.parametrize("granularity", ["day", "week", "month", "quarter", "year"])
@settings(max_examples=30)
@given(drawn=rows_of)
def test_a_coarser_sketch_is_that_of_the_periods_names(granularity, drawn):
    rows = frame_of(EDGES + drawn)
    key = keys_of(rows)[0]
    names = write_periods(rows["t"], granularity)
    named = rows.select((YEAR + names if granularity == "year" else names).alias("t"), "v")
    alone = {s.aggregate: s for s in finish(sketched(named, [exact_key("t")]), CONFIG)}
    for rolled_up in finish(sketched(rows, [key]), CONFIG):
        if rolled_up.pair.granularity == granularity:
            # Coarser sketches hold fewer keys: the first of those that a sketch of the names holds.
            other = alone[rolled_up.aggregate]
            assert rolled_up.key_hashes.tolist() == other.key_hashes[: rolled_up.size].tolist()
            assert rolled_up.values.tolist() == other.values[: rolled_up.size].tolist()
            assert rolled_up.counts == other.counts


def test_rows_without_a_number_do_not_hide_first_and_last_ones_when_rolled_up():
    rows = pl.DataFrame(
        {
            "t": [datetime(2013, 1, day) for day in (1, 2, 3)] + [datetime(2023, 1, 1)],
            "v": [None, 7.0, None, 9.0],
            "w": [1.0, 2.0, 3.0, 4.0],
        }
    )
    key = Key.of(("t",), (decide_key_reading("t", rows["t"]),))
    made = finish(sketch_rows(rows, [key], {"v": rows["v"], "w": rows["w"]}, CONFIG), CONFIG)
    by_year = {s.aggregate: s for s in made if (s.pair.granularity, s.pair.value) == ("year", "v")}
    assert sorted(by_year["first"].values) == sorted(by_year["last"].values) == [7.0, 9.0]
    assert np.sort(by_year["count"].values).tolist() == [1.0, 1.0]


def test_coarser_sketches_hold_fewer_keys_and_all_together_at_most_twice_the_finest():
    rooms = [SketchConfig().room(depth) for depth in range(6)]
    assert rooms == [1024, 512, 256, 128, 64, 32]
    assert sum(rooms) < 2 * rooms[0]
