"""Whether the files of an index are as they were written: at a glance when opened, every bit on request."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from covary.commits import left_over
from covary.errors import DamagedIndex, NotAnIndex
from covary.segmentfiles import StoredFile, StoredSegment, checksum_of
from covary.store import Manifest, read_manifest, segment_folder

# As much as is read in no noticeable time; a larger index is checked by `covary check`.
CHECKED_WHEN_OPENED = 64 << 20

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found when every file of an index was read.

    Attributes:
        index: where it is.
        segments: how many it has.
        files: how many were read.
        bytes: of all of them.
        damaged: by file, what is wrong with it.
        damaged_segments: the names of the segments that they are of.
        left_over: what a writer left that was killed; the next one removes it.
    """

    index: str
    segments: int
    files: int
    bytes: int
    damaged: dict[str, str]
    damaged_segments: tuple[str, ...]
    left_over: tuple[str, ...]


def check_index(index: str | Path, on_progress: OnProgress | None = None) -> Inspection:
    """Read every file of an index and hold it against its checksum.

    Args:
        index: its folder.
        on_progress: called with how many files were read, of how many.
    """
    folder = Path(index)
    while True:
        manifest = read_manifest(folder)
        found = _inspect(folder, manifest, on_progress)
        if not found.damaged or read_manifest(folder) == manifest:  # no commit came in between
            return found


def _inspect(index: Path, manifest: Manifest, on_progress: OnProgress | None) -> Inspection:
    total = sum(len(segment.files) for segment in manifest.segments)
    damaged: dict[str, str] = {}
    segments: dict[str, None] = {}
    done = 0
    for segment in manifest.segments:
        for name, expected in segment.files.items():
            file = segment_folder(index, segment) / name
            wrong = _wrong_with(file, expected, read=True)
            if wrong:
                damaged[str(file.relative_to(index))] = wrong
                segments[segment.name] = None
            done += 1
            if on_progress:
                on_progress(done, total)
    left = tuple(str(path) for path in left_over(index, manifest))
    return Inspection(
        str(index), len(manifest.segments), total, manifest.bytes, damaged, tuple(segments), left
    )


def require_sound(index: Path, stored: StoredSegment, *, read: bool) -> None:
    """Refuse a segment with a file that is missing or of another size, or if it is to be read, altered."""
    for name, expected in stored.files.items():
        file = segment_folder(index, stored) / name
        wrong = _wrong_with(file, expected, read=read)
        if wrong:
            raise DamagedIndex(f"{file} is damaged: {wrong}; covary check {index} lists all that is")


def is_small(manifest: Manifest) -> bool:
    """Whether an index is read in no noticeable time, so that opening it can check every bit."""
    return manifest.bytes <= CHECKED_WHEN_OPENED


def _wrong_with(file: Path, expected: StoredFile, *, read: bool) -> str:
    try:
        size = file.stat().st_size
        if size != expected.size:
            return f"{size:,} bytes instead of {expected.size:,}"
        if read and checksum_of(file) != expected.checksum:
            return "its checksum does not match the manifest's"
    except FileNotFoundError:
        return "it is missing"
    except PermissionError:
        raise NotAnIndex(f"no permission to read {file}") from None
    except OSError as problem:
        return str(problem.strerror or problem)
    return ""
