"""The work of a build as tasks that run anywhere: in Spark's workers, or one after the other in a process.

A table small enough for one task is read and finished there. A larger one is cut into chunks: each is
sketched by a task of its own, and another merges the partial sketches. Finished tables go into a segment in
the build's scratch folder; what travels between tasks is only partial sketches.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

import polars as pl
import pyarrow as pa

from covary.columns import with_numbers
from covary.frames import merge_all, sketch_batches
from covary.kernel import finish
from covary.keyreading import FEWEST_PERIODS
from covary.keyrows import Key, readings_of
from covary.notes import BAD_TABLE, failed, is_lasting, notes_of, reason_of, record_of
from covary.partials import PARTIAL, partial_from, partial_row, tallies_from, tallies_row
from covary.plans import PARTS, PROGRESS, LargeTable, Settings, group_name, table_name
from covary.records import TableRecord
from covary.roles import roles_of
from covary.segment import build_segment
from covary.segmentfiles import write_files
from covary.sketches import ColumnPair, Partial, Sketch
from covary.tables import WHOLE, Chunk, layout_of, read_chunk
from covary.tablesource import TableSource
from covary.tallies import Tallies


def sketch_group(number: int, tables: Sequence[TableSource], settings: Settings) -> None:
    """Read, sketch and finish whole tables, and write them as one segment."""
    finished = []
    with progress_log(settings, f"group-{number}") as note:
        for table in tables:
            note("reading", table.name)
            finished.append(_sketch_whole(table, settings))
            note("done", table.name)
    write_files(build_segment(finished), Path(settings.scratch, PARTS, group_name(number)))


def _sketch_whole(table: TableSource, settings: Settings) -> tuple[TableRecord, list[Sketch]]:
    try:
        layout = layout_of(table)
        batches = read_chunk(Chunk(table, 0, *WHOLE), layout)
        first = next(batches, pl.DataFrame(schema=dict.fromkeys(layout.columns, pl.String)))
        second = next(batches, None)
        roles, known = roles_of(
            first, table.name, settings.config, settings.keys, settings.values, second is None
        )
        first = with_numbers(first, roles.profiles, readings_of(roles.keys))
        counted = _RowCount(chain([first], [] if second is None else [second], batches))
        tallies = Tallies()
        if roles.keys and roles.numbers:
            partials = sketch_batches(
                counted,
                roles.keys,
                roles.numbers,
                settings.config,
                tallies,
                table.name,
                known=known.columns if known else None,
            )
            for name, tally in (known.tallies if known else Tallies()).items():
                if name not in roles.numbers:
                    tallies.add(name, tally)
        else:
            partials = []
            counted.exhaust()
        sketches = _worth_having(finish(partials, settings.config), roles.keys)
        return record_of(table, counted.rows, columns=notes_of(roles, tallies)), sketches
    except BAD_TABLE as problem:
        return failed(table, problem), []


class _RowCount:
    """Batches that are counted as they pass."""

    def __init__(self, batches: Iterable[pl.DataFrame]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Any:
        for batch in self._batches:
            self.rows += batch.height
            yield batch

    def exhaust(self) -> None:
        for _ in self:
            pass


def _worth_having(sketches: Sequence[Sketch], keys: Sequence[Key]) -> list[Sketch]:
    """Leave out coarse granularities with so few keys that a join on them would be hidden."""
    finest = {key.name: key.granularities[0] for key in keys}
    return [
        sketch
        for sketch in sketches
        if sketch.size >= FEWEST_PERIODS or sketch.pair.granularity == finest[sketch.pair.key]
    ]


def sketch_chunk(number: int, table: LargeTable, chunk: Chunk, settings: Settings) -> pa.RecordBatch:
    """Sketch one chunk of a large table to partial sketches, one row each."""
    with progress_log(settings, f"chunk-{number}-{chunk.number}") as note:
        note("reading", table.source.name)
    frames = read_chunk(chunk, table.layout, table.roles.columns)
    return sketch_frames(number, table, frames, chunk.number, settings)


def sketch_frames(
    number: int, table: LargeTable, frames: Iterable[pl.DataFrame], part: int, settings: Settings
) -> pa.RecordBatch:
    """Sketch the rows of one part of a table to partial sketches, one row each."""
    rows: list[dict[str, Any]] = []
    roles, tallies = table.roles, Tallies()
    try:
        counted = _RowCount(frames)
        partials = sketch_batches(
            counted, roles.keys, roles.numbers, settings.config, tallies, table.source.name, part
        )
        rows = [partial_row(number, partial, counted.rows) for partial in partials]
        rows.append(tallies_row(number, tallies))
    except BAD_TABLE as problem:
        lasting = is_lasting(problem, table.source)
        rows = [{"table": number, "problem": reason_of(problem, table.source), "lasting": lasting}]
    return pa.RecordBatch.from_pylist(rows, schema=PARTIAL)


def merge_chunks(number: int, table: LargeTable, partials: pa.Table, settings: Settings) -> None:
    """Merge the partial sketches of a large table and write it as a segment of its own."""
    rows = partials.to_pylist()
    problems = {row["problem"]: row["lasting"] for row in rows if row["problem"]}
    sketches: list[Sketch] = []
    by_pair: dict[ColumnPair, list[Partial]] = {}
    row_counts: dict[ColumnPair, int] = {}
    tallies = Tallies()
    for row in rows if not problems else ():
        if row["tallies"]:
            for column, tally in tallies_from(row).items():
                tallies.add(column, tally)
            continue
        partial = partial_from(row, table.source.name)
        by_pair.setdefault(partial.pair, []).append(partial)
        row_counts[partial.pair] = row_counts.get(partial.pair, 0) + row["rows"]
    # In the order of the plan: rows of a shuffle arrive in any.
    for pair in table.pairs if by_pair else ():
        merged = merge_all([[partial] for partial in by_pair[pair]], settings.config)[0]
        sketches += finish([merged], settings.config)
    sketches = _worth_having(sketches, table.roles.keys)
    record = record_of(
        table.source,
        max(row_counts.values(), default=0),
        next(iter(problems), None),
        notes_of(table.roles, tallies),
        all(problems.values()),
    )
    write_files(build_segment([(record, sketches)]), Path(settings.scratch, PARTS, table_name(number)))
    with progress_log(settings, f"merge-{number}") as note:
        note("done", table.source.name)


@contextmanager
def progress_log(settings: Settings, task: str) -> Iterator[Callable[[str, str], None]]:
    """Give a function that notes what a task is doing where the build's own process can see it."""
    with ExitStack() as open_files:
        log: IO[bytes] | None = None
        with suppress(OSError):
            file = Path(settings.scratch, PROGRESS, task)
            log = open_files.enter_context(file.open("ab", buffering=0))

        def note(event: str, table: str) -> None:
            # Progress is a courtesy: where it can't be written, the segment will say so.
            with suppress(OSError):
                if log:
                    log.write(f"{event}\t{table}\n".encode(errors="backslashreplace"))

        yield note
