"""Scratch folders are private, go with their process, and what a dead one left goes with the next."""

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import covary
from covary.pipeline.scratch import (
    MARK,
    MARKED,
    lasting_folder,
    make_scratch,
    remove_scratch,
    scratch_folder,
    scratch_name,
    sweep,
)
from covary.pipeline.session import private_java

ROOT = Path(covary.__file__).parents[1]


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    lasting_folder()  # this process's own is not one of a test's
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def dead():
    """The number of a process that is gone."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def left_by(process, folder, ending="abcdefgh"):
    left = folder / f"covary-{process}-{ending}"
    (left / "spark-1" / "blockmgr").mkdir(parents=True)
    (left / "spark-1" / "rows").write_text("secret")
    (left / MARK).write_bytes(MARKED)
    return left


def test_a_scratch_folder_is_private_and_goes_with_its_block(temporary):
    with scratch_folder() as folder:
        assert folder.parent == temporary
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert f"-{os.getpid()}-" in folder.name
        (folder / "a").write_text("b")
    assert os.listdir(temporary) == []


def test_what_a_dead_process_left_is_removed_and_nothing_else(temporary, dead):
    gone = left_by(dead, temporary)
    kept = [
        left_by(os.getpid(), temporary),
        left_by(1, temporary),  # of another user, unless we are root, and alive in any case
        left_by(10**30, temporary),  # no number of a process
        left_by(dead, temporary, "not-ours-at-all"),
        left_by(f"x{dead}", temporary),
    ]
    (temporary / f"covary-{dead}-aaaaaaaa").write_text("a file")
    sweep()
    assert not gone.exists()
    assert all((folder / "spark-1" / "rows").exists() for folder in kept)
    assert (temporary / f"covary-{dead}-aaaaaaaa").exists()


def lying_mark(kind, mark, elsewhere):
    mark.unlink()
    if kind == "of other content":
        mark.write_bytes(MARKED + b"\n")
    elif kind == "cut short":
        mark.write_bytes(MARKED[:-1])
    elif kind == "a link":
        elsewhere.write_bytes(MARKED)
        mark.symlink_to(elsewhere)
    elif kind == "a folder":
        mark.mkdir()
    elif kind == "a pipe":
        os.mkfifo(mark)


@pytest.mark.parametrize("kind", ["missing", "of other content", "cut short", "a link", "a folder", "a pipe"])
def test_a_folder_that_only_has_the_name_of_one_is_left(temporary, dead, kind):
    thesis = left_by(dead, temporary, "results1") / "spark-1" / "rows"
    lying_mark(kind, temporary / f"covary-{dead}-results1" / MARK, temporary / "mark")
    sweep()
    assert thesis.read_text() == "secret"


def test_every_scratch_folder_is_marked_from_its_first_moment(temporary):
    with scratch_folder() as folder:
        assert (folder / MARK).read_bytes() == MARKED
        assert os.listdir(folder) == [MARK]
    folder = scratch_name()
    assert not folder.exists()
    for _ in range(2):
        make_scratch(folder)
        assert os.listdir(folder) == [MARK]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_mark_is_removed_last(temporary, dead, monkeypatch):
    """So that the next sweep knows what somebody left who was killed at it."""
    left = left_by(dead, temporary)
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    (left / "a").touch()
    remove_scratch(left)
    assert sorted(os.listdir(left)) == [MARK, "spark-1"]


def test_a_link_is_not_followed(temporary, dead):
    precious = temporary / "precious"
    (precious / "spark-1").mkdir(parents=True)
    (temporary / f"covary-{dead}-abcdefgh").symlink_to(precious)
    (left_by(dead, temporary, "bbbbbbbb") / "link").symlink_to(precious)
    sweep()
    assert (precious / "spark-1").exists()
    assert not (temporary / f"covary-{dead}-bbbbbbbb").exists()


def test_a_folder_that_is_locked_is_left(temporary, dead):
    """Its process may run in another container, where it has another number."""
    left = left_by(dead, temporary)
    held = os.open(left, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    sweep()
    assert left.exists()
    os.close(held)
    sweep()
    assert not left.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_what_another_user_left_is_his(temporary, dead):
    left = left_by(dead, temporary)
    os.chown(left, 12345, -1)
    sweep()
    assert left.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_what_another_user_made_in_advance_is_not_taken(temporary):
    folder = scratch_name()
    folder.mkdir()
    os.chown(folder, 12345, -1)
    with pytest.raises(PermissionError, match="somebody else has made it"):
        make_scratch(folder)
    assert os.listdir(folder) == []


def test_a_link_that_was_made_in_advance_is_not_followed(temporary):
    folder = scratch_name()
    (temporary / "precious").mkdir()
    folder.symlink_to(temporary / "precious")
    with pytest.raises(PermissionError, match="somebody else has made it"):
        make_scratch(folder)
    assert os.listdir(temporary / "precious") == []


CHILD = """
import os, signal, sys
from covary.pipeline.scratch import lasting_folder, scratch_folder
folder = lasting_folder()
assert folder == lasting_folder()
if not os.fork():
    sys.exit()  # which removes nothing of its parent's
os.wait()
assert folder.is_dir()
with scratch_folder() as other:
    print(folder, other, flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "interrupted":
        os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("ending", ["by itself", "interrupted", "killed"])
def test_lasting_folders_end_with_their_process(temporary, ending):
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", CHILD, ending]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert len(ended.stdout.split()) == 2, ended.stderr
    assert len(os.listdir(temporary)) == (2 if ending == "killed" else 0)
    sweep()
    assert os.listdir(temporary) == []


def test_java_is_told_where_only_while_it_starts_and_not_if_the_user_did(monkeypatch):
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dx=y")
    with private_java():
        assert os.environ["SPARK_SUBMIT_OPTS"].startswith("-Dx=y -Djava.io.tmpdir=")
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Dx=y"
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Djava.io.tmpdir=/big")
    with private_java():
        assert "SPARK_SUBMIT_OPTS" not in os.environ
