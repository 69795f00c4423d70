"""How an index changes: by one writer at a time, in a scratch folder, and then all at once.

A writer that dies at any moment leaves the index as it was: its segments become part of the index only when
the manifest that names them replaces the one before. The next writer removes what the dead one left.

A folder is written to if it is new, empty, or shown to be covary's by its mark or its manifest. Nothing in it
is removed but what covary can show it wrote, and no link in it is followed.
"""

import errno
import fcntl
import os
import re
import shutil
import socket
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from covary.errors import CannotWrite, IndexBusy, StoreError
from covary.index.history import FULL_HISTORY, HISTORY, Change, append_change, require_own_history
from covary.index.manifest import (
    SCRATCH,
    SEGMENT_NAME,
    Manifest,
    read_manifest,
    segment_folder,
    segments_named,
)
from covary.index.segment_files import FILES, SEGMENTS, StoredSegment, stored_segment
from covary.own_files import (
    LARGEST_MANIFEST,
    MANIFEST,
    MARK,
    NotPlain,
    has_mark,
    is_folder,
    open_plain,
    read_plain,
    require_file,
    require_folder,
    set_mark,
)

LOCK = "lock"
OURS = frozenset({MARK, MANIFEST, HISTORY, LOCK, SEGMENTS})
SCRATCH_NAME = re.compile(rf"{re.escape(SCRATCH)}.+-[0-9]+-[0-9a-f]{{12}}", re.DOTALL)
WRITER = re.compile(rb"process [0-9]+ on [^\n]*\n")
LONGEST_WRITER = 1000
A_MOMENT = 0.1  # seconds
NO_LOCKS_HERE = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}

Known = Mapping[str, Set[str]]
NOTHING_KNOWN: Known = {}


@dataclass(frozen=True, slots=True)
class Draft:
    """A change being made to an index."""

    index: Path
    folder: Path  # for what is being written
    before: str | None  # the manifest's text when the change began
    known: Known  # the segments that this manifest named, with the names of their files


@contextmanager
def open_draft(index: Path) -> Iterator[Draft]:
    """Begin a change to an index, as the only writer; whatever is left of it in the end is removed.

    Failing to write is reported as such, and leaves the previous index as it was.
    """
    made_index = False
    try:
        made_index = not index.exists()
        names_before = _require_own(index)
        index.mkdir(parents=True, exist_ok=True)
        set_mark(index)
        with _only_writer(index) as alone:
            before = _manifest_text(index)
            draft = Draft(index, _scratch_in(index), before, segments_named(before or ""))
            try:
                if alone:
                    _sweep(draft)
                _make_scratch(draft.folder)
                set_mark(index)  # again: a first build that failed may have taken it away
                yield draft
            finally:
                _remove_scratch(draft.folder)
                if alone and MANIFEST not in names_before and not os.path.lexists(index / MANIFEST):
                    _undo(index, names_before)
    except ConnectionError:  # of Spark's, not of the disk's
        raise
    except OSError as problem:
        raise explain_write_error(index, problem) from problem
    finally:
        if made_index and not (index / MANIFEST).exists():
            with suppress(OSError):  # not empty: another build has begun in it
                index.rmdir()


def _require_own(index: Path) -> Collection[str]:
    """Refuse a folder that is neither empty nor shown to be covary's; return the names of what is in it."""
    if not index.exists():
        return ()
    if not index.is_dir():
        raise CannotWrite(f"{index} is a file; name a folder for the index")
    if not _is_own(index):
        time.sleep(A_MOMENT)  # another first build, which failed, may be taking away what it made
    names = _names_in(index)
    if _is_own(index):
        require_own_history(index)
        if SEGMENTS in names:
            require_folder(index / SEGMENTS)
        return names
    if MANIFEST in names:
        raise CannotWrite(
            f"{index} is not a covary index: its {MANIFEST} is of something else, or was altered; "
            f"choose a new folder; nothing was changed"
        )
    raise CannotWrite(f"{index} holds other files and is not an index; choose a new folder")


def _is_own(index: Path) -> bool:
    """Whether a folder is empty, or shows by its mark or its manifest that covary writes in it."""
    # A mark that is alone may be empty, of a build that was killed while writing it.
    if has_mark(index) or not {*_names_in(index)} - {MARK}:
        return True
    try:
        return bool(segments_named(_manifest_text(index) or ""))
    except NotPlain:
        return False


