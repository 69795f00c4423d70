"""Indexes that are damaged bit by bit: each is refused by name or answers what the undamaged one answers."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from torture.altered import SEGMENTS, files_of
from torture.goodtables import PLACES, write_good
from torture.law import snapshot, timeless, touched
from torture.running import Ran
from torture.trials import WRONG, Breach, Outcome, Suite
from torture.workplace import Record, Workplace, emptied

RETIRED_AFTER = 400  # questions: what one index spoils in memory may be seen long after
LARGE_BYTES = 64 << 20
CHECK_EACH, CHANGE_EACH, PAIRS_EACH = 5, 12, 4  # so many trials; all pairs take a hundred times a query


@dataclass(frozen=True, slots=True)
class Whole:
    """An index that nobody damaged, and what it answers."""

    index: Path
    questions: tuple[tuple[str, ...], ...]
    answers: tuple[str, ...]


def whole_index(workplace: Workplace, *, large: bool = False) -> Whole:
    """Make an index in two segments, and ask it."""
    name = "large" if large else "small"
    known: Whole | None = workplace.desks.kept.get(name)
    if known:
        return known
    folder = emptied(workplace.desks.folder / name)
    data, index = folder / "data", folder / "index"
    asked = write_good(data)
    _more_tables(data, 8, 4)
    if large:
        _more_tables(data / "many", 175, 48, rows=1200)
    _made(workplace, "index", str(data), "--into", str(index))
    _more_tables(data / "later", 3, 2)
    _made(workplace, "index", "--into", str(index))
    _made(workplace, "remove", str(index), "t1")
    own = ("--key", "place", "--value", "x", "--index", "INDEX", "--json")
    questions: tuple[tuple[str, ...], ...] = (
        ("query", str(asked), *own, "--top", "1000"),
        ("query", str(asked), *own, "--measure", "spearman", "--null", "--explain"),
        ("info", "INDEX", "--json"),
    )
    if not large:
        questions += (("pairs", "INDEX", "--top", "50", "--json"), ("history", "INDEX", "--json"))
    answers = tuple(_plain(_asked(workplace, question, index), index) for question in questions)
    if "null" in answers:
        raise RuntimeError("the undamaged index does not answer")
    size = sum(file.stat().st_size for file in files_of(index))
    if large and size <= LARGE_BYTES:
        raise RuntimeError(f"the large index has only {size:,} bytes")
    workplace.desks.kept[name] = Whole(index, questions, answers)
    return Whole(index, questions, answers)


def _more_tables(folder: Path, tables: int, columns: int, rows: int = 200) -> None:
    rng = np.random.default_rng(tables)
    folder.mkdir(exist_ok=True)
    keys = PLACES if rows == len(PLACES) else [f"place {number}" for number in range(rows)]
    for number in range(tables):
        values = {f"v{column}": rng.normal(size=rows) for column in range(columns)}
        pl.DataFrame({"place": keys, **values}).write_parquet(folder / f"t{number}.parquet")


def _made(workplace: Workplace, *arguments: str) -> None:
    ran = workplace.spark_desk(*arguments, deadline=300)
    if ran.code:
        raise RuntimeError(f"covary {arguments[0]}: {ran.err.decode(errors='replace')[-300:]}")


def _asked(workplace: Workplace, question: Sequence[str], index: Path) -> Ran:
    return workplace.desk(*(str(index) if word == "INDEX" else word for word in question), deadline=60)


def _plain(ran: Ran, index: Path) -> str:
    return timeless(ran).replace(str(index), "INDEX")


def ask(record: Record, whole: Whole, index: Path, questions: Sequence[int]) -> list[Breach]:
    """Ask a damaged index; it must answer as the undamaged one does, or say that it can't."""
    if record.workplace.desk.ran > RETIRED_AFTER:
        record.workplace.desk.close()
    breaches = []
    for number in questions:
        question = [str(index) if word == "INDEX" else word for word in whole.questions[number]]
        ran = record.run(record.workplace.desk, *question, deadline=60)
        if ran.code == 0 and _plain(ran, index) != whole.answers[number]:
            breaches.append(Breach(WRONG, f"{question[0]} answers something else than the undamaged index"))
        if ran.code == 2 and str(index).encode() not in ran.err:
            breaches.append(Breach(WRONG, f"{question[0]} refuses, not naming the index: {ran.err[-200:]!r}"))
    return breaches


