"""Work in a process of its own, which may die, hang or fill the memory: nothing else ends with it.

The process is started anew, never forked, so it is no matter what runs in the one that asks. It does one
piece of work after the other. When it ends in the middle of one, a fresh process is given the same work and
hears how the one before it ended; what to make of that is the work's own decision.
"""

import atexit
import ctypes
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import LifoQueue
from select import POLLIN, poll
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

from covary.errors import MachineFault, TaskFailed
from covary.pipeline.scratch import make_scratch, remove_scratch, scratch_name

Results = Iterator[Any]  # whatever the work yields
TOO_LONG, TOO_LARGE, DIED = "too long", "too large", "died"
POLL_SECONDS = 0.05
MOST_ENDS_ALIKE = 4  # at the same step, before it is given up
CODE_BYTES = 100_000_000  # of libraries; what else is mapped is data that the system takes away when it must
CAN_MEASURE = Path("/proc/self/statm").exists()
# A worker is one task: more threads than that would only fight over the cores.
ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from covary.pipeline.reading_process import serve; serve(*map(int, sys.argv[2:]))"
)
SIZE_BYTES = 8
STEP, PART, ERROR, END = b"s", b"p", b"x", b"e"
DIES_WITH_ITS_PARENT = 1  # PR_SET_PDEATHSIG of Linux
KILLED_BEFORE_OTHERS = "500"


class Ended(NamedTuple):
    """How a process ended that had not finished its work.

    Attributes:
        step: what it was at; "" if nothing that it had named.
        cause: TOO_LONG, TOO_LARGE or DIED.
        amount: the seconds or the bytes that it was allowed, or the signal that killed it; 0 if none did.
    """

    step: str
    cause: str
    amount: float = 0


class EndedEarly(TaskFailed):
    """A process ended before its work was done."""

    def __init__(self, ended: Ended) -> None:
        signal = f" of signal {ended.amount:.0f}" if ended.cause == DIED and ended.amount else ""
        super().__init__(
            f"the Python processes that read tables end early{signal}, again and again; "
            f"is there memory for them?"
        )
        self.ended = ended


class Stopped(Exception):
    """Work was broken off, as nobody waits for it any more."""


