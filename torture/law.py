"""The law, and how to see that it was broken: nothing deleted, wrong, hung, crashed, leaked or unnamed."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from torture.running import Ran
from torture.trials import CHANGED, CRASH, HANG, LARGE, LEAK, UNNAMED, WRONG, Breach

ENDS = {0, 2, 130}
LAST_WORDS = re.compile(
    rb"Traceback \(most recent call last\)|Fatal Python error|Segmentation fault|panicked at"
    rb"|Exception in thread|\n\tat [\w.$]+\(|java\.lang\.\w+(?:Error|Exception)|Py4J\w*Error"
    rb"|core dumped|free\(\): |malloc\(\): "
)
CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
SAID_SHORTLY = 160
# What a question answers by the pair alone: the rest depends on what else is in the index.
OF_THE_PAIR = (
    "table", "key", "value", "granularity", "aggregate", "correlation", "low", "high", "sample_size",
    "overlap", "containment", "join_size", "exact", "rows", "distinct_keys", "dropped_rows",
)  # fmt: skip


class Entry(NamedTuple):
    """What a file, folder or link is: two entries that are equal are of something that nobody touched."""

    kind: str
    mode: int
    size: int
    changed: int
    content: str


def snapshot(*roots: Path) -> dict[str, Entry]:
    """Look at everything at and below some paths, and at what links there lead to."""
    seen: dict[str, Entry] = {}
    for root in roots:
        for path in _below(str(root)):
            seen[path] = _entry(path)
    return seen


def _below(path: str) -> Iterator[str]:
    if os.path.lexists(path):
        yield path
    if os.path.isdir(path) and not os.path.islink(path):
        for folder, folders, files in os.walk(path):
            yield from (os.path.join(folder, name) for name in (*folders, *files))


def _entry(path: str) -> Entry:
    status = os.lstat(path)
    kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(kind):
        return Entry("link", 0, 0, 0, os.readlink(path))
    if stat.S_ISDIR(kind):  # its time changes with what is put into it, which is seen by itself
        return Entry("folder", mode, 0, 0, "")
    if not stat.S_ISREG(kind):
        return Entry("special", mode, 0, 0, str(status.st_rdev))
    return Entry("file", mode, status.st_size, status.st_mtime_ns, _digest(path, status))


def _digest(path: str, status: os.stat_result) -> str:
    if status.st_blocks * 512 < status.st_size // 2:  # full of holes: its time and size must do
        return "sparse"
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def touched(before: Mapping[str, Entry], after: Mapping[str, Entry], *, may_add: bool = True) -> list[Breach]:
    """Name what was deleted or changed, and what was added where nothing may be."""
    breaches = []
    for path, entry in before.items():
        if path not in after:
            breaches.append(Breach(CHANGED, f"deleted: {path!r}"))
        elif after[path] != entry:
            facts = [name for name, a, b in zip(Entry._fields, entry, after[path], strict=True) if a != b]
            breaches.append(Breach(CHANGED, f"changed ({', '.join(facts)}): {path!r}"))
    if not may_add:
        breaches += [Breach(CHANGED, f"left behind: {path!r}") for path in after if path not in before]
    return breaches


def ended(ran: Ran) -> list[Breach]:
    """Judge how a command ended and what it printed."""
    what = " ".join(ran.arguments)[:SAID_SHORTLY]
    if ran.too_long:
        return [Breach(HANG, f"{what}: not done after {ran.seconds:.0f} s")]
    if ran.too_large:
        return [Breach(LARGE, f"{what}: {ran.memory >> 20:,} MiB in one process")]
    breaches = []
    if ran.code not in ENDS:
        breaches.append(Breach(CRASH, f"{what}: ended with {ran.code}: {_last_line(ran.err)}"))
    elif found := LAST_WORDS.search(ran.err + ran.out):
        breaches.append(Breach(CRASH, f"{what}: printed {found.group()!r}: {_last_line(ran.err)}"))
    elif ran.code == 2 and b"covary: " not in ran.err:
        breaches.append(Breach(WRONG, f"{what}: ended with 2 and did not say why: {_last_line(ran.err)}"))
    if found := CONTROLS.search(ran.out + ran.err):
        breaches.append(Breach(WRONG, f"{what}: printed the control character {found.group()!r}"))
    if ran.survivors:
        breaches.append(Breach(HANG, f"{what}: left running: {', '.join(ran.survivors)}"))
    return breaches


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="backslashreplace").strip().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("Fatal Python error"):  # what follows is where every thread was
            frames = [frame.strip() for frame in lines[number:] if frame.startswith("  File ")]
            return f"{line}: {frames[0] if frames else ''}"[:SAID_SHORTLY]
    return lines[-1][:SAID_SHORTLY] if lines else "(nothing)"


def within(ran: Ran, memory: int) -> list[Breach]:
    """Hold the memory of a command against a limit."""
    if ran.memory <= memory or ran.too_large:
        return []
    what = " ".join(ran.arguments)[:SAID_SHORTLY]
    return [Breach(LARGE, f"{what}: {ran.memory >> 20:,} MiB in one process, limit {memory >> 20:,}")]


def answered(ran: Ran) -> Any:
    """Read what a command with --json said; None if it said nothing of the kind."""
    try:
        return json.loads(ran.out) if ran.code == 0 else None
    except ValueError:
        return None


def timeless(ran: Ran) -> str:
    """Return an answer without what differs from one time to the next."""
    facts = answered(ran)
    if isinstance(facts, dict):
        facts.pop("elapsed_ms", None)
    return json.dumps(facts, sort_keys=True)


def pairs_in(answer: Mapping[str, Any], tables: Iterable[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return what an answer says of some tables, by pair."""
    wanted = {*tables}
    return {
        tuple(str(hit.get(name)) for name in ("table", "key", "value", "aggregate")): {
            name: hit.get(name) for name in OF_THE_PAIR
        }
        for hit in answer["hits"]
        if hit["table"] in wanted
    }


