"""Questions too big for one machine, answered on Spark: many at once, or every column against every other."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from covary.pipeline.session import running_session
from covary.pipeline.spark_questions import Question, answer_many, find_pairs
from covary.progress import OnCount
from covary.query.all_pairs import Pairs
from covary.query.ask import Index
from covary.query.options import GivenOptions, QueryOptions
from covary.sketching.open_table import Frame, KeyName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def query(
    index: Index | str | os.PathLike[str],
    queries: Sequence[Question | tuple[Frame, KeyName, str]],
    spark: "SparkSession | None" = None,
    **options: Unpack[GivenOptions],
) -> "DataFrame":
    """Answer many queries at once on Spark, as `Index.query` answers each.

    Args:
        index: an index, or its folder, in a file system that Spark's workers share.
        queries: tables (frames, or paths that workers can read), each with its key and its column of numbers.
        spark: a session; without one, that which is running, or a new local one.
        options: those of `Index.query`.

    Returns:
        A row for each hit: "query" is the place of its query in the list, "place" that of the hit among its
        hits, the rest as in `Hit`. A query that can't be answered has one row, with its "problem". Rows are
        computed when they are taken: collect or write them before the index is changed.
    """
    questions = [Question(*each) for each in queries]
    return answer_many(_index(index), questions, spark or running_session(), QueryOptions(**options))


def pairs(
    index: Index | str | os.PathLike[str],
    top: int = 1000,
    spark: "SparkSession | None" = None,
    *,
    on_progress: OnCount | None = None,
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
    chosen = QueryOptions(top=top, **options)
    return find_pairs(_index(index), chosen, spark or running_session(), on_progress)


def _index(index: Index | str | os.PathLike[str]) -> Index:
    return index if isinstance(index, Index) else Index.open(Path(index))
