"""How far a build or a long query is: a bar on a terminal, elsewhere a line now and then.

Imports nothing heavy, so that the bar stands before the rest of covary is loaded.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from covary.cli.terminal import PIPE_WIDTH, console
from covary.cli.words import count_of, printable

if TYPE_CHECKING:
    from covary.progress import OnProgress, Progress

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BEFORE_A_BAR = 1.0
COLUMNS = "{done:,} of {total:,} columns measured"
SPARK_LINES = {
    "starting": "Starting Spark for {} ...",
    "waiting": "Waiting for a Spark worker: has the cluster workers with free cores and memory?",
    "working": "Spark is at work on {} ...",
    "without": "Reading {} ...",
}
STARTING_SPARK = "Starting Spark ..."
AT_WORK = "Working ... (the first time on a machine takes some seconds more)"
BAR_WIDTH = 20
ROOM_BESIDE_THE_LINE = 36  # columns of the spinner, the bar and the clock
LEAST_ROOM = 20


@contextmanager
def showing_progress() -> "Iterator[OnProgress]":
    """Give a function that shows how far a build is."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield _lines_of_build()
        return
    with _bar(screen) as show:
        yield show


@contextmanager
def showing_work(words: str = COLUMNS, first: str = "") -> Iterator[Callable[[int, int], None]]:
    """Show that a command is at work once it takes more than a moment; give a function that reports progress.

    `words` is a format with `done` and `total`; before the first report, `first` is shown.
    """
    screen = console(stderr=True)
    if not screen.is_terminal:
        with _lines_of_work(words, first) as show:
            yield show
        return
    columns = SpinnerColumn(), BarColumn(BAR_WIDTH), TextColumn("{task.description}", markup=False)
    bar = Bar(*columns, console=screen, transient=True)
    task = bar.add_task(first or AT_WORK, total=None)
    try:
        with _later(SECONDS_BEFORE_A_BAR, bar.start):
            yield lambda done, total: bar.update(
                task, description=words.format(done=done, total=total), completed=done, total=total
            )
    finally:
        bar.stop()


@contextmanager
def _later(seconds: float, act: Callable[[], None]) -> Iterator[Timer]:
    """Do something once the block has taken so long, by a timer: most work reports nothing meanwhile."""
    timer = Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield timer
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def _lines_of_work(
    words: str, first: str, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int, int], None]]:
    last_time = clock()
    with _later(SECONDS_BETWEEN_LINES, lambda: typer.echo(first, err=True) if first else None) as not_yet:

        def show(done: int, total: int) -> None:
            nonlocal last_time
            not_yet.cancel()
            if clock() - last_time >= SECONDS_BETWEEN_LINES:
                last_time = clock()
                typer.echo(words.format(done=done, total=total), err=True)

        yield show


@contextmanager
def _bar(screen: Console) -> "Iterator[OnProgress]":
    spinner, clock = SpinnerColumn(), TimeElapsedColumn()
    text = TextColumn("{task.description}", markup=False)
    with Bar(spinner, text, clock, console=screen, transient=True) as bar:
        task = bar.add_task("Looking for tables ...", total=None)

        def show(now: "Progress") -> None:
            if now.done or now.reading:
                bar.columns = (spinner, BarColumn(BAR_WIDTH), text, clock)
            room = max(screen.width - ROOM_BESIDE_THE_LINE, LEAST_ROOM)
            bar.update(task, description=progress_line(now, room), total=now.total, completed=now.done)

        yield show


def _lines_of_build() -> "OnProgress":
    last_time, last_line = time.monotonic(), ""

    def show(now: "Progress") -> None:
        nonlocal last_time, last_line
        line = progress_line(now, PIPE_WIDTH)
        # The last line is shown whenever an earlier one was, so that nobody is left at "2 of 5".
        is_due = time.monotonic() - last_time >= SECONDS_BETWEEN_LINES
        if line != last_line and (is_due or (last_line and now.done == now.total)):
            last_time, last_line = time.monotonic(), line
            typer.echo(line, err=True)

    return show


def progress_line(now: "Progress", room: int) -> str:
    """Say how far a build is, in as many characters as there is room for."""
    if not (now.done or now.reading):
        return SPARK_LINES[now.spark].format(count_of(now.total, "table"))
    reading = f", reading {', '.join(map(printable, now.reading))}" if now.reading else ""
    line = f"{now.done:,} of {now.total:,} tables{reading}"
    return line if len(line) <= room else f"{line[: room - 1]}…"
