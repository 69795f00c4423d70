"""The work of a build as tasks that run anywhere: in Spark's workers, or one after the other in a process.

A table small enough for one task is read and finished there. A larger one is cut into chunks: each is
sketched by a task of its own, and another merges the partial sketches. Finished tables go into a segment in
the build's scratch folder; what travels between tasks is only partial sketches.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

import polars as pl
import pyarrow as pa

from covary.columns import ColumnProfile, with_numbers
from covary.errors import CovaryError, UnreadableTable
from covary.filesystems import without_secrets
from covary.frames import merge_all, sketch_batches
from covary.kernel import finish
from covary.keyreading import FEWEST_PERIODS
from covary.keyrows import Key, readings_of
from covary.partials import PARTIAL, partial_from, partial_row, tallies_from, tallies_row
from covary.records import ColumnNote, TableRecord
from covary.roles import Roles, roles_of
from covary.segment import build_segment
from covary.segmentfiles import write_files
from covary.sketches import ColumnPair, Partial, Sketch, SketchConfig
from covary.tables import WHOLE, Chunk, Layout, layout_of, plan_chunks, read_chunk, sample_rows
from covary.tablesource import TableSource, shown
from covary.tallies import Tallies

CHUNK_BYTES = 32 << 20
PARQUET_FORMATS = {"parquet", "delta", "iceberg"}
PARQUET_CHUNK_BYTES = 16 << 20  # packed tighter, so each byte is more work
# A table's partial sketches are merged by one task: these bound its memory, whatever the table's size.
MOST_CHUNKS, MOST_PARTIALS = 256, 8192
EVEN_GROUPS = 16  # of a small collection, so that no core waits long for the last
SMALLEST_GROUP_BYTES, GROUP_BYTES = 1 << 20, 8 << 20
MOST_GROUPS = 512
PARTS, PROGRESS = "parts", "progress"
# One bad file must never stop a build; Polars panics on a few, which is no Exception.
BAD_TABLE = (Exception, pl.exceptions.PanicException)


@dataclass(frozen=True, slots=True)
class Settings:
    """What every task of a build must know."""

    config: SketchConfig
    keys: tuple[str, ...]
    values: tuple[str, ...]
    scratch: str


@dataclass(frozen=True, slots=True)
class LargeTable:
    """A table of several chunks, with the columns' roles decided once for all of them."""

    source: TableSource
    layout: Layout
    chunks: tuple[Chunk, ...]
    roles: Roles

    @property
    def pairs(self) -> list[ColumnPair]:
        """The ⟨key, number⟩ pairs to sketch."""
        return [
            ColumnPair(self.source.name, key.name, number, granularity)
            for key in self.roles.keys
            for granularity in key.granularities
            for number in self.roles.numbers
            if number not in key.columns
        ]


@dataclass(frozen=True, slots=True)
class Plan:
    """The tasks of a build, in the order in which their tables stand in the index."""

    groups: tuple[tuple[TableSource, ...], ...]
    large: tuple[LargeTable, ...]
    settled: tuple[TableRecord, ...]  # tables that need no task: unreadable, or without a pair to sketch

    @property
    def segments(self) -> list[str]:
        """The names of the segments that the tasks will write."""
        groups = [group_name(number) for number in range(len(self.groups))]
        return groups + [table_name(number) for number in range(len(self.large))]


def group_name(number: int) -> str:
    """Name the segment of a group of tables."""
    return f"group-{number:06}"


def table_name(number: int) -> str:
    """Name the segment of a large table."""
    return f"table-{number:06}"


