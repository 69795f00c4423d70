"""The work of a build as tasks that run anywhere: in Spark's workers, or one after the other in a process.

A table small enough for one task is read and finished there. A larger one is cut into chunks: each is
sketched by a task of its own, and another merges the partial sketches. Finished tables go into a segment in
the build's scratch folder; what travels between tasks is only partial sketches.

A task may run in a process that ends at one of its tables: it is then done again, and knows at which.
"""

import pickle
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from typing import cast

import polars as pl
import pyarrow as pa

from covary.arrays import Row
from covary.columns.key_reading import FEWEST_PERIODS
from covary.columns.profile import use_numbers_read
from covary.columns.unused_cells import Tallies
from covary.index.segment_files import write_part
from covary.index.segment_layout import build_segment
from covary.index.table_records import TableRecord
from covary.pipeline.fetch_segments import finish_task
from covary.pipeline.limits import is_of_the_table, why_give_up
from covary.pipeline.partial_rows import PARTIAL, pack_partial, pack_unused, unpack_partial, unpack_unused
from covary.pipeline.plan import (
    PARTS,
    PROGRESS,
    Cut,
    LargeTable,
    Plan,
    TaskSettings,
    cut_table,
    group_name,
    plan,
    table_name,
)
from covary.pipeline.progress_log import as_logged, open_log, read_log
from covary.pipeline.reading_process import DIED, UNWATCHED, Ended, Watch, lasting_process
from covary.pipeline.send_code import Parcels
from covary.pipeline.table_notes import (
    BAD_TABLE,
    describe_columns,
    explain_failure,
    is_lasting,
    make_record,
    record_early_end,
    record_failure,
)
from covary.sketching.kernel import finish, merge_partials
from covary.sketching.key_columns import Key, collect_readings
from covary.sketching.roles import decide_roles
from covary.sketching.sketch_table import sketch_batches
from covary.sketching.sketch_types import ColumnPair, Sketch
from covary.tables.faults import Faults
from covary.tables.read import Chunk, describe_damage, read_chunk, read_layout
from covary.tables.reader import WHOLE
from covary.tables.source import TableSource

WRITING = ""  # what a task does when all its tables are read
MOSTLY = 4  # times as much
PAIRS_AT_ONCE = 256

Finished = tuple[TableRecord, list[Sketch]]


def sketch_group(
    number: int, tables: Sequence[TableSource], settings: TaskSettings, watch: Watch = UNWATCHED
) -> None:
    """Read, sketch and finish whole tables, and write them as one segment."""
    task, limits = f"group-{number}", settings.limits
    ends = ends_before(settings, task, watch)
    finished: list[Finished] = []
    with open_log(settings.scratch, task) as note:
        for number_in_group, table in enumerate(tables):
            kept = watch.folder / str(number_in_group) if watch.is_again and watch.folder else None
            if kept and kept.exists():
                finished.append(pickle.loads(kept.read_bytes()))
                continue
            note("reading", table.name)
            if problem := why_give_up(before := ends(table.name)):
                finished.append((record_early_end(table, problem, before), []))
            else:
                watch.begin(table.name, limits.seconds_for(table), limits.memory_for(table))
                finished.append(_sketch_whole(table, settings))
            note("done", table.name)
            if kept:  # so that a third process need not read it again
                draft = kept.with_suffix(".part")
                draft.write_bytes(pickle.dumps(finished[-1]))
                draft.rename(kept)
    watch.begin(WRITING, memory=max(map(limits.memory_for, tables)))
    if problem := why_give_up(before := ends(WRITING)):
        finished = [(record_early_end(table, problem, before), []) for table in tables]
    write_part(build_segment(finished), Path(settings.scratch, PARTS, group_name(number)))


def ends_before(settings: TaskSettings, task: str, watch: Watch) -> Callable[[str], list[Ended]]:
    """Give a function that tells how earlier processes ended at a table, in this worker or in one that died.

    What a worker that died did is in the task's log, where there is one: it began a table, and no more.
    """
    begun: Counter[str] = Counter()
    with suppress(OSError):
        for event, table in read_log(Path(settings.scratch, PROGRESS, task)):
            begun[table] += 1 if event == "reading" else -1

    def ends(step: str) -> list[Ended]:
        known = watch.ends_at(step)
        lost = begun[as_logged(step)] - len(known)
        return [Ended(step, DIED)] * lost + known

    return ends


