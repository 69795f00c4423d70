"""Files of every format, damaged, among good ones: indexed together, then asked for the good ones."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from torture import goodtables
from torture.damage import ANY, BINARY, TEXT, Damage, damaged
from torture.goodtables import GOOD, write_good
from torture.law import answered, same_answers, snapshot, touched, unnamed
from torture.trials import CRASH, WRONG, Breach, Outcome, Suite
from torture.workplace import Record, Workplace

SUFFIXES = (
    ".csv",
    ".tsv",
    ".parquet",
    ".arrow",
    ".jsonl",
    ".json",
    ".gz",
    ".bz2",
    ".zst",
    ".zip",
    ".db",
    ".csv.gz",
)
WRONG_SUFFIX = 0.06
LOST_UNSAID = 0.02, 3  # of the lines that look like rows, and how many in any case
SECONDS_TO_COMPILE = 600.0
REALLY = 10  # of so many batches one is indexed by a command of its own


@dataclass(frozen=True, slots=True)
class Format:
    """Files of one format: how a good one is made, and what damages it."""

    name: str
    make: Callable[[np.random.Generator], tuple[str, bytes]]
    ways: Sequence[Damage]


FORMATS = (
    Format("csv", goodtables.csv, TEXT),
    Format("jsonl", goodtables.jsonl, TEXT),
    Format("parquet", goodtables.parquet, BINARY),
    Format("arrow", goodtables.arrow, BINARY),
    Format("packed", goodtables.packed, BINARY),
    Format("sqlite", goodtables.sqlite, BINARY),
    Format("duckdb", goodtables.duckdb_file, BINARY),
)
LAKEHOUSES = {"delta": goodtables.delta_table, "iceberg": goodtables.iceberg_table}


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """One damaged file or folder.

    Attributes:
        trial: its number.
        path: where it is.
        done: what was done to it.
        rows: the lines that look like rows, if it is a text of which no cell spans several lines.
    """

    trial: int
    path: Path
    done: str
    rows: int | None = None


def _write_file(workplace: Workplace, form: Format, trial: int, folder: Path) -> Fuzzed:
    rng = workplace.rng(trial)
    suffix, content = form.make(rng)
    if form.name == "packed" and rng.random() < 0.3:  # damaged before it was packed
        content, done = damaged(rng, goodtables.csv(rng)[1], TEXT)
        suffix, content = goodtables.pack(rng, ".csv", content)
    else:
        content, done = damaged(rng, content, form.ways)
    if rng.random() < WRONG_SUFFIX:
        suffix = str(rng.choice(SUFFIXES))
    file = folder / f"{form.name}-{trial}{suffix}"
    file.write_bytes(content)
    plain = (form.name, suffix) in {
        ("csv", ".csv"),
        ("csv", ".tsv"),
        ("jsonl", ".jsonl"),
        ("jsonl", ".ndjson"),
    }
    return Fuzzed(trial, file, done, _rows_of(content, form.name) if plain else None)


def _rows_of(content: bytes, form: str) -> int | None:
    """Count the lines that look like rows: of as many cells as most, or objects."""
    if b"\0" in content:
        return None
    lines = content.split(b"\n")
    if form == "jsonl":
        return sum(line.startswith(b"{") and line.rstrip().endswith(b"}") for line in lines)
    marks = max(b",;\t|", key=content.count)
    counts = [line.count(marks) for line in lines if line.strip()]
    usual = max({*counts}, key=counts.count, default=0)
    return counts.count(usual) - 1 if usual else None


def _write_lakehouse(workplace: Workplace, name: str, trial: int, folder: Path) -> Fuzzed:
    rng = workplace.rng(trial)
    good = workplace.folder / f"{name}-{trial % 4}"
    table = folder / f"{name}-{trial}"
    if name == "iceberg":  # its files name each other by absolute paths
        LAKEHOUSES[name](table, rng)
    else:
        if not good.exists():
            LAKEHOUSES[name](good, workplace.rng(trial % 4))
        shutil.copytree(good, table)
    files = [file for file in table.rglob("*") if file.is_file() and not file.name.endswith(".crc")]
    files.sort(key=lambda file: (file.suffix, file.stat().st_mtime_ns))  # their names are new each time
    logs = [file for file in files if file.suffix in {".json", ".avro"}]
    choice = logs if logs and rng.random() < 0.6 else files
    file = choice[rng.integers(len(choice))]
    if rng.random() < 0.15:
        file.unlink()
        return Fuzzed(trial, table, f"removed {file.name}")
    content, done = damaged(rng, file.read_bytes(), TEXT if file.suffix == ".json" else (*ANY, *BINARY))
    file.write_bytes(content)
    return Fuzzed(trial, table, f"{done} of {file.name}")


def suites() -> list[Suite]:
    """One suite for each format; together they damage 5,000 files."""
    counts = {
        "csv": 1200,
        "jsonl": 700,
        "parquet": 900,
        "arrow": 700,
        "packed": 700,
        "sqlite": 400,
        "duckdb": 150,
    }
    made = [_suite(form.name, counts[form.name], _files_of(form)) for form in FORMATS]
    return [*made, *(_suite(name, 125, _lakehouses_of(name)) for name in LAKEHOUSES)]


Writer = Callable[[Workplace, int, Path], Fuzzed]


def _files_of(form: Format) -> Writer:
    return lambda workplace, trial, folder: _write_file(workplace, form, trial, folder)


def _lakehouses_of(name: str) -> Writer:
    return lambda workplace, trial, folder: _write_lakehouse(workplace, name, trial, folder)


def _suite(name: str, trials: int, write: Writer) -> Suite:
    def run(workplace: Workplace, numbers: Iterator[int]) -> Iterator[Outcome]:
        while batch := list(islice(numbers, workplace.batch)):
            yield from _run_batch(workplace, batch, write)

    return Suite(name, trials, trials / 400, run, f"{name}: damaged in one to three ways")


def _run_batch(workplace: Workplace, trials: Sequence[int], write: Writer) -> Iterator[Outcome]:
    """Try files together; where something fails that can't be laid at one, halve until it can."""
    record, fuzzed = _index(workplace, trials, write)
    by_trial: dict[int, list[Breach]] = {trial: [] for trial in trials}
    of_all: list[Breach] = []
    for breach in record.breaches:
        own = [each.trial for each in fuzzed if f"{each.path}" in breach.message or len(trials) == 1]
        if len(own) == 1 and breach.law != CRASH:
            by_trial[own[0]].append(breach)
        else:
            of_all.append(breach)
    if of_all and len(trials) > 1:
        half = len(trials) // 2
        parts = [*_run_batch(workplace, trials[:half], write), *_run_batch(workplace, trials[half:], write)]
        if not any(part.breaches for part in parts):  # only all together do it
            parts[0] = replace(parts[0], name=f"{len(trials)} files together", breaches=tuple(of_all))
        yield from parts
        return
    outcome = record.outcome()
    for each in fuzzed:
        kept = tuple(dict.fromkeys([*by_trial[each.trial], *of_all]))
        yield replace(outcome, trial=each.trial, name=f"{each.path.name}: {each.done}", breaches=kept)


