"""How far a build is, read from the logs that its tasks write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from covary.progress import OnProgress, Progress

POLL_SECONDS = 0.2


@contextmanager
def report_progress(logs: Path, total: int, on_progress: OnProgress | None) -> Iterator[None]:
    """Report from the tasks' logs until the work in the block is done."""
    if on_progress is None:
        yield
        return
    finished = Event()

    def watch() -> None:
        while not finished.wait(POLL_SECONDS):
            on_progress(_progress(logs, total))

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()
        on_progress(_progress(logs, total))


def _progress(logs: Path, total: int) -> Progress:
    done: set[str] = set()
    reading: dict[str, None] = {}
    spark = "starting"
    for log in sorted(logs.glob("*")):  # none, if the folder is taken away
        for line in log.read_text(encoding="utf-8").splitlines():
            event, _, table = line.partition("\t")
            if event == "done":
                done.add(table)
            elif table:
                reading[table] = None
            else:
                spark = event
    return Progress(len(done), total, tuple(table for table in reading if table not in done), spark)
