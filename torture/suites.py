"""All suites, by name, and one trial after the other of those that are asked for."""

import shutil
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from torture import atonce, folders, fuzz, hostile, indexes, kills, lies, secrets
from torture.trials import CRASH, Breach, Outcome, Suite
from torture.workplace import BATCH, Desks, Workplace

ALL: tuple[Suite, ...] = tuple(
    suite
    for part in (fuzz, hostile, folders, kills, indexes, lies, atonce, secrets)
    for suite in part.suites()
)
GROUPS = {"fuzz": tuple(suite.name for suite in fuzz.suites())}


def chosen(names: Sequence[str]) -> list[Suite]:
    """Return the suites of these names, or of groups of these names; all, if there are none."""
    wanted = [one for name in names for one in GROUPS.get(name, (name,))]
    unknown = {*wanted} - {suite.name for suite in ALL}
    if unknown:
        known = ", ".join([*GROUPS, *(suite.name for suite in ALL)])
        raise SystemExit(f"torture: there is no suite {', '.join(sorted(unknown))}; choose from {known}")
    return [suite for suite in ALL if not wanted or suite.name in wanted]


def run_suite(
    suite: Suite,
    folder: Path,
    seed: int,
    desks: Desks,
    *,
    trials: Iterable[int] | None = None,
    seconds: float | None = None,
    batch: int = BATCH,
    quick: bool = False,
) -> Iterator[Outcome]:
    """Run the trials of a suite.

    Args:
        suite: to run.
        folder: to work in; nothing of it is left.
        seed: of the chance.
        desks: to run commands at.
        trials: their numbers; all that make a whole run, if none are given.
        seconds: after which no other trial is begun.
        batch: how many files are indexed together.
        quick: whether to do without processes of a command's own.
    """
    numbers = iter(range(suite.trials) if trials is None else trials)
    workplace = Workplace(suite.name, folder, seed, desks, batch=batch, quick=quick)
    try:
        yield from suite.run(workplace, _until(numbers, seconds))
    except Exception as problem:  # of ours: what is broken here must not pass for a suite without a breach
        message = f"the suite itself failed: {type(problem).__name__}: {problem}"
        traceback.print_exc()
        yield Outcome(suite.name, -1, "", breaches=(Breach(CRASH, message),))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _until(numbers: Iterator[int], seconds: float | None) -> Iterator[int]:
    began = time.monotonic()
    for number in numbers:
        if seconds is not None and time.monotonic() - began > seconds:
            return
        yield number
