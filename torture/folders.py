"""Folders that hold what is somebody else's, named as the index: nothing of it is deleted or changed."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torture.altered import segments_of
from torture.goodtables import write_good
from torture.law import Entry, snapshot, timeless, touched
from torture.trials import CHANGED, WRONG, Breach, Outcome, Suite
from torture.workplace import Record, Workplace

Rng = np.random.Generator
NAMES = (
    "segments",
    "lock",
    "history.jsonl",
    "manifest.json",
    ".building-mine",
    ".building-other-1-0123456789ab",
)
HEX = "0123456789abcdef" * 2


class Thing(NamedTuple):
    """Something of the user's, and how it is put at a place; `elsewhere` is a folder outside."""

    name: str
    put: Callable[[Path, Path], None]


def _folder(path: Path, _: Path) -> None:
    (path / "customers").mkdir(parents=True)
    (path / "customers" / "all.csv").write_text("name,owes\nAda,10\n")
    (path / "notes.txt").write_text("do not lose")


def _hex_folder(path: Path, _: Path) -> None:
    (path / HEX).mkdir(parents=True)
    (path / HEX / "values.arrow").write_text("mine, though it is named like a segment")


def _empty_folder(path: Path, _: Path) -> None:
    path.mkdir()


def _text(path: Path, _: Path) -> None:
    path.write_text("mine\n")


def _empty(path: Path, _: Path) -> None:
    path.write_text("")


def _json(path: Path, _: Path) -> None:
    path.write_text('{"name": "My app", "icons": [], "format": 7, "segments": []}\n')


def _json_list(path: Path, _: Path) -> None:
    path.write_text('["a.js", "b.js"]\n')


def _lines(path: Path, _: Path) -> None:
    path.write_text('{"time": 1, "said": "hello"}\n{"time": 2, "said": "again"}\n')


def _to_folder(path: Path, elsewhere: Path) -> None:
    _folder(elsewhere / "folder", elsewhere)
    (elsewhere / "folder" / HEX).mkdir()
    (elsewhere / "folder" / HEX / "keep").write_text("mine")
    path.symlink_to(elsewhere / "folder")


def _to_file(path: Path, elsewhere: Path) -> None:
    (elsewhere / "file").write_text("the only copy\n")
    path.symlink_to(elsewhere / "file")


def _to_nothing(path: Path, elsewhere: Path) -> None:
    path.symlink_to(elsewhere / "not there")


def _to_itself(path: Path, _: Path) -> None:
    path.symlink_to(path.name)


def _to_device(path: Path, _: Path) -> None:
    path.symlink_to("/dev/zero")


def _pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def _same_file(path: Path, elsewhere: Path) -> None:
    (elsewhere / "linked").write_text("by two names\n")
    os.link(elsewhere / "linked", path)


THINGS = tuple(
    Thing(put.__name__.strip("_").replace("_", " "), put)
    for put in (
        _folder, _hex_folder, _empty_folder, _text, _empty, _json, _json_list, _lines, _to_folder, _to_file,
        _to_nothing, _to_itself, _to_device, _pipe, _same_file,
    )
)  # fmt: skip


def _commands(data: Path, asked: Path, target: Path) -> dict[str, tuple[str, ...]]:
    into, question = ("--into", str(target)), ("--key", "place", "--value", "x", "--index", str(target))
    return {
        "index": ("index", str(data), *into),
        "index --fresh": ("index", str(data), *into, "--fresh"),
        "index --repair": ("index", str(data), *into, "--repair"),
        "index again": ("index", *into),
        "remove": ("remove", str(target), "good/weak"),
        "compact": ("compact", str(target)),
        "check": ("check", str(target)),
        "info": ("info", str(target)),
        "history": ("history", str(target)),
        "query": ("query", str(asked), *question),
    }


CHANGING = ("index", "index --fresh", "index --repair", "index again", "remove", "compact")
NEEDS_SPARK = ("index", "index --fresh", "index --repair", "index again")


