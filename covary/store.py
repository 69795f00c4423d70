"""The index on disk: immutable segments and one manifest, replaced as the last step of a build.

INDEX/
  manifest.json            settings, and every segment's files with their sizes and checksums
  segments/NAME/
    tables.parquet         one row per table: where it came from, its rows and columns, or why it was skipped
    sketches.parquet       one row per ⟨key, number, aggregate⟩
    key_sets.parquet       one row per distinct key set, shared by the sketches that have it
    members.arrow          the keys of each key set in h_u order, as places in the dictionary of its block
    values.arrow           the numbers of each sketch, in the order of its keys
    dictionary.arrow       the keys of each block of key sets, as places in keys.arrow
    blocks.arrow           where the dictionary of each block starts, and where the last ends
    keys.arrow             every distinct key hash, sorted
    postings.arrow         for each key, the blocks that hold it and its places in their dictionaries
    starts.arrow           where the postings of each key start, and where the last end
"""

import errno
import json
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from covary.errors import CannotWrite, CovaryError, DamagedIndex, NotAnIndex, UnsupportedFormat
from covary.segmentfiles import ARRAYS, FRAMES, StoredFile, StoredSegment
from covary.sketches import SketchConfig

FORMAT = 4
MANIFEST = "manifest.json"
SEGMENTS = "segments"
SCRATCH = ".building-"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The settings of an index and the segments that make it up."""

    config: SketchConfig
    segments: tuple[StoredSegment, ...]
    format: int = FORMAT


def read_manifest(index: Path) -> Manifest:
    """Read the manifest, refusing what is not an index or is of another format version."""
    file = index / MANIFEST
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        found = content["format"]
    except FileNotFoundError:
        what = "is not a covary index" if index.exists() else "does not exist"
        raise NotAnIndex(f"{index} {what}; make one with: covary index SOURCE --into {index}") from None
    except NotADirectoryError:
        raise NotAnIndex(f"{index} is a file, not a covary index") from None
    except PermissionError:
        raise NotAnIndex(f"no permission to read {file}") from None
    except (ValueError, KeyError, TypeError, RecursionError, OSError):
        raise DamagedIndex(
            f"{file} is damaged: it is not a manifest; rebuild the index with covary index"
        ) from None
    if found != FORMAT:
        raise UnsupportedFormat(
            f"{index} has format version {found}, this covary reads version {FORMAT}; "
            f"rebuild it with covary index, or install the covary that made it"
        )
    try:
        seed = content["config"].pop("seed")
        manifest = _manifest_from(content)
    except (KeyError, TypeError, ValueError, AttributeError, CovaryError):
        raise DamagedIndex(
            f"{file} is damaged: entries are missing; rebuild the index with covary index"
        ) from None
    if seed != manifest.config.scheme.seed:
        raise UnsupportedFormat(
            f"{index} was made with seed {seed}, which this covary does not use; rebuild it"
        )
    return manifest


def _manifest_from(content: dict[str, Any]) -> Manifest:
    config = content["config"]
    segments = tuple(
        StoredSegment(s["name"], {name: StoredFile(**file) for name, file in s["files"].items()})
        for s in content["segments"]
    )
    expected = {f"{name}.parquet" for name in FRAMES} | {f"{name}.arrow" for name in ARRAYS}
    names = [segment.name for segment in segments]
    if not names or len({*names}) < len(names) or not all(name.isdigit() for name in names):
        raise ValueError("segments are missing, repeated or misnamed")
    if any(segment.files.keys() != expected for segment in segments):
        raise ValueError("files are missing")
    if not config["aggregates"] or not all(
        type(file.size) is int and type(file.checksum) is str
        for segment in segments
        for file in segment.files.values()
    ):
        raise TypeError("entries are of another kind")
    return Manifest(SketchConfig(**{**config, "aggregates": tuple(config["aggregates"])}), segments)


def segment_folder(index: Path, stored: StoredSegment) -> Path:
    """Return where a segment lies."""
    return index / SEGMENTS / stored.name


@contextmanager
def building(index: Path) -> Iterator[Path]:
    """Give a scratch folder inside the index for the files of a build; whatever is left in it is removed.

    Failing to write is reported as such, and leaves the previous index as it was.
    """
    made_index = False
    scratch = index / f"{SCRATCH}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
    try:
        made_index = not index.exists()
        _refuse_other_folders(index)
        _sweep(index)
        scratch.mkdir(parents=True)
        yield scratch
    except ConnectionError:  # of Spark's, not of the disk's
        raise
    except OSError as problem:
        raise cannot_write(index, problem) from problem
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if made_index and not (index / MANIFEST).exists():
            with suppress(OSError):  # not empty: another build has begun in it
                index.rmdir()


def _sweep(index: Path) -> None:
    """Remove what builds of this machine left that were killed before they could."""
    for left in index.glob(f"{SCRATCH}{socket.gethostname()}-*"):
        process = left.name.split("-")[-2]
        if process.isdigit() and not Path("/proc", process).exists() and Path("/proc/self").exists():
            shutil.rmtree(left, ignore_errors=True)


def _refuse_other_folders(index: Path) -> None:
    if index.is_file():
        raise CannotWrite(f"{index} is a file; name a folder for the index")
    if index.is_dir() and not (index / MANIFEST).exists():
        others = [name for name in os.listdir(index) if not name.startswith(SCRATCH) and name != SEGMENTS]
        if others:
            raise CannotWrite(f"{index} holds other files and is not an index; choose a new folder")


def cannot_write(index: Path, problem: OSError) -> CannotWrite:
    """Say in words why an index can't be written."""
    reasons = {
        errno.ENOSPC: "the disk is full",
        errno.EACCES: "no permission",
        errno.EROFS: "it is read-only",
    }
    reason = reasons.get(problem.errno or 0, problem.strerror or str(problem))
    return CannotWrite(f"can't write the index {index}: {reason}; nothing was changed")


def commit(index: Path, manifest: Manifest, scratch: Path) -> None:
    """Move the new segments into place and replace the manifest: the one moment when the index changes."""
    draft = scratch / MANIFEST  # written first: a disk too full for it leaves no segment behind
    content = {
        "format": manifest.format,
        "config": asdict(manifest.config) | {"seed": manifest.config.scheme.seed},
        "segments": [asdict(s) for s in manifest.segments],
    }
    with draft.open("w", encoding="utf-8") as stream:
        json.dump(content, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    (index / SEGMENTS).mkdir(exist_ok=True)
    for segment in manifest.segments:
        (scratch / segment.name).rename(segment_folder(index, segment))
    draft.replace(index / MANIFEST)
    current = {segment.name for segment in manifest.segments}
    for folder in (index / SEGMENTS).iterdir():
        if folder.name not in current:
            shutil.rmtree(folder, ignore_errors=True)
