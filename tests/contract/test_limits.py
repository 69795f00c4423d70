"""Tables that take forever, fill the memory or kill who reads them: each costs itself at most."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest

import covary
from covary.pipeline import plan as plans
from covary.pipeline.reading_process import CAN_MEASURE

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
VIEWS = {
    "slow": f"{ENDLESS} SELECT 'key ' || i % 300 AS k, i AS v FROM n LIMIT 600000",
    "forever": f"{ENDLESS} SELECT 'key ' || i AS k, i AS v FROM n",
    "before_its_first_row": f"{ENDLESS} SELECT 'key' AS k, count(*) AS v FROM n",
    "one_huge_cell": "SELECT replace(hex(zeroblob(20000000)), '0', 'key') AS k, 1 AS v "
    "UNION ALL SELECT replace(hex(zeroblob(20000000)), '0', 'yek') AS k, 2 AS v",
}

needs_proc = pytest.mark.skipif(not CAN_MEASURE, reason="looks for processes and their memory in /proc")


def database_of(path, *views):
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE good (place TEXT, y REAL)")
        database.executemany("INSERT INTO good VALUES (?, ?)", [(f"place {n}", n * 0.5) for n in range(300)])
        for name in views:
            database.execute(f"CREATE VIEW {name} AS {VIEWS[name]}")
        database.commit()
    return path


def problems_of(index):
    return {name: problem for name, problem in index.tables.select("name", "problem").iter_rows() if problem}


def names_read(index):
    return set(index.tables.filter(pl.col("problem").is_null())["name"])


@pytest.fixture
def tables(lake, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    for file in lake.folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def readers_of(file):
    """The processes that have a file open to read tables for Spark, each with the worker that watches it."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
            opened = [os.readlink(f"/proc/{number}/fd/{fd}") for fd in os.listdir(f"/proc/{number}/fd")]
            parent = int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if str(file) in opened and any(
            b"covary.pipeline.reading_process import serve" in word for word in words
        ):
            found.append((int(number), parent))
    return found


@contextmanager
def killing(name, file, whom, times):
    """While a table is being read, kill the process that reads it, or Spark's worker that watches that."""
    log, killed = [], set()

    def watch(progress):
        if name in progress.reading and len(killed) < times:
            for process in readers_of(file):
                if process not in killed and len(killed) < times:
                    killed.add(process)
                    log.append(process)
                    os.kill(process[whom == "worker"], signal.SIGKILL)

    yield watch, log


def test_a_view_without_an_end_is_named_and_the_rest_is_there(tables, tmp_path, bytes_of):
    database_of(tables / "shop.sqlite", "forever", "before_its_first_row")
    index = covary.build_index(tables, tmp_path / "index", runner="process", table_timeout=2)
    sentence = "it took longer than 2 s; --table-timeout sets another limit"
    assert problems_of(index) == {"shop/forever": sentence, "shop/before_its_first_row": sentence}
    assert names_read(index) == {"strong", "middle", "weak", "none", "shop/good"}
    before = bytes_of(tmp_path / "index")
    started = time.monotonic()
    covary.build_index(tables, tmp_path / "index", runner="process", table_timeout=1.5)
    assert time.monotonic() - started < 1.5, "a file that is as it was is not tried again"
    assert bytes_of(tmp_path / "index") == before
    again = covary.build_index(tables, tmp_path / "index", runner="process", table_timeout=2.5)
    assert set(problems_of(again).values()) == {sentence.replace("2 s", "2.5 s")}, "it is, within more time"


@needs_proc
def test_a_table_that_needs_too_much_memory_is_named_and_the_rest_is_there(tables, tmp_path):
    database_of(tables / "shop.sqlite", "one_huge_cell")
    index = covary.build_index(tables, tmp_path / "index", runner="process", memory="350MB")
    sentence = "it needs more than 0.35 GB of memory; --memory sets another limit"
    assert problems_of(index) == {"shop/one_huge_cell": sentence}
    assert names_read(index) == {"strong", "middle", "weak", "none", "shop/good"}


