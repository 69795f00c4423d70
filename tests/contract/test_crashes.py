"""Killed at any moment, an index answers as before or as after, never in between."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import covary
from covary.build.upkeep import compact_index, remove_tables
from covary.errors import CannotWrite
from covary.index.check import check_index
from covary.index.commit import SCRATCH
from covary.pipeline.scratch import sweep

build_index = partial(covary.build_index, runner="process")

HERE = Path(__file__).parent
ROOT = Path(covary.__file__).parents[1]
# At random moments, over all actions. To look longer: COVARY_DEATHS=104 ./run test tests/contract
DEATHS = int(os.environ.get("COVARY_DEATHS", "24"))
QUERY = pl.DataFrame({"place": [f"place {n}" for n in range(300)], "q": np.arange(300.0)})


def write_table(file, seed):
    rng = np.random.default_rng(seed)
    keys = [f"place {n}" for n in rng.choice(300, 200, replace=False)]
    values = {f"v{n}": rng.normal(size=200) for n in range(4)}
    pl.DataFrame({"place": keys, **values}).write_csv(file)


def answer(index):
    hits = covary.open_index(index).query(QUERY, "place", "q", top=500)
    return sorted((hit.table, hit.value, hit.correlation, hit.q_value) for hit in hits)


class Writer:
    """A process whose children are killed while they change an index."""

    def __init__(self):
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, str(HERE / "dying_writer.py")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, **pipes, env={**os.environ, "PYTHONPATH": path})

    def __call__(self, action, index, tables, **when):
        request = {"action": action, "index": str(index), "tables": str(tables), **when}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.communicate(timeout=30)


@pytest.fixture(scope="module")
def writer():
    started = Writer()
    yield started
    started.close()


@pytest.fixture(scope="module")
def before(in_memory):
    """An index in two segments, and the folder of its tables, which have changed since."""
    folder = in_memory / "crashes"
    tables = folder / "tables"
    tables.mkdir(parents=True)
    for number in range(8):
        write_table(tables / f"t{number}.csv", number)
    build_index(tables, folder / "index", size=32)
    write_table(tables / "t8.csv", 8)
    build_index(None, folder / "index")
    write_table(tables / "t9.csv", 9)
    write_table(tables / "t0.csv", 10)
    (tables / "t3.csv").unlink()
    return folder / "index", tables


class Trial:
    """A copy of the index on which an action is tried, and what it must answer before and after."""

    def __init__(self, before, action, writer, folder):
        self.original, self.tables = before
        self.action, self.writer, self.folder = action, writer, folder
        folder.mkdir()
        self.index = folder / "trial"
        self.old = None if action == "first" else answer(self.original)
        self.reset()
        whole = writer(action, self.index, self.tables)
        assert not whole["killed"]
        assert not whole["failed"]
        self.seconds, self.operations = whole["seconds"], whole["operations"]
        self.new, self.manifest = answer(self.index), self.manifest_text()
        assert self.old is None or action == "compact" or self.new != self.old
        self.deaths = self.came_through = 0

    def manifest_text(self):
        return (self.index / "manifest.json").read_text()

    def reset(self):
        shutil.rmtree(self.index, ignore_errors=True)
        if self.action != "first":
            shutil.copytree(self.original, self.index)

    def die(self, **when):
        self.reset()
        ended = self.writer(self.action, self.index, self.tables, **when)
        assert not ended["failed"]
        self.deaths += ended["killed"]
        if not ended["killed"]:
            self.seconds = min(self.seconds, ended["seconds"])
        if not (self.index / "manifest.json").exists():
            assert self.action == "first"
        else:
            assert not check_index(self.index).damaged
            found = answer(self.index)
            assert found in (self.old, self.new)
            self.came_through += found == self.new
        self.go_on()

    def go_on(self):
        """The next command finds nothing in its way, and leaves nothing behind."""
        if self.action == "remove" and self.manifest_text() == self.manifest:
            compact_index(self.index)  # there is nothing left to remove
        else:
            ended = self.writer(self.action, self.index, self.tables)
            assert not ended["failed"]
            assert self.manifest_text() == self.manifest
        found = check_index(self.index)
        assert not found.damaged
        assert found.left_over == ()


ACTIONS = ("first", "update", "compact", "remove")


@pytest.mark.parametrize("action", ACTIONS)
def test_killed_at_a_random_moment(before, writer, in_memory, action):
    trial = Trial(before, action, writer, in_memory / f"random {action}")
    wanted = DEATHS // len(ACTIONS)
    # However the machine's speed changes meanwhile, so many die.
    for moment in np.random.default_rng(6).uniform(0, 1.1, 10 * wanted):
        trial.die(after=float(moment * trial.seconds))
        if trial.deaths == wanted:
            return
    pytest.fail(f"only {trial.deaths} of {wanted} died")


@pytest.mark.parametrize("action", ACTIONS)
def test_killed_at_each_operation_on_a_file(before, writer, in_memory, action):
    trial = Trial(before, action, writer, in_memory / f"each {action}")
    last = range(max(0, trial.operations - 20), trial.operations)  # the commit, and cleaning up after it
    for operation in sorted({*range(0, trial.operations, 10), *last}):
        trial.die(at=operation)
    assert trial.deaths
    assert trial.came_through or action == "compact"


@pytest.mark.spark
def test_a_build_on_spark_that_is_killed_leaves_the_index_as_it_was(before, tmp_path, monkeypatch):
    original, _ = before
    index = tmp_path / "index"
    shutil.copytree(original, index)
    old = answer(index)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "covary", "index", "--into", str(index), "--trust-sources"]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(temporary)}
    with (tmp_path / "said").open("wb") as said:
        running = subprocess.Popen(command, env=environment, stdout=said, stderr=said, start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(index.glob(f"{SCRATCH}*/progress/*")):  # a worker of Spark is reading
        assert running.poll() is None, (tmp_path / "said").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert check_index(index).left_over
    assert answer(index) == old
    [left] = temporary.glob(f"covary-{running.pid}-*")
    assert {each.name.partition("-")[0] for each in left.iterdir()} >= {"spark", "blockmgr", "artifacts"}
    assert stat.S_IMODE(left.stat().st_mode) == 0o700  # so that nobody else sees what is in it
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    sweep()
    assert not left.exists()
    build_index(None, index, trust_sources=True)  # that of the killed run does not count
    assert check_index(index).left_over == ()
    assert {"t9"} <= {table for table, *_ in answer(index)}


@pytest.mark.parametrize("action", ["update", "compact", "remove"])
def test_a_full_disk_leaves_the_index_as_it_was(before, mounted, action):
    original, _ = before
    disk = mounted("size=1m")
    index = disk / "index"
    shutil.copytree(original, index)
    old = answer(index)
    left = os.statvfs(disk)
    (disk / "ballast").write_bytes(b"\0" * (left.f_bavail * left.f_frsize - (16 << 10)))
    with pytest.raises(CannotWrite, match="the disk is full; nothing was changed"):
        change(action, index)
    assert answer(index) == old
    assert not check_index(index).damaged
    (disk / "ballast").unlink()
    change(action, index)
    assert check_index(index).left_over == ()


@pytest.mark.parametrize("action", ["update", "compact", "remove"])
def test_a_read_only_index_answers_and_is_left_alone(before, mounted, action):
    original, _ = before
    disk = mounted("size=4m")
    shutil.copytree(original, disk / "index")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(CannotWrite, match="it is read-only; nothing was changed"):
        change(action, disk / "index")
    assert answer(disk / "index") == answer(original)


def change(action, index):
    if action == "update":
        build_index(None, index, trust_sources=True)
    elif action == "compact":
        compact_index(index)
    else:
        remove_tables(index, ["t1", "t2", "t4", "t5", "t6", "t7"])
