"""Threads and processes that ask while a writer commits: each answer is that of one state, to the byte."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from torture.indexes import whole_index
from torture.law import answered
from torture.running import environment
from torture.trials import CRASH, HANG, WRONG, Breach, Outcome, Suite
from torture.workplace import Record, Workplace

PROCESSES, THREADS = 2, 4
REMOVED = tuple(f"t{number}" for number in (0, 2, 3, 4, 5))


def _run(workplace: Workplace, numbers: Iterator[int]) -> Iterator[Outcome]:
    whole = whole_index(workplace)
    question = Path(whole.questions[0][1])
    for trial in numbers:
        rng = workplace.rng(trial)
        order = rng.permutation(REMOVED).tolist()
        steps = [("remove", name) for name in order]
        for at in sorted(rng.integers(0, len(steps), 2).tolist(), reverse=True):
            steps.insert(at, ("compact", ""))
        record = Record(workplace, trial, f"{PROCESSES} processes of {THREADS} threads, {len(steps)} commits")
        folder = workplace.empty("trial")
        states = _states(record, whole.index, folder / "ahead", question, steps)
        index = folder / "index"
        shutil.copytree(whole.index, index)
        readers = [_reader(workplace, index, question, folder, number) for number in range(PROCESSES)]
        time.sleep(float(rng.uniform(2.0, 3.0)))  # until they ask
        for step in steps:
            record.run(workplace.desk, step[0], str(index), *filter(None, step[1:]))
            time.sleep(float(rng.uniform(0.0, 0.3)))
        time.sleep(0.3)
        (folder / "stop").touch()
        for reader in readers:
            record.breaches += _heard(reader, states)
        yield record.outcome()


def _states(
    record: Record, whole: Path, index: Path, question: Path, steps: Sequence[tuple[str, str]]
) -> list[str]:
    """Go through all commits with nobody around; return what each state answers."""
    shutil.copytree(whole, index)
    states = []
    for step in (None, *steps):
        if step:
            record.run(record.workplace.desk, step[0], str(index), *filter(None, step[1:]))
        words = ("--key", "place", "--value", "x", "--index", str(index), "--top", "1000", "--json")
        facts = answered(record.run(record.workplace.desk, "query", str(question), *words))
        facts and facts.pop("elapsed_ms")
        states.append(_rounded(facts))
    return states


def _reader(
    workplace: Workplace, index: Path, question: Path, folder: Path, number: int
) -> "subprocess.Popen[bytes]":
    command = [
        sys.executable,
        "-m",
        "torture.asking",
        str(index),
        str(question),
        str(folder / "stop"),
        str(THREADS),
    ]
    around = environment(workplace.folder / f"reader{number}")
    return subprocess.Popen(command, env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _heard(reader: "subprocess.Popen[bytes]", states: Sequence[str]) -> list[Breach]:
    try:
        out, err = reader.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        reader.kill()
        reader.communicate()
        return [Breach(HANG, "a reader did not end")]
    if reader.returncode:
        return [Breach(CRASH, f"a reader ended with {reader.returncode}: {err[-200:]!r}")]
    breaches = []
    for thread in json.loads(out):
        at = 0
        for line in thread:
            if not line.startswith("{"):
                breaches.append(Breach(WRONG, f"a reader got: {line[:200]}"))
                continue
            answer = _rounded(json.loads(line))
            if answer not in states:
                breaches.append(Breach(WRONG, "a reader had an answer that no state gives"))
            elif answer not in states[at:]:
                breaches.append(Breach(WRONG, "a reader went back to an older state"))
            else:
                at = states.index(answer, at)
    return breaches


def _rounded(facts: object) -> str:
    return json.dumps(facts, sort_keys=True)


def suites() -> list[Suite]:
    """Readers beside a writer."""
    return [
        Suite(
            "atonce",
            20,
            2.0,
            _run,
            "threads and processes asking while tables are removed and the index is compacted",
        )
    ]
