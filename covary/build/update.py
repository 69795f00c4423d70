"""Sources to an index: find what changed, plan, sketch on Spark, merge, commit."""

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from covary.build.changes import Changes, compare, names_to_keep, same_as_before, with_emptied_sources
from covary.build.previous import Held, held_by
from covary.build.settings import AskedSettings
from covary.build.sources import (
    Source,
    looking_for_tables,
    removed_by_hand,
    sources_of,
    sources_there,
    without_index,
    without_removed,
)
from covary.build.trust import remember_given, require_given
from covary.build.upkeep import in_few_segments, without_tables, written
from covary.errors import CannotWrite, NoSuchColumn, NoTables
from covary.index.commit import building, commit
from covary.index.history import Change
from covary.index.manifest import Manifest, read_manifest, refuse_url
from covary.index.merge import all_of, merged
from covary.index.segment_files import Segment, open_segment, write_part
from covary.index.segment_layout import build_segment
from covary.pipeline.limits import DEFAULT_LIMITS, Limits, limits_of
from covary.pipeline.look_apart import looking_apart
from covary.pipeline.plan import PARTS, PROGRESS, Settings
from covary.pipeline.progress_log import OnProgress, watching
from covary.pipeline.reading_process import apart
from covary.pipeline.spark_runner import plan_apart, run_on_spark, sketch_spark_tables
from covary.pipeline.session import session
from covary.query.ask import Index
from covary.query.open_segment import compile_ahead
from covary.sketching.key_choice import split_key
from covary.sketching.key_columns import SEPARATOR
from covary.sketching.open_table import KeyName
from covary.tables.databases import held_in_one_state
from covary.tables.discover import find_tables, source_name, with_checksums
from covary.tables.source import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session = Callable[[], "SparkSession"]  # starts one, if none is up
LEFT_OUT = "left out"
SKIPPED_SHOWN = 3


class Refresh(NamedTuple):
    """What of an index that is there is to be trusted and kept."""

    fresh: bool = False
    keep_missing: bool = False
    checksum: bool = False
    repair: bool = False
    trust_sources: bool = False


class Where(NamedTuple):
    """The Spark to run on: a session, a master to start one on, or a Connect server."""

    spark: "SparkSession | None" = None
    master: str | None = None
    remote: str | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """An index as a build left it, and what was done to it.

    Attributes:
        index: as it is now.
        change: what was done.
        confirmed: its sources that were never given on this machine, and were confirmed now.
        forgotten: a sentence, if the sources given or confirmed now could not be remembered.
    """

    index: Index
    change: Change
    confirmed: tuple[str, ...]
    forgotten: str | None


def build_index(
    sources: Source | Sequence[Source] | None,
    into: Source,
    spark: "SparkSession | None" = None,
    *,
    size: int | None = None,
    aggregates: str | Sequence[str] | None = None,
    keys: Sequence[KeyName] | None = None,
    values: Sequence[str] | None = None,
    hash: str | None = None,
    key_text: str | None = None,
    fresh: bool = False,
    keep_missing: bool = False,
    checksum: bool = False,
    repair: bool = False,
    trust_sources: bool = False,
    master: str | None = None,
    remote: str | None = None,
    table_timeout: float | None = None,
    memory: str | int | None = None,
    on_progress: OnProgress | None = None,
) -> Index:
    """Make an index, or bring one up to date: only tables that are new or changed are read, on Spark.

    A table that can't be read is skipped and named in `Index.tables`. The index changes as the last step; a
    build that fails leaves it as it was.

    Args:
        sources: files, folders (walked recursively), globs, and URLs of files or databases; one table of a
            database is named after a #, as in shop.sqlite#orders. They are added to those that the index was
            made from. None: only those.
        into: the folder of the index.
        spark: a session to run on; without one a local session is started, and stopped at the end.
        size: keys per sketch; None: as the index was made, or 1,024.
        aggregates: how rows of one key become one number; several give several sketches per pair.
        keys: only these columns are keys; "date,zip" or ["date", "zip"] is one key.
        values: only these columns are numbers.
        hash: "xxhash64", or "murmur3" for the paper's 32 bits.
        key_text: "canonical", or "exact" for raw text; None: exact with murmur3, canonical otherwise.
        fresh: forget what the index holds, and start over.
        keep_missing: keep tables that are gone from their source.
        checksum: tell by their content whether files changed, not by size and time.
        repair: check every file of the index first, and read tables again that were damaged.
        trust_sources: read, from now on, sources too that the index names and you never gave it on this
            machine; without it they are refused, as an index may come from anybody.
        master: the Spark master to start a session on, "local[*]" by default.
        remote: the Spark Connect server to run on.
        table_timeout: the seconds that a table may take, or each part of a large one; one that takes longer
            is skipped. None: ten minutes (half an hour for a view), and more for a larger table.
        memory: what a worker may take to read a table, such as "1.5GB", the default; a table that needs more
            is skipped.
        on_progress: called several times a second while tables are being read.
    """
    named = [sources] if isinstance(sources, str | os.PathLike) else list(sources or ())
    asked = AskedSettings(size, aggregates, keys, values, hash, key_text)
    refresh = Refresh(fresh, keep_missing, checksum, repair, trust_sources)
    limits = limits_of(table_timeout, memory)
    where = Where(spark, master, remote)
    update = update_index(named, into, asked, refresh, where, on_progress, limits)
    if update.forgotten:
        warnings.warn(update.forgotten.replace("--trust-sources", "trust_sources=True"), stacklevel=2)
    return update.index


