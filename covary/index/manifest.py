"""The index on disk: immutable segments and one manifest that says which of them, and what of them, it is.

INDEX/
  covary-index             tells that the folder is covary's to write and to remove files in
  manifest.json            settings, sources, and every segment's files with their sizes and checksums
  history.jsonl            one line per commit: when, what was read, changed and removed
  history.jsonl.older-*    what was before, once that had 8 MB
  lock                     held by whoever writes
  segments/NAME/
    tables.arrow.zst       one row per table: where it came from, its rows, or why it was skipped
    notes.arrow.zst        what more is known of each table: what its columns serve as, what was lost
    names.arrow.zst        every name of a column, a granularity or an aggregate, once
    sketches.arrow         what is known of each ⟨key, number, aggregate⟩: table, names, key set, counts
    key_sets.arrow         what is known of each distinct key set, shared by the sketches that have it
    columns.arrow          where the sketches of each key set start, and where the last end
    members.arrow          the keys of each key set in h_u order, as positions in the dictionary of its block
    values.arrow           the numbers of each sketch, in the order of its keys
    dictionary.arrow       the keys of each block of key sets, as positions in keys.arrow
    blocks.arrow           where the dictionary and the key sets of each block start, and where the last end
    keys.arrow             every distinct key hash, sorted
    postings.arrow         for each key, the blocks that hold it and its positions in their dictionaries
    starts.arrow           where the postings of each key start, and where the last end
    checksums.arrow        a checksum for every 4 KiB of each of these arrays
"""

import json
import re
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from covary.errors import CovaryError, DamagedIndex, NotAnIndex, UnsupportedFormat
from covary.index.segment_files import FILES, SEGMENTS, StoredFile, StoredSegment
from covary.own_files import (
    LARGEST_MANIFEST,
    MANIFEST,
    NotPlain,
    as_json,
    has_mark,
    read_plain,
    require_folder,
    seal_of,
    sealed_content,
)
from covary.sketching.sketch_types import SketchConfig

FORMAT = 8
SEGMENT_NAME = re.compile(r"[0-9a-f]{32}")  # the checksum of what it holds
SEGMENT_FILE = re.compile(r"[a-z_]+\.(arrow|arrow\.zst|parquet)")
# A path does not keep the second / of a URL.
LIKE_A_URL = re.compile(r"([A-Za-z][\w+.-]*):/.*", re.DOTALL)
SCRATCH = ".building-"  # how the folders begin in which writers work


@dataclass(frozen=True, slots=True)
class Manifest:
    """The settings of an index and the segments that make it up."""

    config: SketchConfig  # of every sketch
    segments: tuple[StoredSegment, ...]  # in the order in which they are asked
    sources: tuple[str, ...] = ()  # what the collection is made of, sorted
    keys: tuple[str, ...] = ()  # the only columns that are keys; empty: any that can be
    values: tuple[str, ...] = ()  # the only columns that are numbers; empty: any that can be
    excluded: tuple[str, ...] = ()  # tables removed by hand: they stay away while their source holds them
    format: int = FORMAT

    @property
    def bytes(self) -> int:
        """What the segments take on disk."""
        return sum(file.size for segment in self.segments for file in segment.files.values())

    def to_json(self) -> str:
        """Return the manifest as it stands on disk, sealed with a checksum of what it says."""
        config = asdict(self.config) | {"seed": self.config.scheme.seed}
        content = asdict(self) | {"config": config}
        return as_json(content | {"checksum": seal_of(content)}) + "\n"


def parse_manifest(text: str) -> Manifest:
    """Read a manifest that this version of covary wrote."""
    content = json.loads(text)
    content["config"].pop("seed")
    return _manifest_from(content)


