"""Tables, views and queries that Spark reads, sketched by the same kernel, partition by partition.

Whether one has changed can't be told, so each build reads it again.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from covary.columns.unused_cells import Tallies
from covary.errors import CannotWrite, UnreadableTable
from covary.index.table_records import TableRecord
from covary.pipeline.fetch_segments import collect_segments
from covary.pipeline.plan import LargeTable, TaskSettings, decide_table, table_name
from covary.pipeline.progress_log import open_log
from covary.pipeline.send_code import as_table_task, as_task, ship_covary
from covary.pipeline.spark_runner import DONE_SQL, PARTIAL_SQL
from covary.pipeline.table_notes import describe_columns, make_record
from covary.pipeline.tasks import merge_table, sketch_frames
from covary.tables.arrow_frames import BLOCK_BYTES, find_plain_columns, from_arrow, gather_frames
from covary.tables.read import SAMPLE_ROWS
from covary.tables.reader import Layout
from covary.tables.source import TableSource
from covary.tables.spark_catalog import describe_spark_error, open_spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART = "covary_part"  # beside the rows, the number of the partition that they are of
ROWS_PER_BATCH = ("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")


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
                table = decide_table(source, *_take_sample(source, spark), settings)
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


def _take_sample(source: TableSource, spark: "SparkSession") -> tuple[Layout, pl.DataFrame]:
    """Some rows, to decide the columns' roles, and the columns that can serve."""
    some = open_spark_rows(source.location.text, spark).limit(SAMPLE_ROWS).toArrow()
    layout = Layout(find_plain_columns(some.schema))
    if not layout.columns:
        raise UnreadableTable(source.location.text, "it has no columns that can be a key or a number")
    sample = pl.from_arrow(some)
    assert isinstance(sample, pl.DataFrame)
    return layout, sample[list(layout.columns)]


def _sketch_spark_table(
    number: int, table: LargeTable, settings: TaskSettings, spark: "SparkSession"
) -> None:
    with open_log(settings.scratch, f"spark-{number}") as note:
        note("reading", table.source.name)
    columns = [f"`{column.replace('`', '``')}`" for column in table.roles.columns]
    rows = open_spark_rows(table.source.location.text, spark).selectExpr(
        *columns, f"spark_partition_id() AS {PART}"
    )
    partials = rows.mapInArrow(as_task(sketch_partition, number, table, settings), PARTIAL_SQL)
    merge = as_table_task(merge_table, {number: table}, settings)
    ship_covary(spark)
    collect_segments(partials.groupBy("table").applyInArrow(merge, DONE_SQL), settings, spark)


def sketch_partition(
    number: int, table: LargeTable, settings: TaskSettings, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Sketch one partition of a table that Spark reads, whose number stands in each of its rows."""
    first = next((batch for batch in batches if batch.num_rows), None)
    part = 0 if first is None else first.column(PART)[0].as_py()
    columns = table.roles.columns
    frames = (from_arrow(batch, columns) for batch in chain([] if first is None else [first], batches))
    yield sketch_frames(number, table, gather_frames(frames, BLOCK_BYTES), part, settings)
