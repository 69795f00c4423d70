"""A segment ready to answer: key hash to the blocks of sketches that hold it, every sketch scored."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from covary.arrays import Array, Floats, Integers, Slots, Truths
from covary.compiled import unnamed
from covary.index.segment_arrays import read_blocks, read_name_slots, read_slots_below
from covary.index.segment_files import COUNTED, NAMED, Segment
from covary.index.segment_layout import build_segment, from_stored_hashes, to_stored_hashes
from covary.index.soundness import Blocks
from covary.index.table_records import TableRecord
from covary.query.score_sketches import Query, score_sketches
from covary.sketching.sketch_types import ColumnPair, Counts, Sketch, SketchConfig
from covary.statistics.moments import Moments, moments_of


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Every sketch that shares a key with the query: which, how many keys, and how correlated."""

    sketches: Integers  # number of each sketch in the index
    sample_sizes: Floats  # keys that the two sketches share
    correlations: Floats  # NaN where undefined
    join_sizes: Floats  # rows of the whole join, exact where every key of one side was looked up in the other
    asked: Integers  # which sketch of the query each joins with, where it has several

    @property
    def size(self) -> int:
        """How many there are."""
        return self.sketches.size

    def only(self, kept: Array) -> "Candidates":
        """Return some of the candidates, by mask or by position."""
        return Candidates(*(getattr(self, name)[kept] for name in self.__slots__))

    @classmethod
    def of_all(cls, parts: "Sequence[Candidates]") -> "Candidates":
        """Put several lists one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


class OpenSegment:
    """A segment ready to answer, without the tables that were removed from it."""

    def __init__(self, segment: Segment, config: SketchConfig, removed: Sequence[int] = ()) -> None:
        self.config = config
        self.segment = segment
        self.sketch_count = segment.sketch_count
        self._removed = np.array(removed, dtype=np.int64)

    @cached_property
    def table_count(self) -> int:
        """How many tables the segment holds, with those that were removed."""
        return self.segment.table_list.height

    @cached_property
    def tables(self) -> pl.DataFrame:
        """One row per table that is left."""
        tables = self.segment.tables
        if not self._removed.size:
            return tables
        return tables[np.setdiff1d(np.arange(self.table_count), self._removed)]

    @cached_property
    def table_of(self) -> Slots:
        """The row of each sketch's table."""
        return read_slots_below(self.segment, "sketches.table", self.table_count)

    @cached_property
    def living(self) -> Truths:
        """Which sketches are of tables that are left."""
        if not self._removed.size:
            return np.ones(self.sketch_count, dtype=np.bool_)
        return ~np.isin(self.table_of, self._removed)

    @property
    def entries(self) -> int:
        """How many ⟨key, value⟩ entries the sketches hold that are left."""
        return int(self._blocks.layout.sizes[self.segment.arrays["sketches.key_set"][self.living]].sum())

    def sketched_tables(self) -> list[str]:
        """Name the tables that are left and have a sketch."""
        names = self.segment.table_list["name"]
        return names.gather(np.unique(self.table_of[self.living])).to_list()

    @cached_property
    def _blocks(self) -> Blocks:
        return read_blocks(self.segment)

    @cached_property
    def _unnamed_blocks(self) -> Any:
        return unnamed(self._blocks)

    def score(self, query: Sketch, measure: str) -> Candidates:
        """Score every sketch that shares a key with the query, block after block."""
        sketches, scores = self._measure(query, measure, self.living)
        join_sizes = scores.size / self._sampled_share(query, sketches)
        return Candidates(sketches, scores.size, scores.correlation, join_sizes, np.zeros_like(sketches))

    def moments(self, query: Sketch, measure: str, sketches: Integers) -> Moments:
        """Measure more closely some sketches that share a key with the query, given ascending."""
        wanted = np.zeros(self.sketch_count, dtype=np.bool_)
        wanted[sketches] = True
        measured, moments = self._measure(query, measure, wanted, closely=True)
        order = np.argsort(measured)
        return Moments(*(moment[order] for moment in moments))

    def _measure(
        self, query: Sketch, measure: str, wanted: Truths, *, closely: bool = False
    ) -> tuple[Integers, Moments]:
        asked = Query(to_stored_hashes(query.key_hashes), query.values)
        arrays = self.segment.arrays
        return score_sketches(asked, self._unnamed_blocks, arrays, measure, wanted, closely=closely)

    def _sampled_share(self, query: Sketch, joined: Integers) -> Floats:
        """Return how much of each join its sample is: all of it where a column's every key was looked at."""
        arrays = self.segment.arrays
        key_set = arrays["sketches.key_set"][joined]
        complete, reach = arrays["key_sets.complete"][key_set].astype(bool), arrays["key_sets.reach"][key_set]
        thresholds = np.where(complete, 1.0, reach)
        whole_to = np.where(complete, reach, np.inf)  # a cut column is never seen whole
        # Where two keys may share a rank in the order, one tied with the last may have been cut.
        within = np.less if self.config.scheme.ties else np.less_equal
        seen_whole = within(whole_to, query.threshold)
        if query.complete:
            seen_whole |= within(query.reach, thresholds)
        return np.where(seen_whole, 1.0, np.minimum(thresholds, query.threshold))

    def columns(self, numbers: Integers) -> pl.DataFrame:
        """Return the key, value, granularity and aggregate of sketches."""
        names = self.segment.names
        return pl.DataFrame(
            {field: names.gather(slots[numbers]) for field, slots in self._name_slots.items()}
        )

    @cached_property
    def _name_slots(self) -> dict[str, Slots]:
        """The slots of each sketch's key, value, granularity and aggregate among the names."""
        return {field: read_name_slots(self.segment, field) for field in NAMED}

    def is_damaged(self, number: int) -> bool:
        """Whether something was wrong with the table that a sketch was made from."""
        return bool(self.segment.table_list["damaged"][int(self.table_of[number])])

    def sketch(self, number: int) -> Sketch:
        """Return one sketch as it was built."""
        _ = self._blocks  # nothing leads outside
        arrays, names = self.segment.arrays, self.segment.names
        key, value, granularity, aggregate = (
            str(names[int(slots[number])]) for slots in self._name_slots.values()
        )
        key_set = arrays["sketches.key_set"][number]
        size = int(arrays["key_sets.size"][key_set])
        start = int(arrays["key_sets.member_start"][key_set])
        entries = arrays.between("members.entry", start, start + size).astype(np.int64)
        dictionary = arrays["blocks.start"][arrays["key_sets.block"][key_set]]
        hashes = arrays.at("keys.hash", arrays.at("dictionary.place", dictionary + entries).astype(np.int64))
        own = from_stored_hashes(hashes, self.config.scheme)
        if not self.config.scheme.are_in_order(own):
            raise arrays.impossible("dictionary.place")
        start = int(arrays["sketches.value_start"][number])
        values = arrays.between("values.value", start, start + size)
        table = self.segment.table_list["name"][int(self.table_of[number])]
        return Sketch(
            ColumnPair(table, key, value, granularity),
            aggregate,
            self.config,
            own,
            values,
            Counts(**{name: arrays[f"sketches.{name}"][number].item() for name in COUNTED}),
            bool(arrays["key_sets.complete"][key_set]),
        )


def compile_ahead() -> None:
    """Compile the loops of a query, so that the first one need not wait. Once on a machine: they are kept."""
    config = SketchConfig()
    hashes, values = np.arange(3, dtype=np.uint64), np.arange(3.0)
    hashes = hashes[np.argsort(config.scheme.order(hashes))]
    counts = Counts(3, 0, 0, 0, 0.0, 2.0)
    sketch = Sketch(ColumnPair("", "", ""), config.aggregates[0], config, hashes, values, counts, True)
    segment = build_segment([(TableRecord("", ""), [sketch])])
    opened = OpenSegment(segment, config)
    opened.score(sketch, "pearson")
    opened.moments(sketch, "pearson", np.zeros(1, dtype=np.int64))
    moments_of(values, values)
