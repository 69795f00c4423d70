"""Work that a process does not survive: a module of its own, as the process must be able to import it."""

import ctypes
import mmap
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from covary.pipeline.scratch import MARK


def tell(given, watch):
    yield from (given, os.environ["POLARS_MAX_THREADS"], os.getpid())


def fail(given, watch):
    yield 1
    raise given


def panic(given, watch):
    """Print what a library prints that gives up a thread, past everything that Python could hold back."""
    os.write(1, b"panicked at 1")
    os.write(2, b"panicked at 2")
    yield given


class CanNotTravel(Exception):
    def __init__(self, one, two):
        super().__init__(one)


def fail_in_a_strange_way(given, watch):
    raise CanNotTravel("all of", "it")
    yield


def crash(given, watch):
    watch.begin("all")
    ctypes.string_at(0)
    yield


def die_of(given, watch):
    """Die a number of times of a signal, and then give how that went."""
    if len(watch.ends_at("deadly")) < given[0]:
        (watch.folder / f"{len(watch.ends_at('deadly'))}").touch()
        watch.begin("deadly")
        os.kill(os.getpid(), given[1])
    yield (
        watch.ends_at("deadly"),
        watch.ends_at("other"),
        sorted(path.name for path in watch.folder.iterdir() if path.name != MARK),
    )
    yield watch.folder


def hang_in_native_code(given, watch):
    if watch.is_again:
        yield watch.ends_at("count")
        return
    watch.begin("short", 60)
    watch.begin("count", given)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    sqlite3.connect(":memory:").execute(endless).fetchall()


def hang_in_python(given, watch):
    if watch.is_again:
        yield watch.ends_at("loop")
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    watch.begin("loop", given)
    while True:
        pass


def take_memory(given, watch):
    """Take so many bytes, in a step that may have so many."""
    taken, allowed = given
    if watch.is_again:
        yield watch.ends_at("all")
        return
    watch.begin("all", None, allowed)
    held = []
    while len(held) << 20 < taken:
        held.append(b"\1" * (1 << 20))
    time.sleep(0.2)
    yield []


def map_a_file(given, watch):
    with open(given, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        watch.begin("all", None, 250 << 20)
        total = sum(mapped[start] for start in range(0, len(mapped), 4096))
        time.sleep(0.2)
        yield total


def start_another(given, watch):
    if not watch.is_again:
        started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(given).write_text(str(started.pid))
        watch.begin("all", 0.1)
        started.wait()
    yield


def give_up_at_once(given, watch):
    watch.begin("all")
    os._exit(3)
    yield


def sleep_long(given, watch):
    Path(given).write_text(str(os.getpid()))
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(600)
    yield
