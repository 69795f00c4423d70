"""What changed in a collection since it was indexed: tables to read, to forget and to leave alone.

A table is `dead` when its sketches go: because it is `removed` (no longer in its source), `lost` (still
there, and no table any more), or `replaced` by a newer version. What can't be looked into keeps its tables.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from covary.build.options import BuildOptions
from covary.index.segment_files import Segment
from covary.index.table_records import TableRecord
from covary.tables.discover import KnownNames, Listing
from covary.tables.local import matches
from covary.tables.location import writable
from covary.tables.skipped import Reason, SkippedSource, Why
from covary.tables.source import Identity, TableSource, locate_table

KNOWN = ("name", "path", "member", "version", "checksum", "problem", "source")


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table that the index holds: where in the index, and what tells whether it changed."""

    segment: int
    row: int
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

    @property
    def location(self) -> str:
        """Where it is, and which table of what is there."""
        return locate_table(self.path, self.member)


@dataclass(frozen=True, slots=True)
class Changes:
    """What to do to an index so that it holds its collection as it is now.

    Attributes:
        read: tables to read, new and changed.
        left_out: what is there and can't be read, as far as the index does not say so already.
        dead: tables that go, by segment: those that are gone, and older versions of those to read.
        replaced: names of those that the index holds an older version of.
        removed: names of those that are gone.
        lost: names of those that are there, and are no tables any more.
        kept: how many stay as they are.
        still_bad: how many could not be read before and are as they were.
    """

    read: tuple[TableSource, ...]
    left_out: tuple[TableRecord, ...]
    dead: Mapping[int, tuple[int, ...]]
    replaced: tuple[str, ...]
    removed: tuple[str, ...]
    lost: tuple[str, ...]
    kept: int
    still_bad: int


def list_tables(segments: Iterable[tuple[Segment, Sequence[int]]]) -> list[KnownTable]:
    """List the tables that are left in some segments."""
    known = []
    for number, (segment, removed) in enumerate(segments):
        gone = set(removed)
        rows = enumerate(segment.table_list.select(KNOWN).iter_rows())
        known += [KnownTable(number, row, *values) for row, values in rows if row not in gone]
    return known


def choose_names_to_keep(
    known: Sequence[KnownTable], looked_into: Collection[str], keep_missing: bool, listing: Listing
) -> KnownNames | None:
    """Choose the names by which tables go on to be known, if a listing of the sources lacks some."""
    listing = add_emptied_sources(listing, known, looked_into)
    present = {table.identity for table in listing.tables}
    settled = {old.identity: old.name for old in known if old.problem is None}
    absent = [old for old in known if old.problem is None and old.identity not in present]
    taken = [old.name for old in absent if keep_missing or _is_out_of_reach(old, listing)]
    return KnownNames(taken, settled) if taken else None


def add_emptied_sources(
    listing: Listing, known: Sequence[KnownTable], looked_into: Collection[str]
) -> Listing:
    """Treat a folder, a bucket or a database that held tables and is empty now as one out of reach.

    A disk that is not mounted looks the same. A table that was named itself is gone when it is gone.
    """
    present = {table.identity for table in listing.tables}
    alive = {table.source for table in listing.tables}
    alive |= {old.source for old in known if old.identity in present}
    alive |= {each.path for each in listing.unlisted}
    good = [old for old in known if old.problem is None]
    held = dict.fromkeys(old.source for old in good if _is_one_of_many(old))
    # Tables of a source within another, as of data/ and data/2013, are known as those of data/.
    for source in sorted({*looked_into} - alive - held.keys() - {old.path for old in good}):
        below = [old for old in good if matches(old.path, source)]
        if below and not any(old.identity in present for old in below):
            held[source] = None
    emptied = [
        SkippedSource(source, Reason(Why.HELD_TABLES))
        for source in held
        if source in looked_into and source not in alive
    ]
    return listing._replace(unlisted=[*listing.unlisted, *emptied])


def _is_one_of_many(old: KnownTable) -> bool:
    if old.source.startswith(f"{old.path}#"):
        return False
    return old.path != old.source or old.member is not None


def _is_out_of_reach(old: KnownTable, listing: Listing) -> bool:
    """Whether a table may still be there: its source, or its folder, could not be looked into."""
    if any(old.source == each.path or matches(old.path, each.path) for each in listing.unlisted):
        return True
    return any(each.may_hold and f"{old.path}/".startswith(f"{each.path}/") for each in listing.skipped)


def compare(listing: Listing, known: Sequence[KnownTable], options: BuildOptions) -> Changes:
    """Compare what a collection is now with what an index knows of it."""
    present = {table.identity: table for table in listing.tables}
    left_out = {
        (skipped.path, skipped.reason.text): skipped for skipped in (*listing.skipped, *listing.unlisted)
    }
    dead: dict[int, list[int]] = {}
    current: set[Identity] = set()
    replaced: list[str] = []
    removed: list[str] = []
    lost: list[str] = []
    bad = {each.path for each in listing.skipped}
    kept = still_bad = 0
    for old in known:
        table = present.get(old.identity)
        if table is not None and _is_unchanged(old, table, options):
            current.add(old.identity)
            kept += old.problem is None
            still_bad += old.problem is not None
        elif table is not None:
            if old.problem is None:
                replaced.append(writable(table.name))
            dead.setdefault(old.segment, []).append(old.row)
        elif old.problem and (old.path, old.problem) in left_out:
            del left_out[old.path, old.problem]
            still_bad += 1
        elif old.problem is None and (options.keep_missing or _is_out_of_reach(old, listing)):
            current.add(old.identity)
            kept += 1
        else:
            if old.problem is None:
                (lost if old.path in bad else removed).append(old.name)
            dead.setdefault(old.segment, []).append(old.row)
    return Changes(
        tuple(table for identity, table in present.items() if identity not in current),
        tuple(
            TableRecord(skipped.path, skipped.path, problem=skipped.reason.text, source=skipped.source)
            for skipped in left_out.values()
        ),
        {segment: tuple(rows) for segment, rows in dead.items()},
        tuple(replaced),
        tuple(removed),
        tuple(lost),
        kept,
        still_bad,
    )


def _is_unchanged(old: KnownTable, table: TableSource, options: BuildOptions) -> bool:
    # A name changes when another table comes that would have had it.
    if (old.name, old.source) != (writable(table.name), table.source):
        return False
    if old.problem and (not old.version or options.repair or options.limits.allow_more(old.problem)):
        return False  # it may be readable now, as it is
    if table.checksum is not None:
        return table.checksum == old.checksum
    return table.version == old.version != ""


def is_same_as_before(changes: Changes, new: Sequence[Segment], known: Sequence[KnownTable]) -> bool:
    """Whether all that was read were tables that could not be read before either, for the same reasons."""
    compared = ("name", "path", "member", "problem", "version")
    read = {row for segment in new for row in segment.table_list.select(compared).iter_rows()}
    tried = {
        (old.name, *old.identity, old.problem, old.version): (old.segment, old.row)
        for old in known
        if old.problem
    }
    if not read or not read <= tried.keys():
        return False
    dead = {(segment, row) for segment, rows in changes.dead.items() for row in rows}
    return dead <= {tried[row] for row in read}