def _index(workplace: Workplace, trials: Sequence[int], write: Writer) -> tuple[Record, list[Fuzzed]]:
    record = Record(workplace, trials[0], "")
    home = workplace.empty("home")
    data, index = home / "data", workplace.folder / "index"
    shutil.rmtree(index, ignore_errors=True)
    asked = write_good(data)
    truth = truth_of(workplace)
    fuzzed = [write(workplace, trial, data) for trial in trials]
    before = snapshot(home)
    deadline = 30.0 + 0.7 * len(trials)
    command: Any = workplace.spark_desk
    if trials[0] // workplace.batch % REALLY == REALLY - 1 and len(trials) == workplace.batch:
        command = workplace.fresh
    built = record.run(command, "index", str(data), "--into", str(index), "--json", deadline=deadline)
    if built.code == 0:
        question = (str(asked), "--key", "place", "--value", "x", "--index", str(index))
        answer = record.run(workplace.desk, "query", *question, "--top", "100000", "--json")
        record.breaches += same_answers(truth, answer, GOOD)
        info = answered(record.run(workplace.desk, "info", str(index), "--json"))
        files = [each.path for each in fuzzed if each.path.stat().st_size or each.path.is_dir()]
        record.breaches += unnamed(files, info)
        record.breaches += _lost(fuzzed, info)
        record.run(workplace.desk, "check", str(index))
    elif built.code is not None and not record.breaches:
        record.breaches.append(Breach(WRONG, f"no index of the good tables: {built.err[-300:]!r}"))
    record.breaches += touched(before, snapshot(home), may_add=False)
    return record, fuzzed


def truth_of(workplace: Workplace) -> dict[str, Any]:
    """Answer from an index of the good tables alone."""
    known: dict[str, Any] | None = workplace.desks.kept.get("truth")
    if known is None:
        alone = workplace.empty("alone")
        asked = write_good(alone / "data")
        index = alone / "index"
        built = workplace.spark_desk("index", str(alone / "data"), "--into", str(index))
        question = (str(asked), "--key", "place", "--value", "x", "--index", str(index), "--top", "100000")
        # The first question on a machine waits for code to be compiled.
        known = answered(workplace.desk("query", *question, "--json", deadline=SECONDS_TO_COMPILE))
        if known is None:
            raise RuntimeError(
                f"the good tables alone can't be indexed: {built.err.decode(errors='replace')}"
            )
        workplace.desks.kept["truth"] = known
    return known


def _lost(fuzzed: Sequence[Fuzzed], info: dict[str, Any] | None) -> list[Breach]:
    """Rows of a text that were lost without a word: then what is said of the table is wrong."""
    if info is None:
        return []
    tables = {table["path"]: table for table in info["contents"]}
    breaches = []
    for each in fuzzed:
        table = tables.get(str(each.path))
        if table is None or each.rows is None or table["problem"] or table["damage"]:
            continue
        share, few = LOST_UNSAID
        lost = each.rows - table["rows"]
        if lost > few + share * each.rows:
            breaches.append(
                Breach(WRONG, f"{each.path}: {lost} of {each.rows} rows lost and not said ({each.done})")
            )
    return breaches