def read_manifest(index: Path) -> Manifest:
    """Read the manifest, refusing what is not an index or is of another format version."""
    file = index / MANIFEST
    text = _read_text(index)
    sealed = sealed_content(text)
    content = _parse_json(text) if sealed is None else sealed
    remedy = f"rebuild the index with covary index --into {index} --fresh"
    if sealed is None and not has_mark(index):
        raise NotAnIndex(
            f"{index} is not a covary index: its {MANIFEST} is of something else, or was altered; "
            f"put the right one back, or name another folder"
        )
    if not isinstance(content, dict) or not _is_count(content.get("format"), 1 << 16):
        raise DamagedIndex(f"{file} is damaged: it is not a manifest; {remedy}")
    if content["format"] != FORMAT:
        raise UnsupportedFormat(
            f"{index} has format version {content['format']}, this covary reads version {FORMAT}; {remedy}, "
            f"or install the covary that made it"
        )
    try:
        seed = content["config"].pop("seed")
        manifest = _manifest_from(content)
    except (KeyError, TypeError, ValueError, AttributeError, CovaryError):
        raise DamagedIndex(f"{file} is damaged: entries are missing or unknown; {remedy}") from None
    if sealed is None:
        raise DamagedIndex(f"{file} is damaged: it was altered; put it back, or {remedy}")
    if seed != manifest.config.scheme.seed:
        raise UnsupportedFormat(
            f"{index} was made with another seed of its hashes than this covary uses; {remedy}"
        )
    try:
        require_folder(index / SEGMENTS)
    except FileNotFoundError:  # which its files tell
        pass
    except OSError as problem:
        raise DamagedIndex(f"{index / SEGMENTS} is damaged: {problem.strerror}") from None
    return manifest


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _read_text(index: Path) -> str:
    file = index / MANIFEST
    try:
        return read_plain(file, LARGEST_MANIFEST).decode(errors="replace")
    except FileNotFoundError:
        raise _not_an_index(index) from None
    except NotADirectoryError:
        raise NotAnIndex(f"{index} is a file, not a covary index") from None
    except PermissionError:
        raise NotAnIndex(f"no permission to read {file}") from None
    except NotPlain as problem:
        raise DamagedIndex(f"{file} is not a manifest: {problem.strerror}") from None
    except OSError:
        return ""


def segments_named(manifest: str) -> Mapping[str, Set[str]]:
    """Return the segments of a manifest of any version, and their files' names; none, if it is not ours."""
    content = sealed_content(manifest)
    try:
        return {
            each["name"]: {file for file in each["files"] if SEGMENT_FILE.fullmatch(file)}
            for each in (content or {"segments": []})["segments"]
        }
    except (TypeError, KeyError):
        return {}


def refuse_url(index: Path) -> None:
    """Refuse a URL in place of a folder: made into folders here, it would show its secrets to everybody."""
    if (url := LIKE_A_URL.fullmatch(str(index))) and not index.exists():
        raise NotAnIndex(f"an index is a folder of this machine, and {url[1]}://... is a URL; name a folder")


def _not_an_index(index: Path) -> NotAnIndex:
    refuse_url(index)
    make_one = f"covary index SOURCE --into {index}"
    if any(index.glob(f"{SCRATCH}*")):
        return NotAnIndex(
            f"{index} is not an index yet: its first build is not done; wait for it, or, if it was stopped, "
            f"run it again: {make_one}"
        )
    what = "is not a covary index" if index.exists() else "does not exist"
    return NotAnIndex(f"{index} {what}; make one with: {make_one}")


def _manifest_from(content: dict[str, Any]) -> Manifest:
    if content.keys() - {"checksum"} != {each.name for each in fields(Manifest)}:
        raise ValueError("entries are missing or unknown")
    if any(each.keys() != {known.name for known in fields(StoredSegment)} for each in content["segments"]):
        raise ValueError("entries of a segment are missing or unknown")
    config = content["config"]
    segments = tuple(_stored_segment_from(each) for each in content["segments"])
    if not segments or len({segment.name for segment in segments}) < len(segments):
        raise ValueError("segments are missing or repeated")
    if not config["aggregates"] or len(set(config["aggregates"])) < len(config["aggregates"]):
        raise ValueError("aggregates are missing or repeated")
    if not _is_count(config["size"], 1 << 32) or type(config["normaliser"]) is not str:
        raise TypeError("settings are of another kind")
    return Manifest(
        SketchConfig(**{**config, "aggregates": tuple(config["aggregates"])}),
        segments,
        sources=_read_texts(content["sources"]),
        keys=_read_texts(content["keys"]),
        values=_read_texts(content["values"]),
        excluded=_read_texts(content["excluded"]),
    )


def _stored_segment_from(content: dict[str, Any]) -> StoredSegment:
    files = {name: StoredFile(**file) for name, file in content["files"].items()}
    if not SEGMENT_NAME.fullmatch(content["name"]) or files.keys() != FILES:
        raise ValueError("a segment is misnamed, or files of it are missing")
    if not all(_is_count(file.size, 1 << 60) and type(file.checksum) is str for file in files.values()):
        raise TypeError("entries are of another kind")
    removed = tuple(content["removed"])
    if not all(_is_count(table, 1 << 32) for table in removed):
        raise TypeError("removed tables are positions")
    return StoredSegment(content["name"], files, removed)


def _is_count(number: object, limit: int) -> bool:
    return type(number) is int and 0 <= number < limit


def _read_texts(entries: list[str]) -> tuple[str, ...]:
    if not all(isinstance(entry, str) for entry in entries):
        raise TypeError("an entry is no text")
    return tuple(entries)


def segment_folder(index: Path, stored: StoredSegment) -> Path:
    """Return where a segment lies."""
    return index / SEGMENTS / stored.name
