"""Folders for what is not to last: nobody else can look into them, and none stays behind.

A process that is killed can't remove its own. So each folder tells by its name which process made it, and is
locked as long as that lives; the next process of the same user removes those of the dead. A name proves
nothing, as anybody may give one: only a folder with our mark in it is ever removed.
"""

import atexit
import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from uuid import uuid4

NAME = re.compile(r"covary-(\d+)-[a-z0-9_]{8}")  # as mkdtemp makes them
MARK = "covary-scratch"  # the first file of every such folder
MARKED = b"This folder is scratch of covary's: covary removes it when the process that made it has ended.\n"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder of this process alone, which is removed after the block."""
    _sweep_once()
    maker = os.getpid()
    folder = Path(tempfile.mkdtemp(prefix=f"covary-{maker}-"))
    lock = _lock(folder)  # before it is marked, so that whoever sees the mark sees the lock too
    try:
        set_mark(folder)
        yield folder
    finally:
        if os.getpid() == maker:  # not in a child that was forked meanwhile
            remove_scratch(folder)
        if lock is not None:
            os.close(lock)


@cache
def lasting_folder() -> Path:
    """The one such folder that is there as long as this process."""
    until_the_end = ExitStack()
    atexit.register(until_the_end.close)
    return until_the_end.enter_context(scratch_folder())


@cache
def _sweep_once() -> None:
    sweep()


def scratch_name() -> Path:
    """Name a folder that another process makes for this one, with `make_scratch`."""
    return Path(tempfile.gettempdir(), f"covary-{os.getpid()}-{uuid4().hex[:8]}")


def make_scratch(folder: Path) -> None:
    """Make a folder of such a name, and mark it, if it is not there yet; never take another user's."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "somebody else has made it", str(folder))
    set_mark(folder)


def set_mark(folder: Path) -> None:
    """Write into a folder that it is covary's to remove."""
    with suppress(FileExistsError), (folder / MARK).open("xb") as mark:
        mark.write(MARKED)


def remove_scratch(folder: Path) -> None:
    """Remove a folder and all that is in it, the mark last: what a process killed here leaves is known."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != MARK:
                with suppress(OSError):
                    os.unlink(entry.path)
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove the folders of this user's processes that are dead."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            match = NAME.fullmatch(entry.name)
            if match and not _is_running(int(match[1])):
                _remove_if_ours(Path(entry.path))


def _remove_if_ours(folder: Path) -> None:
    lock = _lock(folder)
    if lock is None:  # another user's, a link, or held by a process that only another container sees
        return
    try:
        if os.fstat(lock).st_uid == os.geteuid() and _has_mark(lock):
            remove_scratch(folder)
    finally:
        os.close(lock)


def _has_mark(folder: int) -> bool:
    """Whether covary made an open folder: by a file of this user's in it, not a link, that says so."""

    def open_here(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)

    with suppress(OSError), open(MARK, "rb", opener=open_here) as mark:
        status = os.fstat(mark.fileno())
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        return is_ours and mark.read(len(MARKED) + 1) == MARKED
    return False


def _lock(folder: Path) -> int | None:
    """Open a folder, not a link to one, and lock it; None if it can't be done."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is another user's, or no number of a process
        pass
    return True
