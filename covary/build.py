"""Sources to an index: plan, sketch on Spark, fold, commit."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import polars as pl

from covary.errors import CannotWrite, NoSuchColumn, NoTables
from covary.index import compile_ahead
from covary.keychoice import split_key
from covary.keyrows import SEPARATOR
from covary.keys import normaliser_of
from covary.opentable import KeyName
from covary.query import Index
from covary.segment import TableRecord, build_segment, fold_segments
from covary.segmentfiles import Segment, open_segment, stored_segment, write_files
from covary.sketches import DEFAULT_SIZE, SketchConfig
from covary.sources import find_tables
from covary.spark import run_on_spark
from covary.sparksession import session
from covary.store import SEGMENTS, Manifest, building, commit
from covary.tablesource import shown
from covary.tasks import PARTS, PROGRESS, Settings, plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTRIES_PER_SEGMENT = 1 << 26
# Each segment costs a query a tenth of a millisecond; folding costs a build a pass over all entries.
MOST_SEGMENTS = 20

POLL_SECONDS = 0.2

OnProgress = Callable[["Progress"], None]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is: tables done, tables in all, and the names of those being read."""

    done: int
    total: int
    reading: tuple[str, ...]


def build_index(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    into: str | os.PathLike[str],
    spark: "SparkSession | None" = None,
    *,
    size: int = DEFAULT_SIZE,
    aggregates: Sequence[str] = ("mean",),
    keys: Sequence[KeyName] = (),
    values: Sequence[str] = (),
    hash: str = "xxhash64",
    key_text: str | None = None,
    master: str | None = None,
    remote: str | None = None,
    on_progress: OnProgress | None = None,
) -> Index:
    """Sketch every ⟨key, number⟩ pair of every table on Spark and write the index.

    A table that can't be read is skipped and named in `Index.tables`. An index already there is replaced as
    the last step; a build that fails leaves it as it was.

    Args:
        sources: files, folders (walked recursively) and globs.
        into: the folder of the index.
        spark: a session to run on; without one a local session is started, and stopped at the end.
        size: keys per sketch.
        aggregates: how rows of one key become one number; several give several sketches per pair.
        keys: only these columns are keys; "date,zip" or ["date", "zip"] is one key.
        values: only these columns are numbers.
        hash: "xxhash64", or "murmur3" for the paper's 32 bits.
        key_text: "canonical", or "exact" for raw text; None: exact with murmur3, canonical otherwise.
        master: the Spark master to start a session on, "local[*]" by default.
        remote: the Spark Connect server to run on.
        on_progress: called several times a second while tables are being read.
    """
    chosen = (aggregates,) if isinstance(aggregates, str) else tuple(dict.fromkeys(aggregates))
    config = SketchConfig(size, chosen, hash, normaliser_of(key_text, hash))
    wanted = tuple(key if isinstance(key, str) else SEPARATOR.join(key) for key in keys)
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    tables, skipped, unlisted = find_tables(given)
    skipped += unlisted
    if not tables:
        reasons = "".join(f"; {each.path}: {each.reason}" for each in skipped[:3])
        raise NoTables(f"no tables in {', '.join(map(str, given))}{reasons}")
    folder = Path(into).absolute()
    with building(folder) as scratch:
        settings = Settings(config, wanted, tuple(values), str(scratch))
        for name in (PARTS, PROGRESS):
            (scratch / name).mkdir()
        todo = plan(tables, settings)
        with _watching(scratch / PROGRESS, len(tables) - len(todo.settled), on_progress):
            if todo.groups or todo.large:
                compiling = Thread(target=compile_ahead, daemon=True)
                with session(spark, master, remote) as running:
                    compiling.start()  # this process has nothing else to do while Spark works
                    run_on_spark(todo, settings, running)
                compiling.join()
        left_out = [
            *todo.settled,
            *(TableRecord(shown(s.path), shown(s.path), problem=s.reason, source=s.source) for s in skipped),
        ]
        commit(folder, _gather(folder, todo.segments, left_out, settings), scratch)
    return Index.open(folder, check=False)


def _gather(
    folder: Path, names: Sequence[str], left_out: Sequence[TableRecord], settings: Settings
) -> Manifest:
    """Make the tasks' segments, in plan order, those of the index; fold them where they are many."""
    scratch = Path(settings.scratch)
    if left_out:
        write_files(build_segment([(record, []) for record in left_out]), scratch / PARTS / "left out")
        names = [*names, "left out"]
    parts = [scratch / PARTS / name for name in names]
    _require_all(parts, folder)
    segments = [open_segment(part) for part in parts]
    _refuse_emptiness(segments, settings)
    first = _next_number(folder)
    places = []
    for number, together in enumerate(_fold_plan([segment.entries for segment in segments])):
        places.append(scratch / f"{first + number:06}")
        if len(together) == 1:
            parts[together[0]].rename(places[-1])
        else:
            write_files(fold_segments([segments[one] for one in together]), places[-1])
    with ThreadPoolExecutor() as checksumming:
        return Manifest(settings.config, tuple(checksumming.map(stored_segment, places)))


def _require_all(parts: Sequence[Path], folder: Path) -> None:
    missing = sum(not part.exists() for part in parts)
    if missing:
        raise CannotWrite(
            f"{missing} of {len(parts)} parts of the index did not arrive in {folder}; "
            f"Spark's workers must share the file system that holds it"
        )


def _fold_plan(sizes: Sequence[int]) -> list[list[int]]:
    """Decide which neighbouring segments to fold, so that no more than a few are left to ask."""
    if len(sizes) <= MOST_SEGMENTS:
        return [[place] for place in range(len(sizes))]
    room = max(ENTRIES_PER_SEGMENT, sum(sizes) // MOST_SEGMENTS)
    plan: list[list[int]] = []
    filled = room
    for place, size in enumerate(sizes):
        if filled + size > room:
            plan.append([])
            filled = 0
        plan[-1].append(place)
        filled += size
    return plan


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
    if any(segment.sketches.height for segment in segments):
        return
    problems = tables.filter(pl.col("problem").is_not_null())
    if problems.height == tables.height:
        first = problems.row(0, named=True)
        raise NoTables(f"none of the {tables.height} tables can be read; {first['path']}: {first['problem']}")
    raise NoTables(
        f"none of the {tables.height} tables has both a key column and a number column; "
        f"name them with --key and --value"
    )


def _next_number(folder: Path) -> int:
    """Number new segments after those of the index being replaced, which readers may still have open."""
    there = (folder / SEGMENTS).iterdir() if (folder / SEGMENTS).exists() else ()
    return 1 + max((int(segment.name) for segment in there if segment.name.isdigit()), default=-1)


@contextmanager
def _watching(logs: Path, total: int, on_progress: OnProgress | None) -> Iterator[None]:
    """Report from the tasks' logs until the work in the block is done."""
    if on_progress is None:
        yield
        return
    finished = Event()

    def watch() -> None:
        while not finished.wait(POLL_SECONDS):
            on_progress(_progress(logs, total))

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()
        on_progress(_progress(logs, total))


def _progress(logs: Path, total: int) -> Progress:
    done: set[str] = set()
    reading: dict[str, None] = {}
    for log in sorted(logs.iterdir()):
        for line in log.read_text(encoding="utf-8").splitlines():
            event, _, table = line.partition("\t")
            if event == "done":
                done.add(table)
            else:
                reading[table] = None
    return Progress(len(done), total, tuple(table for table in reading if table not in done))
