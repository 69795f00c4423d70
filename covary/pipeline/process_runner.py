"""The tasks of a build run by this machine alone, without Spark and Java."""

import os
import pickle
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa

from covary.errors import CovaryError
from covary.pipeline.fetch_segments import require_done
from covary.pipeline.plan import GROUP_BYTES, Plan, TaskSettings
from covary.pipeline.progress_log import open_log
from covary.pipeline.reading_process import IdleProcesses, open_processes
from covary.pipeline.send_code import Parcels
from covary.pipeline.tasks import merge_table, number_chunks, sketch_one_chunk, sketch_one_group

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Batches = list[pa.RecordBatch]


class ProcessRunner:
    """Runs the tasks of a plan in reading processes of this machine, as many at once as it has cores."""

    def run(self, plan: Plan, settings: TaskSettings) -> None:
        """Run all tasks of a plan; their segments are then in the scratch folder."""
        with open_log(settings.scratch, "process") as note:
            note("without")
        count, stop = _count_processes(plan), Event()
        with open_processes(count) as processes, ThreadPoolExecutor(count, "covary-build") as threads:
            idle = IdleProcesses(processes)
            try:
                for job in as_completed(_submit_plan(plan, settings, threads, partial(idle.do, stop=stop))):
                    for batch in job.result():
                        require_done(batch.to_pylist(), settings)
            finally:  # whatever they are at when this ends is broken off
                stop.set()
                threads.shutdown(cancel_futures=True)

    def session(self) -> "SparkSession":
        """Refuse: tables that are named spark:... are Spark's."""
        raise CovaryError(
            "tables named spark:... are read by Spark, and this build runs without it; leave them out"
        )


def _count_processes(plan: Plan) -> int:
    """Take one process for each core, but no more than there is work for: to start one takes time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    tasks = len(plan.groups) + sum(len(table.chunks) for table in plan.large)
    return max(1, min(cores, tasks, plan.size // GROUP_BYTES))


def _submit_plan(
    plan: Plan, settings: TaskSettings, threads: ThreadPoolExecutor, do: Callable[[bytes, object], Batches]
) -> list[Future[Batches]]:
    """Have all tasks of a plan done by some threads, first those that stand first."""

    def merge(partials: list[Future[Batches]]) -> Batches:
        # All that it waits for began before it, so that some thread is at work on it.
        return do(merge_work, pa.Table.from_batches([batch for part in partials for batch in part.result()]))

    group_work = pickle.dumps((sketch_one_group, (Parcels(plan.groups), settings)))
    jobs = [threads.submit(do, group_work, number) for number in range(len(plan.groups))]
    starts = number_chunks(plan.large)
    tables = Parcels(plan.large)
    chunk_work = pickle.dumps((sketch_one_chunk, (tables, starts, settings)))
    merge_work = pickle.dumps((merge_table, (tables, settings)))
    for table, start in zip(plan.large, starts, strict=True):
        chunks = range(start, start + len(table.chunks))
        jobs.append(threads.submit(merge, [threads.submit(do, chunk_work, number) for number in chunks]))
    return jobs