def plan(tables: Sequence[TableSource], settings: Settings) -> Plan:
    """Cut a collection into tasks by size alone: the same collection gives the same index anywhere."""
    groups: list[list[TableSource]] = []
    large: list[LargeTable] = []
    settled: list[TableRecord] = []
    total = sum(table.size for table in tables)
    room = max(min(total // EVEN_GROUPS, GROUP_BYTES), SMALLEST_GROUP_BYTES, total // MOST_GROUPS)
    filled = room
    for table in tables:
        try:
            cut = _cut(table, settings)
        except BAD_TABLE as problem:
            settled.append(_record(table, problem=_reason(problem)))
            continue
        if cut:
            if cut.pairs:
                large.append(cut)
            else:
                settled.append(_record(table, columns=_notes(cut.roles, Tallies())))
            continue
        if filled + table.size > room:
            groups.append([])
            filled = 0
        groups[-1].append(table)
        filled += table.size
    return Plan(tuple(map(tuple, groups)), tuple(large), tuple(settled))


def _cut(table: TableSource, settings: Settings) -> LargeTable | None:
    smallest = PARQUET_CHUNK_BYTES if table.format in PARQUET_FORMATS else CHUNK_BYTES
    chunk_bytes = max(smallest, -(-table.size // MOST_CHUNKS))
    if table.size <= chunk_bytes:
        return None
    layout = layout_of(table)
    chunks = plan_chunks(table, layout, chunk_bytes)
    if len(chunks) == 1:
        return None
    roles, _ = roles_of(
        sample_rows(table, layout, chunks),
        table.name,
        settings.config,
        settings.keys,
        settings.values,
        whole=False,
    )
    slim = replace(
        roles, profiles=tuple(replace(profile, values=None, key=None) for profile in roles.profiles)
    )
    large = LargeTable(table, layout, tuple(chunks), slim)
    fewer = MOST_PARTIALS // max(1, len(large.pairs))
    if len(chunks) <= max(fewer, 2):
        return large
    return replace(large, chunks=tuple(plan_chunks(table, layout, -(-table.size // max(fewer, 2)))))


def _reason(problem: BaseException) -> str:
    if isinstance(problem, UnreadableTable):
        return problem.reason
    text = str(problem).strip().split("\n")[0][:200]
    return without_secrets(text if isinstance(problem, CovaryError) else f"{type(problem).__name__}: {text}")


def _record(
    table: TableSource, rows: int = 0, problem: str | None = None, columns: tuple[ColumnNote, ...] = ()
) -> TableRecord:
    return TableRecord(
        shown(table.name),
        table.place,
        rows,
        table.size,
        table.version,
        problem,
        columns,
        table.member,
        table.source,
        table.checksum,
    )


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
        if not counted.rows:
            return _record(table, problem="it has no rows"), []
        return _record(table, counted.rows, columns=_notes(roles, tallies)), sketches
    except BAD_TABLE as problem:
        return _record(table, problem=_reason(problem)), []


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


def _notes(roles: Roles, tallies: Tallies) -> tuple[ColumnNote, ...]:
    in_pairs: dict[str, list[str]] = {}
    for key in roles.keys:
        for column in key.columns:
            in_pairs.setdefault(column, []).append(key.name)
    return tuple(_note(profile, roles, in_pairs.get(profile.name, []), tallies) for profile in roles.profiles)


def _note(profile: ColumnProfile, roles: Roles, keys: Sequence[str], tallies: Tallies) -> ColumnNote:
    name = profile.name
    served = (("key", bool(keys)), ("number", name in roles.numbers))
    tally = tallies.get(name)
    return ColumnNote(
        name,
        profile.kind,
        " and ".join(role for role, serves in served if serves),
        profile.reason,
        tuple(keys),
        tally.missing if tally else None,
        tally.not_understood if tally else None,
        tally.examples if tally else (),
        roles.examples.get(name, ()),
    )


def sketch_chunk(number: int, table: LargeTable, chunk: Chunk, settings: Settings) -> pa.RecordBatch:
    """Sketch one chunk of a large table to partial sketches, one row each."""
    with progress_log(settings, f"chunk-{number}-{chunk.number}") as note:
        note("reading", table.source.name)
    rows: list[dict[str, Any]] = []
    roles, tallies = table.roles, Tallies()
    try:
        counted = _RowCount(read_chunk(chunk, table.layout, roles.columns))
        partials = sketch_batches(
            counted, roles.keys, roles.numbers, settings.config, tallies, table.source.name, chunk.number
        )
        rows = [partial_row(number, partial, counted.rows) for partial in partials]
        rows.append(tallies_row(number, tallies))
    except BAD_TABLE as problem:
        rows = [{"table": number, "problem": _reason(problem)}]
    return pa.RecordBatch.from_pylist(rows, schema=PARTIAL)


def merge_chunks(number: int, table: LargeTable, partials: pa.Table, settings: Settings) -> None:
    """Merge the partial sketches of a large table and write it as a segment of its own."""
    rows = partials.to_pylist()
    problems = [row["problem"] for row in rows if row["problem"]]
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
    problem = problems[0] if problems else None
    record = _record(table.source, max(row_counts.values(), default=0), problem, _notes(table.roles, tallies))
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
