"""The pipeline on Spark: the tasks of a build, run by mapInArrow and merged by applyInArrow.

DataFrame API alone, so that it runs through Spark Connect too. Spark drives, the kernel decides: raw rows are
never shuffled.
"""

import errno
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

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
