"""The pipeline on Spark: the tasks of a build, run by mapInArrow and merged by applyInArrow.

DataFrame API alone, so that it runs through Spark Connect too. Spark drives, the kernel decides: raw rows are
never shuffled.
"""

from collections.abc import Callable, Iterator
from threading import Timer
from typing import TYPE_CHECKING

import pyarrow as pa

from covary.pipeline.fetch_segments import DONE, collect_segments
from covary.pipeline.partial_rows import PARTIAL
from covary.pipeline.plan import Plan, TaskSettings
from covary.pipeline.progress_log import open_log
from covary.pipeline.send_code import (
    Parcels,
    as_numbered_task,
    as_spark_schema,
    as_table_task,
    as_task,
    ship_covary,
)
from covary.pipeline.session import is_local
from covary.pipeline.tasks import merge_table, number_chunks, sketch_one_chunk, sketch_one_group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DONE_SQL, PARTIAL_SQL = as_spark_schema(DONE), as_spark_schema(PARTIAL)
FEW_TASKS = 8
SECONDS_TO_WAIT = 10.0


class SparkRunner:
    """Runs the tasks of a plan on Spark; asks for a session only when it needs one, as most updates don't."""

    def __init__(self, session: Callable[[], "SparkSession"]) -> None:
        self.session = session

    def run(self, plan: Plan, settings: TaskSettings) -> None:
        """Run all tasks of a plan; their segments are then in the scratch folder."""
        spark = self.session()
        ship_covary(spark)
        if not is_local(spark):
            _wait_for_workers(spark, settings)
        for job in _make_jobs(plan, settings, spark):
            collect_segments(job, settings, spark)


def _make_jobs(plan: Plan, settings: TaskSettings, spark: "SparkSession") -> "Iterator[DataFrame]":
    if plan.groups:
        numbers = spark.range(0, len(plan.groups), 1, _count_tasks(len(plan.groups)))
        yield numbers.mapInArrow(as_numbered_task(sketch_one_group, Parcels(plan.groups), settings), DONE_SQL)
    if plan.large:
        tables = Parcels(plan.large)
        chunks = sum(len(table.chunks) for table in plan.large)
        numbers = spark.range(0, chunks, 1, chunks)
        task = as_numbered_task(sketch_one_chunk, tables, number_chunks(plan.large), settings)
        partials = numbers.mapInArrow(task, PARTIAL_SQL)
        yield partials.groupBy("table").applyInArrow(as_table_task(merge_table, tables, settings), DONE_SQL)


def _count_tasks(groups: int) -> int:
    """Give a Spark task two groups where they are many: a task costs as much as five small tables."""
    return max(min(groups, FEW_TASKS), -(-groups // 2))


def _wait_for_workers(spark: "SparkSession", settings: TaskSettings) -> None:
    """Run one empty task: Spark waits for a worker without an end or a word, so after a while we tell."""
    with open_log(settings.scratch, "spark") as note:
        too_long = Timer(SECONDS_TO_WAIT, note, ["waiting"])
        too_long.daemon = True
        too_long.start()
        try:
            spark.range(0, 1, 1, 1).mapInArrow(as_task(answer), "id long").collect()
        finally:
            too_long.cancel()
            too_long.join()
        note("working")


def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give back what came: a worker that can do this has covary and what it needs."""
    yield from batches
