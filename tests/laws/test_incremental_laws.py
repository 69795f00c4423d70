"""An index that follows its collection is, once compacted, the index of the collection as it is now."""

import os
import shutil
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import covary
from covary.build.upkeep import compact_index, remove_tables
from covary.index.history import read_history

build_index = partial(covary.build_index, runner="process")

NAMES = ("a", "b", "c", "sub/d", "sub/e")
SOURCES = (*(f"{name}.csv" for name in NAMES), "", "sub", "*.csv", "sub/e*")
STEP = st.tuples(
    st.sampled_from(["write", "delete", "touch", "break"]), st.sampled_from(NAMES), st.integers(0, 5)
)
STEPS = st.lists(st.lists(STEP, min_size=1, max_size=3), min_size=1, max_size=5)


def table(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(15, 80))
    keys = [f"place {n}" for n in rng.choice(100, rows, replace=False)]
    return pl.DataFrame({"place": keys, "x": rng.normal(size=rows), "y": rng.normal(size=rows)})


class Collection:
    """A folder of tables that is changed, with a clock of its own so that each change has another time."""

    def __init__(self, folder):
        self.folder, self.clock = Path(folder), 1_000_000_000
        self.apply("write", "always", 99)

    def apply(self, action, name, seed):
        file = self.folder / f"{name}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        if action == "delete":
            file.unlink(missing_ok=True)
            return
        if action == "write":
            table(seed).write_csv(file)
        elif action == "break":
            file.write_bytes(b"")
        elif not file.exists():
            return
        self.clock += 1
        os.utime(file, ns=(self.clock, self.clock))


def answer(index):
    query = pl.DataFrame({"place": [f"place {n}" for n in range(100)], "q": np.arange(100.0)})
    hits = covary.open_index(index).query(query, "place", "q", top=50)
    return sorted(
        (hit.table, hit.value, hit.correlation, hit.sample_size, hit.q_value) for hit in hits
    ), hits.candidates


@settings(max_examples=40)
@given(steps=STEPS, compact_at=st.integers(0, 5))
def test_following_a_collection_equals_building_it_anew(bytes_of, in_memory, steps, compact_at):
    with TemporaryDirectory(dir=in_memory) as scratch:
        collection, index = Collection(f"{scratch}/tables"), f"{scratch}/index"
        build_index(collection.folder, index, size=16)
        for number, changes in enumerate(steps):
            for change in changes:
                collection.apply(*change)
            build_index(None, index)
            if number == compact_at:
                compact_index(index)
        fresh = f"{scratch}/fresh"
        build_index(collection.folder, fresh, size=16)
        assert answer(index) == answer(fresh)
        compact_index(index)
        assert bytes_of(index) == bytes_of(fresh)
        assert read_history(Path(index))[-1].command in {"index", "compact"}


@settings(max_examples=15)
@given(first=st.sampled_from(SOURCES), others=st.sets(st.sampled_from(SOURCES), min_size=1))
def test_sources_may_come_one_by_one_in_any_order(bytes_of, in_memory, first, others):
    with TemporaryDirectory(dir=in_memory) as scratch:
        folder = Path(scratch, "tables")
        collection = Collection(folder)
        for number, name in enumerate(NAMES):
            collection.apply("write", name, number)
        sources = [folder / source for source in (first, *sorted(others))]
        index, fresh = f"{scratch}/index", f"{scratch}/fresh"
        for source in sources:
            build_index(source, index, size=16)
        compact_index(index)
        build_index(sources, fresh, size=16)
        assert bytes_of(index) == bytes_of(fresh)


@settings(max_examples=15)
@given(gone=st.sets(st.sampled_from(NAMES), min_size=1), many=st.booleans())
def test_removing_by_hand_leaves_what_a_smaller_collection_gives(bytes_of, in_memory, gone, many):
    with TemporaryDirectory(dir=in_memory) as scratch:
        collection, index = Collection(f"{scratch}/tables"), f"{scratch}/index"
        for number, name in enumerate(NAMES):
            collection.apply("write", name, number)
        build_index(collection.folder, index, size=16)
        for names in [sorted(gone)] if many else [[name] for name in sorted(gone)]:
            remove_tables(index, names)
        compact_index(index)
        build_index(None, index)  # which must not bring them back
        smaller = Path(scratch, "smaller")
        for name in gone:
            (collection.folder / f"{name}.csv").unlink()
        build_index(collection.folder, smaller, size=16)
        segments = [Path(each) / "segments" for each in (index, smaller)]
        assert bytes_of(segments[0]) == bytes_of(segments[1])
        shutil.rmtree(smaller)
