"""What an index needs besides being built: tables taken out, segments merged."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from covary.build.changes import KnownTable, list_tables
from covary.errors import TableError
from covary.index.check import require_sound, require_whole
from covary.index.commit import Draft, commit, open_draft
from covary.index.history import Change
from covary.index.manifest import Manifest, read_manifest, segment_folder
from covary.index.merge import (
    Part,
    count_entries_by_table,
    entries_per_segment,
    merge_segments,
    take_tables,
)
from covary.index.segment_files import Segment, StoredSegment, open_segment, write_segment
from covary.index.segment_layout import build_segment
from covary.progress import OnCount
from covary.sketching.hashing import HashScheme
from covary.tables.discover import name_source
from covary.tables.local import matches
from covary.tables.location import Location

MOST_SMALL = 10  # segments, before they are merged
MOST_DEAD = 0.5  # of a segment's tables, before it is written anew without them


def write_segments(segments: Iterable[Segment], draft: Draft) -> tuple[StoredSegment, ...]:
    """Write new segments, at least one: an index of nothing is an index."""
    stored = tuple(write_segment(segment, draft.folder) for segment in segments)
    return stored or (write_segment(build_segment([]), draft.folder),)


def mark_removed(
    segments: Sequence[StoredSegment], dead: Mapping[int, Sequence[int]]
) -> tuple[StoredSegment, ...]:
    """Mark tables as removed, by segment and row."""
    return tuple(
        replace(stored, removed=tuple(sorted({*stored.removed, *dead.get(number, ())})))
        for number, stored in enumerate(segments)
    )


def merge_small_segments(
    segments: Sequence[StoredSegment], draft: Draft, scheme: HashScheme
) -> tuple[StoredSegment, ...]:
    """Merge segments where small ones have become many, or hold too much that is dead; leave the others.

    A segment that is merged is at most a quarter as large as one may be, so that a table is written anew a
    few times at most, however long the index lives.
    """
    # Without those that hold no table: the same content may have come again, and with it the same name.
    parts = [(stored, part) for stored in segments if (part := _open_part(stored, draft)).tables.size]
    weights = {stored.name: int(count_entries_by_table(part).sum()) for stored, part in parts}
    room = entries_per_segment(sum(weights.values()))
    chosen = {stored.name for stored, part in parts if _is_mostly_dead(stored, part)}
    small = {name for name, weight in weights.items() if weight <= room // 4}
    if len(small) > MOST_SMALL:
        chosen |= small
    if parts and not chosen:
        return tuple(stored for stored, _ in parts)
    for stored, _ in parts:
        if stored.name in chosen and not (draft.folder / stored.name).exists():
            require_sound(draft.index, stored, scheme)  # or damage would be copied
    merging = (part for stored, part in parts if stored.name in chosen)
    new = write_segments(merge_segments(merging, scheme, room), draft)
    return (*(stored for stored, _ in parts if stored.name not in chosen), *new)


def _open_part(stored: StoredSegment, draft: Draft) -> Part:
    new = draft.folder / stored.name
    folder = new if new.exists() else segment_folder(draft.index, stored)
    return take_tables(open_segment(folder, stored), stored.removed)


def _is_mostly_dead(stored: StoredSegment, part: Part) -> bool:
    return len(stored.removed) > MOST_DEAD * part.segment.table_list.height


@contextmanager
def _open_to_change(index: str | Path) -> Iterator[tuple[Draft, Manifest]]:
    """Begin a change to an index that is there."""
    read_manifest(Path(index))  # it must be one
    with open_draft(Path(index).absolute()) as draft:
        yield draft, read_manifest(draft.index)


def compact_index(index: str | Path, on_progress: OnCount | None = None) -> Change:
    """Write an index anew without what was removed, in as few segments as may be: as if it were built now.

    Args:
        index: its folder.
        on_progress: called with how many tables are done, of how many.
    """
    started = time.time()
    with _open_to_change(index) as (draft, manifest):
        for stored in manifest.segments:
            require_sound(draft.index, stored, manifest.config.scheme)  # or damage would be copied
        parts = [_open_part(stored, draft) for stored in manifest.segments]
        known = _list_known(draft, manifest)
        segments = _report_tables(merge_segments(parts, manifest.config.scheme), len(known), on_progress)
        compacted = replace(manifest, segments=write_segments(segments, draft))
        kept = sum(table.problem is None for table in known)
        change = Change.of("compact", compacted, started, kept=kept, skipped=len(known) - kept)
        if compacted != manifest:
            commit(draft, compacted, change)
    return change


def _report_tables(segments: Iterable[Segment], total: int, on_progress: OnCount | None) -> Iterator[Segment]:
    done = 0
    for segment in segments:
        yield segment
        done += segment.tables.height
        if on_progress:
            on_progress(done, total)


def remove_tables(
    index: str | Path, tables: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
) -> Change:
    """Take tables out of an index: by name or path, by a glob of these, or all of a source.

    A table stays away, though its source holds it, until it is named to `covary index` itself.
    """
    started = time.time()
    wanted = [os.fspath(each) for each in ([tables] if isinstance(tables, str | os.PathLike) else tables)]
    with _open_to_change(index) as (draft, manifest):
        for stored in manifest.segments:
            require_whole(draft.index, stored)
        known = _list_known(draft, manifest)
        names, named = _tell_apart(wanted, known, manifest.sources)
        sources = {each for each in manifest.sources if any(_is_in(each, source) for source in named)}
        chosen = {table for name in names for table in _find_named(name, known, draft.index)}
        going = [table for table in known if {table.source, table.path} & sources or table in chosen]
        dead: dict[int, list[int]] = {}
        for table in going:
            dead.setdefault(table.segment, []).append(table.row)
        staying = mark_removed(manifest.segments, dead)
        by_hand = {table.location for table in going if table.source and table.source not in sources}
        smaller = replace(
            manifest,
            segments=merge_small_segments(staying, draft, manifest.config.scheme),
            sources=tuple(source for source in manifest.sources if source not in sources),
            excluded=tuple(sorted({*manifest.excluded, *by_hand})),
        )
        gone = [table.name for table in going if table.problem is None]
        kept = sum(table.problem is None for table in known) - len(gone)
        skipped = len(known) - len(going) - kept
        change = Change.of("remove", smaller, started, {"removed": gone}, kept=kept, skipped=skipped)
        commit(draft, smaller, change)
    return change


def _list_known(draft: Draft, manifest: Manifest) -> list[KnownTable]:
    folders = [segment_folder(draft.index, stored) for stored in manifest.segments]
    removed = [stored.removed for stored in manifest.segments]
    return list_tables(zip(map(open_segment, folders), removed, strict=True))


def _is_in(source: str, folder: str) -> bool:
    """Whether a source is one that was named, or lies in it."""
    return f"{source.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _tell_apart(
    wanted: Sequence[str], known: Sequence[KnownTable], sources: Sequence[str]
) -> tuple[list[str], set[str]]:
    """Tell names of tables from sources; what is both is a table."""
    known_names = {table.name for table in known if table.problem is None}
    remembered = {source.rstrip("/") for source in sources}
    names = [
        each for each in wanted if each in known_names or name_source(each).rstrip("/") not in remembered
    ]
    return names, {name_source(each) for each in wanted if each not in names}


def _find_named(name: str, known: Sequence[KnownTable], index: Path) -> list[KnownTable]:
    """Return the tables of a name or a path, or if there is none, of a glob of these."""
    path = name_source(name)
    named = [table for table in known if table.name == name or path in {table.path, table.location}]
    named = named or [
        table
        for table in known
        if fnmatchcase(table.name, name) or ("/" in name and matches(table.path, path))
    ]
    if not named:
        wanted = Location(name).shown
        raise TableError(
            f"{index} holds no table and no source {wanted!r}; covary info {index} lists its tables"
        )
    return named
