"""What tells that a folder is one table of a lakehouse, and what is common to reading all of them."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from fsspec import AbstractFileSystem

from covary.errors import CovaryError, UnreadableTable
from covary.secrets import Secrets

DELTA, ICEBERG = "delta", "iceberg"
DELTA_LOG, METADATA = "_delta_log", "metadata"
LONGEST_REASON = 300
# Of one file that tells what a table is made of, unpacked: that of a very large table is tens of megabytes.
# The packages read each as a whole, into a few times as much memory, in a process that has no limit.
LARGEST_METADATA = 256 << 20
LOCAL = re.compile(r"^file:(?://)?(?=/)")  # Hadoop writes one slash, others three
S3 = re.compile(r"^s3[an]://")


def recognise_lakehouse(folder: str) -> str | None:
    """The format of the one table that a folder of this machine is, or None if it is an ordinary folder."""
    if os.path.isdir(os.path.join(folder, DELTA_LOG)):
        return DELTA
    with suppress(OSError):
        if any(map(_is_metadata, os.listdir(os.path.join(folder, METADATA)))):
            return ICEBERG
    return None


def recognise_remote_lakehouse(files: AbstractFileSystem, folder: str) -> str | None:
    """The format of the one table that a folder of an fsspec file system is, if it is one."""
    # A web site may answer any address with a page; nor does any reader of a lakehouse go by HTTP.
    protocols = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    if protocols & {"http", "https"}:
        return None
    if files.isdir(f"{folder}/{DELTA_LOG}"):
        return DELTA
    with suppress(FileNotFoundError, NotADirectoryError):
        names = (path.rpartition("/")[2] for path in files.ls(f"{folder}/{METADATA}", detail=False))
        if any(map(_is_metadata, names)):
            return ICEBERG
    return None


def find_lakehouses(paths: Iterable[str]) -> dict[str, str]:
    """The folders that are one table each, told by all the files below them, with their formats."""
    lakehouses: dict[str, str] = {}
    for path in paths:
        before, log, _ = path.partition(f"/{DELTA_LOG}/")
        folder, _, name = path.rpartition("/")
        if log:
            lakehouses[before] = DELTA
        elif folder.endswith(f"/{METADATA}") and _is_metadata(name):
            lakehouses.setdefault(folder.removesuffix(f"/{METADATA}"), ICEBERG)
    return lakehouses


def list_folders_around(path: str) -> list[str]:
    """A path and the folders that it lies in, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1) if parts[count - 1]]


def _is_metadata(name: str) -> bool:
    return (name.endswith(".metadata.json") and not name.startswith(".")) or name == "version-hint.text"


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
