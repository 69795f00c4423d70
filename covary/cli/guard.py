"""Keeps the machine usable while a command reads the table that a person asks with.

Tables of a collection are read in processes with limits. This one is read in the command's own process,
which answers sooner: the command ends when the table fills the memory, or when Ctrl-C is not heeded.
"""

import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from threading import Thread

from covary.cli.commands import STOPPED, USER_MISTAKE, complain
from covary.pipeline.limits import DEFAULT_MEMORY, bytes_of
from covary.pipeline.reading_process import memory_of
from covary.tables.location import Location

LOOK_SECONDS = 0.02  # memory is filled at some gigabytes a second
PATIENCE_SECONDS = 2.0  # for what runs to heed Ctrl-C
LINE_ANEW = "\r\x1b[2K\x1b[?25h"  # without the bar, and with the cursor that it hides
AVAILABLE = Path("/proc/meminfo")
GROUP_LIMIT, GROUP_USE = (Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory.current"))


@contextmanager
def guarding(memory: str | None, *tables: str) -> Iterator[None]:
    """End the command, with a sentence, if reading tables takes too much memory or does not heed Ctrl-C.

    Without a limit that a person gave, half of the memory that is free is enough, and 1.5 GB at least.
    """
    limit = bytes_of(memory) if memory else max(DEFAULT_MEMORY, _free_memory() // 2)
    names = " and ".join(Location(table).shown for table in tables)
    signals, sender = os.pipe()
    os.set_blocking(sender, False)
    before = signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    watching = Thread(target=_watch, args=(signals, limit, names), daemon=True)
    watching.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(sender)  # so the thread ends
        watching.join()
        os.close(signals)


def _watch(signals: int, limit: int, tables: str) -> None:
    patient_until = math.inf
    while True:
        if memory_of(os.getpid()) > limit:
            too_much = f"more than {limit / 1e9:.2g} GB of memory; --memory sets another limit"
            _end(USER_MISTAKE, f"reading {tables}, and answering, takes {too_much}")
        if time.monotonic() > patient_until:
            _end(STOPPED, "stopped")
        if select([signals], [], [], LOOK_SECONDS)[0]:
            received = os.read(signals, 1)
            if not received:
                return
            if received[0] == signal.SIGINT:  # a second one is for who has no patience
                again = patient_until < math.inf
                patient_until = time.monotonic() + (0 if again else PATIENCE_SECONDS)


def _end(code: int, reason: str) -> None:
    if sys.stderr.isatty():
        os.write(2, LINE_ANEW.encode())
    complain(reason)
    os._exit(code)


def _free_memory() -> int:
    """The bytes that are free on this machine, or in the container around; 0 where nobody can tell."""
    free = []
    with suppress(OSError, ValueError, IndexError):
        (line,) = (line for line in AVAILABLE.read_text().splitlines() if line.startswith("MemAvailable:"))
        free.append(int(line.split()[1]) << 10)
    with suppress(OSError, ValueError):
        free.append(int(GROUP_LIMIT.read_text()) - int(GROUP_USE.read_text()))
    return max(0, min(free, default=0))
