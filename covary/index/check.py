"""Whether the files of an index are as they were written: at a glance when opened, every bit on request."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from covary.columns.key_text import check_normaliser
from covary.errors import DamagedIndex, NotAnIndex
from covary.index.commit import find_foreign_files, find_left_over
from covary.index.manifest import Manifest, read_manifest, segment_folder
from covary.index.segment_arrays import read_blocks, read_name_slots, read_slots_below
from covary.index.segment_files import NAMED, Segment, StoredFile, StoredSegment, checksum_of, open_segment
from covary.index.segment_layout import from_stored_hashes
from covary.index.soundness import check_all
from covary.own_files import require_file, require_folder
from covary.progress import OnCount
from covary.sketching.hashing import HashScheme


@dataclass(frozen=True, slots=True)
class Inspection:
    """The state of every file of an index, once all were read."""

    index: str  # where it is
    segments: int  # how many it has
    files: int  # how many were read
    bytes: int  # of all of them
    damaged: dict[str, str]  # by file, what is wrong with it
    damaged_segments: tuple[str, ...]  # the names of those that they are of
    left_over: tuple[str, ...]  # what a writer left that was killed; the next one removes it
    not_ours: tuple[str, ...] = ()  # files that covary did not write, as far as can be told; it is left alone


def check_index(index: str | Path, on_progress: OnCount | None = None) -> Inspection:
    """Read every file of an index and compare it with its checksum.

    Args:
        index: its folder.
        on_progress: called with how many files were read, of how many.
    """
    folder = Path(index)
    while True:
        manifest = read_manifest(folder)
        check_normaliser(manifest.config.normaliser)
        inspection = _inspect(folder, manifest, on_progress)
        if not inspection.damaged or read_manifest(folder) == manifest:  # no commit came in between
            return inspection


def _inspect(index: Path, manifest: Manifest, on_progress: OnCount | None) -> Inspection:
    total = sum(len(segment.files) for segment in manifest.segments)
    damaged: dict[Path, str] = {}
    damaged_segments: list[str] = []
    done = 0
    for segment in manifest.segments:
        folder = segment_folder(index, segment)
        damage: dict[Path, str] = {}
        for name, expected in segment.files.items():
            if reason := _damage_of_file(folder / name, expected, read=True):
                damage[folder / name] = reason
            done += 1
            if on_progress:
                on_progress(done, total)
        if not damage and (reason := _damage_inside(folder, segment, manifest.config.scheme)):
            damage[folder] = reason
        if damage:
            damaged |= damage
            damaged_segments.append(segment.name)
    left = list(find_left_over(index, manifest))
    return Inspection(
        str(index),
        len(manifest.segments),
        total,
        manifest.bytes,
        {str(path.relative_to(index)): reason for path, reason in damaged.items()},
        tuple(damaged_segments),
        tuple(map(str, left)),
        tuple(map(str, find_foreign_files(index, manifest, left))),
    )


def require_whole(index: Path, stored: StoredSegment, *, read: bool = False) -> None:
    """Refuse a segment with a file that is missing or of another size; or altered, if they are to be read."""
    for name, expected in stored.files.items():
        file = segment_folder(index, stored) / name
        if reason := _damage_of_file(file, expected, read=read):
            raise DamagedIndex(f"{file} is damaged: {reason}; covary check {index} lists all that is")


def require_sound(index: Path, stored: StoredSegment, scheme: HashScheme) -> None:
    """Refuse a segment with any damage: every bit of it is read."""
    require_whole(index, stored, read=True)
    require_sound_segment(open_segment(segment_folder(index, stored), stored), scheme)


def require_sound_segment(segment: Segment, scheme: HashScheme) -> None:
    """Refuse a segment of which anything is altered, or leads outside of it: all of it is looked at."""
    arrays, checked = segment.arrays, segment.arrays.checked
    blocks = read_blocks(segment)
    arrays.require_sound(check_all(blocks))
    keys = arrays["keys.hash"][read_slots_below(segment, "dictionary.place", checked["keys.hash"].array.size)]
    begins = np.zeros(keys.size, dtype=np.bool_)
    begins[blocks.layout.dictionary_starts[:-1]] = True
    if not scheme.are_in_order(from_stored_hashes(keys, scheme), begins):
        raise arrays.impossible("dictionary.place")
    read_slots_below(segment, "sketches.table", segment.table_list.height)
    for name in NAMED:
        read_name_slots(segment, name)
    _ = segment.tables
    for name in arrays:
        _ = arrays[name]  # what no query follows may be altered too


def _damage_inside(folder: Path, stored: StoredSegment, scheme: HashScheme) -> str:
    """Say what of a segment, whose files are as they were written, can't be what covary writes."""
    try:
        require_sound_segment(open_segment(folder, stored), scheme)
    except DamagedIndex as problem:
        return str(problem).partition(" is damaged: ")[2].partition(";")[0]
    return ""


def _damage_of_file(file: Path, expected: StoredFile, *, read: bool) -> str:
    try:
        require_folder(file.parent)
        require_file(file)
        size = file.lstat().st_size
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
