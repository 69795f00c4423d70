"""Builds whose processes are killed, or whose disks are full: as before or as after, never between."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from torture.goodtables import PLACES, write_good
from torture.law import answered, pairs_in, readable_by_others, snapshot, touched
from torture.running import Ran, processes_of
from torture.trials import CHANGED, WRONG, Breach, Outcome, Suite
from torture.workplace import Record, Workplace

TABLES = 40
SECONDS = 14.0  # within which a build is killed; most of them is Spark's start
SIGNALS = {"killed": signal.SIGKILL, "ended": signal.SIGTERM, "interrupted": signal.SIGINT}
VICTIMS = ("driver", "JVM", "a worker", "every worker", "all")
STOPPED = {-2, -9, -15, 130, 143, 2, 0}  # -2: interrupted when it was done and Python was leaving


def _tables(folder: Path, first: int, count: int) -> None:
    for number in range(first, first + count):
        rng = np.random.default_rng(number)
        values = {f"v{column}": rng.normal(size=len(PLACES)) for column in range(4)}
        pl.DataFrame({"place": PLACES, **values}).write_csv(folder / f"table{number}.csv")


def _commands_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _victims(session: int, whom: str) -> list[int]:
    lines = {pid: _commands_of(pid) for pid in processes_of(session)}
    jvms = [pid for pid, line in lines.items() if "SparkSubmit" in line and "launcher.Main" not in line]
    workers = [pid for pid, line in lines.items() if "pyspark.daemon" in line or "pyspark/daemon" in line]
    if whom == "driver":
        return [session]
    if whom == "JVM":
        return [pid for pid in jvms if "java" in lines[pid].split(" ")[0]]
    if whom in {"a worker", "every worker"}:
        return workers[-1:] if whom == "a worker" else workers
    return list(lines)


def _killer(whom: str, how: int, moment: float, again: bool) -> Callable[[Any, float], None]:
    """Kill processes of a build once, as soon as there are such after a moment; or each time there are."""
    done: list[float] = []

    def act(process: Any, seconds: float) -> None:
        if seconds < moment or (done and (not again or seconds - done[-1] < 0.7 or seconds > moment + 20)):
            return
        for pid in _victims(process.pid, whom):
            with suppress(ProcessLookupError):
                os.kill(pid, how)
            done.append(seconds)

    return act


def _question(asked: Path, index: Path) -> tuple[str, ...]:
    return (
        "query",
        str(asked),
        "--key",
        "place",
        "--value",
        "x",
        "--index",
        str(index),
        "--top",
        "100000",
        "--json",
    )


def _answer(record: Record, asked: Path, index: Path) -> dict[tuple[str, ...], Any] | None:
    facts = answered(record.run(record.workplace.desk, *_question(asked, index)))
    return None if facts is None else pairs_in(facts, {hit["table"] for hit in facts["hits"]})


def _run_kills(workplace: Workplace, numbers: Iterator[int]) -> Iterator[Outcome]:
    start = workplace.empty("start")
    data, index = start / "data", start / "index"
    asked = write_good(data)
    _tables(data, 0, TABLES)
    made = workplace.spark_desk("index", str(data), "--into", str(index), "--size", "64", deadline=300)
    _require_built(made)
    shutil.copytree(index, start / "after")
    _tables(data, TABLES, TABLES)
    # A copy of an index is another index: its sources are named again.
    made = workplace.spark_desk("index", str(data), "--into", str(start / "after"), deadline=300)
    _require_built(made)
    workplace.spark_desk.close()
    for trial in numbers:
        rng = workplace.rng(trial)
        whom = VICTIMS[trial % len(VICTIMS)]
        how = "killed" if "worker" in whom else list(SIGNALS)[int(rng.integers(3))]
        first = bool(rng.random() < 0.3)
        moment = float(rng.uniform(0.2, SECONDS))
        again = whom == "every worker" and rng.random() < 0.5
        record = Record(
            workplace,
            trial,
            f"{whom} {how} after {moment:.1f} s{', again and again' * again}{', first build' * first}",
        )
        _kill(record, start, asked, _killer(whom, SIGNALS[how], moment, again), first=first)
        yield record.outcome()


def _require_built(ran: Ran) -> None:
    if ran.code:
        raise RuntimeError(f"no index: {ran.err.decode(errors='replace')[-300:]}")


def _kill(
    record: Record, start: Path, asked: Path, killer: Callable[[Any, float], None], *, first: bool
) -> None:
    workplace = record.workplace
    index = workplace.empty("trial") / "index"
    if not first:
        shutil.copytree(start / "index", index)
    before = _answer(record, asked, start / "index")
    after = _answer(record, asked, start / "after")
    own = snapshot(start)
    temporary = workplace.empty("fresh/tmp")
    build = ("index", str(start / "data"), "--into", str(index), "--size", "64")
    ran = workplace.fresh(*build, meanwhile=killer, deadline=150)
    record.ran.append(ran)
    record.breaches += _judged(ran)
    record.breaches += readable_by_others(temporary)
    if (index / "manifest.json").exists():
        found = _answer(record, asked, index)
        if found not in (after,) if first else found not in (before, after):
            record.breaches.append(Breach(WRONG, "it answers neither as before nor as after"))
        record.run(workplace.desk, "check", str(index))
    elif not first:
        record.breaches.append(Breach(CHANGED, "the index is gone"))
    again = record.run(workplace.spark_desk, *build, deadline=120)
    if again.code == 0 and _answer(record, asked, index) != after:
        record.breaches.append(Breach(WRONG, "built again, it does not answer as it should"))
    checked = answered(record.run(workplace.desk, "check", str(index), "--json"))
    if checked and checked["left_over"]:
        record.breaches.append(
            Breach(CHANGED, f"left behind after the next build: {checked['left_over'][:2]}")
        )
    record.breaches += touched(own, snapshot(start), may_add=False)


def _judged(ran: Ran) -> list[Breach]:
    """Judge how a build ended of which a process was killed: the driver may die of what was sent to it."""
    from torture.law import ended

    by_us = (ran.code in STOPPED and ran.code < 0) or ran.code == 143
    return [breach for breach in ended(ran) if not (by_us and "ended with" in breach.message)]


@contextmanager
def _disk(folder: Path, options: str) -> Iterator[str]:
    """Mount a small disk; give the reason if that can't be done here."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        reason = done.stderr.strip() if done.returncode else ""
    except FileNotFoundError:
        reason = "there is no mount command"
    try:
        yield reason
    finally:
        if not reason:
            subprocess.run(["umount", "-l", str(folder)], check=False)