def _run_others(workplace: Workplace, numbers: Iterator[int]) -> Iterator[Outcome]:
    """Folders that are no index: what covary does not refuse it must leave as it is."""
    for trial in numbers:
        rng = workplace.rng(trial)
        root = workplace.empty("root")
        target, elsewhere = root / "proj", root / "elsewhere"
        target.mkdir()
        elsewhere.mkdir()
        asked = write_good(root / "data")
        names = [NAMES[trial % len(NAMES)]] if trial < len(NAMES) * len(THINGS) else _some(rng)
        put = []
        for number, name in enumerate(names):
            thing = THINGS[
                (trial // len(NAMES) if number == 0 else int(rng.integers(len(THINGS)))) % len(THINGS)
            ]
            place_of = elsewhere / str(number)
            place_of.mkdir()
            thing.put(target / name, place_of)
            put.append(f"{name}: {thing.name}")
        if rng.random() < 0.2:
            (target / "thesis.txt").write_text("years of work")
            put.append("thesis.txt")
        if rng.random() < 0.1:  # the folder itself is reached by a link
            target.rename(root / "real")
            target.symlink_to("real")
            put.append("by a link")
        record = Record(workplace, trial, ", ".join(put))
        before = snapshot(root)
        commands = _commands(root / "data", asked, target)
        order = ["index", "index --fresh", *rng.permutation([*commands])[:2].tolist()]
        for name in order:
            made = _do(record, name, commands[name])
            after = snapshot(root)
            record.breaches += touched(before, after)
            record.breaches += touched({}, _new(elsewhere, before), may_add=False)
            if not made and len(after) > len(before) and not _is_index(target):
                new = sorted(path for path in after if path not in before)
                record.breaches.append(Breach(CHANGED, f"{name} failed and left {new[:3]}"))
            if record.breaches:
                break
        yield record.outcome()


def _new(elsewhere: Path, before: Mapping[str, Entry]) -> dict[str, Entry]:
    """What came to be outside of the index: links in it are not followed."""
    return {path: entry for path, entry in snapshot(elsewhere).items() if path not in before}


def _some(rng: Rng) -> list[str]:
    return rng.permutation(NAMES)[: int(rng.integers(2, len(NAMES)))].tolist()


def _do(record: Record, name: str, command: Sequence[str]) -> bool:
    desk = record.workplace.spark_desk if name in NEEDS_SPARK else record.workplace.desk
    return record.run(desk, *command, deadline=60).code == 0


def _is_index(target: Path) -> bool:
    return (target / "manifest.json").is_file() and bool(list((target / "segments").glob("*/values.arrow")))


def _run_own(workplace: Workplace, numbers: Iterator[int]) -> Iterator[Outcome]:
    """Indexes in which the user keeps something: it stays, whatever is done to the index."""
    made = workplace.empty("made")
    asked = write_good(made / "data")
    built = workplace.spark_desk("index", str(made / "data"), "--into", str(made / "index"), deadline=120)
    if built.code:
        raise RuntimeError(f"no index: {built.err.decode(errors='replace')[-300:]}")
    for trial in numbers:
        rng = workplace.rng(trial)
        root = workplace.empty("root")
        target, elsewhere = root / "index", root / "elsewhere"
        elsewhere.mkdir()
        shutil.copytree(made / "index", target)
        shutil.copytree(made / "data", root / "data")
        own = {*snapshot(target)}  # names of covary's: a link there may go, but not what it leads to
        thing, where = _put_inside(rng, trial, target, elsewhere)
        record = Record(workplace, trial, f"in an index, {where}: {thing}")
        theirs = {path: entry for path, entry in snapshot(root).items() if path not in own}
        commands = _commands(root / "data", asked, target)
        if rng.random() < 0.5:  # something to commit
            (root / "data" / "more.csv").write_text(
                "place,q\n" + "".join(f"place {n},{n * n % 97}\n" for n in range(99))
            )
            theirs |= snapshot(root / "data" / "more.csv")
        for name in rng.permutation(CHANGING).tolist()[:3]:
            _do(record, name, commands[name])
            record.breaches += touched(theirs, snapshot(root))
            record.breaches += touched({}, _new(elsewhere, theirs), may_add=False)
        question = record.run(workplace.desk, *commands["query"], "--json")
        if question.code == 0 and timeless(question) == "null":
            record.breaches.append(Breach(WRONG, "no answer"))
        for name in ("check", "info", "history"):
            _do(record, name, commands[name])
        record.breaches += touched(theirs, snapshot(root))
        yield record.outcome()


def _put_inside(rng: Rng, trial: int, target: Path, elsewhere: Path) -> tuple[str, str]:
    segment = segments_of(target)[0].name
    ways: list[tuple[str, Callable[[Path, Path], None]]] = [
        ("segments/customers", _folder),
        (f"segments/{HEX}", _folder),
        ("segments/notes.txt", _text),
        ("segments/linked", _to_folder),
        (f"segments/{HEX}", _to_folder),
        (f"segments/{segment}/notes.txt", _text),
        (".building-mine", _folder),
        (".building-mine", _to_folder),
        (".building-other-1-0123456789ab", _folder),
        (".building-other-1-0123456789ab", _to_folder),
        ("README", _text),
        ("thesis", _folder),
        ("lock", _to_file),
        ("lock", _same_file),
        ("lock", _to_nothing),
        ("lock", _to_device),
        ("lock", _folder),
        ("lock", _pipe),
        ("history.jsonl", _to_file),
        ("history.jsonl", _same_file),
        ("history.jsonl", _to_nothing),
        ("history.jsonl", _to_device),
        ("history.jsonl", _folder),
        ("history.jsonl", _pipe),
        ("manifest.json", _moved_and_linked),
        ("segments", _moved_and_linked),
        (f"segments/{segment}", _moved_and_linked),
        (f"segments/{segment}/values.arrow", _moved_and_linked),
        (f"segments/{segment}/tables.arrow.zst", _moved_and_linked),
    ]
    where, put = ways[trial % len(ways)] if trial < len(ways) else ways[int(rng.integers(len(ways)))]
    spot = target / where
    if put is not _moved_and_linked and os.path.lexists(spot):
        spot.unlink()
    put(spot, elsewhere)
    return put.__name__.strip("_").replace("_", " "), where


def _moved_and_linked(path: Path, elsewhere: Path) -> None:
    """Somebody moved a part of an index to another disk, beside what else is there."""
    home = elsewhere / "moved"
    home.mkdir()
    (home / "thesis.txt").write_text("years of work")
    path.rename(home / path.name)
    if (home / path.name).is_dir():
        _folder(home / path.name / "customers", elsewhere)
    path.symlink_to(home / path.name)


def suites() -> list[Suite]:
    """Folders of others, and folders within an index."""
    return [
        Suite(
            "folders",
            180,
            3.0,
            _run_others,
            "--into folders with others' segments, lock, history, manifest, links: built, --fresh, changed",
        ),
        Suite(
            "inside",
            58,
            2.0,
            _run_own,
            "others' files, folders and links in each place of an index that is changed",
        ),
    ]
