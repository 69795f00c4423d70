"""What was done to an index, commit by commit.

A line is written before the manifest that it tells of, and names it by checksum: a line whose manifest never
came is not part of the history, and the next writer removes it.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import xxhash

from covary.errors import DamagedIndex, NotAnIndex
from covary.index.manifest import Manifest, read_manifest
from covary.own_files import LARGEST_MANIFEST, MANIFEST, NotPlain, open_plain, read_plain

HISTORY = "history.jsonl"
LAST_SECOND = 250_000_000_000  # in the year 9892: not much later, dates end
MOST = 1 << 60  # tables, bytes or seconds of a commit
LINE_START = b'{"command": "'
LONGEST_TAIL = 16 << 20  # of a history that is looked at before a line is added: hundreds of commits
LARGEST_HISTORY = 16 << 20
# An honest line has 300 bytes, and 30 kB if it names all that it may: one a night fills this in a year or
# many. Then it is set aside, and another is begun.
FULL_HISTORY = LARGEST_HISTORY >> 1
MOST_COMMITS = 100_000
NAMES_KEPT = 100  # of each kind: a first build may have a hundred thousand


@dataclass(frozen=True, slots=True)
class Change:
    """One commit: what was asked for, and how many tables it touched."""

    command: str  # "index", "remove" or "compact"
    time: float  # seconds since 1970
    new: int = 0  # tables that were not in the index before
    changed: int = 0  # tables that were read again
    removed: int = 0  # tables that are gone
    lost: int = 0  # tables that are there, and can't be read any more
    kept: int = 0  # tables left as they were
    skipped: int = 0  # what could not be read, at this time or before
    segments: int = 0  # how many the index has now
    bytes: int = 0  # what it takes on disk now
    seconds: float = 0.0  # how long it took
    # The first hundred of the tables that are "new", "changed", "removed" and "lost".
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    manifest: str = ""  # checksum of the manifest that it made

    @classmethod
    def of(
        cls,
        command: str,
        manifest: Manifest,
        started: float | None = None,
        touched: Mapping[str, Sequence[str]] | None = None,
        kept: int = 0,
        skipped: int = 0,
    ) -> "Change":
        """Tell of a commit that makes a manifest, and that began at `started` by the clock of `time.time`.

        `touched` has the names of tables that are "new", "changed", "removed" and "lost".
        """
        now = time.time()
        touched = touched or {}
        return cls(
            command,
            now,
            segments=len(manifest.segments),
            bytes=manifest.bytes + len(manifest.to_json().encode()),
            seconds=now - (now if started is None else started),
            names={kind: sorted(names)[:NAMES_KEPT] for kind, names in touched.items() if names},
            kept=kept,
            skipped=skipped,
            new=len(touched.get("new", ())),
            changed=len(touched.get("changed", ())),
            removed=len(touched.get("removed", ())),
            lost=len(touched.get("lost", ())),
        )

    def to_dict(self) -> dict[str, object]:
        """Return the commit as it stands in JSON."""
        return {name: value for name, value in asdict(self).items() if name != "manifest"}


def require_own_history(index: Path) -> None:
    """Refuse a history that covary did not begin; none is as good as an empty one."""
    try:
        with open(open_plain(index / HISTORY), "rb") as stream:
            ours = _is_ours(stream.read(len(LINE_START)))
    except FileNotFoundError:
        return
    if not ours:
        raise NotPlain(0, "covary did not write it; move it away", str(index / HISTORY))


def append_change(index: Path, change: Change, manifest: str) -> None:
    """Add a line for a manifest that is about to take its place, after the lines that count."""
    line = json.dumps(asdict(replace(change, manifest=_checksum(manifest.encode()))))
    with open(open_plain(index / HISTORY, os.O_RDWR | os.O_CREAT), "r+b") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - LONGEST_TAIL))
        tail = stream.read(LONGEST_TAIL)
        dropped = tail[len(_committed_lines(tail, _mark_of_manifest(index))) :]
        if all(map(_is_ours, dropped.splitlines())):
            size -= len(dropped)
            stream.truncate(size)
        elif not dropped.endswith(b"\n"):
            line = f"\n{line}"
        stream.seek(size)
        stream.write(f"{line}\n".encode())
        stream.flush()
        os.fsync(stream.fileno())


def read_history(index: str | Path) -> list[Change]:
    """Return the commits of an index, oldest first."""
    folder = Path(index)
    read_manifest(folder)  # it must be one
    try:
        mark = _mark_of_manifest(folder)  # first: a line for a newer manifest does no harm
        content = read_plain(folder / HISTORY, LARGEST_HISTORY)
        if (lines := content.count(b"\n")) > MOST_COMMITS:
            raise NotPlain(0, f"its {lines:,} lines are more than any such file of covary's has")
        return [_change_from(json.loads(line)) for line in _committed_lines(content, mark).splitlines()]
    except FileNotFoundError:
        return []
    except PermissionError:
        raise NotAnIndex(f"no permission to read {folder / HISTORY}") from None
    except (ValueError, TypeError, RecursionError, OSError) as problem:
        reason = f" ({problem.strerror})" if isinstance(problem, NotPlain) else ""
        raise DamagedIndex(
            f"{folder / HISTORY} is damaged; remove it, the index itself does not need it{reason}"
        ) from None


def _change_from(line: dict[str, Any]) -> Change:
    """Read a line, without what another covary may have written in it."""
    change = Change(**{each.name: line[each.name] for each in fields(Change) if each.name in line})
    for each in fields(Change):
        value = getattr(change, each.name)
        beyond = LAST_SECOND if each.name == "time" else MOST
        if each.type in {int, float} and (isinstance(value, bool) or not 0 <= value < beyond):
            raise TypeError(f"{each.name} is no number of its kind")
        if each.type is str and not isinstance(value, str):
            raise TypeError(f"{each.name} is no text")
    if not (isinstance(change.names, dict) and all(map(_are_texts, change.names.values()))):
        raise TypeError("names are listed by kind")
    return change


def _are_texts(entries: object) -> bool:
    return isinstance(entries, list) and all(isinstance(entry, str) for entry in entries)


def _is_ours(line: bytes) -> bool:
    """Whether a line, or what reached the disk of it, is one that covary wrote."""
    return line.startswith(LINE_START) or LINE_START.startswith(line)


def _mark_of_manifest(index: Path) -> bytes | None:
    """Return what the line of the present manifest holds; None, if there is no manifest."""
    try:
        return f'"manifest": "{_checksum(read_plain(index / MANIFEST, LARGEST_MANIFEST))}"'.encode()
    except FileNotFoundError:
        return None


def _committed_lines(lines: bytes, mark: bytes | None) -> bytes:
    """Return the lines up to the one that tells of the present manifest; all, if none does."""
    if mark is None:
        return b""
    whole = [line for line in lines.splitlines(keepends=True) if line.endswith(b"\n")]
    last = max((position for position, line in enumerate(whole) if mark in line), default=len(whole) - 1)
    return b"".join(whole[: last + 1])


def _checksum(content: bytes) -> str:
    return str(xxhash.xxh3_128_hexdigest(content))
