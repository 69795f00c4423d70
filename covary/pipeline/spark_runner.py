"""The pipeline on Spark: the tasks of a build, run by mapInArrow and merged by applyInArrow.

DataFrame API alone, so that it runs through Spark Connect too. Spark drives, the kernel decides: raw rows are
never shuffled.
"""

from collections.abc import Callable, Iterator, Sequence
from threading import Timer
from typing import TYPE_CHECKING

import pyarrow as pa

from covary.columns.unused_cells import Tallies
from covary.errors import CannotWrite, UnreadableTable
from covary.index.table_records import TableRecord
from covary.pipeline.fetch_segments import DONE, collect_segments, require_done
from covary.pipeline.partial_rows import PARTIAL
from covary.pipeline.plan import (
    LargeTable,
    Plan,
    TaskSettings,
    decide_table,
    table_name,
)
from covary.pipeline.progress_log import note_progress
from covary.pipeline.send_code import (
    Parcels,
    as_numbered_task,
    as_spark_schema,
    as_table_task,
    as_task,
    ship_covary,
)
from covary.pipeline.session import is_local
from covary.pipeline.spark_tables import ROWS_PER_BATCH, number_rows, read_partition, take_sample
from covary.pipeline.table_notes import describe_columns, make_record
from covary.pipeline.tasks import (
    merge_table,
    number_chunks,
    sketch_frames,
    sketch_one_chunk,
    sketch_one_group,
)
from covary.tables.source import TableSource
from covary.tables.spark_catalog import describe_spark_error

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
            _run(job, settings, spark)


def _run(job: "DataFrame", settings: TaskSettings, spark: "SparkSession") -> None:
    """Run a job whose tasks make segments, and see that all of these come to the scratch folder."""
    if is_local(spark):
        require_done(job.collect(), settings)
    else:
        collect_segments(job, settings)


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


def sketch_spark_tables(
    tables: Sequence[TableSource], first: int, settings: TaskSettings, spark: "SparkSession"
) -> tuple[list[str], list[TableRecord]]:
    """Sketch tables that Spark reads; return the names of their segments, and records of those that failed.

    `first` is the number of the first one, among the large tables of a build.
    """
    name, wanted = ROWS_PER_BATCH
    before = spark.conf.get(name)
    spark.conf.set(name, wanted)
    segments: list[str] = []
    left_out: list[TableRecord] = []
    try:
        for number, source in enumerate(tables, start=first):
            try:
                table = decide_table(source, *take_sample(source, spark), settings)
                if not table.pairs:
                    left_out.append(make_record(source, columns=describe_columns(table.roles, Tallies())))
                    continue
                _sketch_spark_table(number, table, settings, spark)
                segments.append(table_name(number))
            except CannotWrite:
                raise
            except Exception as problem:
                if not _is_up(spark):  # no fault of the table's
                    raise
                if isinstance(problem, UnreadableTable):
                    reason = problem.reason
                else:
                    reason = describe_spark_error(problem, source.location.text)
                left_out.append(make_record(source, problem=reason))
    finally:
        spark.conf.set(name, str(before))
    return segments, left_out


def _is_up(spark: "SparkSession") -> bool:
    try:
        return len(spark.range(0, 1, 1, 1).collect()) == 1
    except Exception:
        return False


def _sketch_spark_table(
    number: int, table: LargeTable, settings: TaskSettings, spark: "SparkSession"
) -> None:
    note_progress(settings.scratch, f"spark-{number}", "reading", table.source.name)
    rows = number_rows(table.source, tuple(table.roles.columns), spark)
    partials = rows.mapInArrow(as_task(sketch_partition, number, table, settings), PARTIAL_SQL)
    merge = as_table_task(merge_table, {number: table}, settings)
    ship_covary(spark)
    _run(partials.groupBy("table").applyInArrow(merge, DONE_SQL), settings, spark)


def sketch_partition(
    number: int, table: LargeTable, settings: TaskSettings, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Sketch one partition of a table that Spark reads."""
    part, frames = read_partition(batches, tuple(table.roles.columns))
    yield sketch_frames(number, table, frames, part, settings)


def _count_tasks(groups: int) -> int:
    """Give a Spark task two groups where they are many: a task costs as much as five small tables."""
    return max(min(groups, FEW_TASKS), -(-groups // 2))


def _wait_for_workers(spark: "SparkSession", settings: TaskSettings) -> None:
    """Run one empty task: Spark waits for a worker without an end or a word, so after a while we tell."""
    too_long = Timer(SECONDS_TO_WAIT, note_progress, (settings.scratch, "spark", "waiting"))
    too_long.daemon = True
    too_long.start()
    try:
        spark.range(0, 1, 1, 1).mapInArrow(as_task(answer), "id long").collect()
    finally:
        too_long.cancel()
        too_long.join()
    note_progress(settings.scratch, "spark", "working")


def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give back what came: a worker that can do this has covary and what it needs."""
    yield from batches