def _names_in(index: Path) -> list[str]:
    try:
        return os.listdir(index)
    except FileNotFoundError:  # removed in the meantime, by a first build that failed
        return []


def _scratch_in(index: Path) -> Path:
    return index / f"{SCRATCH}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:12]}"


def _make_scratch(folder: Path) -> None:
    folder.mkdir()
    set_mark(folder)


def _remove_scratch(folder: Path) -> None:
    """Remove a folder to work in, its mark last: what is left if we die here is known again."""
    for path in _in_folder(folder):
        if path.name != MARK and is_folder(path):
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != MARK:
            with suppress(OSError):
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _only_writer(index: Path) -> Iterator[bool]:
    """Hold the lock of an index, which is let go of when this process ends, however it ends.

    Tells whether it is held: not every file system knows locks. There the manifest tells, at the end, of
    another writer.
    """
    with open(open_plain(index / LOCK, os.O_RDWR | os.O_CREAT), "r+b", buffering=0) as lock:
        _writer_in(lock, index)
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
        if os.fstat(lock.fileno()).st_nlink == 1:  # or a copy made of links would change with it
            lock.truncate(0)
            os.pwrite(lock.fileno(), f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield True


def _writer_in(lock: IO[bytes], index: Path) -> str:
    """Return who wrote a lock last; one that covary did not write is refused."""
    lock.seek(0)
    who = lock.read(LONGEST_WRITER)
    if who and not WRITER.fullmatch(who):
        raise CannotWrite(f"{index / LOCK} was not written by covary; move it away; nothing was changed")
    return who.decode(errors="replace").strip() or "another process"


def _busy(index: Path, lock: IO[bytes]) -> IndexBusy:
    who = _writer_in(lock, index)
    return IndexBusy(f"{index} is being written by {who}; try again when it is done, nothing was changed")


def _is_at(lock: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock.fileno()), path.lstat())
    except FileNotFoundError:
        return False


def _manifest_text(index: Path) -> str | None:
    try:
        return read_plain(index / MANIFEST, LARGEST_MANIFEST).decode(errors="replace")
    except FileNotFoundError:
        return None


def find_left_over(index: Path, manifest: Manifest, known: Known = NOTHING_KNOWN) -> Iterator[Path]:
    """Find what writers left that were killed before they could remove it."""
    yield from _scratch_folders(index)
    yield from _segments_of_ours(index, {segment.name for segment in manifest.segments}, known)


def find_foreign_files(index: Path, manifest: Manifest, left: Collection[Path]) -> Iterator[Path]:
    """Find what lies in an index and was not written by covary, as far as can be told; it stays there."""
    segments = {segment_folder(index, segment) for segment in manifest.segments}
    paths = {*_in_folder(index), *_segment_folders(index)}.difference(left, segments)
    paths.update(file for folder in segments if is_folder(folder) for file in _in_folder(folder))
    for path in sorted(paths):
        ours = FILES if path.parent in segments else OURS if path.parent == index else ()
        if path.name not in ours:
            yield path


