"""Files by path or URL: their bytes, their size, and what tells that they changed.

A path is this machine's. A URL is fsspec's: s3://, gs://, abfs://, https://, hdfs://, sftp:// and many more,
each by the package made for it, with credentials from where that package looks for them.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any

import fsspec

from covary.errors import MissingPart, UnreadableTable
from covary.masking import BUCKETS, Secrets

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
PACKAGES = {
    "s3": "covary[s3]",
    "s3a": "covary[s3]",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "az": "adlfs",
}
KEYS_IN_URL = (
    "no : and no @ can be in a bucket's name; give keys as for the store's own command line, not in the URL"
)
# What an object store says of an object that changes with its content, the surest first.
VERSION_MARKS = (
    "ETag",
    "etag",
    "md5Hash",
    "content_md5",
    "mtime",
    "LastModified",
    "last_modified",
    "updated",
)


class NotAFile(OSError):
    """A pipe, a device or a folder where a file was expected."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What can be told of a file without reading it; `version` changes when its content does."""

    size: int
    version: str


def is_url(source: str) -> bool:
    """Whether a source is named by a URL that is not of this machine's files."""
    return URL.match(source) is not None and not source.startswith("file://")


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system that a URL is of, and the path in it."""
    scheme, _, rest = url.partition("://")
    bucket = re.split("[/?#]", rest, maxsplit=1)[0]
    if scheme in BUCKETS and re.search("[:@]", bucket) and not bucket.startswith("arn:"):
        raise UnreadableTable(url, KEYS_IN_URL)
    try:
        return fsspec.core.url_to_fs(url)  # type: ignore[no-any-return]
    except ImportError as problem:
        package = PACKAGES.get(scheme)
        advice = f"pip install '{package}'" if package else str(problem)
        raise MissingPart(f"reading {scheme}:// needs a package that is not installed: {advice}") from None
    except ValueError as problem:
        raise UnreadableTable(url, Secrets.of(url).hide(str(problem))) from None


def open_bytes(path: str) -> IO[bytes]:
    """Open a file for reading from any place in it."""
    if not is_url(path):
        return open(path, "rb", buffering=0)
    files, place = file_system(path)
    return files.open(place, "rb")  # type: ignore[no-any-return]


def facts_of(path: str) -> FileFacts:
    """Tell a file's size and version as they are now."""
    if not is_url(path):
        return _local_facts(os.stat(path))
    files, place = file_system(path)
    files.invalidate_cache()
    return remote_facts(files.info(place))


def remote_facts(info: Mapping[str, Any]) -> FileFacts:
    """Tell a file's size and version from what its file system says of it."""
    size = int(info.get("size") or 0)
    marks = (str(info[mark]) for mark in VERSION_MARKS if info.get(mark))
    mark = next(marks, "")
    return FileFacts(size, f"{size} {mark}" if mark else "")


def files_in(folder: str) -> dict[str, FileFacts]:
    """The files right in a folder, by name, with the size and version of each."""
    if not is_url(folder):
        with os.scandir(folder) as entries:
            return {entry.name: _local_facts(entry.stat()) for entry in entries if entry.is_file()}
    files, place = file_system(folder)
    files.invalidate_cache()
    listed = files.ls(place, detail=True)
    return {info["name"].rpartition("/")[2]: remote_facts(info) for info in listed if info["type"] == "file"}


def s3_endpoint() -> str | None:
    """Where S3 is asked for, if the environment names another place than Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def look_at(path: str, length: int) -> tuple[FileFacts, bytes]:
    """Tell a file's size and version, and its first bytes."""
    if is_url(path):
        with open_bytes(path) as file:
            return facts_of(path), file.read(length)
    # O_NONBLOCK: a named pipe without a writer would otherwise hang the listing.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise NotAFile("not a regular file")
        return _local_facts(status), os.read(handle, length)
    finally:
        os.close(handle)


def require_files(paths: Iterable[str]) -> None:
    """Refuse what is there and is no regular file: to open a pipe or a device may take for ever."""
    for path in paths:
        if os.path.lexists(path) and not os.path.isfile(path):
            raise _may_never_end(os.path.basename(path))


def require_files_in(folder: str) -> None:
    """Refuse a folder of this machine if anything in it, or right in a folder of it, is no regular file."""
    inner = []
    with os.scandir(folder) as entries:
        for entry in entries:
            # A linked folder is none that a lakehouse writes, and may lead back to where it lies.
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.path)
            elif not entry.is_file():
                raise _may_never_end(f"{os.path.basename(folder)}/{entry.name}")
    for each in inner:
        with os.scandir(each) as entries:
            odd = next((entry for entry in entries if not (entry.is_file() or entry.is_dir())), None)
        if odd:
            raise _may_never_end(os.path.relpath(odd.path, os.path.dirname(folder)))


def _may_never_end(name: str) -> NotAFile:
    return NotAFile(f"{name} is not a regular file, and opening it may never end; remove it")


def _local_facts(status: os.stat_result) -> FileFacts:
    return FileFacts(status.st_size, f"{status.st_size} {status.st_mtime_ns}")
