"""A cluster that is lost in the middle of a build: Spark would wait for it without an end or a word."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING

from covary.errors import CovaryError, TaskFailed
from covary.pipeline.spark_errors import check_address
from covary.secrets import shown_url

if TYPE_CHECKING:
    from covary.progress import OnProgress, Progress

SECONDS_WITHOUT_PROGRESS = 60.0


@contextmanager
def give_up_on_lost_cluster(
    master: str | None, show: "OnProgress", clock: Callable[[], float] = time.monotonic
) -> "Iterator[OnProgress]":
    """Give a function that shows progress, and ends the build when there is none and no master either.

    A master that dies alone ends nothing: its workers go on.
    """
    if not master or not master.startswith("spark://"):
        yield show
        return
    lost = Event()
    last, since = None, clock()

    def look(now: "Progress") -> None:
        nonlocal last, since
        show(now)
        if now != last:
            last, since = now, clock()
        elif not lost.is_set() and clock() - since > SECONDS_WITHOUT_PROGRESS:
            since = clock()
            try:
                check_address(master, None)
            except CovaryError:
                lost.set()
                # As Ctrl-C does: nothing else gets a thread out of waiting for Spark.
                os.kill(os.getpid(), signal.SIGINT)

    try:
        yield look
    except KeyboardInterrupt:
        if not lost.is_set():
            raise
        raise TaskFailed(
            f"Spark at {shown_url(master)} failed: it does not answer any more, "
            f"and no table was done since then"
        ) from None
