"""Sources to an index: find what changed, plan, sketch on Spark, merge, commit."""

import os
import time
import warnings
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import polars as pl

from covary.build.changes import (
    Changes,
    add_emptied_sources,
    choose_names_to_keep,
    compare,
    is_same_as_before,
)
from covary.build.options import BuildOptions
from covary.build.previous import PreviousIndex, open_previous_index
from covary.build.sources import (
    Source,
    find_removed_by_hand,
    gather_sources,
    leave_out_gone_sources,
    leave_out_index,
    leave_out_removed,
    name_disk_faults,
    name_sources,
)
from covary.build.trust import remember_given, require_given
from covary.build.upkeep import mark_removed, merge_small_segments, write_segments
from covary.errors import CannotWrite, NoSuchColumn, NoTables
from covary.index.commit import commit, open_draft
from covary.index.history import Change
from covary.index.manifest import Manifest, read_manifest, refuse_url
from covary.index.merge import merge_segments, take_tables
from covary.index.segment_files import Segment, open_segment, write_part
from covary.index.segment_layout import build_segment
from covary.pipeline.limits import Limits, parse_limits
from covary.pipeline.look_apart import look_in_processes
from covary.pipeline.plan import PARTS, PROGRESS, TaskSettings
from covary.pipeline.progress_log import report_progress
from covary.pipeline.reading_process import open_processes
from covary.pipeline.runner import Runner, open_runner
from covary.pipeline.spark_tables import sketch_spark_tables
from covary.pipeline.tasks import plan_apart
from covary.progress import OnProgress
from covary.query.ask import Index
from covary.query.open_segment import compile_ahead
from covary.sketching.key_choice import split_key
from covary.sketching.key_columns import SEPARATOR
from covary.sketching.open_table import KeyName
from covary.tables.databases import hold_in_one_state
from covary.tables.discover import add_checksums, find_tables
from covary.tables.source import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEFT_OUT = "left out"
SKIPPED_SHOWN = 3
LOOK_AT_ONCE = 4  # files by URL: each is some requests away


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
    runner: Runner | str | None = None,
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
    """Make an index, or bring one up to date: only tables that are new or changed are read.

    A table that can't be read is skipped and named in `Index.tables`. The index changes as the last step; a
    build that fails leaves it as it was.

    Args:
        sources: files, folders (walked recursively), globs, and URLs of files or databases; one table of a
            database is named after a #, as in shop.sqlite#orders. They are added to those that the index was
            made from. None: only those.
        into: the folder of the index.
        spark: a session to run on; without one a local session is started, and stopped at the end.
        runner: "spark", or "process" to read the tables on this machine without Spark; None: Spark, where it
            is installed and has its Java.
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
    options = BuildOptions(
        size=size,
        aggregates=aggregates,
        keys=keys,
        values=values,
        hash=hash,
        key_text=key_text,
        fresh=fresh,
        keep_missing=keep_missing,
        checksum=checksum,
        repair=repair,
        trust_sources=trust_sources,
        runner=runner,
        spark=spark,
        master=master,
        remote=remote,
        limits=parse_limits(table_timeout, memory),
    )
    update = update_index(named, into, options, on_progress)
    if update.forgotten:
        warnings.warn(update.forgotten.replace("--trust-sources", "trust_sources=True"), stacklevel=2)
    return update.index


def update_index(
    named: Sequence[Source], into: Source, options: BuildOptions, on_progress: OnProgress | None = None
) -> Update:
    """Do what `build_index` does, and tell what that was."""
    started = time.time()
    refuse_url(Path(into))
    folder = Path(into).absolute()
    with (
        open_draft(folder) as draft,
        open_runner(options.runner, options.spark, options.master, options.remote) as runner,
    ):
        current = None if options.fresh or draft.before is None else read_manifest(folder)
        manifest = options.require_same(current, folder) if current else options.new_manifest()
        given = name_sources(named)
        sources = gather_sources(given, manifest, folder)
        confirmed = require_given(sources, given, folder, confirmed=options.trust_sources)
        previous = open_previous_index(folder, manifest, repair=options.repair)
        away = find_removed_by_hand(given, manifest)
        changes = _find_changes(sources, away, previous, options, runner)
        new = _read_tables(changes, previous.manifest, draft.folder, options.limits, runner, on_progress)
        if is_same_as_before(changes, new, previous.tables):
            still_bad = changes.still_bad + sum(segment.table_list.height for segment in new)
            new, changes = [], replace(changes, dead={}, still_bad=still_bad)
        if current is None:
            _refuse_emptiness(new, manifest)
        segments = mark_removed(previous.segments, changes.dead)
        if new:
            segments += write_segments(merge_segments(map(take_tables, new), manifest.config.scheme), draft)
        if previous.segments:
            segments = merge_small_segments(segments, draft, manifest.config.scheme)
        updated = replace(manifest, segments=segments, sources=tuple(sources), excluded=tuple(sorted(away)))
        change = _describe_change(changes, new, updated, started)
        # Not sooner: whoever confirms sources is shown them when the build is done, and not if it fails.
        forgotten = remember_given(sources, folder)
        if updated.to_json() != draft.before or len(previous.segments) < len(manifest.segments):
            commit(draft, updated, change)
    return Update(Index.open(folder), change, confirmed, forgotten)


def _find_changes(
    sources: Mapping[str, str],
    away: Set[str],
    previous: PreviousIndex,
    options: BuildOptions,
    runner: Runner,
) -> Changes:
    """List the tables of all sources, and compare them with those that the index holds."""
    known = previous.tables
    # To repair is to look everywhere: it may not be known any more what a source held.
    there = sources if options.repair else leave_out_gone_sources(sources, previous.manifest, known)
    keep = partial(choose_names_to_keep, known, there, options.keep_missing)
    with name_disk_faults(), open_processes(LOOK_AT_ONCE) as processes:
        look = look_in_processes(processes, options.limits)
        listing = find_tables(list(there.values()), previous.manifest.sources, keep, runner.session, look)
    listing = add_emptied_sources(leave_out_index(listing, previous.folder), known, there)
    listing = leave_out_removed(away, listing, sources)
    if options.checksum:
        listing = add_checksums(listing)
    changes = compare(listing, known, options)
    return replace(changes, left_out=(*changes.left_out, *previous.lost_tables(listing)))


def _compile_meanwhile() -> None:
    with suppress(Exception):  # whatever it is, a query meets it again; or this process is ending just now
        compile_ahead()


def _read_tables(
    changes: Changes,
    manifest: Manifest,
    scratch: Path,
    limits: Limits,
    runner: Runner,
    on_progress: OnProgress | None,
) -> list[Segment]:
    """Read the tables that are new or changed; return the segments that the tasks made of them."""
    settings = TaskSettings(manifest.config, manifest.keys, manifest.values, str(scratch), limits)
    for name in (PARTS, PROGRESS):
        (scratch / name).mkdir()
    read_by_spark = [table for table in changes.read if table.format == SPARK]
    with hold_in_one_state([table for table in changes.read if table.format != SPARK]) as tables:
        plan = plan_apart(tables, settings)
        names, left_out = plan.segments, [*plan.settled, *changes.left_out]
        with report_progress(scratch / PROGRESS, len(changes.read) - len(plan.settled), on_progress):
            if plan.groups or plan.large or read_by_spark:
                compiling = Thread(target=_compile_meanwhile, daemon=True)
                compiling.start()  # this process has nothing else to do while others read
                runner.run(plan, settings)
                if read_by_spark:
                    first, session = len(plan.large), runner.session()
                    segments, unreadable = sketch_spark_tables(read_by_spark, first, settings, session)
                    names += segments
                    left_out += unreadable
                compiling.join()
    if left_out:
        write_part(build_segment([(record, []) for record in left_out]), scratch / PARTS / LEFT_OUT)
        names.append(LEFT_OUT)
    parts = [scratch / PARTS / name for name in names]
    missing = sum(not part.exists() for part in parts)
    if missing:
        raise CannotWrite(
            f"{missing} of {len(parts)} parts of the index did not arrive in {scratch.parent}; "
            f"nothing was changed, run it again"
        )
    return [open_segment(part) for part in parts]


def _describe_change(changes: Changes, new: Sequence[Segment], manifest: Manifest, started: float) -> Change:
    tables = [row for segment in new for row in segment.table_list.select("name", "problem").iter_rows()]
    read = {name for name, problem in tables if problem is None}
    touched = {
        "new": sorted(read.difference(changes.replaced)),
        "changed": sorted(read.intersection(changes.replaced)),
        "removed": changes.removed,
        "lost": sorted({*changes.replaced, *changes.lost}.difference(read)),
    }
    skipped = changes.still_bad + len(tables) - len(read)
    return Change.of("index", manifest, started, touched, kept=changes.kept, skipped=skipped)


def _refuse_emptiness(segments: Sequence[Segment], manifest: Manifest) -> None:
    """Say why an index would hold nothing, or lack a column asked for, and leave the previous one alone."""
    tables = pl.concat([segment.tables for segment in segments])
    columns = (
        tables["columns"].explode().drop_nulls().struct.field("name").unique(maintain_order=True).to_list()
    )
    wanted = [column for key in manifest.keys for column in split_key(key, columns) or key.split(SEPARATOR)]
    for name in (*map(str.strip, wanted), *manifest.values):
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
    raise NoTables(f"{none} {advice}{_describe_skipped(problems)}")


def _describe_skipped(problems: pl.DataFrame) -> str:
    """Name some of the tables that were skipped, and why."""
    if problems.is_empty():
        return ""
    first = problems.select("path", "problem").head(SKIPPED_SHOWN)
    named = [f"{path}: {problem}" for path, problem in first.iter_rows()]
    more = f"; and {problems.height - len(named):,} more" if problems.height > len(named) else ""
    return f"; {problems.height:,} skipped: {'; '.join(named)}{more}"
