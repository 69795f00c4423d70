"""Commands of covary run and watched: how they end, how long they take, what their processes hold."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
POLL_SECONDS = 0.05
MOST_MEMORY = 2 << 30  # of one process: what holds more is ended, to save the machine
GRACE_SECONDS = 5.0  # for children to end after a command has


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended.

    Attributes:
        arguments: of covary.
        code: it ended with; minus the signal that ended it.
        out: what it printed.
        err: what it said on stderr.
        seconds: it took.
        memory: the most bytes that one Python process of it held.
        commands: the command lines of its children.
        too_long: whether it was ended at its deadline.
        too_large: whether it was ended because a process held too much.
        survivors: the children that went on running.
    """

    arguments: tuple[str, ...]
    code: int
    out: bytes = b""
    err: bytes = b""
    seconds: float = 0.0
    memory: int = 0
    commands: tuple[str, ...] = ()
    too_long: bool = False
    too_large: bool = False
    survivors: tuple[str, ...] = ()


@dataclass(slots=True)
class Watch:
    """What is seen of the processes of a session while a command runs in it."""

    session: int
    memory: int = 0
    commands: dict[str, None] = field(default_factory=dict)

    def look(self) -> list[int]:
        """Look once; return the processes that are there."""
        found = processes_of(self.session)
        for pid in found:
            with suppress(OSError, ValueError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if pid != self.session and line:
                    self.commands[line] = None
                if "java" not in line.split(" ")[0]:
                    self.memory = max(self.memory, peak_of(pid))
        return found


def processes_of(session: int) -> list[int]:
    """The processes of a session, which all descendants of its first are that did not leave it."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                fields = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
                if int(fields[3]) == session and fields[0] != b"Z":
                    found.append(int(name))
    return found


def peak_of(pid: int) -> int:
    """The most bytes that a process has held since it began, or since that was reset."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0


def end(session: int) -> None:
    """Kill every process of a session that we began."""
    for _ in range(100):
        found = processes_of(session)
        if not found:
            return
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def environment(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a command finds around it: a home and a place for temporary files of its own."""
    for name in ("home", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    own = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "PYTHONPATH": path}
    return {**os.environ, **own, "PYTHONFAULTHANDLER": "1", **(more or {})}


def run_fresh(
    arguments: Sequence[str],
    folder: Path,
    deadline: float = 180.0,
    more: Mapping[str, str] | None = None,
    meanwhile: Callable[[subprocess.Popen[bytes], float], None] | None = None,
    most_memory: int = MOST_MEMORY,
) -> Ran:
    """Run a command as a person does, in processes of its own.

    Args:
        arguments: of covary.
        folder: where its home, its temporary files and its output are.
        deadline: seconds after which it hangs.
        more: of its environment.
        meanwhile: called again and again with the process and the seconds since it began.
        most_memory: that one process may hold before all are ended.
    """
    around = environment(folder, more)
    (folder / "here").mkdir(exist_ok=True)
    out, err = folder / "out", folder / "err"
    began = time.monotonic()
    with out.open("wb") as said, err.open("wb") as complained:
        process = subprocess.Popen(
            [sys.executable, "-m", "covary", *arguments],
            env=around,
            cwd=folder / "here",
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=complained,
            start_new_session=True,
        )
    watch = Watch(process.pid)
    too_long = too_large = False
    while process.poll() is None:
        watch.look()
        if meanwhile:
            meanwhile(process, time.monotonic() - began)
        too_long, too_large = time.monotonic() - began > deadline, watch.memory > most_memory
        if too_long or too_large:
            break
        time.sleep(POLL_SECONDS)
    seconds = time.monotonic() - began
    survivors = () if too_long or too_large else _survivors(process.pid)
    end(process.pid)
    process.wait()
    return Ran(
        tuple(arguments),
        process.returncode,
        out.read_bytes(),
        err.read_bytes(),
        seconds,
        watch.memory,
        tuple(watch.commands),
        too_long,
        too_large,
        survivors,
    )


def _survivors(session: int) -> tuple[str, ...]:
    began = time.monotonic()
    while left := processes_of(session):
        if time.monotonic() - began > GRACE_SECONDS:
            watch = Watch(session)
            watch.look()
            return tuple(line[:80] for line in watch.commands) or tuple(map(str, left))
        time.sleep(0.1)
    return ()


class Desk:
    """A process that runs one command of covary after the other, with Python and Spark already up.

    It has what a person's command has but for its start; when it dies or has to be ended, the next command
    begins it anew.
    """

    def __init__(self, folder: Path, *, spark: bool = False, most_memory: int = MOST_MEMORY) -> None:
        self.folder, self.spark, self.most_memory = folder, spark, most_memory
        self.ran = 0  # commands, since it began
        self._process: subprocess.Popen[bytes] | None = None
        self._said_before = 0

    def __call__(self, *arguments: str, deadline: float = 60.0) -> Ran:
        """Run a command."""
        try:
            process = self._begun()
        except TimeoutError:
            return Ran(arguments, -1, err=b"the desk did not begin", too_long=True)
        out, err, log = self.folder / "out", self.folder / "err", self.folder / "log"
        self._said_before = log.stat().st_size
        request = {
            "arguments": arguments,
            "out": str(out),
            "err": str(err),
            "here": str(self.folder / "here"),
        }
        for pid in processes_of(process.pid):
            with suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")  # forget the peaks of earlier commands
        watch = Watch(process.pid)
        began = time.monotonic()
        code, too_long, too_large = None, False, False
        with suppress(BrokenPipeError):
            self._tell(json.dumps(request))
        while code is None and not (too_long or too_large):
            if select.select([process.stdout], [], [], POLL_SECONDS)[0]:
                answer = self._heard()
                code = json.loads(answer)["code"] if answer else None
            watch.look()
            if code is None and process.poll() is not None:
                code = process.returncode
            too_long, too_large = time.monotonic() - began > deadline, watch.memory > self.most_memory
        seconds = time.monotonic() - began
        more = log.read_bytes()[self._said_before :]
        self.ran += 1
        if too_long or too_large or process.poll() is not None:
            self.close()
        return Ran(
            arguments,
            -9 if code is None else code,
            out.read_bytes() if out.exists() else b"",
            (err.read_bytes() if err.exists() else b"") + more,
            seconds,
            watch.memory,
            tuple(watch.commands),
            too_long,
            too_large,
        )

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._process and self._process.poll() is None:
            return self._process
        self.close()
        around = environment(self.folder)
        (self.folder / "here").mkdir(exist_ok=True)
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "torture.desk", *(["--spark"] if self.spark else [])],
                env=around,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        if not select.select([self._process.stdout], [], [], 120.0)[0] or not self._heard():
            self.close()
            raise TimeoutError
        return self._process

    def _tell(self, line: str) -> None:
        assert self._process and self._process.stdin
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def _heard(self) -> bytes:
        assert self._process and self._process.stdout
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the process, and all that it began."""
        if self._process:
            end(self._process.pid)
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream:
                    with suppress(BrokenPipeError):
                        stream.close()
        self._process, self.ran = None, 0
