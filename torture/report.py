"""What came of a run: a line for each suite, the breaches of the law, and the page of both."""

import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from experiments.writing import table
from torture.trials import LAWS, Outcome, Suite

PAGE = Path(__file__).parents[1] / "docs" / "measured" / "torture.md"
SHOWN = 5  # breaches of one law in one suite
HEADING = ("suite", "trials", *LAWS, "slowest", "peak memory")
INTRO = """\
# Hostile and damaged input

Written by `./run torture --write`. Each trial gives covary something damaged or hostile and then holds it to one law: nothing of the user's is deleted or changed,
nothing wrong is said, nothing hangs, nothing leaks, nothing crashes, the good tables beside it are answered for as if they were alone, and each file that
was not used is named. What each suite does and how to repeat a trial is below the table.
"""
NOTES = """\
- **trials**: files, indexes or situations; those that could not be tried on this machine are named below.
- **crashes**: a traceback, a Java stack trace, death by a signal, or an exit code other than 0, 2 and 130.
- **hangs**: not done at its deadline, or processes left running.
- **over limits**: more memory in one process, or a larger index, than is allowed.
- **files unnamed**: neither among the tables of `covary info --json` nor among the skipped.
- **wrong answers**: other than those of an index of the good tables alone, or of the undamaged index; rows lost without a word; a refusal without a reason; control characters on the screen.
- **deleted or changed**: anything of the user's by type, mode, size, time or content, also behind links; anything left behind.
- **leaks**: a planted secret in a file of the index, a message, a log or a command line of a child.
- **slowest**: the longest command of a trial; **peak memory**: the most that one Python process held.
"""


def sum_up(suite: Suite, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Sum up a suite."""
    tried = [outcome for outcome in outcomes if not outcome.skipped]
    broken = Counter(law for outcome in tried for law in {breach.law for breach in outcome.breaches})
    slowest = max((outcome.seconds for outcome in tried), default=0.0)
    memory = max((outcome.memory for outcome in tried), default=0)
    return (
        suite.name,
        f"{len(tried):,}",
        *(f"{broken[law]:,}" for law in LAWS),
        f"{slowest:.1f} s",
        f"{memory >> 20:,} MiB",
    )


def write_page(
    results: Mapping[Suite, Sequence[Outcome]],
    command: str,
    seed: int,
    minutes: float,
    every: Sequence[Suite],
    before: str,
) -> str:
    """Write the page of a run; suites that were not run again stay as the page before has them."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    ran = (
        f"`{command}`, seed {seed}, {datetime.now(UTC):%Y-%m-%d}, {minutes:.0f} minutes on {os.cpu_count()} cores "
        f"and {memory} GiB, Python {platform.python_version()}."
    )
    whole = all(len(outcomes) >= suite.trials for suite, outcomes in results.items())
    short = (
        ""
        if whole
        else " A shorter run than a whole one: the suites stopped when their time was up, or were told to."
    )
    old = before.splitlines()
    rows = [
        sum_up(suite, results[suite]) if suite in results else row
        for suite in every
        if (row := _old_row(old, suite)) or suite in results
    ]
    what = table(("suite", "what it tries"), [(suite.name, suite.what) for suite in every])
    kept = [suite for suite in every if suite not in results and _old_row(old, suite)]
    if kept:
        again = ", ".join(suite.name for suite in results)
        first, *later = [line for line in old if line.startswith(("`./run torture", "Then "))]
        later = [line for line in later if f" {again}: " not in line]
        ran, short = "\n\n".join([first, *later, f"Then again {again}: {ran}{short}"]), ""
    return "\n".join(
        [
            INTRO,
            f"{ran}{short}\n",
            table(HEADING, rows),
            "",
            NOTES,
            what,
            "",
            f"One trial again, by its number: `./run torture --seed {seed} --only csv --trial 1234`.",
            *_section("What was found", [*_old_lines(old, kept, ","), *list_breaches(results)]),
            *_section("Not tried here", [*_old_lines(old, kept, ":"), *list_untried(results)]),
            "",
        ]
    )


def _old_row(old: Sequence[str], suite: Suite) -> tuple[str, ...] | None:
    """The row of a suite in the table of an earlier page."""
    row = next((line for line in old if line.startswith(f"| {suite.name} |")), None)
    cells = tuple(cell.strip() for cell in row.strip("|").split("|")) if row else ()
    return cells if len(cells) == len(HEADING) else None


def _old_lines(old: Sequence[str], kept: Sequence[Suite], mark: str) -> list[str]:
    """What an earlier page says of some suites: of breaches with a comma after a number, else with a colon."""
    lines = [line.removeprefix("- ") for line in old if line.startswith("- ")]
    return [
        line
        for line in lines
        if any(line.startswith(f"{suite.name}:" if mark == ":" else f"{suite.name} ") for suite in kept)
    ]


def _section(heading: str, lines: Sequence[str]) -> list[str]:
    return ["", f"## {heading}", "", *(f"- {line}" for line in lines)] if lines else []


def list_breaches(results: Mapping[Suite, Sequence[Outcome]]) -> Iterable[str]:
    """Name the first breaches of each law in each suite."""
    for suite, outcomes in results.items():
        seen: Counter[str] = Counter()
        for outcome in outcomes:
            for law in dict.fromkeys(breach.law for breach in outcome.breaches):
                seen[law] += 1
                if seen[law] <= SHOWN:
                    message = next(breach.message for breach in outcome.breaches if breach.law == law)
                    yield f"{suite.name} {outcome.trial}, {law} ({plain(outcome.name)}): {plain(message)}"
        yield from (
            f"{suite.name}, {law}: {count - SHOWN:,} more" for law, count in seen.items() if count > SHOWN
        )


def list_untried(results: Mapping[Suite, Sequence[Outcome]]) -> Iterable[str]:
    """Say what could not be tried, and why."""
    for suite, outcomes in results.items():
        reasons = Counter(outcome.skipped for outcome in outcomes if outcome.skipped)
        yield from (f"{suite.name}: {count:,} ({reason})" for reason, count in reasons.items())


def plain(text: str) -> str:
    """Return a text as it may be printed: names here are hostile."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)[
        :400
    ]