def _sketch_whole(table: TableSource, settings: TaskSettings) -> Finished:
    try:
        layout, faults = read_layout(table), Faults()
        batches = read_chunk(Chunk(table, 0, *WHOLE), layout, None, faults)
        first = next(batches, pl.DataFrame(schema=dict.fromkeys(layout.columns, pl.String)))
        second = next(batches, None)
        size = None if second is None else table.size
        roles, known = decide_roles(first, table.name, settings.config, settings.keys, settings.values, size)
        first = use_numbers_read(first, roles.profiles, collect_readings(roles.keys))
        if second is not None and roles.columns and _is_mostly_unused(first, roles.columns):
            known, faults = None, Faults()
            counted = _RowCount(read_chunk(Chunk(table, 0, *WHOLE), layout, roles.columns, faults))
        else:
            counted = _RowCount(chain([first], [] if second is None else [second], batches))
        partials, tallies = [], Tallies()
        if roles.keys and roles.numbers:
            partials = sketch_batches(
                counted, roles.keys, roles.numbers, settings.config, tallies, table.name, known=known
            )
        else:
            for _ in counted:
                pass
        record = make_record(
            table,
            counted.rows,
            columns=describe_columns(roles, tallies),
            damage=describe_damage(layout, faults),
            left_out=roles.left_out,
            remarks=layout.remarks,
        )
        return record, _leave_out_coarse(finish(partials, settings.config), roles.keys)
    except BAD_TABLE as problem:
        return record_failure(table, problem), []


def _is_mostly_unused(rows: pl.DataFrame, columns: Sequence[str]) -> bool:
    """Whether reading some columns alone, again from the start, costs less than reading on with all."""
    return rows.estimated_size() > MOSTLY * (rows[list(columns)].estimated_size() + 1)


class _RowCount:
    """Batches that are counted as they pass."""

    def __init__(self, batches: Iterable[pl.DataFrame]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pl.DataFrame]:
        for batch in self._batches:
            self.rows += batch.height
            yield batch


def _leave_out_coarse(sketches: Sequence[Sketch], keys: Sequence[Key]) -> list[Sketch]:
    """Leave out coarse granularities with so few keys that a join on them would be hidden."""
    finest = {key.name: key.granularities[0] for key in keys}
    return [
        sketch
        for sketch in sketches
        if sketch.size >= FEWEST_PERIODS or sketch.pair.granularity == finest[sketch.pair.key]
    ]


def plan_apart(tables: Sequence[TableSource], settings: TaskSettings) -> Plan:
    """Cut a collection into tasks; large tables are looked into by a process of its own."""
    work = pickle.dumps((cut_large, (settings,)))

    def cut_in_process(table: TableSource, chunk_bytes: int, _: TaskSettings) -> Cut:
        # The process stays for the next build: starting one takes as long as reading some million rows.
        (cut,) = lasting_process().do(work, (table, chunk_bytes))
        return cast("Cut", cut)

    return plan(tables, settings, cut_in_process)


