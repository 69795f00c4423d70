"""The pipeline on Spark: the tasks of a build, run by mapInArrow and merged by applyInArrow.

DataFrame API alone, so that it runs through Spark Connect too. Spark drives, the kernel decides: raw rows are
never shuffled.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from covary import settings as asking
from covary.columnpairs import Pairs
from covary.listing import OnProgress
from covary.opentable import Frame, KeyName
from covary.query import Index
from covary.sparkqueries import Question, answer_many, find_pairs
from covary.sparksession import running_session
from covary.tasks import Plan, Settings, merge_chunks, sketch_chunk, sketch_group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DONE = pa.schema(
    [pa.field("task", pa.string()), pa.field("error", pa.int32()), pa.field("message", pa.string())]
)
FEW_TASKS = 8
DONE_SQL = "task string, error int, message string"
PARTIAL_SQL = (
    "table int, key string, value string, granularity string, complete boolean, counts string, "
    "states binary, room int, rows long, tallies string, problem string"
)


def query(
    index: Index | str | os.PathLike[str],
    queries: Sequence[Question | tuple[Frame, KeyName, str]],
    spark: "SparkSession | None" = None,
    **options: Any,
) -> "DataFrame":
    """Answer many queries at once on Spark, as `Index.query` answers each.

    Args:
        index: an index, or its folder, in a file system that Spark's workers share.
        queries: tables (frames, or paths that workers can read), each with its key and its column of numbers.
        spark: a session; without one, that which is running, or a new local one.
        options: those of `Index.query`.

    Returns:
        A row for each hit: "query" is the place of its query in the list, "place" that of the hit among its
        hits, the rest as in `Hit`. A query that can't be answered has one row, with its "problem".
    """
    return answer_many(
        _index(index), [Question(*each) for each in queries], spark or running_session(), options
    )


def pairs(
    index: Index | str | os.PathLike[str],
    top: int = 1000,
    spark: "SparkSession | None" = None,
    *,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> Pairs:
    """Find the most correlated pairs of columns of different tables in a whole index.

    Args:
        index: an index, or its folder, in a file system that Spark's workers share.
        top: how many pairs to return.
        spark: a session; without one, that which is running, or a new local one.
        on_progress: called with how many columns are done, of how many.
        options: `rank`, `min_sample`, `correction`, `max_q` and `small_numbers` of `Index.query`.
    """
    settings = asking.Settings(top=top, **options)
    return find_pairs(_index(index), settings, spark or running_session(), on_progress)


def _index(index: Index | str | os.PathLike[str]) -> Index:
    return index if isinstance(index, Index) else Index.open(Path(index))


def run_on_spark(plan: Plan, settings: Settings, spark: "SparkSession") -> None:
    """Run all tasks of a plan; their segments are then in the scratch folder."""
    jobs: list[DataFrame] = []
    if plan.groups:
        numbers = spark.range(0, len(plan.groups), 1, _task_count(len(plan.groups)))
        jobs.append(numbers.mapInArrow(_sketch_groups(plan, settings), DONE_SQL))
    if plan.large:
        chunks = sum(len(table.chunks) for table in plan.large)
        numbers = spark.range(0, chunks, 1, chunks)
        partials = numbers.mapInArrow(_sketch_chunks(plan, settings), PARTIAL_SQL)
        jobs.append(partials.groupBy("table").applyInArrow(_merge_tables(plan, settings), DONE_SQL))
    for job in jobs:
        for row in job.collect():
            if row.error:
                raise OSError(row.error, row.message)


def _task_count(groups: int) -> int:
    """Give a Spark task two groups where they are many: a task costs as much as five small tables."""
    return max(min(groups, FEW_TASKS), -(-groups // 2))


def _sketch_groups(
    plan: Plan, settings: Settings
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _done(f"group {number}", partial(sketch_group, number, plan.groups[number], settings))

    return run


def _sketch_chunks(
    plan: Plan, settings: Settings
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    everything = [(number, chunk) for number, table in enumerate(plan.large) for chunk in table.chunks]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                number, chunk = everything[place]
                yield sketch_chunk(number, plan.large[number], chunk, settings)

    return run


def _merge_tables(plan: Plan, settings: Settings) -> Callable[[pa.Table], pa.Table]:
    def run(partials: pa.Table) -> pa.Table:
        number = partials.column("table")[0].as_py()
        work = partial(merge_chunks, number, plan.large[number], partials, settings)
        return pa.Table.from_batches([_done(f"table {number}", work)])

    return run


def _done(task: str, work: Callable[[], None]) -> pa.RecordBatch:
    """Do a task's work; failing to write is told, not thrown, so that Spark does not try it again."""
    try:
        work()
    except OSError as problem:
        message = problem.strerror or str(problem)
        failed = {"task": task, "error": problem.errno or errno.EIO, "message": message}
        return pa.RecordBatch.from_pylist([failed], schema=DONE)
    return pa.RecordBatch.from_pylist([{"task": task}], schema=DONE)