def large_database(path, huge):
    """A table of many rows, of which one has a cell of 120 megabytes, nearly the most that is read."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE large (k TEXT, v REAL, n INT, cell TEXT GENERATED ALWAYS AS "
            f"(CASE WHEN n = {huge} THEN replace(hex(zeroblob(20000000)), '0', 'key') ELSE k END) VIRTUAL)"
        )
        rows = ((f"key {n % 500}", n * 0.5, n) for n in range(20_000))
        database.executemany("INSERT INTO large (k, v, n) VALUES (?, ?, ?)", rows)
        database.commit()


@needs_proc
@pytest.mark.parametrize("huge", [0, 7000], ids=["when it is looked into", "when a part of it is read"])
def test_a_large_table_that_needs_too_much_memory_is_named_and_the_rest_is_there(
    tables, tmp_path, monkeypatch, huge
):
    monkeypatch.setattr(plans, "CHUNK_BYTES", 40_000)
    large_database(tables / "large.sqlite", huge)
    index = covary.build_index(tables, tmp_path / "index", runner="process", memory="350MB")
    sentence = "it needs more than 0.35 GB of memory; --memory sets another limit"
    assert problems_of(index) == {"large": sentence}
    assert names_read(index) == {"strong", "middle", "weak", "none"}


class Endless(BaseHTTPRequestHandler):
    """Gives rows as long as somebody wants them."""

    def do_HEAD(self):
        self.send_response(200)
        self.end_headers()

    def do_GET(self):
        self.do_HEAD()
        try:
            self.wfile.write(b"k,v\n")
            row = 0
            while True:
                self.wfile.write(b"".join(b"key %d,%d\n" % (n, n) for n in range(row, row + 1000)))
                row += 1000
        except OSError:
            return

    def log_message(self, *_):
        pass


@pytest.fixture
def endless_url():
    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/endless.csv"
        server.shutdown()


def test_a_server_that_never_stops_sending_is_named_and_the_rest_is_there(tables, endless_url, tmp_path):
    index = covary.build_index([tables, endless_url], tmp_path / "index", runner="process", table_timeout=2)
    assert list(problems_of(index).values()) == [
        "it took longer than 2 s; --table-timeout sets another limit"
    ]
    assert names_read(index) == {"strong", "middle", "weak", "none"}


@needs_proc
@pytest.mark.parametrize("whom", ["process", "worker"])
def test_a_killed_reader_costs_nothing_and_a_table_that_kills_it_twice_is_named(
    spark, tables, tmp_path, whom
):
    database_of(tables / "shop.sqlite", "forever")
    with killing("shop/forever", tables / "shop.sqlite", whom, 2) as (watch, log):
        index = covary.build_index(tables, tmp_path / "index", spark, table_timeout=60, on_progress=watch)
    assert len(log) == 2
    assert "twice" in problems_of(index)["shop/forever"]
    assert len(problems_of(index)) == 1
    assert names_read(index) == {"strong", "middle", "weak", "none", "shop/good"}


@needs_proc
def test_a_reader_that_is_killed_once_changes_nothing(spark, tables, tmp_path, bytes_of):
    database_of(tables / "shop.sqlite", "slow")
    with killing("shop/slow", tables / "shop.sqlite", "worker", 1) as (watch, log):
        index = covary.build_index(tables, tmp_path / "index", spark, size=64, on_progress=watch)
    assert len(log) == 1
    assert not problems_of(index)
    covary.build_index([tables], tmp_path / "alone", size=64, runner="process")
    assert bytes_of(tmp_path / "index") == bytes_of(tmp_path / "alone")


DEADLY_READERS = """
import sys
if any("covary.pipeline.reading_process" in word for word in sys.orig_argv):
    import ctypes, os, time
    from covary.tables.formats.csv_rows import CsvReader

    read = CsvReader.frames
    deaths = {
        "segfault": lambda: ctypes.string_at(0),
        "abort": os.abort,
        "exit": lambda: os._exit(0),
        "hang": lambda: ctypes.PyDLL(None).sleep(600),  # in native code, which nothing but a signal ends
        "fill": lambda: [bytes(1 << 20) and b"1" * (1 << 20) for _ in range(4096)],
    }

    def deadly(reader, request):
        yield from read(reader, request)
        deaths.get(request.source.name, int)()

    CsvReader.frames = deadly
"""


@needs_proc
def test_whatever_kills_who_reads_a_table_is_told_in_a_line_and_the_rest_is_there(tables, tmp_path):
    good = (tables / "strong.csv").read_bytes()
    for name in ("segfault", "abort", "exit", "hang", "fill"):
        (tables / f"{name}.csv").write_bytes(good)
    (tmp_path / "sitecustomize.py").write_text(DEADLY_READERS)
    python_path = os.pathsep.join([str(tmp_path), str(Path(covary.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-m", "covary", "index", "tables", "--into", "index", "--json",
         "--table-timeout", "2", "--memory", "600MB"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": python_path}, capture_output=True, text=True,
        timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert {skipped["table"]: skipped["reason"] for skipped in facts["skipped"]} == {
        "segfault": "the process that read it died twice (signal 11)",
        "abort": "the process that read it died twice (signal 6)",
        "exit": "the process that read it died twice",
        "hang": "it took longer than 2 s; --table-timeout sets another limit",
        "fill": "it needs more than 0.6 GB of memory; --memory sets another limit",
    }
    assert facts["tables"] == 4
    assert "Traceback" not in done.stderr
    assert "org.apache" not in done.stderr
