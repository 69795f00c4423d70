"""Tables, views and queries that Spark reads, sketched by the same kernel, partition by partition.

Whether one has changed can't be told, so each build reads it again.
"""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from covary.errors import UnreadableTable
from covary.tables.arrow_frames import BLOCK_BYTES, find_plain_columns, from_arrow, gather_frames
from covary.tables.read import SAMPLE_ROWS
from covary.tables.reader import Layout
from covary.tables.source import TableSource
from covary.tables.spark_catalog import open_spark_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PART = "covary_part"  # beside the rows, the number of the partition that they are of
ROWS_PER_BATCH = ("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")


def take_sample(source: TableSource, spark: "SparkSession") -> tuple[Layout, pl.DataFrame]:
    """Some rows, to decide the columns' roles, and the columns that can serve."""
    some = open_spark_rows(source.location.text, spark).limit(SAMPLE_ROWS).toArrow()
    layout = Layout(find_plain_columns(some.schema))
    if not layout.columns:
        raise UnreadableTable(source.location.text, "it has no columns that can be a key or a number")
    sample = pl.from_arrow(some)
    assert isinstance(sample, pl.DataFrame)
    return layout, sample[list(layout.columns)]


def number_rows(source: TableSource, columns: tuple[str, ...], spark: "SparkSession") -> "DataFrame":
    """Some columns of all rows, each with the number of its partition."""
    wanted = [f"`{column.replace('`', '``')}`" for column in columns]
    return open_spark_rows(source.location.text, spark).selectExpr(*wanted, f"spark_partition_id() AS {PART}")


def read_partition(
    batches: Iterator[pa.RecordBatch], columns: tuple[str, ...]
) -> tuple[int, Iterator[pl.DataFrame]]:
    """The number of a partition, and its rows in frames of bounded size."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return 0, iter(())
    number = first.column(PART)[0].as_py()
    frames = (from_arrow(batch, list(columns)) for batch in chain([first], batches))
    return number, gather_frames(frames, BLOCK_BYTES)
