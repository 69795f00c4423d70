"""Files by path or URL: their bytes, their size, and what tells that they changed.

A path is this machine's. A URL is fsspec's: s3://, gs://, abfs://, https://, hdfs://, sftp:// and many more,
each by the package made for it, with credentials from where that package looks for them.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import fsspec
from fsspec import AbstractFileSystem

from covary.errors import MissingPart, UnreadableTable
from covary.secrets import BUCKETS, Secrets

if TYPE_CHECKING:
    import aiohttp

Info = Mapping[str, Any]  # what a file system says of a file
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
PACKAGES = {
    "s3": "covary[s3]", "s3a": "covary[s3]", "gs": "gcsfs", "gcs": "gcsfs",
    "abfs": "adlfs", "az": "adlfs", "http": "aiohttp", "https": "aiohttp",
}  # fmt: skip
# A server may accept and say nothing. How long a file takes in all is not limited: a large one takes hours.
SECONDS_TO_CONNECT, SECONDS_WITHOUT_A_BYTE = 15.0, 60.0
NO_ANSWER = "its server did not answer in time; is it up? try again"
# A page is only looked through for links; 8 MB hold 100,000.
LARGEST_PAGE, SECONDS_FOR_A_PAGE = 8 << 20, 60.0
TOO_LONG_A_PAGE = "its page is longer than any list of files; name the files"
BLANKS, LONG_TAG = re.compile(r"\s+"), re.compile(r"<(?=[aA] )(?![^<>]{0,2000}>)")
HALF_AN_ANSWER = "its server ended its answer in the middle, or gave none that can be understood; try again"
# What stores mean by their errors, by the name of the error: their packages need not be installed.
PLAIN_WORDS = {
    "FileNotFoundError": "there is no such file, folder or bucket",
    "NoCredentialsError": "no credentials were found; set them as for the store's own command line",
    "PermissionError": "no permission; see which credentials are set",
    "EndpointConnectionError": "its server can't be reached",
    "ClientConnectorError": "its server can't be reached",
    "SocketTimeoutError": NO_ANSWER,
    "ServerTimeoutError": NO_ANSWER,
    "ConnectionTimeoutError": NO_ANSWER,
    "FSTimeoutError": NO_ANSWER,
    "TimeoutError": NO_ANSWER,
    "ClientPayloadError": HALF_AN_ANSWER,
    "ServerDisconnectedError": HALF_AN_ANSWER,
}
OF_STORES = {"aiohttp", "botocore", "aiobotocore"}  # whose errors are no OSErrors
KEYS_IN_URL = (
    "no : and no @ can be in a bucket's name; give keys as for the store's own command line, not in the URL"
)
# What an object store says of an object that changes with its content, the surest first.
VERSION_MARKS = (
    "ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "updated",
)  # fmt: skip


class NotAFile(OSError):
    """A pipe, a device or a folder where a file was expected."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What can be told of a file without reading it; `version` changes when its content does."""

    size: int
    version: str