def _in_folder(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _segment_folders(index: Path) -> list[Path]:
    return _in_folder(index / SEGMENTS) if is_folder(index / SEGMENTS) else []


def _scratch_folders(index: Path) -> list[Path]:
    named = (path for path in _in_folder(index) if SCRATCH_NAME.fullmatch(path.name) and is_folder(path))
    # By its name alone it may be somebody's. Without a mark it was never used: its writer died before.
    return [path for path in named if has_mark(path) or not {*_names_in(path)} - {MARK}]


def _segments_of_ours(index: Path, current: Set[str], known: Known) -> list[Path]:
    """Find the segments that covary wrote and that are not part of the index."""
    others = (path for path in _segment_folders(index) if path.name not in current)
    return [path for path in others if _is_our_segment(path, known)]


def _is_our_segment(folder: Path, known: Known) -> bool:
    """Whether covary wrote a folder: a manifest of ours names it, or it is named by what it holds."""
    if not (SEGMENT_NAME.fullmatch(folder.name) and is_folder(folder)):
        return False
    try:
        with os.scandir(folder) as entries:
            files = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
        if not all(files.values()):
            return False
        if folder.name in known:
            return files.keys() <= known[folder.name]
        return files.keys() == FILES and stored_segment(folder).name == folder.name
    except OSError:
        return False


def _sweep(draft: Draft) -> None:
    """Remove what killed writers left; nothing, if it can't be told what that is."""
    index = draft.index
    with suppress(StoreError):
        if draft.before is None:
            dead = _scratch_folders(index)
        else:
            manifest = read_manifest(index)
            if not all(is_folder(segment_folder(index, segment)) for segment in manifest.segments):
                return  # a manifest of another time or index: what it does not name may be all there is
            dead = list(find_left_over(index, manifest))
        for folder in dead:
            if not _is_alive(folder.name):
                _discard(folder, index)


def _discard(folder: Path, index: Path) -> None:
    """Remove a folder of ours."""
    scratch = folder
    if folder.parent != index:  # half of a segment could not be told from another's folder
        scratch = _scratch_in(index)
        with suppress(OSError):
            _make_scratch(scratch)
            folder.rename(scratch / folder.name)
    _remove_scratch(scratch)  # whoever has its files open keeps them


def _is_alive(scratch: str) -> bool:
    """Whether the writer of a scratch folder runs on this machine, though somebody removed its lock."""
    host, _, rest = scratch.removeprefix(SCRATCH).rpartition("-")[0].rpartition("-")
    return host == socket.gethostname() and rest.isdigit() and Path("/proc", rest).exists()


def _undo(index: Path, names_before: Collection[str]) -> None:
    """Remove what a first build made that failed, but not what was there before."""
    for folder in _segments_of_ours(index, frozenset(), NOTHING_KNOWN):
        _discard(folder, index)
    if SEGMENTS not in names_before:
        with suppress(OSError):  # somebody has put something in it
            (index / SEGMENTS).rmdir()
    for name in (HISTORY, LOCK, MARK):  # by its mark alone the folder is known again, if we die here
        if name not in names_before:
            (index / name).unlink(missing_ok=True)


def explain_write_error(index: Path, problem: OSError) -> CannotWrite:
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
    if len(text) > LARGEST_MANIFEST:
        raise CannotWrite(
            f"{index} would remember too many tables as removed by hand ({len(text):,} bytes of names); "
            f"remove their source instead, or build the index anew with --fresh; nothing was changed"
        )
    written = draft.folder / MANIFEST  # first of all: a disk too full for it leaves no segment behind
    written.write_text(text, encoding="utf-8")
    _to_disk(written)
    (index / SEGMENTS).mkdir(exist_ok=True)
    require_folder(index / SEGMENTS)
    for segment in manifest.segments:
        _put_in_place(draft, segment)
    _to_disk(index / SEGMENTS)
    if _manifest_text(index) != draft.before:
        raise IndexBusy(
            f"{index} was changed by another covary in the meantime; nothing of this one was kept"
        )
    _prepare_history(draft)
    append_change(index, change or Change.of("write", manifest), text)
    if draft.before and not draft.known:
        _set_aside(index / MANIFEST)
    written.replace(index / MANIFEST)
    _to_disk(index)
    for folder in find_left_over(index, manifest, draft.known):
        if folder != draft.folder:
            _discard(folder, index)


def _put_in_place(draft: Draft, segment: StoredSegment) -> None:
    new, target = draft.folder / segment.name, segment_folder(draft.index, segment)
    if not new.exists():  # kept from before
        return
    if os.path.lexists(target):  # made again, with the same content unless that was damaged
        if not _is_our_segment(target, draft.known):
            _set_aside(target)
        elif stored_segment(target).files == segment.files:
            return
        else:
            target.rename(draft.folder / f"damaged-{segment.name}")
    for file in new.iterdir():
        _to_disk(file)
    _to_disk(new)
    new.rename(target)


def _set_aside(path: Path, label: str = "damaged") -> None:
    """Give another name to what is in the way, and may not be covary's."""
    path.rename(path.with_name(f"{path.name}.{label}-{uuid.uuid4().hex[:12]}"))


def _prepare_history(draft: Draft) -> None:
    """Begin another history before one is too long to be read; part one that has other names from them."""
    history = draft.index / HISTORY
    with suppress(FileNotFoundError):
        status = history.lstat()
        if status.st_size > FULL_HISTORY:
            _set_aside(history, "older")
            return
        require_file(history)
        if status.st_nlink > 1:  # as in some backups, which must not change with it
            shutil.copyfile(history, draft.folder / HISTORY)
            (draft.folder / HISTORY).replace(history)


def _to_disk(path: Path) -> None:
    """Wait until a file or a folder's list of names is where a power cut can't take it back."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
