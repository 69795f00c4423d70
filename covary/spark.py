"""The pipeline on Spark: the tasks of a build, run by mapInArrow and merged by applyInArrow.

The only module that imports Spark, and only when called. DataFrame API alone, so that it runs through Spark
Connect too. Spark drives, the kernel decides: raw rows are never shuffled.
"""

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from covary.errors import MissingPart
from covary.tasks import Plan, Settings, merge_chunks, sketch_chunk, sketch_group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DONE = pa.schema(
    [pa.field("task", pa.string()), pa.field("error", pa.int32()), pa.field("message", pa.string())]
)
DONE_SQL = "task string, error int, message string"
PARTIAL_SQL = (
    "table int, key string, value string, complete boolean, counts string, states binary, rows long, "
    "problem string"
)
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
        return pa.RecordBatch.from_pylist(
            [{"task": task, "error": problem.errno or 5, "message": str(problem.strerror)}], schema=DONE
        )
    return pa.RecordBatch.from_pylist([{"task": task}], schema=DONE)


@contextmanager
def session(spark: "SparkSession | None", master: str | None, remote: str | None) -> Iterator["SparkSession"]:
    """Give the caller's session, or one that is already up, or one of our own that ends with the block."""
    running = spark or _running_session(master, remote)
    if running is not None:
        yield running
        return
    own = start_session(master, remote)
    try:
        yield own
    finally:
        with suppress(Exception):  # a broken session can't be stopped; what broke it is on its way up
            own.stop()


def _running_session(master: str | None, remote: str | None) -> "SparkSession | None":
    if master or remote or "pyspark.sql" not in sys.modules:
        return None
    return cast("SparkSession | None", sys.modules["pyspark.sql"].SparkSession.getActiveSession())


def start_session(master: str | None = None, remote: str | None = None) -> "SparkSession":
    """Start a Spark session of our own: quiet, without its web page, local unless told otherwise."""
    if find_spec("pyspark") is None:
        raise MissingPart("indexing runs on Spark: pip install 'covary[spark]'")
    from pyspark.sql import SparkSession  # noqa: PLC0415  (covary works without Spark until here)

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if remote:
        return _start(SparkSession.builder.remote(remote))
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise MissingPart(
            "indexing runs on Spark, which needs Java 17 or newer: apt install default-jre-headless"
        )
    settings = {
        "spark.app.name": "covary",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        # A worker is one task: more Polars threads than that would only fight over the cores.
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        "spark.driver.host": "localhost",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{LOG_SETTINGS}",
    }
    builder = SparkSession.builder.master(master or "local[*]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return _start(builder)


def _start(builder: Any) -> "SparkSession":
    """Start a session that tells the user of its errors, but not of itself, nor of being interrupted."""
    interrupted, started = Event(), Event()

    def interrupt(*_: object) -> None:
        again = interrupted.is_set()
        interrupted.set()
        # A JVM whose start is broken off would never end; so the first interruption waits until it is up.
        if started.is_set() or again:
            raise KeyboardInterrupt

    with _filtered_stderr(interrupted):
        _on_interrupt(interrupt)
        try:
            session = builder.getOrCreate()
        finally:
            started.set()
    # In place of PySpark's handler, which asks the JVM to cancel jobs while an answer of it is being read.
    _on_interrupt(interrupt)
    if interrupted.is_set():
        session.stop()
        raise KeyboardInterrupt
    return cast("SparkSession", session)


def _on_interrupt(handler: Callable[..., None]) -> None:
    if current_thread() is main_thread():  # no other thread may set it, nor is interrupted
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _filtered_stderr(interrupted: Event) -> Iterator[None]:
    """Pass on what a JVM started in the block says, as long as it lives and until the user interrupts it.

    Its greeting is left out: Spark asks for a module that Java warns of, and the warning has no switch.
    """
    try:
        user = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    source, sink = os.pipe()
    os.dup2(sink, 2)
    os.close(sink)
    Thread(target=_pass_on, args=(source, os.dup(user), interrupted), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(user, 2)
        os.close(user)


def _pass_on(source: int, sink: int, interrupted: Event) -> None:
    held = b""
    while chunk := os.read(source, 1 << 16):
        text = JVM_GREETING.sub(b"", held + chunk)
        begun = GREETING_BEGUN.search(text)
        held = begun.group() if begun else b""
        if not interrupted.is_set():
            os.write(sink, text.removesuffix(held))
    os.write(sink, held)
    os.close(source)
    os.close(sink)