def file_system(url: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system that a URL is of, and the path in it."""
    scheme, _, rest = url.partition("://")
    bucket = re.split("[/?#]", rest, maxsplit=1)[0]
    if scheme in BUCKETS and re.search("[:@]", bucket) and not bucket.startswith("arn:"):
        raise UnreadableTable(url, KEYS_IN_URL)
    try:
        return fsspec.core.url_to_fs(url, **_limits_of_the_web(url))  # type: ignore[no-any-return]
    except ImportError as problem:
        package = PACKAGES.get(scheme)
        advice = f"pip install '{package}'" if package else str(problem)
        raise MissingPart(f"reading {scheme}:// needs a package that is not installed: {advice}") from None
    except ValueError as problem:
        raise UnreadableTable(url, Secrets.of(url).hide(str(problem))) from None


def _limits_of_the_web(url: str) -> dict[str, dict[str, object]]:
    """Return what fsspec must be told, link by link of a chain, to wait for no web server for ever."""
    schemes = {link.partition("://")[0] for link in url.split("::")} & {"http", "https"}
    if not schemes:
        return {}
    import aiohttp

    limits = aiohttp.ClientTimeout(
        total=None, sock_connect=SECONDS_TO_CONNECT, sock_read=SECONDS_WITHOUT_A_BYTE
    )
    limited = {"timeout": limits, "response_class": page_class()}
    # What the user configured for fsspec stays: it would be replaced as a whole.
    given = {scheme: fsspec.config.conf.get(scheme, {}).get("client_kwargs", {}) for scheme in schemes}
    return {scheme: {"client_kwargs": limited | given[scheme]} for scheme in schemes}


@cache
def page_class() -> "type[aiohttp.ClientResponse]":
    """Return what aiohttp makes of answers; of a page, which fsspec reads whole, no more than its links."""
    import aiohttp

    class Page(aiohttp.ClientResponse):
        async def text(self, encoding: str | None = None, errors: str = "strict") -> str:
            if self._body is None:
                self._body = await asyncio.wait_for(_no_more_than_a_page(self), SECONDS_FOR_A_PAGE)
            return _with_short_tags(await super().text(encoding, errors))

    return Page


async def _no_more_than_a_page(answer: "aiohttp.ClientResponse") -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > LARGEST_PAGE:
            raise OSError(TOO_LONG_A_PAGE)
    return bytes(body)


def _with_short_tags(page: str) -> str:
    """Leave out where overlong tags begin: the time of fsspec's search for links grows with their square."""
    return LONG_TAG.sub(" ", BLANKS.sub(" ", page))


def explain_store_error(problem: BaseException) -> str | None:
    """Say in plain words what a store means by an error, if it is one of those that are known."""
    # What is not found may have a cause that tells more: a web server that does not answer.
    kinds = (type(each).__name__ for each in (problem.__cause__, problem) if each)
    return next((PLAIN_WORDS[kind] for kind in kinds if kind in PLAIN_WORDS), None)


def describe_error(problem: BaseException) -> str:
    """Say in words what went wrong, also where a library leaves its error without any."""
    if isinstance(problem, OSError) and (reason := problem.strerror or explain_store_error(problem)):
        return reason
    return str(problem).strip() or type(problem).__name__


@contextmanager
def raise_as_os_errors() -> Iterator[None]:
    """Let the errors of stores' packages out of the block as OSErrors, which whoever reads files expects."""
    try:
        yield
    except Exception as problem:
        if isinstance(problem, OSError) or type(problem).__module__.partition(".")[0] not in OF_STORES:
            raise
        raise OSError(explain_store_error(problem) or " ".join(str(problem).split())) from problem


def remote_state(info: Info) -> FileState:
    """The size and version of a file elsewhere, from what its file system says of it."""
    size = int(info.get("size") or 0)
    mark = next((info[mark] for mark in VERSION_MARKS if info.get(mark)), "")
    return FileState(size, f"{size} {mark}" if mark else "")


def s3_endpoint() -> str | None:
    """Where S3 is asked for, if the environment names another place than Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def require_files(paths: Iterable[str]) -> None:
    """Refuse what is there and is no regular file: to open a pipe or a device may take for ever."""
    for path in paths:
        if os.path.lexists(path) and not os.path.isfile(path):
            raise _may_never_end(os.path.basename(path))


def require_files_in(folder: str) -> None:
    """Refuse a folder of this machine if anything in it, or right in a folder of it, is no regular file."""
    others = [entry for entry in list(os.scandir(folder)) if not entry.is_file()]
    # A linked folder is none that a lakehouse writes, and may lead back to where it lies.
    odd = [entry for entry in others if not entry.is_dir(follow_symlinks=False)]
    if not odd:
        below = [entry for inner in others for entry in list(os.scandir(inner))]
        odd = [entry for entry in below if not (entry.is_file() or entry.is_dir())]
    if odd:
        raise _may_never_end(os.path.relpath(odd[0].path, os.path.dirname(folder)))


def _may_never_end(name: str) -> NotAFile:
    return NotAFile(f"{name} is not a regular file, and opening it may never end; remove it")


def local_state(status: os.stat_result) -> FileState:
    """The size and version of a file of this machine."""
    return FileState(status.st_size, f"{status.st_size} {status.st_mtime_ns}")