class Step(NamedTuple):
    """What a piece of work is at, and how many seconds and bytes of memory that may take."""

    name: str
    seconds: float | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Who watches a piece of work: hears of its steps, and knows how earlier processes ended at it."""

    tell: Callable[[Step], None] | None = None
    ended: Sequence[Ended] = ()
    scratch: Path | None = None

    def begin(self, step: str, seconds: float | None = None, memory: int | None = None) -> None:
        """Say what is being done from now on, and how many seconds and bytes it may take."""
        if self.tell:
            self.tell(Step(step, seconds, memory))

    def ends_at(self, step: str) -> list[Ended]:
        """How earlier processes ended that were at a step."""
        return [ended for ended in self.ended if ended.step == step]

    @property
    def is_again(self) -> bool:
        """Whether an earlier process ended at this work."""
        return bool(self.ended)

    @property
    def folder(self) -> Path | None:
        """A folder for what the next process can go on from; removed when the work is done."""
        if self.scratch:
            make_scratch(self.scratch)
        return self.scratch


UNWATCHED = Watch()  # work in the process that wants it done


class ReadingProcess:
    """At most one process to give work to; it stays for the next piece of work, until it is closed."""

    def __init__(self) -> None:
        self._process: _Process | None = None
        self._one_at_a_time = Lock()  # two threads would take each other's answers

    def __enter__(self) -> "ReadingProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._process:
            self._process.kill()
            self._process = None

    def do(self, work: bytes, given: object = None, stop: Event | None = None) -> Results:
        """Give what a function yields, called in the process.

        Args:
            work: the pickle of the function and of its first arguments.
            given: what it is called with besides those; a `Watch` is the last.
            stop: set when nobody wants the work any more: `Stopped` is raised, and the process ended.
        """
        ended: list[Ended] = []
        folder = scratch_name()  # so that it is removed though this process is killed
        with self._one_at_a_time, ExitStack() as at_end:
            at_end.callback(remove_scratch, folder)
            while True:
                begun = False
                try:
                    for part in self._ready().do(work, given, ended, folder, stop):
                        begun = True
                        yield part
                    return
                except EndedEarly as early:
                    ended.append(early.ended)
                    steps = [each.step for each in ended[-MOST_ENDS_ALIKE:]]
                    if begun or steps == [early.ended.step] * MOST_ENDS_ALIKE:
                        raise

    def _ready(self) -> "_Process":
        if not (self._process and self._process.is_ready()):
            self.close()
            self._process = _Process()
        return self._process


@cache
def lasting_process() -> ReadingProcess:
    """Give the one process of this process that stays until it ends."""
    lasting = ReadingProcess()
    atexit.register(lasting.close)
    return lasting


@contextmanager
def open_processes(count: int) -> Iterator[list[ReadingProcess]]:
    """Give some processes; the last one stays after the block, and mostly has been started before it."""
    with ExitStack() as others:
        yield [*(others.enter_context(ReadingProcess()) for _ in range(count - 1)), lasting_process()]


class IdleProcesses:
    """Processes that several threads give work to: each waits until one is idle. The last is taken first."""

    def __init__(self, processes: Sequence[ReadingProcess]) -> None:
        self._idle: LifoQueue[ReadingProcess] = LifoQueue()
        for process in processes:
            self._idle.put(process)

    def do(self, work: bytes, given: object, stop: Event | None = None) -> list[Any]:
        """Give all that a function yields, called in one of the processes as `ReadingProcess.do` says."""
        process = self._idle.get()
        try:
            return list(process.do(work, given, stop))
        finally:
            self._idle.put(process)


class _Process:
    """One process that does work, seen from the one that asks."""

    def __init__(self) -> None:
        self._owner, self._path = os.getpid(), list(sys.path)
        self._environment = dict(os.environ)
        with ExitStack() as for_the_process:
            try:
                requests, self._requests = os.pipe()
                for_the_process.callback(os.close, requests)
                self._answers, answers = os.pipe()
                for_the_process.callback(os.close, answers)
                arguments = [json.dumps(self._path), *map(str, (self._owner, requests, answers))]
                self._started = subprocess.Popen(
                    [sys.executable, "-P", "-c", START, *arguments],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(requests, answers),
                    process_group=0,  # so that all it may have started is killed with it
                    env=self._environment | ONE_THREAD,
                )
            except OSError as problem:
                raise MachineFault(
                    f"can't start a process to read tables: {problem.strerror}; no index was changed"
                ) from problem
        self._waiting = poll()
        self._waiting.register(self._answers, POLLIN)
        self._is_idle = True
        self._knows: bytes | None = None  # the work that it was sent
        self._stop: Event | None = None
        self._step, self._since = Step(""), 0.0
        self._seconds_to_wait = POLL_SECONDS

    def is_ready(self) -> bool:
        """Whether it can be given work: it is idle, and Linux did not end it with its thread."""
        # One may have been started before this process was forked, or for another covary than this one's.
        if self._owner != os.getpid() or self._path != sys.path:
            return False
        return self._is_idle and self._started.poll() is None

    def kill(self) -> None:
        """End it, and all that it started."""
        self._is_idle = False
        if self._owner == os.getpid():
            with suppress(ProcessLookupError):
                os.killpg(self._started.pid, signal.SIGKILL)
            self._started.wait()
        for end in (self._requests, self._answers):
            with suppress(OSError):
                os.close(end)

    def do(
        self, work: bytes, given: object, ended: Sequence[Ended], folder: Path, stop: Event | None = None
    ) -> Results:
        """Give it work, and yield what comes of it; EndedEarly if it ends before that is all."""
        self._is_idle, finished = False, False
        self._step, self._since, self._stop = Step(""), time.monotonic(), stop
        try:
            unknown = None if self._knows is work else work
            environment = None if os.environ == self._environment else dict(os.environ)
            request = (unknown, environment, given, list(ended), folder)
            with suppress(BrokenPipeError):  # it has ended: that is seen at its answers
                _send(self._requests, pickle.dumps(request, protocol=5))
            self._knows, self._environment = work, dict(os.environ)
            while True:
                kind, content = self._next()
                if kind == END:
                    finished = True
                    return
                if kind == STEP:
                    self._step, self._since = pickle.loads(content), time.monotonic()
                elif kind == PART:
                    yield pickle.loads(content)
                else:
                    finished = True
                    raise pickle.loads(content)
        finally:
            self._is_idle = finished
            if not finished:
                self.kill()

    def _next(self) -> tuple[bytes, bytes]:
        while not self._waiting.poll(self._seconds_to_wait * 1e3):
            self._require_limits()
        self._require_limits()
        kind = _read(self._answers, 1)
        size = _read(self._answers, SIZE_BYTES)
        content = _read(self._answers, int.from_bytes(size)) if len(size) == SIZE_BYTES else b""
        if not kind or len(content) < int.from_bytes(size):
            code = self._started.wait()
            raise EndedEarly(Ended(self._step.name, DIED, max(0, -code)))
        return kind, content

    def _require_limits(self) -> None:
        if self._stop and self._stop.is_set():
            raise Stopped
        name, seconds, memory = self._step
        if seconds is not None and time.monotonic() - self._since > seconds:
            raise EndedEarly(Ended(name, TOO_LONG, seconds))
        if memory is not None:
            taken = memory_of(self._started.pid)
            if taken > memory:
                raise EndedEarly(Ended(name, TOO_LARGE, memory))
            # Memory is filled at some gigabytes a second: near the limit, twenty looks a second are too few.
            filled = taken / memory
            self._seconds_to_wait = POLL_SECONDS / (1 if filled < 1 / 3 else 10 if filled < 2 / 3 else 50)


def memory_of(process: int) -> int:
    """The bytes that a process holds: of mapped files as much as is code; 0 where nobody can tell."""
    if not CAN_MEASURE:
        return 0
    try:
        _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_bytes().split()
    except (OSError, ValueError):
        return 0
    page = os.sysconf("SC_PAGE_SIZE")
    return (int(resident) - int(shared)) * page + min(int(shared) * page, CODE_BYTES)


def serve(parent: int, requests: int, answers: int) -> None:
    """Do work until nobody is left who asks for it."""
    for end in (requests, answers):
        os.set_inheritable(end, False)
    _end_with(parent)
    _leave_no_trace()
    _print_nothing()
    function, first = None, ()
    while len(size := _read(requests, SIZE_BYTES)) == SIZE_BYTES:
        request = _read(requests, int.from_bytes(size))
        try:
            work, environment, given, ended, folder = pickle.loads(request)
            if environment is not None:  # a password, say, that was given since the last work
                os.environ.clear()
                os.environ.update(environment | ONE_THREAD)
            if work is not None:
                function, first = pickle.loads(work)
            del request, work, environment
            watch = Watch(lambda step: _send(answers, pickle.dumps(step), STEP), ended, folder)
            assert function is not None
            for part in function(*first, given, watch):
                _send(answers, pickle.dumps(part, protocol=5), PART)
            del given
            _send(answers, b"", END)
        except BrokenPipeError:
            return
        except BaseException as problem:
            _send(answers, _pack_error(problem), ERROR)


def _end_with(parent: int) -> None:
    """End this process when the one that asks has ended, whatever it is doing then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIES_WITH_ITS_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    else:
        Thread(target=_wait_for_the_end_of, args=(parent,), daemon=True).start()


def _wait_for_the_end_of(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _leave_no_trace() -> None:
    """Write no memory to disk when killed, and be the one that is killed when the machine has none left."""
    import resource  # noqa: PLC0415  (not everywhere)

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(KILLED_BEFORE_OTHERS)


def _print_nothing() -> None:
    """Keep off the screen what libraries print of a damaged file: their errors travel to who asks."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _pack_error(problem: BaseException) -> bytes:
    """Write down an error with where it was raised; as text, if it is one that can't travel."""
    trace = "".join(traceback.format_exception(problem))
    try:
        problem.add_note(trace)
        packed = pickle.dumps(problem)
        pickle.loads(packed)
    except Exception:
        return pickle.dumps(RuntimeError(trace))
    return packed


def _send(end: int, content: bytes, kind: bytes = b"") -> None:
    for whole in (kind + len(content).to_bytes(SIZE_BYTES), content):
        rest = memoryview(whole)
        while rest:
            rest = rest[os.write(end, rest) :]


def _read(end: int, size: int) -> bytes:
    """Read so many bytes, or fewer if the other end is closed before."""
    parts = []
    while size and (part := os.read(end, min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
