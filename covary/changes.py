"""What changed in a collection since it was indexed: tables to read, to forget and to leave alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from covary.records import TableRecord
from covary.segmentfiles import Segment
from covary.sources import Listing
from covary.tablesource import TableSource, shown

Identity = tuple[str, str | None]  # a path, and which table in it
KNOWN = ("name", "path", "member", "version", "checksum", "problem", "source")


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table that the index holds: where in the index, and what tells whether it changed."""

    segment: int
    place: int
    name: str
    path: str
    member: str | None
    version: str
    checksum: str | None
    problem: str | None
    source: str

    @property
    def identity(self) -> Identity:
        """What it is known by from one build to the next."""
        return self.path, self.member


@dataclass(frozen=True, slots=True)
class Changes:
    """What to do to an index so that it holds its collection as it is now.

    Attributes:
        read: tables to read, new and changed.
        changed: how many of those the index holds an older version of.
        left_out: what was found and can't be read, as far as the index does not say so already.
        dead: tables that go, by segment: those that are gone, and older versions of those to read.
        removed: how many are gone.
        kept: how many stay as they are.
    """

    read: tuple[TableSource, ...]
    changed: int
    left_out: tuple[TableRecord, ...]
    dead: Mapping[int, tuple[int, ...]]
    removed: int
    kept: int

    @property
    def none(self) -> bool:
        """Whether the index is up to date."""
        return not (self.read or self.left_out or self.dead)


def known_tables(segments: Iterable[tuple[Segment, Sequence[int]]]) -> list[KnownTable]:
    """List the tables that are left in some segments."""
    return [
        KnownTable(number, place, *row)
        for number, (segment, removed) in enumerate(segments)
        for place, row in enumerate(segment.read_tables(KNOWN).iter_rows())
        if place not in set(removed)
    ]


def names_by_source(known: Iterable[KnownTable]) -> dict[str, set[str]]:
    """Return the names of the tables that each source gave."""
    found: dict[str, set[str]] = {}
    for table in known:
        found.setdefault(table.source, set()).add(table.name)
    return found


def compare(listing: Listing, known: Sequence[KnownTable], *, keep_missing: bool = False) -> Changes:
    """Hold what a collection is now against what an index knows of it."""
    present = {table.identity: table for table in listing.tables}
    left_out = {(skipped.path, skipped.reason): skipped for skipped in (*listing.skipped, *listing.unlisted)}
    out_of_reach = {skipped.path for skipped in listing.unlisted}
    dead: dict[int, list[int]] = {}
    current: set[Identity] = set()
    changed = removed = 0
    for old in known:
        table = present.get(old.identity)
        if table is not None and _is_unchanged(old, table):
            current.add(old.identity)
        elif table is not None:
            changed += 1
            dead.setdefault(old.segment, []).append(old.place)
        elif old.problem and (old.path, old.problem) in left_out:
            del left_out[old.path, old.problem]
        elif old.problem is None and (keep_missing or old.source in out_of_reach):
            current.add(old.identity)
        else:
            removed += old.problem is None
            dead.setdefault(old.segment, []).append(old.place)
    return Changes(
        tuple(table for identity, table in present.items() if identity not in current),
        changed,
        tuple(
            TableRecord(skipped.path, skipped.path, problem=skipped.reason, source=skipped.source)
            for skipped in left_out.values()
        ),
        {segment: tuple(places) for segment, places in dead.items()},
        removed,
        len(current),
    )


def _is_unchanged(old: KnownTable, table: TableSource) -> bool:
    if old.name != shown(table.name):  # another table came that would have had its name
        return False
    if table.checksum is not None:
        return table.checksum == old.checksum
    return table.version == old.version != ""