def linked_copy(index: Path, into: Path) -> None:
    """Copy an index without the bytes of its segments: their files are the same until one is replaced."""

    def copy(file: str, to: str) -> None:
        (os.link if f"/{SEGMENTS}/" in file else shutil.copy2)(file, to)

    shutil.copytree(index, into, copy_function=copy)


def _flip(rng: np.random.Generator, file: Path, index: Path) -> str:
    """Flip a bit, or cut or swap a file."""
    content = bytearray(file.read_bytes())
    file.unlink()
    way = rng.random()
    if way < 0.9:
        at, bit = int(rng.integers(len(content))), int(rng.integers(8))
        content[at] ^= 1 << bit
        file.write_bytes(content)
        return f"bit {bit} of byte {at} of {file.name}"
    if way < 0.94:
        end = int(rng.integers(len(content)))
        file.write_bytes(content[:end])
        return f"{file.name} cut to {end}"
    if way < 0.96:
        return f"{file.name} missing"
    others = [each for each in files_of_copy(index) if each.suffix == file.suffix and each != file]
    other = others[int(rng.integers(len(others)))] if others else None
    file.write_bytes(other.read_bytes() if other and other.exists() else b"")
    return f"{file.name} replaced by {other.name if other else 'nothing'}"


def files_of_copy(index: Path) -> list[Path]:
    """Every file below a folder."""
    return sorted(file for file in index.rglob("*") if file.is_file())


def _run(workplace: Workplace, numbers: Iterator[int], *, large: bool) -> Iterator[Outcome]:
    whole = whole_index(workplace, large=large)
    files, before = files_of(whole.index), snapshot(whole.index)
    for trial in numbers:
        rng = workplace.rng(trial)
        folder = workplace.empty("trial")
        index = folder / "index"
        linked_copy(whole.index, index)
        # Large files hold most bits, small ones most meaning: a file is chosen first, then a bit of it.
        file = index / files[rng.integers(len(files))].relative_to(whole.index)
        record = Record(workplace, trial, "")
        record.name = _flip(rng, file, index)
        ask_pairs = trial % PAIRS_EACH == 0
        questions = [
            number
            for number in rng.permutation(len(whole.questions)).tolist()
            if ask_pairs or whole.questions[number][0] != "pairs"
        ]
        record.breaches += ask(record, whole, index, sorted(questions[: 1 if large else 2]))
        if trial % (CHECK_EACH * (10 if large else 1)) == 0:
            checked = record.run(workplace.desk, "check", str(index), deadline=120)
            if checked.code == 0:
                record.breaches.append(Breach(WRONG, "check finds nothing damaged"))
        if trial % CHANGE_EACH == 0 and not large:
            record.breaches += _change(record, whole, index, rng)
        yield record.outcome()
    changed = touched(before, snapshot(whole.index))
    if changed:
        yield Outcome(workplace.suite, -1, "the undamaged index", breaches=tuple(changed))


def _change(record: Record, whole: Whole, index: Path, rng: np.random.Generator) -> list[Breach]:
    """Change a damaged index: that is refused, or comes out right; damage gets no new checksums."""
    command = [("compact", str(index)), ("remove", str(index), "t2")][rng.integers(2)]
    changed = record.run(record.workplace.desk, *command, deadline=60)
    if changed.code != 0:
        return []
    truth = record.workplace.empty("truth") / "index"
    shutil.copytree(whole.index, truth)
    record.run(record.workplace.desk, *(str(truth) if word == str(index) else word for word in command))
    question = whole.questions[0]
    wanted, found = (_asked(record.workplace, question, each) for each in (truth, index))
    if found.code == 0 and _plain(wanted, truth) != _plain(found, index):
        return [Breach(WRONG, f"after {command[0]} it answers something else than the undamaged index")]
    return []


def suites() -> list[Suite]:
    """Bits of a small index, of which opening reads every byte, and of a large one."""
    return [
        Suite(
            "flips",
            2400,
            6.0,
            lambda workplace, numbers: _run(workplace, numbers, large=False),
            "bits of each file of a small index flipped, files cut, swapped, lost; asked, checked, changed",
        ),
        Suite(
            "largeflips",
            500,
            3.0,
            lambda workplace, numbers: _run(workplace, numbers, large=True),
            "the same of an index above 64 MB",
        ),
    ]
