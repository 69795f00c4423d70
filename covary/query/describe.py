"""What an index holds: its settings, its size and its tables, gathered from its files without a question."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from covary.errors import TableError, near_names
from covary.index.reason_words import leaves_day_open
from covary.index.table_records import TableRecord, read_records
from covary.own_files import MANIFEST
from covary.query.stored_sketches import StoredSketches


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """What an index holds."""

    index: str
    format: int
    size: int
    aggregates: tuple[str, ...]
    hash: str
    keys: str
    sources: tuple[str, ...]
    segments: int
    sketches: int
    entries: int  # ⟨key, number⟩ entries of all sketches together
    bytes: int  # what the index takes on disk
    unsketched: tuple[str, ...]  # names of tables without a key column or without a number column
    removed: tuple[str, ...]  # where tables are that were removed by hand, and stay away until they are named
    contents: tuple[TableRecord, ...]  # every table that its sources held, also those that were skipped

    @property
    def read(self) -> list[TableRecord]:
        """The tables that were read."""
        return [table for table in self.contents if table.problem is None]

    @property
    def skipped(self) -> list[TableRecord]:
        """The tables that were not read, and the sources that could not be looked into."""
        return [table for table in self.contents if table.problem is not None]

    @property
    def skipped_sources(self) -> list[TableRecord]:
        """The sources that could not be looked into."""
        return [skipped for skipped in self.skipped if self._is_source(skipped)]

    @property
    def skipped_tables(self) -> list[TableRecord]:
        """The tables that were skipped though their source could be looked into."""
        return [skipped for skipped in self.skipped if not self._is_source(skipped)]

    def _is_source(self, skipped: TableRecord) -> bool:
        return not skipped.source and skipped.location in self.sources

    @property
    def damaged(self) -> list[TableRecord]:
        """The tables that were read though something is wrong with them."""
        return [table for table in self.read if table.damage]

    @property
    def rows(self) -> int:
        """The rows of all tables that were read."""
        return sum(table.rows for table in self.read)

    @property
    def bytes_per_entry(self) -> float | None:
        """What an entry takes on disk, all else shared out among the entries."""
        return self.bytes / self.entries if self.entries else None

    @property
    def ambiguous(self) -> list[str]:
        """The columns of dates whose cells leave open which number is the day."""
        return [
            f"{table.name}.{column.name}"
            for table in self.read
            for column in table.columns
            if column.role and leaves_day_open(column.reason)
        ]

    @property
    def not_understood(self) -> tuple[int, int]:
        """How many cells that were there could not be read, and in how many columns."""
        counts = [column.not_understood or 0 for table in self.read for column in table.columns]
        return sum(counts), sum(count > 0 for count in counts)

    def find_table(self, name: str) -> TableRecord:
        """Look a table up by name; if it isn't there, offer near names."""
        by_name = {table.name: table for table in self.contents}
        if name in by_name:
            return by_name[name]
        near = near_names(name, by_name)
        hint = f"did you mean {' or '.join(near)}?" if near else f"covary info {self.index} lists them"
        raise TableError(f"{self.index} holds no table {name!r}; {hint}")

    def to_dict(self) -> dict[str, object]:
        """Return the totals as they stand in JSON, and the tables about which there is something to say."""
        totals = {name: getattr(self, name) for name in self.__slots__ if name != "contents"}
        return totals | {
            "bytes_per_entry": self.bytes_per_entry,
            "nothing_to_sketch": len(self.unsketched),
            "tables": len(self.read),
            "rows": self.rows,
            "ambiguous": self.ambiguous,
            "not_understood": self.not_understood[0],
            "skipped": [{"table": t.name, "path": t.location, "reason": t.problem} for t in self.skipped],
            "damaged": [{"table": t.name, "path": t.location, "damage": t.damage} for t in self.damaged],
            "left_out": [{"table": t.name, "what": t.left_out} for t in self.read if t.left_out],
            "remarks": [{"table": t.name, "remarks": t.remarks} for t in self.read if t.remarks],
        }


def describe_index(path: Path) -> IndexSummary:
    """Gather from its files what an index holds."""
    index = StoredSketches.open(path)
    manifest, segments = index.manifest, index.segments
    files = [file for stored in manifest.segments for file in stored.files.values()]
    contents = tuple(read_records(index.tables))
    unsketched = Counter(table.name for table in contents if table.problem is None) - Counter(
        name for segment in segments for name in segment.sketched_tables()
    )
    return IndexSummary(
        index=str(path),
        format=manifest.format,
        size=manifest.config.size,
        aggregates=manifest.config.aggregates,
        hash=manifest.config.hash,
        keys=manifest.config.normaliser,
        sources=manifest.sources,
        segments=len(segments),
        sketches=index.sketch_count,
        entries=sum(segment.entries for segment in segments),
        bytes=(path / MANIFEST).stat().st_size + sum(file.size for file in files),
        unsketched=tuple(unsketched.elements()),
        removed=manifest.excluded,
        contents=contents,
    )
