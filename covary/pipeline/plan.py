"""A build cut into tasks by size alone, so that the same collection gives the same index anywhere."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from covary.columns.unused_cells import Tallies
from covary.index.table_records import TableRecord
from covary.pipeline.limits import DEFAULT_LIMITS, Limits
from covary.pipeline.table_notes import BAD_TABLE, describe_columns, make_record, record_failure
from covary.sketching.roles import Roles, decide_roles
from covary.sketching.sketch_types import ColumnPair, SketchConfig
from covary.tables.read import Chunk, plan_chunks, read_layout, sample_rows
from covary.tables.reader import Layout
from covary.tables.registry import get_reader
from covary.tables.source import TableSource

CHUNK_BYTES = 32 << 20
PACKED_CHUNK_BYTES = 16 << 20  # packed tighter, so each byte is more work
# A table's partial sketches are merged by one task: these bound its memory, whatever the table's size.
MOST_CHUNKS, MOST_PARTIALS = 256, 8192
EVEN_GROUPS = 16  # of a small collection, so that no core waits long for the last
SMALLEST_GROUP_BYTES, GROUP_BYTES = 1 << 20, 8 << 20
MOST_GROUPS = 512
PARTS, PROGRESS = "parts", "progress"
NOT_READ_ON = (
    "judged by a sample and not read to its end, its rows not counted: no pair of a key and a number"
)


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """What every task of a build must know."""

    config: SketchConfig
    keys: tuple[str, ...]
    values: tuple[str, ...]
    scratch: str
    limits: Limits = DEFAULT_LIMITS


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


Cut = LargeTable | TableRecord | None  # a table in chunks, or why it is not read on; None: it is one piece


@dataclass(frozen=True, slots=True)
class Plan:
    """The tasks of a build, in the order in which their tables stand in the index."""

    groups: tuple[tuple[TableSource, ...], ...]
    large: tuple[LargeTable, ...]
    settled: tuple[TableRecord, ...]  # tables that need no task: unreadable, or without a pair to sketch

    @property
    def size(self) -> int:
        """How many bytes the tasks read."""
        small = sum(table.size for group in self.groups for table in group)
        return small + sum(table.source.size for table in self.large)

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


def cut_table(table: TableSource, chunk_bytes: int, settings: TaskSettings) -> Cut:
    """Look into a table to cut it into chunks of about so many bytes."""
    try:
        layout = read_layout(table)
        chunks = plan_chunks(table, layout, chunk_bytes)
        if len(chunks) == 1:
            return None
        large = decide_table(table, layout, sample_rows(table, layout, chunks), settings, tuple(chunks))
        if not large.pairs:  # it is not worth reading to its end
            columns = describe_columns(large.roles, Tallies())
            return make_record(table, columns=columns, remarks=[NOT_READ_ON, *layout.remarks])
        most = max(MOST_PARTIALS // len(large.pairs), 2)
        if len(chunks) <= most:
            return large
        return replace(large, chunks=tuple(plan_chunks(table, layout, -(-table.size // most))))
    except BAD_TABLE as problem:
        return record_failure(table, problem)


def decide_table(
    table: TableSource,
    layout: Layout,
    sample: pl.DataFrame,
    settings: TaskSettings,
    chunks: tuple[Chunk, ...] = (),
) -> LargeTable:
    """Decide from some of its rows how all tasks read a table."""
    roles, _ = decide_roles(sample, table.name, settings.config, settings.keys, settings.values, table.size)
    # Without the rows themselves, which need not travel.
    slim = tuple(replace(profile, values=None) for profile in roles.profiles)
    return LargeTable(table, layout, chunks, replace(roles, profiles=slim))


def plan(
    tables: Sequence[TableSource],
    settings: TaskSettings,
    cut: Callable[[TableSource, int, TaskSettings], Cut] = cut_table,
) -> Plan:
    """Cut a collection into tasks by size alone: the same collection gives the same index anywhere."""
    groups: list[list[TableSource]] = []
    large: list[LargeTable] = []
    settled: list[TableRecord] = []
    total = sum(table.size for table in tables)
    room = max(min(total // EVEN_GROUPS, GROUP_BYTES), SMALLEST_GROUP_BYTES, total // MOST_GROUPS)
    filled = 0
    for table in tables:
        least = PACKED_CHUNK_BYTES if get_reader(table).is_packed else CHUNK_BYTES
        chunk_bytes = max(least, -(-table.size // MOST_CHUNKS))
        outcome = cut(table, chunk_bytes, settings) if table.size > chunk_bytes else None
        if isinstance(outcome, LargeTable):
            large.append(outcome)
        elif outcome is not None:
            settled.append(outcome)
        else:
            if not groups or filled + table.size > room:
                groups.append([])
                filled = 0
            groups[-1].append(table)
            filled += table.size
    return Plan(tuple(map(tuple, groups)), tuple(large), tuple(settled))
