"""Open an index; key hash to the blocks of sketches that hold it. No Spark, no Java."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from covary.arrays import Integers, Row
from covary.errors import DamagedIndex, NoSuchColumn, StoreError, TableError
from covary.index.check import require_whole
from covary.index.manifest import Manifest, read_manifest, segment_folder
from covary.index.segment_files import NAMED, open_segment
from covary.index.table_records import TABLES
from covary.query.open_segment import Candidates, OpenSegment
from covary.sketching.sketch_types import Sketch, SketchConfig
from covary.statistics.key_sets import check_comparable
from covary.statistics.moments import Moments

# As covary.tables.source.locate_table has it, for all tables at once.
TABLE_LOCATION = pl.concat_str("path", "member", separator="#", ignore_nulls=True)


class StoredSketches:
    """All sketches of an index: lookup by name or number, and by the keys they share with a query."""

    def __init__(self, path: Path, manifest: Manifest, segments: Sequence[OpenSegment]) -> None:
        self.path = path
        self.manifest = manifest
        self.segments = tuple(segments)
        self._firsts = np.cumsum([0, *(segment.sketch_count for segment in segments)])

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open an index as it is now; it answers from that state whatever becomes of it.

        What a query reads is held against its checksum when it is first read.
        """
        folder = Path(path)
        while True:
            manifest = read_manifest(folder)
            try:
                return cls(folder, manifest, _open_segments(folder, manifest))
            except (DamagedIndex, FileNotFoundError):
                if read_manifest(folder) == manifest:  # no commit came in between
                    raise

    @classmethod
    def at(cls, folder: Path, manifest: Manifest) -> Self:
        """Open a state of an index that was read before; it must not have been replaced since."""
        try:
            return cls(folder, manifest, _open_segments(folder, manifest))
        except (DamagedIndex, FileNotFoundError):
            if not folder.exists():
                raise StoreError(
                    f"{folder} is not there: Spark's workers must share its file system"
                ) from None
            raise StoreError(f"{folder} was changed since this was asked; ask again") from None

    @property
    def config(self) -> SketchConfig:
        """The settings that every sketch of the index was made with."""
        return self.manifest.config

    @cached_property
    def tables(self) -> pl.DataFrame:
        """One row per table of its sources, with the reason where it was skipped."""
        parts = [segment.tables for segment in self.segments]
        return pl.concat(parts) if parts else pl.DataFrame(schema=TABLES)

    def __repr__(self) -> str:
        read = self.tables["problem"].null_count()
        return f"<covary index {str(self.path)!r}: {read} tables, {self.sketch_count} sketches>"

    @property
    def sketch_count(self) -> int:
        """How many sketches the index holds."""
        return sum(int(segment.living.sum()) for segment in self.segments)

    def score(self, query: Sketch, measure: str = "pearson", asked: int = 0) -> Candidates:
        """Score every sketch that shares a key with the query, which may be one of several."""
        check_comparable(self.config, query.config)
        scored = [segment.score(query, measure) for segment in self.segments]
        joined = Candidates.of_all(scored)
        if len(scored) > 1:
            firsts = np.repeat(self._firsts[:-1], [each.size for each in scored])
            joined = replace(joined, sketches=joined.sketches + firsts)
        return replace(joined, asked=np.full_like(joined.sketches, asked)) if asked else joined

    def moments(self, queries: Sequence[Sketch], measure: str, candidates: Candidates) -> Moments:
        """Measure some of the sketches that share a key with a query more closely."""
        every = np.empty((len(Moments._fields), candidates.size))
        for asked, query in enumerate(queries):
            rows = np.flatnonzero(candidates.asked == asked)
            rows = rows[np.argsort(candidates.sketches[rows])]  # as a segment wants them
            for segment, positions, own_numbers in self._by_segment(candidates.sketches[rows]):
                measured = self.segments[segment].moments(query, measure, own_numbers)
                every[:, rows[positions]] = measured
        return Moments(*every)

    def sketch_at(self, number: int) -> Sketch:
        """Return a sketch by its number in the index."""
        segment, own_number = self._in_segment(number)
        return segment.sketch(own_number)

    def is_damaged(self, number: int) -> bool:
        """Whether something was wrong with the table that a sketch was made from, though it was read."""
        segment, own_number = self._in_segment(number)
        return segment.is_damaged(own_number)

    def _in_segment(self, number: int) -> tuple[OpenSegment, int]:
        """Return the segment that holds a sketch, and its number there."""
        segment = int(np.searchsorted(self._firsts, number, side="right")) - 1
        return self.segments[segment], number - int(self._firsts[segment])

    def _by_segment(self, numbers: Integers) -> Iterator[tuple[int, Integers, Integers]]:
        """Take sketches apart by segment: its position, theirs among the numbers, their numbers in it."""
        segments = np.searchsorted(self._firsts, numbers, side="right") - 1
        for segment in np.unique(segments).tolist():
            positions = np.flatnonzero(segments == segment)
            yield segment, positions, numbers[positions] - self._firsts[segment]

    def tables_at(self, numbers: Integers) -> Integers:
        """Return the number, in the index, of the table that each sketch was made from."""
        first_tables = np.cumsum([0, *(segment.table_count for segment in self.segments)])
        tables = np.empty(numbers.size, dtype=np.int64)
        for segment, positions, own_numbers in self._by_segment(numbers):
            tables[positions] = first_tables[segment] + self.segments[segment].table_of[own_numbers]
        return tables

    def columns_at(self, numbers: Integers) -> pl.DataFrame:
        """Return the key, value, granularity and aggregate of sketches."""
        columns, rows = pl.DataFrame(schema=dict.fromkeys(NAMED, pl.String)), np.empty(0, dtype=np.int64)
        for segment, positions, own_numbers in self._by_segment(numbers):
            columns = columns.vstack(self.segments[segment].columns(own_numbers))
            rows = np.append(rows, positions)
        return columns.select(pl.all().gather(np.argsort(rows)))

    def columns_of(self, table: str) -> dict[str, Row]:
        """Return what is known of each column of a table, by its name."""
        columns = self.tables.filter(pl.col("name") == table)["columns"]
        return {column["name"]: column for column in columns[0]} if len(columns) else {}

    def sketches_beside(self, number: int) -> Integers:
        """Return the numbers of all sketches of the table that a sketch was made from."""
        segment, own_number = self._in_segment(number)
        beside = np.flatnonzero(segment.table_of == segment.table_of[own_number])
        return beside + (number - own_number)

    def sketches_made_from(self, location: str | None) -> Integers:
        """Return the numbers of the sketches that were made from a table, by where it is."""
        return self._numbers_of(TABLE_LOCATION, location) if location else np.empty(0, dtype=np.int64)

    def _numbers_of(self, field: pl.Expr, wanted: str) -> Integers:
        """Return the numbers of the sketches of the tables with a name or a location."""
        numbers: list[Integers] = [np.empty(0, dtype=np.int64)]
        for segment, first in zip(self.segments, self._firsts, strict=False):
            tables = np.flatnonzero(
                segment.segment.table_list.select(field.eq(wanted)).to_series().to_numpy()
            )
            if tables.size:
                numbers.append(first + np.flatnonzero(np.isin(segment.table_of, tables) & segment.living))
        return np.concatenate(numbers)

    def sketch(
        self, table: str, key: str, value: str, aggregate: str | None = None, by: str | None = None
    ) -> Sketch:
        """Return the sketch of one ⟨key, number⟩ pair by name; of times, the finest, or by a granularity."""
        wanted = aggregate or self.config.aggregates[0]
        numbers = self._numbers_of(pl.col("name"), table)
        if not numbers.size:
            raise TableError(f"{self.path} holds no table {table!r}; covary info {self.path} lists them")
        columns = self.columns_at(numbers)
        for number, row in zip(numbers, columns.iter_rows(named=True), strict=True):
            # The finest granularity comes first.
            if (row["key"], row["value"], row["aggregate"]) == (key, value, wanted) and (
                by in (None, row["granularity"])
            ):
                return self.sketch_at(number)
        pairs = (f"{k} / {v}" for k, v in zip(columns["key"], columns["value"], strict=True))
        raise NoSuchColumn(f"{key} / {value}", table, dict.fromkeys(pairs))


def _open_segments(folder: Path, manifest: Manifest) -> list[OpenSegment]:
    opened = []
    for stored in manifest.segments:
        require_whole(folder, stored)
        segment = open_segment(segment_folder(folder, stored), stored)
        opened.append(OpenSegment(segment, manifest.config, stored.removed))
    return opened
