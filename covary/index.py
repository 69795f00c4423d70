"""Open an index; key hash to the sketches that hold it. No Spark, no Java."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from covary.aggregate import Floats
from covary.errors import NoSuchColumn, TableError
from covary.joins import check_comparable
from covary.scoring import ALL_AT_ONCE, Postings, find_postings
from covary.segment import stored_hashes
from covary.sketches import ColumnPair, Counts, Sketch, SketchConfig
from covary.store import Manifest, Segment, read_manifest, read_segment, segment_folder


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Every sketch that shares a key with the query: which, how many keys, and how correlated.

    Attributes:
        sketches: number of each sketch in the index.
        sample_sizes: keys that the two sketches share.
        correlations: NaN where undefined.
        join_sizes: rows of the whole join, exact where both sketches are complete.
    """

    sketches: npt.NDArray[np.int64]
    sample_sizes: Floats
    correlations: Floats
    join_sizes: Floats

    def only(self, kept: npt.NDArray[Any]) -> "Candidates":
        """Return some of the candidates, by mask or by place."""
        return Candidates(
            self.sketches[kept], self.sample_sizes[kept], self.correlations[kept], self.join_sizes[kept]
        )


class OpenSegment:
    """A segment ready to answer."""

    def __init__(self, segment: Segment, config: SketchConfig) -> None:
        self.config = config
        self.tables = segment.tables
        self.sketches = segment.sketches
        self._key_sets = segment.key_sets
        self._hashes = segment.arrays["keys.hash"]
        self._members = segment.arrays["members.place"]
        self._postings = Postings(
            segment.arrays["starts.start"],
            segment.arrays["postings.sketch"],
            segment.arrays["postings.value"],
        )
        key_set = segment.sketches["key_set"].to_numpy()
        self._complete = segment.key_sets["complete"].to_numpy()[key_set]
        self._reach = segment.key_sets["reach"].to_numpy()[key_set]

    def score(self, query: Sketch, measure: str) -> Candidates:
        """Score every sketch that shares a key with the query, in one pass over their postings."""
        keys, shared = self._shared_keys(query)
        score_all = ALL_AT_ONCE[measure]
        sizes, correlations = score_all(keys, query.values[shared], self._postings, self.sketches.height)
        joined = np.flatnonzero(sizes)
        sizes, correlations = sizes[joined], correlations[joined]
        return Candidates(joined, sizes, correlations, sizes / self._sampled_share(query, joined))

    def _sampled_share(self, query: Sketch, joined: npt.NDArray[np.int64]) -> Floats:
        """Return how much of each join its sample is: all of it where a column's every key was looked at."""
        complete, reach = self._complete[joined], self._reach[joined]
        threshold = np.where(complete, 1.0, reach)
        # Where two keys may share a place in the order, one tied with the last may have been cut.
        within = np.less if self.config.scheme.ties else np.less_equal
        seen_whole = (complete & within(reach, query.threshold)) | (
            query.complete & within(query.reach, threshold)
        )
        return np.where(seen_whole, 1.0, np.minimum(threshold, query.threshold))

    def _shared_keys(self, query: Sketch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        wanted = stored_hashes(query.key_hashes)
        by_hash = np.argsort(wanted)  # then neighbours in the search are neighbours in memory
        wanted = wanted[by_hash]
        places = np.searchsorted(self._hashes, wanted)
        found = np.flatnonzero(places < self._hashes.size)
        found = found[self._hashes[places[found]] == wanted[found]]
        return places[found], by_hash[found]

    def sketch(self, number: int) -> Sketch:
        """Return one sketch as it was built."""
        row = self.sketches.row(number, named=True)
        key_set = self._key_sets.row(row["key_set"], named=True)
        members = self._members[key_set["start"] : key_set["start"] + key_set["size"]].astype(np.int64)
        postings = find_postings(members, number, self._postings.starts, self._postings.sketches)
        identity = np.dtype(self.config.scheme.identity_type)
        unsigned = self._hashes[members].astype(f"u{identity.itemsize}")
        return Sketch(
            ColumnPair(self.tables["name"][row["table"]], row["key"], row["value"]),
            row["aggregate"],
            self.config,
            unsigned.view(identity),
            self._postings.values[postings],
            Counts(**{name: row[name] for name in Counts.__slots__}),
            key_set["complete"],
        )


class StoredSketches:
    """All sketches of an index: lookup by name or number, and by the keys they share with a query."""

    def __init__(self, path: Path, manifest: Manifest, segments: Sequence[OpenSegment]) -> None:
        self.path = path
        self.manifest = manifest
        self.segments = tuple(segments)
        self._firsts = np.cumsum([0, *(segment.sketches.height for segment in segments)])

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open an index, checking every file against its checksum."""
        folder = Path(path)
        manifest = read_manifest(folder)
        segments = [read_segment(segment_folder(folder, stored), stored) for stored in manifest.segments]
        return cls(folder, manifest, [OpenSegment(segment, manifest.config) for segment in segments])

    @property
    def config(self) -> SketchConfig:
        """The settings that every sketch of the index was made with."""
        return self.manifest.config

    @cached_property
    def tables(self) -> pl.DataFrame:
        """One row per table that was found, with the reason where it was skipped."""
        return pl.concat([segment.tables for segment in self.segments])

    def __repr__(self) -> str:
        return f"<covary index {str(self.path)!r}: {self.tables.height} tables, {self.sketch_count} sketches>"

    @property
    def sketch_count(self) -> int:
        """How many sketches the index holds."""
        return int(self._firsts[-1])

    def score(self, query: Sketch, measure: str = "pearson") -> Candidates:
        """Score every sketch that shares a key with the query."""
        check_comparable(self.config, query.config)
        found = [segment.score(query, measure) for segment in self.segments]
        return Candidates(
            np.concatenate([c.sketches + first for c, first in zip(found, self._firsts, strict=False)]),
            np.concatenate([c.sample_sizes for c in found]),
            np.concatenate([c.correlations for c in found]),
            np.concatenate([c.join_sizes for c in found]),
        )

    def sketch_at(self, number: int) -> Sketch:
        """Return a sketch by its number in the index."""
        segment = int(np.searchsorted(self._firsts, number, side="right")) - 1
        return self.segments[segment].sketch(number - int(self._firsts[segment]))

    def made_from(self, path: str | None) -> npt.NDArray[np.int64]:
        """Return the numbers of the sketches that were made from a file."""
        numbers: list[npt.NDArray[np.int64]] = []
        for segment, first in zip(self.segments, self._firsts, strict=False):
            tables = np.flatnonzero((segment.tables["path"] == path).to_numpy()) if path else np.empty(0)
            if tables.size:
                of_table = np.isin(segment.sketches["table"].to_numpy(), tables)
                numbers.append(first + np.flatnonzero(of_table))
        return np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64)

    def sketch(self, table: str, key: str, value: str, aggregate: str | None = None) -> Sketch:
        """Return the sketch of one ⟨key, number⟩ pair by name."""
        wanted = aggregate or self.config.aggregates[0]
        for segment, first in zip(self.segments, self._firsts, strict=False):
            names = segment.tables["name"].gather(segment.sketches["table"])
            mine = segment.sketches.filter(names == table)
            places = np.flatnonzero((names == table).to_numpy())
            for place, row in zip(places, mine.iter_rows(named=True), strict=True):
                if (row["key"], row["value"], row["aggregate"]) == (key, value, wanted):
                    return self.sketch_at(int(first + place))
            if mine.height:
                pairs = (f"{k} / {v}" for k, v in zip(mine["key"], mine["value"], strict=True))
                raise NoSuchColumn(f"{key} / {value}", table, dict.fromkeys(pairs))
        raise TableError(f"{self.path} holds no table {table!r}; covary info {self.path} lists them")
