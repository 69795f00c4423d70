"""Folders for what is not to last: nobody else can look into them, and none stays behind.

A process that is killed can't remove its own. So each folder tells by its name which process made it, and is
locked as long as that lives; the next process of the same user removes those of the dead.
"""

import atexit
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

NAME = re.compile(r"covary-(\d+)-[a-z0-9_]{8}")  # as mkdtemp makes them


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder of this process alone, which is removed after the block."""
    _sweep_once()
    maker = os.getpid()
    folder = Path(tempfile.mkdtemp(prefix=f"covary-{maker}-"))
    lock = _locked(folder)
    try:
        yield folder
    finally:
        if os.getpid() == maker:  # not in a child that was forked meanwhile
            shutil.rmtree(folder, ignore_errors=True)
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


def sweep() -> None:
    """Remove the folders of this user's processes that are dead."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            match = NAME.fullmatch(entry.name)
            if match and not _is_running(int(match[1])):
                _remove(Path(entry.path))


def _remove(folder: Path) -> None:
    lock = _locked(folder)
    if lock is None:  # another user's, a link, or held by a process that only another container sees
        return
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _locked(folder: Path) -> int | None:
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
    except (OSError, OverflowError):
        return True
    return True
