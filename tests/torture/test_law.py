"""The law sees what it is there to see."""

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from covary.index.manifest import read_manifest
from covary.sketching.sketch_types import SketchConfig
from torture import altered, law
from torture.law import ended, leaked, same_answers, snapshot, touched, unnamed
from torture.running import Desk, Ran, processes_of
from torture.trials import CHANGED, CRASH, HANG, LARGE, LEAK, UNNAMED, WRONG


def laws(breaches):
    return {breach.law for breach in breaches}


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    (folder / "papers").mkdir(parents=True)
    (folder / "papers" / "thesis.txt").write_text("years of work")
    (folder / "link").symlink_to("papers")
    return folder


def test_what_nobody_touched_breaks_nothing(home):
    assert touched(snapshot(home), snapshot(home), may_add=False) == []


def _rewrite_in_place(home):
    file = home / "papers" / "thesis.txt"
    times = file.stat()
    file.write_text("years of rest")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize(
    "harm",
    [
        lambda home: (home / "papers" / "thesis.txt").unlink(),
        lambda home: (home / "papers" / "thesis.txt").write_text("years of w"),
        _rewrite_in_place,
        lambda home: os.utime(home / "papers" / "thesis.txt", (1, 1)),
        lambda home: (home / "papers").chmod(0o700),
        lambda home: ((home / "link").unlink(), (home / "link").symlink_to("elsewhere")),
        lambda home: (home / "new").touch(),
    ],
)
def test_each_kind_of_harm_is_seen(home, harm):
    before = snapshot(home)
    harm(home)
    assert laws(touched(before, snapshot(home), may_add=False)) == {CHANGED}


@pytest.mark.parametrize(
    ("ran", "broken"),
    [
        (Ran(("check",), 0, b"Every file is as it was written.\n"), set()),
        (Ran(("check",), 2, err=b"covary: it is damaged\n"), set()),
        (Ran(("check",), 130), set()),
        (Ran(("check",), 2, err=b"oh no\n"), {WRONG}),
        (Ran(("check",), 1, err=b"Traceback (most recent call last):\n"), {CRASH}),
        (Ran(("check",), -signal.SIGSEGV), {CRASH}),
        (Ran(("check",), 0, err=b"java.lang.OutOfMemoryError\n"), {CRASH}),
        (Ran(("check",), 0, err=b"thread 'polars-1' panicked at src/lib.rs\n"), {CRASH}),
        (Ran(("check",), 0, b"a table named \x1b[2J\n"), {WRONG}),
        (Ran(("check",), -9, too_long=True), {HANG}),
        (Ran(("check",), -9, too_large=True), {LARGE}),
        (Ran(("check",), 0, survivors=("java",)), {HANG}),
    ],
)
def test_how_a_command_ends_is_judged(ran, broken):
    assert laws(ended(ran)) == broken


def test_a_file_that_no_index_names_is_a_breach():
    contents = [{"path": "/data/a.csv"}, {"path": "/data/b.zip/inner.csv"}, {"path": "/data/delta"}]
    files = ["/data/a.csv", "/data/b.zip", "/data/delta/part.parquet", "/data/c.csv", "/data/a.csv.gz"]
    found = unnamed(map(Path, files), {"contents": contents})
    assert [breach.message for breach in found] == ["'/data/c.csv'", "'/data/a.csv.gz'"]
    assert laws(found) == {UNNAMED}


def test_an_answer_that_differs_or_is_missing_is_wrong():
    truth = {"hits": [{"table": "good", "key": "k", "value": "v", "aggregate": "mean", "correlation": 0.5}]}

    def saying(correlation, table="good"):
        hit = {**truth["hits"][0], "correlation": correlation, "table": table, "q_value": 0.1}
        return Ran(("query",), 0, law.json.dumps({"hits": [hit]}).encode())

    assert same_answers(truth, saying(0.5), ["good"]) == []
    assert laws(same_answers(truth, saying(0.6), ["good"])) == {WRONG}
    assert laws(same_answers(truth, saying(0.5, "hostile"), ["good"])) == {WRONG}
    assert laws(same_answers(truth, Ran(("query",), 2, err=b"covary: no"), ["good"])) == {WRONG}


def test_a_secret_is_found_wherever_it_is(tmp_path):
    secrets = {"password": "S3cretWord"}
    packed = pa.compress(b"http://host/S3cretWord", codec="zstd", asbytes=True)
    (tmp_path / "tables.arrow.zst").write_bytes(packed)
    places = (
        (Ran(("index",), 0, b"S3cretWord"),),
        (Ran(("index",), 0, b"", b"S3cretWord"),),
        (Ran(("index",), 0, commands=("java S3cretWord",)),),
    )
    for ran in places:
        assert laws(leaked(secrets, ran)) == {LEAK}
    assert laws(leaked(secrets, [], tmp_path)) == {LEAK}
    assert leaked({"password": "AnotherWord"}, places[0], tmp_path) == []


@pytest.fixture
def desk(tmp_path):
    opened = Desk(tmp_path)
    yield opened
    opened.close()


def test_a_command_is_run_and_its_end_seen(desk):
    assert b"covary 0" in desk("--version").out
    refused = desk("check", "nowhere")
    assert refused.code == 2
    assert b"nowhere does not exist" in refused.err
    hung = desk("--version", deadline=0.0)
    assert laws(ended(hung)) == {HANG}
    assert desk("--version").code == 0  # begun anew


def test_a_process_that_dies_is_seen_to(desk):
    desk("--version")
    session = desk._process.pid
    os.kill(session, signal.SIGSTOP)  # or the answer may come before the signal
    threading.Timer(0.3, os.kill, (session, signal.SIGSEGV)).start()
    threading.Timer(0.4, os.kill, (session, signal.SIGCONT)).start()
    assert desk("--version").code == -signal.SIGSEGV
    assert processes_of(session) == []


def test_an_altered_index_has_right_checksums(write_index, tmp_path):
    tables = {f"t{n}": ([f"k{i}" for i in range(20)], np.arange(20.0)) for n in range(2)}
    write_index(tmp_path / "index", tables, SketchConfig(size=16))
    arrays, described, names = altered.contents_of(tmp_path / "index")
    arrays["key_sets.size"][0] = 1 << 40
    altered.write_altered(tmp_path / "index", tmp_path / "lies", arrays, described, names)
    (stored,) = read_manifest(tmp_path / "lies").segments
    for name, file in stored.files.items():
        written = tmp_path / "lies" / "segments" / stored.name / name
        assert (written.stat().st_size, altered.checksum_of(written)) == (file.size, file.checksum)
    assert altered.contents_of(tmp_path / "lies")[0]["key_sets.size"][0] == 1 << 40
