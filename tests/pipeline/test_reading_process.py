import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import covary
from covary.pipeline.reading_process import (
    DIED,
    TOO_LARGE,
    TOO_LONG,
    UNWATCHED,
    Ended,
    EndedEarly,
    ReadingProcess,
)
from tests.needs import measured

HERE = Path(__file__).parent
ROOT = Path(covary.__file__).parents[1]


@pytest.fixture(scope="module")
def process():
    with pytest.MonkeyPatch.context() as patch, ReadingProcess() as process:
        patch.syspath_prepend(HERE)
        yield process


def done(process, name, given=None):
    import deadly_work  # noqa: PLC0415

    return list(process.do(pickle.dumps((getattr(deadly_work, name), ())), given))


def is_alive(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_work_is_done_in_one_process_that_is_not_this_one(process):
    given, threads, number = done(process, "tell", {"a": 1})
    assert (given, threads) == ({"a": 1}, "1")
    assert number != os.getpid()
    assert done(process, "tell")[-1] == number


def test_threads_that_ask_at_once_each_get_their_own_answer(process):
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda given: done(process, "tell", given), range(40)))
    assert [given for given, *_ in answers] == list(range(40))
    assert len({number for *_, number in answers}) == 1


def test_an_error_arrives_with_where_it_was_raised_and_ends_nothing(process):
    number = done(process, "tell")[-1]
    with pytest.raises(KeyError, match="it") as raised:
        done(process, "fail", KeyError("it"))
    assert "deadly_work.py" in raised.value.__notes__[0]
    with pytest.raises(RuntimeError, match="CanNotTravel: all of"):
        done(process, "fail_in_a_strange_way")
    assert done(process, "tell")[-1] == number


def test_what_a_library_prints_stays_off_the_screen(capfd, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    with ReadingProcess() as process:  # begun with the screen that is looked at
        assert done(process, "panic", 1) == [1]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_work_that_kills_its_process_is_done_again_and_told_how_it_ended(process, number):
    (ended, others, kept), _ = done(process, "die_of", (2, number))
    assert ended == [Ended("deadly", DIED, number)] * 2
    assert others == []
    assert kept == ["0", "1"]


def test_what_processes_kept_for_each_other_is_removed(process):
    *_, folder = done(process, "die_of", (1, signal.SIGKILL))
    assert not folder.exists()


@pytest.mark.parametrize("name", ["crash", "give_up_at_once"])
def test_work_that_never_gets_past_a_step_is_given_up(process, name):
    with pytest.raises(EndedEarly, match="end early") as raised:
        done(process, name)
    assert raised.value.ended == Ended("all", DIED, signal.SIGSEGV if name == "crash" else 0)
    assert done(process, "tell", 1)[0] == 1


@pytest.mark.parametrize("name", ["hang_in_native_code", "hang_in_python"])
def test_a_step_that_takes_too_long_is_ended_whatever_it_does(process, name):
    started = time.monotonic()
    ((ended,),) = done(process, name, 0.3)
    assert ended[1:] == (TOO_LONG, 0.3)
    assert time.monotonic() - started < 20


@measured
def test_a_step_that_takes_too_much_memory_is_ended(process):
    (ended,) = done(process, "take_memory", (4 << 30, 400 << 20))
    assert ended == [Ended("all", TOO_LARGE, 400 << 20)]
    assert done(process, "take_memory", (100 << 20, 400 << 20)) == [[]]


@measured
def test_a_file_that_is_mapped_takes_no_memory(process, tmp_path):
    with (tmp_path / "file").open("wb") as file:
        file.truncate(400 << 20)
    assert done(process, "map_a_file", str(tmp_path / "file")) == [0]


@measured
def test_what_a_process_started_ends_with_it(process, tmp_path):
    done(process, "start_another", str(tmp_path / "number"))
    number = int((tmp_path / "number").read_text())
    wait_for(lambda: not is_alive(number))


ASKS = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
import deadly_work
from covary.pipeline.reading_process import ReadingProcess
list(ReadingProcess().do(pickle.dumps((deadly_work.sleep_long, ())), sys.argv[2]))
"""


@measured
def test_a_process_ends_with_the_one_that_asked(tmp_path):
    number_file = tmp_path / "number"
    command = [sys.executable, "-c", ASKS, str(HERE), str(number_file)]
    asking = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
    wait_for(lambda: number_file.exists() and number_file.read_text())
    number = int(number_file.read_text())
    assert is_alive(number)
    asking.kill()
    asking.wait()
    wait_for(lambda: not is_alive(number))


def test_work_that_nobody_waits_for_any_more_is_ended(process, tmp_path):
    import deadly_work  # noqa: PLC0415

    parts = process.do(pickle.dumps((deadly_work.tell, ())))
    next(parts)
    parts.close()
    assert done(process, "tell", 2)[0] == 2


def test_without_anyone_who_watches_nothing_is_told_and_nothing_known():
    UNWATCHED.begin("a", 1, 1)
    assert (UNWATCHED.ends_at("a"), UNWATCHED.is_again, UNWATCHED.folder) == ([], False, None)
