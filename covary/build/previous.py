"""What an index holds when a build begins: segments that are whole, and the tables of those that are not."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from covary.build.changes import KnownTable, list_tables
from covary.errors import DamagedIndex
from covary.index.check import require_sound, require_whole
from covary.index.manifest import Manifest, segment_folder
from covary.index.segment_files import Segment, StoredSegment, open_description, open_segment
from covary.index.table_records import TableRecord
from covary.tables.discover import Listing

DAMAGED = "it was damaged in the index and is not to be found in its source now"


@dataclass(frozen=True, slots=True)
class PreviousIndex:
    """What can be kept of an index: its whole segments, with the tables that they hold.

    The manifest of a new index says what it is to be. `damaged` are the tables of all other segments, as far
    as these can be read.
    """

    folder: Path
    manifest: Manifest
    segments: tuple[StoredSegment, ...]
    tables: tuple[KnownTable, ...]
    damaged: tuple[KnownTable, ...]

    def lost_tables(self, listing: Listing) -> tuple[TableRecord, ...]:
        """Return records of the tables that were damaged and can't be read again now."""
        present = {table.identity for table in listing.tables}
        return tuple(
            TableRecord(table.name, table.path, problem=DAMAGED, source=table.source)
            for table in self.damaged
            if table.identity not in present
        )


def open_previous_index(index: Path, manifest: Manifest, *, repair: bool) -> PreviousIndex:
    """Open the segments of an index; damage is refused, unless it is to be repaired."""
    whole: list[tuple[StoredSegment, Segment]] = []
    damaged: list[StoredSegment] = []
    for stored in manifest.segments:
        try:
            if repair:
                require_sound(index, stored, manifest.config.scheme)
            else:
                require_whole(index, stored)
            segment = open_segment(segment_folder(index, stored), stored)
            _ = segment.table_list  # which shows whether they can be read
        except DamagedIndex as problem:
            if not repair:
                raise DamagedIndex(f"{problem}; covary index --into {index} --repair mends it") from None
            damaged.append(stored)
        else:
            whole.append((stored, segment))
    segments = tuple(stored for stored, _ in whole)
    tables = list_tables((segment, stored.removed) for stored, segment in whole)
    return PreviousIndex(index, manifest, segments, tuple(tables), tuple(_list_damaged(damaged, index)))


def _list_damaged(damaged: Sequence[StoredSegment], index: Path) -> list[KnownTable]:
    tables: list[KnownTable] = []
    for stored in damaged:
        with suppress(DamagedIndex, OSError):
            described = open_description(segment_folder(index, stored), stored)
            tables += [table for table in list_tables([(described, stored.removed)]) if not table.problem]
    return tables
