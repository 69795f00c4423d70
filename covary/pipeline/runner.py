"""Who runs the tasks of a build: Spark, here or on a cluster, or processes of this machine without Spark.

Both run the same plan by the same functions, so that the same collection gives the same bytes.
"""

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol

from covary.errors import CovaryError, MissingPart, RunsWithoutSpark, chosen
from covary.pipeline.plan import Plan, TaskSettings
from covary.pipeline.process_runner import ProcessRunner
from covary.pipeline.session import open_session, require_spark, session_that_is_up
from covary.pipeline.spark_runner import SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK, PROCESS = "spark", "process"


class Runner(Protocol):
    """Runs the tasks of a build."""

    def run(self, plan: Plan, settings: TaskSettings) -> None:
        """Run all tasks of a plan; their segments are then in the scratch folder."""

    def session(self) -> "SparkSession":
        """Return the session that reads the tables named spark:...; an error where there is none."""


@contextmanager
def open_runner(
    runner: Runner | str | None, spark: "SparkSession | None", master: str | None, remote: str | None
) -> Iterator[Runner]:
    """Give the runner that a person asked for, until the block ends; None: Spark, where it is installed.

    Spark runs on the session, else on one that is started on the master or on the Spark Connect server.
    """
    if not isinstance(runner, str | None):
        yield runner
        return
    names_spark = bool(spark or master or remote)
    if runner is None:
        runner = SPARK if names_spark or session_that_is_up() or _has_spark() else PROCESS
    if chosen(runner, {SPARK: SPARK, PROCESS: PROCESS}, "runner") == SPARK:
        with ExitStack() as until_the_end:
            yield SparkRunner(cache(lambda: until_the_end.enter_context(open_session(spark, master, remote))))
    elif names_spark:
        raise CovaryError("--runner process runs without Spark; leave out --runner, or --master and --remote")
    else:
        yield ProcessRunner()


def _has_spark() -> bool:
    """Whether a local Spark can be started; if not, say what is lacking and what is done instead."""
    try:
        require_spark()
    except MissingPart as lacking:
        warnings.warn(
            RunsWithoutSpark(f"tables are read without Spark, by this machine alone: {lacking}"), stacklevel=2
        )
        return False
    return True