def cut_large(settings: TaskSettings, cut: tuple[TableSource, int], watch: Watch) -> Iterator[Cut]:
    """Look into a table to cut it into chunks of about so many bytes."""
    table, chunk_bytes = cut
    ends = watch.ends_at(table.name)
    if problem := why_give_up(ends):
        yield record_early_end(table, problem, ends)
    else:
        parts = max(1, table.size // chunk_bytes)
        watch.begin(table.name, settings.limits.seconds_for(table), settings.limits.memory_for(table, parts))
        yield cut_table(table, chunk_bytes, settings)


def sketch_chunk(
    number: int, table: LargeTable, chunk: Chunk, settings: TaskSettings, watch: Watch = UNWATCHED
) -> pa.RecordBatch:
    """Sketch one chunk of a large table to partial sketches, one row each."""
    source, task = table.source, f"chunk-{number}-{chunk.number}"
    ends = ends_before(settings, task, watch)(source.name)
    if problem := why_give_up(ends):
        return _problem_row(number, problem, is_of_the_table(ends, source))
    with open_log(settings.scratch, task) as note:
        note("reading", source.name)
        limits, parts = settings.limits, len(table.chunks)
        watch.begin(source.name, limits.seconds_for(source, parts), limits.memory_for(source, parts))
        faults = Faults()
        frames = read_chunk(chunk, table.layout, table.roles.columns, faults)
        partials = sketch_frames(number, table, frames, chunk.number, settings, faults)
        note("sketched", source.name)
    return partials


def sketch_frames(
    number: int,
    table: LargeTable,
    frames: Iterable[pl.DataFrame],
    part: int,
    settings: TaskSettings,
    faults: Faults | None = None,
) -> pa.RecordBatch:
    """Sketch the rows of one part of a table to partial sketches, one row each.

    What is wrong with its text is in `faults` once the frames have been read.
    """
    rows: list[Row] = []
    roles, tallies = table.roles, Tallies()
    try:
        counted = _RowCount(frames)
        partials = sketch_batches(
            counted, roles.keys, roles.numbers, settings.config, tallies, table.source.name, part
        )
        rows = [pack_partial(number, partial, counted.rows) for partial in partials]
        rows.append(pack_unused(number, tallies, faults or Faults()))
    except BAD_TABLE as problem:
        return _problem_row(number, explain_failure(problem, table.source), is_lasting(problem, table.source))
    return pa.RecordBatch.from_pylist(rows, schema=PARTIAL)


def _problem_row(number: int, problem: str, lasting: bool) -> pa.RecordBatch:
    row = {"table": number, "problem": problem, "lasting": lasting}
    return pa.RecordBatch.from_pylist([row], schema=PARTIAL)


def merge_chunks(
    number: int, table: LargeTable, partials: pa.Table, settings: TaskSettings, watch: Watch = UNWATCHED
) -> None:
    """Merge the partial sketches of a large table and write it as a segment of its own."""
    source, task = table.source, f"merge-{number}"
    ends = ends_before(settings, task, watch)(source.name)
    with open_log(settings.scratch, task) as note:
        note("reading", source.name)
        if problem := why_give_up(ends):
            finished: Finished = record_early_end(source, problem, ends), []
        else:
            limits, parts = settings.limits, max(1, len(table.chunks))
            watch.begin(source.name, limits.seconds_for(source), limits.memory_for(source, parts))
            finished = _merge_partials(table, partials, settings)
        write_part(build_segment([finished]), Path(settings.scratch, PARTS, table_name(number)))
        note("done", source.name)


def _merge_partials(table: LargeTable, partials: pa.Table, settings: TaskSettings) -> Finished:
    problems: dict[str, bool] = {}
    tallies, faults = Tallies(), Faults()
    for row in partials.filter(partials["states"].is_null()).to_pylist():
        if row["problem"]:
            problems[row["problem"]] = row["lasting"]
            continue
        unused, wrong = unpack_unused(row)
        faults.include(wrong)
        for column, tally in unused.items():
            tallies.add(column, tally)
    columns = describe_columns(table.roles, tallies)
    if problems:
        first, lasting = min(problems), all(problems.values())  # they arrive in any order
        return make_record(table.source, problem=first, columns=columns, lasting=lasting), []
    rows_of_pairs, row_count = _find_rows_of_pairs(partials, table)
    sketches: list[Sketch] = []
    states, others = partials["states"], partials.drop_columns(["states"])
    # In the order of the plan: rows of a shuffle arrive in any. Some at a time, so that few are unpacked.
    pairs = table.pairs if rows_of_pairs else []
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        some = [rows_of_pairs[pair] for pair in pairs[start : start + PAIRS_AT_ONCE]]
        rows = iter(others.take(list(chain.from_iterable(some))).to_pylist())
        for of_pair in some:
            parts = [
                unpack_partial({**next(rows), "states": states[row].as_buffer()}, table.source.name)
                for row in of_pair
            ]
            sketches += finish(merge_partials([[part] for part in parts], settings.config), settings.config)
    record = make_record(
        table.source,
        row_count,
        columns=columns,
        damage=describe_damage(table.layout, faults),
        left_out=table.roles.left_out,
        remarks=table.layout.remarks,
    )
    return record, _leave_out_coarse(sketches, table.roles.keys)


def _find_rows_of_pairs(partials: pa.Table, table: LargeTable) -> tuple[dict[ColumnPair, list[int]], int]:
    """Where the partial sketches of each pair are, and how many rows of the table were read for one."""
    rows_of_pairs: dict[ColumnPair, list[int]] = {}
    row_counts: dict[ColumnPair, int] = {}
    columns = (partials[name].to_pylist() for name in ("key", "value", "granularity", "rows"))
    for row, (key, value, granularity, rows) in enumerate(zip(*columns, strict=True)):
        if key is not None:
            pair = ColumnPair(table.source.name, key, value, granularity)
            rows_of_pairs.setdefault(pair, []).append(row)
            row_counts[pair] = row_counts.get(pair, 0) + rows
    return rows_of_pairs, max(row_counts.values(), default=0)


def number_chunks(tables: Sequence[LargeTable]) -> tuple[int, ...]:
    """Number the chunks of several large tables one after the other; return the first number of each."""
    return tuple(accumulate((len(table.chunks) for table in tables), initial=0))[:-1]


def sketch_one_group(
    groups: Parcels[tuple[TableSource, ...]], settings: TaskSettings, number: int, watch: Watch
) -> Iterator[pa.RecordBatch]:
    """Run the task of a group of tables, given by its number."""
    work = partial(sketch_group, number, groups[number], watch=watch)
    yield from finish_task(group_name(number), work, settings, watch)


def sketch_one_chunk(
    tables: Parcels[LargeTable], starts: Sequence[int], settings: TaskSettings, position: int, watch: Watch
) -> Iterator[pa.RecordBatch]:
    """Sketch a chunk, given by its position among those of all large tables, which start at `starts`."""
    number = bisect_right(starts, position) - 1
    table = tables[number]
    yield sketch_chunk(number, table, table.chunks[position - starts[number]], settings, watch)


def merge_table(
    tables: Parcels[LargeTable] | Mapping[int, LargeTable],
    settings: TaskSettings,
    partials: pa.Table,
    watch: Watch,
) -> Iterator[pa.RecordBatch]:
    """Merge the partial sketches of one large table."""
    number = partials.column("table")[0].as_py()
    work = partial(merge_chunks, number, tables[number], partials, watch=watch)
    yield from finish_task(table_name(number), work, settings, watch)
