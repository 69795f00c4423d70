"""Questions too many for one machine, as Spark jobs over the same files and by the same code.

Tasks map the files of the index into memory where they run, so the file system that holds it must be shared.
"""

import io
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_type_hints

import numpy as np
import polars as pl
import pyarrow as pa

from covary.arrays import Row
from covary.errors import CovaryError
from covary.index.manifest import parse_manifest
from covary.pipeline.send_code import as_spark_schema, as_task, ship_covary
from covary.progress import OnCount
from covary.query.all_pairs import (
    Columns,
    Comparison,
    Pairs,
    compare_columns,
    count_survivors,
    find_last_bin,
    list_columns,
    measure_pairs,
    merge_comparisons,
)
from covary.query.ask import Index
from covary.query.hits import Hit
from covary.query.options import QueryOptions
from covary.sketching.open_table import Frame, KeyName, to_polars
from covary.tables.location import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]
QUESTIONS_PER_TASK, COLUMNS_PER_TASK, MOST_TASKS = 4, 64, 4096
ROUNDS = 8  # of jobs, after each of which a person is told how far they are
STRINGS = pa.list_(pa.list_(pa.string()))
KINDS = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}


def _kind_of(hint: type) -> pa.DataType:
    """Return the type of a column that holds a field of a hit, or nothing."""
    kinds = [kind for kind in getattr(hint, "__args__", (hint,)) if kind is not type(None)]
    return KINDS.get(kinds[0], STRINGS)


HINTS = get_type_hints(Hit)
OF_HIT = [(field.name, _kind_of(HINTS[field.name])) for field in fields(Hit) if field.name != "explanation"]
QUESTION = pa.schema(
    {"query": pa.int64(), "path": pa.string(), "rows": pa.binary(), "key": pa.string(), "value": pa.string()}
)
OF_QUERY = [("query", pa.int64()), ("query_value", pa.string()), ("problem", pa.string())]
ANSWER = pa.schema([*OF_QUERY, ("place", pa.int64()), *OF_HIT])
COMPARISON = pa.schema([(name, pa.binary()) for name in Comparison.__slots__])


class Question(NamedTuple):
    """A column to explain: a table (a frame, or a path that Spark's workers can read), its key and value."""

    table: Frame
    key: KeyName
    value: str


def answer_many(
    index: Index, questions: Sequence[Question], spark: "SparkSession", options: QueryOptions
) -> "DataFrame":
    """Answer questions on Spark: a row for each hit, or one with a problem where there is no answer."""
    rows = [_question_row(number, question) for number, question in enumerate(questions)]
    asked = spark.createDataFrame(pa.Table.from_pylist(rows, schema=QUESTION))
    tasks = max(1, min(-(-len(rows) // QUESTIONS_PER_TASK), MOST_TASKS))
    ship_covary(spark)
    task = as_task(answer_some, _state_of(index), options)
    return asked.repartition(tasks).mapInArrow(task, as_spark_schema(ANSWER))


def _question_row(number: int, question: Question) -> Row:
    row = {"query": number, "key": json.dumps(question.key), "value": question.value}
    if isinstance(question.table, str | os.PathLike):
        path = os.fspath(question.table)
        return row | {"path": path if Location(path).is_url else Location(path).path}
    packed = io.BytesIO()
    to_polars(question.table).write_ipc(packed)
    return row | {"rows": packed.getvalue()}


def answer_some(state: tuple[str, str], options: QueryOptions, batches: Batches) -> Batches:
    """Answer the questions of one task."""
    for batch in batches:
        for row in batch.to_pylist():
            yield pa.RecordBatch.from_pylist(_answer_rows(_open_state(*state), row, options), ANSWER)


def _answer_rows(index: Index, row: Row, options: QueryOptions) -> list[Row]:
    table = row["path"] if row["rows"] is None else pl.read_ipc(io.BytesIO(row["rows"]))
    asked = {"query": row["query"], "query_value": row["value"]}
    try:
        hits = index.ask(table, json.loads(row["key"]), row["value"], options)
    except CovaryError as problem:
        return [asked | {"problem": str(problem)}]
    return [
        asked | {"place": rank} | {name: getattr(hit, name) for name, _ in OF_HIT}
        for rank, hit in enumerate(hits, start=1)
    ]


def find_pairs(
    index: Index, options: QueryOptions, spark: "SparkSession", on_progress: OnCount | None = None
) -> Pairs:
    """Compare every column of an index with every other that it joins with."""
    started = time.perf_counter()
    columns = list_columns(index).count
    ship_covary(spark)
    best = _best_pairs(index, columns, options, spark, on_progress)
    last_bin = find_last_bin(best, options)
    if last_bin is not None:
        best = _best_pairs(index, columns, options, spark, on_progress, last_bin)
    return Pairs(
        path=str(index.path),
        columns=columns,
        compared=int(best.counts.sum()),
        survivors=count_survivors(best, options),
        level=options.level,
        pairs=tuple(measure_pairs(index, best, options)),
        elapsed_ms=(time.perf_counter() - started) * 1e3,
    )


def _best_pairs(
    index: Index,
    columns: int,
    options: QueryOptions,
    spark: "SparkSession",
    on_progress: OnCount | None,
    last_bin: int | None = None,
) -> Comparison:
    tasks = max(1, -(-columns // COLUMNS_PER_TASK))
    compare = as_task(compare_some, _state_of(index), tasks, options, last_bin)
    best = merge_comparisons([], options.top)
    if on_progress:
        on_progress(0, columns)
    for numbers in np.array_split(np.arange(tasks), min(tasks, ROUNDS)):
        first, end = int(numbers[0]), int(numbers[-1]) + 1
        numbered = spark.range(first, end, 1, end - first)
        done = numbered.mapInArrow(compare, as_spark_schema(COMPARISON)).toArrow()
        best = merge_comparisons([best, *map(_read_comparison, done.to_pylist())], options.top)
        if on_progress:
            on_progress(columns * end // tasks, columns)
    return best


def compare_some(
    state: tuple[str, str], tasks: int, options: QueryOptions, last_bin: int | None, batches: Batches
) -> Batches:
    """Compare the columns of one task, given by its number among so many."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            columns = _list_columns(*state)
            # Every so-manieth: neighbours are of one table, and a table of popular keys costs more.
            some = range(number, columns.count, tasks)
            compared = compare_columns(_open_state(*state), columns, some, options, last_bin)
            row = {name: getattr(compared, name).tobytes() for name in Comparison.__slots__}
            yield pa.RecordBatch.from_pylist([row], COMPARISON)


def _read_comparison(row: Mapping[str, bytes]) -> Comparison:
    kinds: dict[str, type[np.generic]] = {"scores": np.float64, "chance": np.float64}
    return Comparison(**{name: np.frombuffer(part, kinds.get(name, np.int64)) for name, part in row.items()})


def _state_of(index: Index) -> tuple[str, str]:
    return str(index.path.absolute()), index.manifest.to_json()


@lru_cache(maxsize=4)
def _open_state(path: str, manifest: str) -> Index:
    """Open the state of an index that a job was begun with, once in a worker."""
    return Index.at(Path(path), parse_manifest(manifest))


@lru_cache(maxsize=4)
def _list_columns(path: str, manifest: str) -> Columns:
    return list_columns(_open_state(path, manifest))
