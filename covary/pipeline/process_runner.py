"""The tasks of a build run by this machine alone, without Spark and Java."""

import os
import pickle
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa

from covary.errors import CovaryError
from covary.pipeline.fetch_segments import require_done
from covary.pipeline.plan import GROUP_BYTES, Plan, TaskSettings
from covary.pipeline.progress_log import note_progress
from covary.pipeline.reading_process import ReadingProcess, lasting_process
from covary.pipeline.send_code import Parcels
from covary.pipeline.tasks import chunk_starts, merge_table, sketch_one_chunk, sketch_one_group

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Batches = list[pa.RecordBatch]


class ProcessRunner:
    """Runs the tasks of a plan in reading processes of this machine, as many at once as it has cores."""

    def run(self, plan: Plan, settings: TaskSettings) -> None:
        """Run all tasks of a plan; their segments are then in the scratch folder."""
        note_progress(settings.scratch, "process", "without")
        with _processes(_count_processes(plan)) as processes:
            jobs = processes.submit_plan(plan, settings)
            for job in as_completed(jobs):
                for batch in job.result():
                    require_done(batch.to_pylist(), settings)

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


class _Processes:
    """Reading processes, and as many threads that give them work and wait for what comes of it."""

    def __init__(self, count: int) -> None:
        # The first is the one that stays for the next build: mostly it has been started already.
        self.own = [ReadingProcess() for _ in range(count - 1)]
        self._idle: SimpleQueue[ReadingProcess] = SimpleQueue()
        for process in (lasting_process(), *self.own):
            self._idle.put(process)
        self.threads = ThreadPoolExecutor(count, "covary-build")
        self.stop = Event()

    def submit_plan(self, plan: Plan, settings: TaskSettings) -> list[Future[Batches]]:
        """Have all tasks of a plan done, first those that stand first."""
        group_work = pickle.dumps((sketch_one_group, (Parcels(plan.groups), settings)))
        jobs = [self.threads.submit(self._do, group_work, number) for number in range(len(plan.groups))]
        starts = chunk_starts(plan.large)
        tables = Parcels(plan.large)
        chunk_work = pickle.dumps((sketch_one_chunk, (tables, starts, settings)))
        merge_work = pickle.dumps((merge_table, (tables, settings)))
        for table, start in zip(plan.large, starts, strict=True):
            chunks = range(start, start + len(table.chunks))
            partials = [self.threads.submit(self._do, chunk_work, number) for number in chunks]
            jobs.append(self.threads.submit(self._merge, merge_work, partials))
        return jobs

    def _merge(self, work: bytes, partials: list[Future[Batches]]) -> Batches:
        # All that it waits for began before it, so that some thread is at work on it.
        return self._do(work, pa.Table.from_batches([batch for part in partials for batch in part.result()]))

    def _do(self, work: bytes, given: object) -> Batches:
        process = self._idle.get()
        try:
            return list(process.do(work, given, self.stop))
        finally:
            self._idle.put(process)


@contextmanager
def _processes(count: int) -> Iterator[_Processes]:
    """Give some reading processes; whatever they are at when the block ends is broken off."""
    processes = _Processes(count)
    try:
        yield processes
    finally:
        processes.stop.set()
        processes.threads.shutdown(cancel_futures=True)
        for process in processes.own:
            process.close()
