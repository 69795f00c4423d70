"""How far a build is: the logs that its tasks write, and what they say together."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import IO

from covary.pipeline.plan import PROGRESS
from covary.progress import OnProgress, Progress

POLL_SECONDS = 0.2


@contextmanager
def open_log(scratch: str, task: str) -> Iterator[Callable[..., None]]:
    """Give a function that notes what a task is doing, and at which table, where the build's process sees it.

    The log stays open as long as the task is done: by that it can be seen which process does it.
    """
    with ExitStack() as open_files:
        log: IO[bytes] | None = None
        # Progress is a courtesy: where it can't be written, the segment will say so.
        with suppress(OSError):
            path = Path(scratch, PROGRESS, task)
            log = open_files.enter_context(path.open("ab", buffering=0))

        def note(event: str, table: str = "") -> None:
            with suppress(OSError):
                if log:
                    log.write(f"{event}\t{as_logged(table)}\n".encode())

        yield note


def as_logged(table: str) -> str:
    """Write the name of a table as it stands in a log: in one line, and in UTF-8."""
    return table.encode(errors="backslashreplace").decode().replace("\n", " ").replace("\r", " ")


def read_log(log: Path) -> Iterator[tuple[str, str]]:
    """Read the events of a log, each with the table that it is of."""
    for line in log.read_text(encoding="utf-8").split("\n")[:-1]:
        event, _, table = line.partition("\t")
        yield event, table


@contextmanager
def report_progress(logs: Path, total: int, on_progress: OnProgress | None) -> Iterator[None]:
    """Report from the tasks' logs until the work in the block is done."""
    if on_progress is None:
        yield
        return
    finished = Event()

    def watch() -> None:
        while not finished.wait(POLL_SECONDS):
            on_progress(_add_up(logs, total))

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()
        on_progress(_add_up(logs, total))


def _add_up(logs: Path, total: int) -> Progress:
    done: set[str] = set()
    reading: dict[str, None] = {}
    spark = "starting"
    for log in sorted(logs.glob("*")):  # none, if the folder is taken away
        for event, table in read_log(log):
            if event == "done":
                done.add(table)
            elif table:
                reading[table] = None
            else:
                spark = event
    return Progress(len(done), total, tuple(table for table in reading if table not in done), spark)
