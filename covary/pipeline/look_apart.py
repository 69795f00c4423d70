"""Looking for the tables of files that only foreign readers can look into, in a process with limits.

A zip, a database or the log of a lakehouse of some kilobytes can be made to fill the memory, to keep its
reader busy for ever or to crash it. That costs the process, and the file is named; all others are found.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import LifoQueue
from typing import TypeVar, cast

from covary.errors import CovaryError, UnreadableTable
from covary.pipeline.limits import DEFAULT_MEMORY, LEAST_SECONDS, Limits, why_give_up
from covary.pipeline.reading_process import ReadingProcess, Watch
from covary.tables.inside_files import Look
from covary.tables.skipped import NotATable, NotToBeSeen, Why

Seen = TypeVar("Seen")


def look_in_processes(processes: Sequence[ReadingProcess], limits: Limits) -> Look:
    """Give a function that calls another in a process, for what lies at a path, and gives what that gives.

    Threads that call it wait until one of the processes is free. The last one is taken first.
    """
    free: LifoQueue[ReadingProcess] = LifoQueue()
    for process in processes:
        free.put(process)
    return partial(_look, free, pickle.dumps((_look_there, (limits,))))


def _look(
    free: "LifoQueue[ReadingProcess]", work: bytes, path: str, function: Callable[..., Seen], *given: object
) -> Seen:
    process = free.get()
    try:
        (seen,) = process.do(work, (path, function, given))
    finally:
        free.put(process)
    return cast("Seen", seen)


def _look_there(
    limits: Limits, asked: tuple[str, Callable[..., Seen], tuple[object, ...]], watch: Watch
) -> Iterator[Seen]:
    path, function, given = asked
    if problem := why_give_up(watch.ends_at(path)):
        raise NotToBeSeen(Why.UNREADABLE, problem)
    watch.begin(path, limits.seconds or LEAST_SECONDS, limits.memory or DEFAULT_MEMORY)
    try:
        seen = function(*given)
    except UnreadableTable as unreadable:
        raise NotToBeSeen(Why.UNREADABLE, unreadable.reason) from None
    except (NotATable, CovaryError):
        raise
    except Exception as problem:  # nobody knows all errors of foreign readers
        raise NotToBeSeen(Why.UNREADABLE, f"{type(problem).__name__}: {problem}".split("\n")[0]) from None
    yield seen
