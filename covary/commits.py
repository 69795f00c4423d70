"""How an index changes: by one writer at a time, in a scratch folder, and then all at once.

A writer that dies at any moment leaves the index as it was: its segments become part of the index only when
the manifest that names them replaces the one before. The next writer removes what the dead one left.
"""

import errno
import fcntl
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from covary.errors import CannotWrite, IndexBusy, StoreError
from covary.history import HISTORY, Change, append_change
from covary.segmentfiles import StoredSegment, stored_segment
from covary.store import MANIFEST, SCRATCH, SEGMENTS, Manifest, read_manifest, segment_folder

LOCK = "lock"
NO_LOCKS_HERE = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}


@dataclass(frozen=True, slots=True)
class Draft:
    """A change being made to an index: its scratch folder, and the manifest's text when it began."""

    index: Path
    folder: Path
    before: str | None


@contextmanager
def building(index: Path) -> Iterator[Draft]:
    """Begin a change to an index, as the only writer; whatever is left of it in the end is removed.

    Failing to write is reported as such, and leaves the previous index as it was.
    """
    scratch = index / f"{SCRATCH}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
    made_index = False
    try:
        made_index = not index.exists()
        _refuse_other_folders(index)
        index.mkdir(parents=True, exist_ok=True)
        with _only_writer(index) as alone:
            try:
                if alone:
                    _sweep(index)
                scratch.mkdir()
                yield Draft(index, scratch, _manifest_text(index))
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
                if made_index and not (index / MANIFEST).exists():
                    shutil.rmtree(index / SEGMENTS, ignore_errors=True)
                    for name in (HISTORY, LOCK):
                        (index / name).unlink(missing_ok=True)
    except ConnectionError:  # of Spark's, not of the disk's
        raise
    except OSError as problem:
        raise cannot_write(index, problem) from problem
    finally:
        if made_index and not (index / MANIFEST).exists():
            with suppress(OSError):  # not empty: another build has begun in it
                index.rmdir()


@contextmanager
def _only_writer(index: Path) -> Iterator[bool]:
    """Hold the lock of an index, which is let go of when this process ends, however it ends.

    Tells whether it is held: not every file system knows locks. There the manifest tells, at the end, of
    another writer.
    """
    with _open_lock(index) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(index, lock) from None
        except OSError as problem:
            if problem.errno not in NO_LOCKS_HERE:
                raise
            yield False
            return
        if not _is_at(lock, index / LOCK):  # removed, while we waited, by a first build that failed
            raise _busy(index, lock)
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        lock.flush()
        yield True


def _open_lock(index: Path) -> IO[str]:
    return (index / LOCK).open("a+", encoding="utf-8")


def _busy(index: Path, lock: IO[str]) -> IndexBusy:
    lock.seek(0)
    who = lock.read().strip() or "another process"
    return IndexBusy(f"{index} is being written by {who}; try again when it is done, nothing was changed")


def _is_at(lock: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _manifest_text(index: Path) -> str | None:
    try:
        return (index / MANIFEST).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def left_over(index: Path, manifest: Manifest) -> Iterator[Path]:
    """Find what writers left that were killed before they could remove it."""
    current = {segment.name for segment in manifest.segments}
    yield from index.glob(f"{SCRATCH}*")
    if (index / SEGMENTS).is_dir():
        yield from (folder for folder in (index / SEGMENTS).iterdir() if folder.name not in current)


def _sweep(index: Path) -> None:
    """Remove what killed writers left; nothing, if it can't be told what that is."""
    with suppress(StoreError):
        manifest = read_manifest(index) if (index / MANIFEST).exists() else None
        segments = manifest.segments if manifest else ()
        if not all(segment_folder(index, segment).is_dir() for segment in segments):
            return  # a manifest of another time or index: what it does not name may be all there is
        for folder in left_over(index, manifest) if manifest else index.glob(f"{SCRATCH}*"):
            if not _is_alive(folder.name):
                shutil.rmtree(folder, ignore_errors=True)


def _is_alive(scratch: str) -> bool:
    """Whether the writer of a scratch folder runs on this machine, though somebody removed its lock."""
    host, _, rest = scratch.removeprefix(SCRATCH).rpartition("-")[0].rpartition("-")
    return host == socket.gethostname() and rest.isdigit() and Path("/proc", rest).exists()


def _refuse_other_folders(index: Path) -> None:
    if index.is_file():
        raise CannotWrite(f"{index} is a file; name a folder for the index")
    if index.is_dir() and not (index / MANIFEST).exists():
        ours = {SEGMENTS, LOCK, HISTORY}
        others = [name for name in os.listdir(index) if not name.startswith(SCRATCH) and name not in ours]
        if others:
            raise CannotWrite(f"{index} holds other files and is not an index; choose a new folder")


def cannot_write(index: Path, problem: OSError) -> CannotWrite:
    """Say in words why an index can't be written."""
    reasons = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "your share of the disk is full",
        errno.EACCES: "no permission",
        errno.EROFS: "it is read-only",
    }
    where = f"{problem.filename}: " if problem.filename else ""
    reason = reasons.get(problem.errno or 0, f"{where}{problem.strerror or problem}")
    return CannotWrite(f"can't write the index {index}: {reason}; nothing was changed")


def commit(draft: Draft, manifest: Manifest, change: Change | None = None) -> None:
    """Move the new segments into place and replace the manifest: the one moment when the index changes."""
    index, text = draft.index, manifest.to_json()
    written = draft.folder / MANIFEST  # first of all: a disk too full for it leaves no segment behind
    written.write_text(text, encoding="utf-8")
    _to_disk(written)
    (index / SEGMENTS).mkdir(exist_ok=True)
    for segment in manifest.segments:
        _put_in_place(draft, segment)
    _to_disk(index / SEGMENTS)
    if _manifest_text(index) != draft.before:
        raise IndexBusy(
            f"{index} was changed by another covary in the meantime; nothing of this one was kept"
        )
    append_change(index, change or Change.of("write", manifest), text)
    written.replace(index / MANIFEST)
    _to_disk(index)
    for folder in left_over(index, manifest):
        if folder != draft.folder:
            shutil.rmtree(folder, ignore_errors=True)  # whoever has its files open keeps them


def _put_in_place(draft: Draft, segment: StoredSegment) -> None:
    new, place = draft.folder / segment.name, segment_folder(draft.index, segment)
    if not new.exists():  # kept from before
        return
    if place.exists():  # made again, with the same content unless that was damaged
        if stored_segment(place).files == segment.files:
            return
        place.rename(draft.folder / f"damaged-{segment.name}")
    for file in new.iterdir():
        _to_disk(file)
    _to_disk(new)
    new.rename(place)


def _to_disk(path: Path) -> None:
    """Wait until a file or a folder's list of names is where a power cut can't take it back."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
