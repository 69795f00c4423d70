"""Looking for the tables of files that only foreign readers can look into, in a process with limits.

A zip, a database or the log of a lakehouse of some kilobytes can be made to fill the memory, to keep its
reader busy for ever or to crash it. That costs the process, and the file is named; all others are found.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from threading import Event

from covary.errors import CovaryError, UnreadableTable
from covary.pipeline.limits import DEFAULT_MEMORY, LEAST_SECONDS, Limits, why_give_up
from covary.pipeline.reading_process import IdleProcesses, ReadingProcess, Watch
from covary.tables.inside_files import Look, Tables
from covary.tables.skipped import NotATable, NotToBeSeen, Why


def look_in_processes(processes: Sequence[ReadingProcess], limits: Limits) -> Look:
    """Give a function that calls another in a process, for what lies at a path, and gives what that gives."""
    idle, work = IdleProcesses(processes), pickle.dumps((_look_there, (limits,)))

    def look(path: str, function: Callable[..., Tables], *given: object, stop: Event | None = None) -> Tables:
        tables: list[Tables] = idle.do(work, (path, function, given), stop)
        return tables[0]

    return look


def _look_there(
    limits: Limits, asked: tuple[str, Callable[..., Tables], tuple[object, ...]], watch: Watch
) -> Iterator[Tables]:
    path, function, given = asked
    if problem := why_give_up(watch.ends_at(path)):
        raise NotToBeSeen(Why.UNREADABLE, problem)
    watch.begin(path, limits.seconds or LEAST_SECONDS, limits.memory or DEFAULT_MEMORY)
    try:
        tables = function(*given)
    except UnreadableTable as unreadable:
        raise NotToBeSeen(Why.UNREADABLE, unreadable.reason) from None
    except (NotATable, CovaryError):
        raise
    except BaseException as problem:  # nobody knows all errors of foreign readers; those of Rust are such
        raise NotToBeSeen(Why.UNREADABLE, f"{type(problem).__name__}: {problem}".split("\n")[0]) from None
    yield tables
