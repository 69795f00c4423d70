"""What an index is made from: its sources, those named now and those remembered, and their tables."""

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path

from covary.build.changes import KnownTable
from covary.errors import CovaryError, MachineFault, NoTables
from covary.index.manifest import Manifest
from covary.secrets import Secrets
from covary.tables.discover import Listing, name_source
from covary.tables.local import matches
from covary.tables.location import Location
from covary.tables.skipped import Why
from covary.tables.source import locate_table

Source = str | os.PathLike[str]


def name_sources(sources: Sequence[Source]) -> dict[str, str]:
    """Return the sources that are given now, by the names that an index remembers them by."""
    given: dict[str, str] = {}
    for source in [os.fspath(each) for each in sources]:
        name = name_source(source)
        if Secrets.of(given.setdefault(name, source)) != Secrets.of(source):
            raise CovaryError(f"{name} is named twice, each time with another user or password; name it once")
    return given


def gather_sources(given: Mapping[str, str], manifest: Manifest, folder: Path) -> dict[str, str]:
    """Return every source of an index by its name, as it was given now or before."""
    if not (given or manifest.sources):
        raise CovaryError(f"name what to index: covary index SOURCE... --into {folder}")
    remembered = {source: source for source in manifest.sources}
    return dict(sorted({**remembered, **given}.items()))


def leave_out_gone_sources(
    sources: Mapping[str, str], manifest: Manifest, known: Sequence[KnownTable]
) -> dict[str, str]:
    """Leave out files named before that are gone though their folder is not: nobody unmounted them."""
    folders = {table.source for table in known if table.path != table.source}
    out_of_reach = {table.path for table in known if not table.source}
    gone = {source for source in {*manifest.sources} - folders - out_of_reach if _is_gone(source)}
    return {name: source for name, source in sources.items() if name not in gone}


@contextmanager
def name_disk_faults() -> Iterator[None]:
    """Tell a failure of a source's disk from one of the index's."""
    try:
        yield
    except OSError as problem:
        raise MachineFault(
            f"can't look for tables: {problem.strerror or problem}; no index was changed"
        ) from problem


def _is_gone(source: str) -> bool:
    return not (Location(source).is_url or os.path.lexists(source)) and os.path.isdir(os.path.dirname(source))


def find_removed_by_hand(given: Mapping[str, str], manifest: Manifest) -> set[str]:
    """Return the tables that were removed by hand and are not named again now.

    A source that the index has is named every night; one that it has not is named to have its tables.
    """
    new = given.keys() - manifest.sources
    return {
        table
        for table in manifest.excluded
        if table not in given and not any(_holds(source, table) for source in new)
    }


def _holds(source: str, table: str) -> bool:
    """Whether a source is a table's file or database, a folder around it, or a glob of these."""
    return table.startswith(f"{source}#") or matches(table, source)


def leave_out_index(listing: Listing, index: Path) -> Listing:
    """Leave out the index itself from what was skipped, where it lies among its tables."""
    folder = os.path.realpath(index)
    others = [
        each
        for each in listing.skipped
        if each.reason.code is not Why.AN_INDEX or os.path.realpath(each.path) != folder
    ]
    return listing._replace(skipped=others)


def leave_out_removed(away: Set[str], listing: Listing, sources: Mapping[str, str]) -> Listing:
    """Leave out what was removed by hand; there must have been a table at all."""
    if not listing.tables:
        reasons = "".join(f"; {each.path}: {each.reason.text}" for each in listing.skipped[:3])
        raise NoTables(f"no tables in {', '.join(sources)}{reasons}; no index was changed")
    return listing._replace(
        tables=[table for table in listing.tables if locate_table(*table.identity) not in away],
        skipped=[each for each in listing.skipped if each.path not in away],
    )
