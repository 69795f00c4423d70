"""The pipeline on Spark: the tasks of a build, run by mapInArrow and merged by applyInArrow.

The only module that imports Spark, and only when called. DataFrame API alone, so that it runs through Spark
Connect too. Spark drives, the kernel decides: raw rows are never shuffled.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pyarrow as pa

from covary.errors import MissingPart
from covary.tasks import Plan, Settings, merge_chunks, sketch_chunk, sketch_group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DONE = pa.schema(
    [pa.field("task", pa.string()), pa.field("error", pa.int32()), pa.field("message", pa.string())]
)
DONE_SQL = "task string, error int, message string"
PARTIAL_SQL = "table int, key string, value string, complete boolean, counts string, states binary, rows long, problem string"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
JVM_GREETING = re.compile(rb"WARNING: Using incubator modules: .*\n")
GREETING_BEGUN = re.compile(rb"WARNING: Using[^\n]*\Z")


def run_on_spark(plan: Plan, settings: Settings, spark: "SparkSession") -> None:
    """Run all tasks of a plan; their segments are then in the scratch folder."""
    jobs: list[DataFrame] = []
    if plan.groups:
        numbers = spark.range(0, len(plan.groups), 1, len(plan.groups))
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


def _one_polars_thread() -> None:
    # Each Spark worker is one task: more threads than that would only fight over the cores.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")


def _sketch_groups(
    plan: Plan, settings: Settings
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _done(f"group {number}", lambda n=number: sketch_group(n, plan.groups[n], settings))

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
        done = _done(f"table {number}", lambda: merge_chunks(number, plan.large[number], partials, settings))
        return pa.Table.from_batches([done])

    return run


def _done(task: str, work: Callable[[], None]) -> pa.RecordBatch:
    """Do a task's work; failing to write is told, not thrown, so that Spark does not try it three times more."""
    try:
        work()
    except OSError as problem:
        return pa.RecordBatch.from_pylist(
            [{"task": task, "error": problem.errno or 5, "message": str(problem.strerror)}], schema=DONE
        )
    return pa.RecordBatch.from_pylist([{"task": task}], schema=DONE)


def start_session(master: str | None = None, remote: str | None = None) -> "SparkSession":
    """Start a Spark session of our own: quiet, without its web page, local unless told otherwise."""
    if find_spec("pyspark") is None:
        raise MissingPart("indexing runs on Spark: pip install 'covary[spark]'")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if remote:
        with _without_greeting():
            return SparkSession.builder.remote(remote).getOrCreate()
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise MissingPart(
            "indexing runs on Spark, which needs Java 17 or newer: apt install default-jre-headless"
        )
    settings = {
        "spark.app.name": "covary",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        "spark.driver.host": "localhost",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{LOG_SETTINGS}",
    }
    builder = SparkSession.builder.master(master or "local[*]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _without_greeting():
        return builder.getOrCreate()


@contextmanager
def _without_greeting() -> Iterator[None]:
    """Keep from the user what a JVM started in the block says at every start; all else it says is passed on.

    Spark asks for a module that Java warns of, and the warning has no switch of its own.
    """
    try:
        user = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    source, sink = os.pipe()
    os.dup2(sink, 2)
    os.close(sink)
    # The JVM keeps the pipe as long as it lives, so its errors are passed on for as long.
    Thread(target=_pass_on, args=(source, os.dup(user)), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(user, 2)
        os.close(user)


def _pass_on(source: int, sink: int) -> None:
    held = b""
    while chunk := os.read(source, 1 << 16):
        text = JVM_GREETING.sub(b"", held + chunk)
        begun = GREETING_BEGUN.search(text)
        held = begun.group() if begun else b""
        os.write(sink, text.removesuffix(held))
    os.write(sink, held)
    os.close(source)
    os.close(sink)