DISKS = ("full", "full for temporary files", "full at a random byte", "read-only", "short of names")


def _run_disks(workplace: Workplace, numbers: Iterator[int]) -> Iterator[Outcome]:
    start = workplace.empty("start")
    asked = write_good(start / "data")
    _tables(start / "data", 0, 12)
    workplace.spark_desk("index", str(start / "data"), "--into", str(start / "index"), deadline=300)
    _tables(start / "data", 12, 4)
    for trial in numbers:
        rng = workplace.rng(trial)
        way = DISKS[trial % len(DISKS)]
        record = Record(workplace, trial, way)
        disk = workplace.folder / "disk"
        size = int(rng.integers(300, 1500)) << 10
        options = f"size={size},nr_inodes=60" if way == "short of names" else f"size={max(size, 1 << 20)}"
        with _disk(disk, options) as reason:
            if not reason:
                _on_disk(record, rng, way, start, asked, disk)
        yield record.outcome(skipped=reason and f"can't mount a small disk: {reason}")


def _on_disk(
    record: Record, rng: np.random.Generator, way: str, start: Path, asked: Path, disk: Path
) -> None:
    workplace = record.workplace
    index = disk / "index" if way != "full for temporary files" else workplace.empty("trial") / "index"
    try:
        shutil.copytree(start / "index", index)
    except (OSError, shutil.Error):
        shutil.rmtree(index, ignore_errors=True)  # too small from the beginning: a first build then
    before = _answer(record, asked, index) if (index / "manifest.json").exists() else None
    kept = snapshot(index)
    if way.startswith("full"):
        left = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        spare = int(rng.integers(0, 400 << 10)) if "byte" in way else 8 << 10
        (disk / "ballast").write_bytes(b"\0" * max(0, left - spare))
    if way == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    command = (
        ("index", str(start / "data"), "--into", str(index)),
        ("compact", str(index)),
        ("remove", str(index), "table3"),
    )[rng.integers(3)]
    if way == "full for temporary files":
        command = ("index", str(start / "data"), "--into", str(index))
        ran = record.run(
            workplace.fresh, *command, more={"TMPDIR": str(disk), "SPARK_LOCAL_DIRS": str(disk)}, deadline=150
        )
    else:
        ran = record.run(workplace.spark_desk, *command, deadline=90)
    if ran.code != 0:
        kept.pop(str(index / "lock"), None)  # its time tells of the last who wrote
        record.breaches += touched(kept, snapshot(index))
        if before is not None and _answer(record, asked, index) != before:
            record.breaches.append(Breach(WRONG, "it does not answer as before"))
    elif (index / "manifest.json").exists():
        record.run(workplace.desk, "check", str(index))


def suites() -> list[Suite]:
    """Processes killed, disks that take nothing."""
    return [
        Suite(
            "kills",
            60,
            10.0,
            _run_kills,
            "Spark's driver, JVM and workers killed at random moments of a first build or an update",
        ),
        Suite(
            "disks",
            25,
            2.0,
            _run_disks,
            "disks that are full, also for temporary files, read-only or short of names",
        ),
    ]