def update_index(
    named: Sequence[Source],
    into: Source,
    asked: AskedSettings,
    refresh: Refresh,
    where: Where,
    on_progress: OnProgress | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Update:
    """Do what `build_index` does, and tell what that was."""
    started = time.time()
    refuse_url(Path(into))
    folder = Path(into).absolute()
    with building(folder) as draft, ExitStack() as sessions:
        running = cache(lambda: sessions.enter_context(session(*where)))
        current = None if refresh.fresh or draft.before is None else read_manifest(folder)
        settings = asked.of(current, folder) if current else asked.of_a_new_index()
        places = sources_of(named, settings, folder)
        given = {source_name(os.fspath(source)) for source in named}
        confirmed = require_given(places, given, folder, confirmed=refresh.trust_sources)
        held = held_by(folder, settings, repair=refresh.repair)
        away = removed_by_hand(named, settings)
        changes = _look(folder, places, away, settings, held, refresh, limits, running)
        tasks = Settings(settings.config, settings.keys, settings.values, str(draft.folder), limits)
        new = _read(changes, tasks, running, on_progress)
        if same_as_before(changes, new, held.tables):
            still_bad = changes.still_bad + sum(segment.places.height for segment in new)
            new, changes = [], replace(changes, dead={}, still_bad=still_bad)
        if current is None:
            _refuse_emptiness(new, tasks)
        segments = without_tables(held.segments, changes.dead)
        if new:
            segments += written(merged(map(all_of, new), settings.config.scheme), draft)
        if held.segments:
            segments = in_few_segments(segments, draft, settings.config.scheme)
        manifest = replace(settings, segments=segments, sources=tuple(places), excluded=tuple(sorted(away)))
        change = _change(changes, new, manifest, started)
        # Not sooner: whoever confirms sources is shown them when the build is done, and not if it fails.
        forgotten = remember_given(places, folder)
        if manifest.to_json() != draft.before or len(held.segments) < len(settings.segments):
            commit(draft, manifest, change)
    return Update(Index.open(folder), change, confirmed, forgotten)


def _look(
    index: Path,
    places: Mapping[str, str],
    away: Set[str],
    settings: Manifest,
    held: Held,
    refresh: Refresh,
    limits: Limits,
    running: "Session",
) -> Changes:
    """Find the tables of all sources, and hold them against what the index holds."""
    # To repair is to look everywhere: it may not be known any more what a source held.
    there = places if refresh.repair else sources_there(places, settings, held.tables)
    keep = names_to_keep(held.tables, there, keep_missing=refresh.keep_missing)
    with looking_for_tables():
        look = looking_apart(apart(), limits)
        listing = find_tables(list(there.values()), settings.sources, keep, running, look)
    listing = with_emptied_sources(without_index(listing, index), held.tables, there)
    listing = without_removed(away, listing, places)
    if refresh.checksum:
        listing = with_checksums(listing)
    changes = compare(
        listing,
        held.tables,
        keep_missing=refresh.keep_missing,
        try_again=lambda problem: refresh.repair or limits.allow_more(problem),
    )
    return replace(changes, left_out=(*changes.left_out, *held.lost(listing)))


def _read(
    changes: Changes,
    settings: Settings,
    running: "Session",
    on_progress: OnProgress | None,
) -> list[Segment]:
    """Read the tables that are new or changed; return the segments that the tasks made of them."""
    scratch = Path(settings.scratch)
    for name in (PARTS, PROGRESS):
        (scratch / name).mkdir()
    read_by_spark = [table for table in changes.read if table.format == SPARK]
    with held_in_one_state([table for table in changes.read if table.format != SPARK]) as tables:
        todo = plan_apart(tables, settings)
        names, left_out = todo.segments, [*todo.settled, *changes.left_out]
        with watching(scratch / PROGRESS, len(changes.read) - len(todo.settled), on_progress):
            if todo.groups or todo.large or read_by_spark:
                compiling = Thread(target=compile_ahead, daemon=True)
                spark = running()
                compiling.start()  # this process has nothing else to do while Spark works
                run_on_spark(todo, settings, spark)
                if read_by_spark:
                    more = sketch_spark_tables(read_by_spark, len(todo.large), settings, spark)
                    names, left_out = [*names, *more[0]], [*left_out, *more[1]]
                compiling.join()
    if left_out:
        write_part(build_segment([(record, []) for record in left_out]), scratch / PARTS / LEFT_OUT)
        names = [*names, LEFT_OUT]
    parts = [scratch / PARTS / name for name in names]
    missing = sum(not part.exists() for part in parts)
    if missing:
        raise CannotWrite(
            f"{missing} of {len(parts)} parts of the index did not arrive in {scratch.parent}; "
            f"nothing was changed, run it again"
        )
    return [open_segment(part) for part in parts]


def _change(changes: Changes, new: Sequence[Segment], manifest: Manifest, started: float) -> Change:
    tables = [row for segment in new for row in segment.places.select("name", "problem").iter_rows()]
    read = {name for name, problem in tables if problem is None}
    touched = {
        "new": sorted(read.difference(changes.replaced)),
        "changed": sorted(read.intersection(changes.replaced)),
        "removed": changes.removed,
        "lost": sorted({*changes.replaced, *changes.lost}.difference(read)),
    }
    skipped = changes.still_bad + len(tables) - len(read)
    return Change.of("index", manifest, started, touched, kept=changes.kept, skipped=skipped)


def _refuse_emptiness(segments: Sequence[Segment], settings: Settings) -> None:
    """Say why an index would hold nothing, or lack a column asked for, and leave the previous one alone."""
    tables = pl.concat([segment.tables for segment in segments])
    columns = (
        tables["columns"].explode().drop_nulls().struct.field("name").unique(maintain_order=True).to_list()
    )
    wanted = [column for key in settings.keys for column in split_key(key, columns) or key.split(SEPARATOR)]
    for name in (*map(str.strip, wanted), *settings.values):
        if columns and name not in columns:
            raise NoSuchColumn(name, f"any of the {tables.height} tables", columns)
    if any(segment.sketch_count for segment in segments):
        return
    problems = tables.filter(pl.col("problem").is_not_null())
    if problems.height == tables.height:
        first = problems.row(0, named=True)
        none = f"none of the {tables.height:,} tables can be read; " if tables.height > 1 else ""
        raise NoTables(f"{none}{first['path']}: {first['problem']}")
    left = tables.height - problems.height
    none = f"none of the {left:,} tables read has" if left > 1 else "the one table read has not"
    advice = "both a key column and a number column; name them with --key and --value"
    raise NoTables(f"{none} {advice}{_skipped_words(problems)}")


def _skipped_words(problems: pl.DataFrame) -> str:
    """Name some of the tables that were skipped, and why."""
    if problems.is_empty():
        return ""
    first = problems.select("path", "problem").head(SKIPPED_SHOWN)
    named = [f"{path}: {problem}" for path, problem in first.iter_rows()]
    more = f"; and {problems.height - len(named):,} more" if problems.height > len(named) else ""
    return f"; {problems.height:,} skipped: {'; '.join(named)}{more}"
