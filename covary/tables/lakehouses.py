"""What reading any lakehouse has in common: how large its files may be, where they lie, and failures."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from covary.errors import CovaryError, UnreadableTable
from covary.secrets import Secrets

LONGEST_REASON = 300
# Of one file that tells what a table is made of, unpacked: that of a very large table is tens of megabytes.
# The packages read each as a whole, into a few times as much memory, in a process that has no limit.
LARGEST_METADATA = 256 << 20
LOCAL = re.compile(r"^file:(?://)?(?=/)")  # Hadoop writes one slash, others three
S3 = re.compile(r"^s3[an]://")


class LiesOutside(ValueError):
    """A file that a table's own log or metadata places outside of its folder."""

    def __init__(self, path: str) -> None:
        rule = "covary reads only what is in a table's folder, and this lies outside, as in a shallow clone"
        super().__init__(f"{rule}: {path}")


class TooLarge(ValueError):
    """A file of a table's own log or metadata that would fill the memory."""

    def __init__(self, name: str, most: int = LARGEST_METADATA) -> None:
        advice = "write a checkpoint of the table, or expire its old snapshots"
        super().__init__(f"{name} is larger than {most >> 20} MB unpacked, the most that is read; {advice}")


def require_small(name: str, size: int) -> None:
    """Refuse a file of a table's log or metadata that is larger than any that serves."""
    if size > LARGEST_METADATA:
        raise TooLarge(name)


def require_below(path: str, folder: str) -> None:
    """Refuse a file outside of a table's folder: anybody may have written the log that names it."""
    file, root = (S3.sub("s3://", LOCAL.sub("", each)) for each in (path, folder.rstrip("/")))
    is_below = file.startswith(f"{root}/")
    if not is_below and file.startswith("/"):  # the folder, or one around it, may have been named by a link
        is_below = os.path.realpath(file).startswith(f"{os.path.realpath(root)}/")
    if not is_below or ".." in file.split("/"):
        raise LiesOutside(path)


@contextmanager
def explain_failures(path: str, what: str = "") -> Iterator[None]:
    """Turn any failure of a lakehouse's own package into UnreadableTable; `what` names the file at fault."""
    try:
        yield
    except CovaryError:
        raise
    except BaseException as problem:
        # A panic of compiled code is no Exception; an interrupt isn't one either, and goes on.
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        reason = f"{what}: {_of_one_file(problem)}" if what else _in_words(problem)
        raise UnreadableTable(path, Secrets.of(path).hide(reason)[:LONGEST_REASON]) from problem


def _of_one_file(problem: BaseException) -> str:
    if isinstance(problem, FileNotFoundError):
        return "there is no such file"
    if isinstance(problem, PermissionError):
        return "there is no permission to read it"
    return _in_words(problem)


def _in_words(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines()
    return lines[0] if lines else type(problem).__name__