def same_answers(truth: Mapping[str, Any], ran: Ran, tables: Iterable[str]) -> list[Breach]:
    """Hold what is said of good tables against what an index of these alone says."""
    answer = answered(ran)
    if answer is None:
        return [Breach(WRONG, f"no answer for the good tables: {_last_line(ran.err)}")]
    tables = [*tables]
    wanted, found = pairs_in(truth, tables), pairs_in(answer, tables)
    breaches = [
        Breach(WRONG, f"{pair} is missing beside hostile files") for pair in wanted.keys() - found.keys()
    ]
    for pair in wanted.keys() & found.keys():
        wrong = [name for name, fact in wanted[pair].items() if found[pair][name] != fact]
        breaches += [
            Breach(WRONG, f"{pair}: {name} is {found[pair][name]}, not {wanted[pair][name]}")
            for name in wrong
        ]
    return breaches


def unnamed(files: Iterable[Path], info: Mapping[str, Any] | None) -> list[Breach]:
    """Name the files that an index neither read nor skipped by name, to go by `covary info --json`."""
    if info is None:
        return []  # there is no index: that is judged elsewhere
    named = {_plain(table["path"]) for table in info["contents"]}
    around = {folder for location in named for folder in _folders_of(location)}
    missing = []
    for file in files:
        path = _plain(str(file))
        if path not in around and not any(folder in named for folder in _folders_of(path)):
            missing.append(Breach(UNNAMED, repr(str(file))))
    return missing


def _plain(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()


def _folders_of(path: str) -> Iterator[str]:
    """A path, and what it may be a member of: big.zip#a.csv, big.zip/a.csv, a lakehouse's folder."""
    yield path
    for mark in re.finditer("[#/]", path):
        if mark.start():
            yield path[: mark.start()]


def leaked(secrets: Mapping[str, str], ran: Iterable[Ran], *roots: Path) -> list[Breach]:
    """Search for secrets in every file, printed line and command line of children."""
    marks = {name: secret.encode() for name, secret in secrets.items()}
    where: dict[str, dict[str, None]] = {}

    def search(text: bytes, path: str) -> None:
        for name, mark in marks.items():
            if mark in text:
                where.setdefault(name, {})[path] = None

    for each in ran:
        search(each.out, f"stdout of {each.arguments[0]}")
        search(each.err, f"stderr of {each.arguments[0]}")
        search("\n".join(each.commands).encode(), f"a command line of {each.arguments[0]}")
    for root in roots:
        for path in _below(str(root)):
            search(
                path.encode(errors="surrogateescape") + _readable(path),
                path.removeprefix(f"{root.parent}/"),
            )
    return [Breach(LEAK, f"{name} in {', '.join(seen)}") for name, seen in where.items()]


def _readable(path: str) -> bytes:
    if not os.path.isfile(path) or os.path.islink(path):
        return b""
    content = Path(path).read_bytes()
    if not path.endswith(".zst"):
        return content
    try:
        return content + pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    except OSError:
        return content


def readable_by_others(folder: Path) -> list[Breach]:
    """Name what lies in a folder for temporary files and others may read."""
    return [
        Breach(LEAK, f"others may read {entry.path!r}")
        for entry in os.scandir(folder)
        if not entry.is_symlink() and entry.stat().st_mode & 0o077
    ]
