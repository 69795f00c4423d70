"""What shows that a folder is an index of covary's, and how its files are opened: never through a link."""

import errno
import json
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import xxhash

MANIFEST = "manifest.json"
MARK = "covary-index"  # the first file of every index, so that one killed at its first build is known again
MARKED = b"This folder is a covary index: covary writes and removes files in it.\n"
# As the manifest of any version begins: sorted names, its checksum first.
MANIFEST_HEAD = re.compile(rb'\{\n "checksum": "[0-9a-f]{32}",\n "config": \{\n  "aggregates": \[')
SEAL = re.compile(r'\{\n "checksum": "([0-9a-f]{32})",\n')
LARGEST_REWRITTEN = 4 << 20  # by hand or by another program, which is slower to check
# One of a million column pairs from 10,000 sources has 0.8 MB; 100,000 sources, and as many tables removed by
# hand, take 13 MB. What says more than that is hardly covary's, and is refused before it fills the memory.
LARGEST_MANIFEST = 16 << 20
LARGE_FILE, MOST_HOLES, BLOCK_BYTES = 1 << 26, 1000, 512  # a file of a thousand times what its disk holds
LINK = "it is a link, and covary follows none inside an index"


class NotPlain(OSError):
    """A link, a folder, a pipe or a device where an index has a file, or a file beyond any size."""


def open_plain(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file by its own name: not through a link, and without waiting for a pipe."""
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as problem:
        if os.path.islink(path):
            raise NotPlain(problem.errno, LINK, str(path)) from None
        raise
    try:
        _require(os.fstat(handle), stat.S_ISREG, path)
    except NotPlain:
        os.close(handle)
        raise
    return handle


def open_whole(path: str | Path) -> int:
    """Open a regular file to read it whole; one of holes is refused: it may be as long as it likes."""
    handle = open_plain(path)
    if _is_all_holes(handle):
        os.close(handle)
        raise NotPlain(0, "it is all holes, which would take hours to read", str(path))
    return handle


def _is_all_holes(handle: int) -> bool:
    status = os.fstat(handle)
    if status.st_size <= max(LARGE_FILE, MOST_HOLES * BLOCK_BYTES * status.st_blocks):
        return False
    if status.st_blocks:
        return True
    try:  # not every file system counts blocks
        os.lseek(handle, 0, os.SEEK_DATA)
    except OSError as problem:
        return problem.errno == errno.ENXIO
    os.lseek(handle, 0, os.SEEK_SET)
    return False


def read_plain(path: str | Path, at_most: int) -> bytes:
    """Read a regular file whole; one larger than any of its kind is refused before it is read."""
    with open(open_plain(path), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > at_most:
            raise NotPlain(0, f"its {size:,} bytes are more than any such file of covary's has", str(path))
        return stream.read(at_most)


def require_folder(path: str | Path) -> None:
    """Refuse a link to a folder, or what is none."""
    _require(os.lstat(path), stat.S_ISDIR, path)


def require_file(path: str | Path) -> None:
    """Refuse a link to a file, or what is none."""
    _require(os.lstat(path), stat.S_ISREG, path)


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder, and not a link to one."""
    try:
        require_folder(path)
    except OSError:
        return False
    return True


def _require(status: os.stat_result, wanted: Callable[[int], bool], path: str | Path) -> None:
    if wanted(status.st_mode):
        return
    if stat.S_ISLNK(status.st_mode):
        what = LINK
    elif stat.S_ISDIR(status.st_mode):
        what = "Is a directory"
    else:
        what = "Not a directory" if stat.S_ISREG(status.st_mode) else "it is a pipe or a device, and no file"
    raise NotPlain(0, what, str(path))


def set_mark(index: Path) -> None:
    """Mark a folder as an index of covary's, if it is not marked yet."""
    if has_mark(index):
        return
    with open(open_plain(index / MARK, os.O_RDWR | os.O_CREAT), "r+b", buffering=0) as mark:
        content = mark.read(len(MARKED) + 1)
        if content and content != MARKED:
            raise NotPlain(0, "covary did not write it; move it away", str(index / MARK))
        if not content:
            try:
                mark.write(MARKED)
                os.fsync(mark.fileno())
            except OSError:
                (index / MARK).unlink(missing_ok=True)
                raise


def has_mark(index: str | Path) -> bool:
    """Whether covary began an index in a folder, whatever became of its manifest."""
    return _head(os.path.join(index, MARK), len(MARKED) + 1) == MARKED


def looks_like_an_index(folder: str | Path) -> bool:
    """Whether a folder is an index by its mark, or by how its manifest begins; told at the cost of a look."""
    return has_mark(folder) or bool(MANIFEST_HEAD.match(_head(os.path.join(folder, MANIFEST), 1 << 10)))


def _head(path: str, length: int) -> bytes:
    with suppress(OSError), open(open_plain(path), "rb") as stream:
        return stream.read(length)
    return b""


def as_json(content: dict[str, Any]) -> str:
    """Return what a manifest says as it stands on disk."""
    return json.dumps(content, indent=1, sort_keys=True)


def seal_of(content: dict[str, Any]) -> str:
    """Return the checksum of what a manifest says."""
    return str(xxhash.xxh3_128_hexdigest(as_json(content).encode()))


def sealed_content(text: str) -> dict[str, Any] | None:
    """Return what a manifest says if it is what covary wrote, of this format or another."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not (isinstance(content, dict) and {"checksum", "config", "format", "segments"} <= content.keys()):
        return None
    return content if _is_sealed(text, content) else None


def _is_sealed(text: str, content: dict[str, Any]) -> bool:
    if seal := SEAL.match(text):
        as_written = "{\n" + text[seal.end() :].removesuffix("\n")
        if seal[1] == xxhash.xxh3_128_hexdigest(as_written.encode(errors="replace")):
            return True
    if len(text) > LARGEST_REWRITTEN:
        return False
    try:
        sealed = {name: value for name, value in content.items() if name != "checksum"}
        return bool(content["checksum"] == seal_of(sealed))
    except RecursionError:
        return False
