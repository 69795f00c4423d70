"""Torture covary: ./run torture [--minutes M] [--seed N] [--only SUITE,...] [--trial N] [--write]."""

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from torture.report import PAGE, list_breaches, list_untried, plain, sum_up, write_page
from torture.suites import ALL, GROUPS, chosen, run_suite
from torture.trials import Outcome, Suite
from torture.workplace import Desks

EVERY_SECONDS = 30.0
MOST_SHOWN = 4  # breaches of one trial


def print_breaches(suite: Suite, outcome: Outcome, *, all_of_it: bool) -> None:
    """Print what a trial broke, as far as it fits."""
    shown = outcome.breaches if all_of_it else outcome.breaches[:MOST_SHOWN]
    for breach in shown:
        where = f"{suite.name} {outcome.trial} ({plain(outcome.name)})"
        print(f"  BROKEN {where}: {breach.law}: {plain(breach.message)}")
    if len(shown) < len(outcome.breaches):
        print(f"    and {len(outcome.breaches) - len(shown)} more", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./run torture",
        description="Hostile and damaged input of every kind: ends with 1 if it does harm.",
        epilog=f"Suites: {', '.join(suite.name for suite in ALL)}; groups: {', '.join(GROUPS)}.",
    )
    parser.add_argument("--only", default="", help="suites, with commas between; all by default")
    parser.add_argument("--seed", type=int, default=1, help="of the chance (1)")
    parser.add_argument("--minutes", type=float, help="about how long; else whole suites, over an hour")
    parser.add_argument("--trial", type=int, help="only this trial, of one suite, and all that is seen of it")
    parser.add_argument("--trials", type=int, help="so many of each suite")
    parser.add_argument(
        "--write", action="store_true", help="write docs/measured/torture.md, or the suites in it"
    )
    parser.add_argument("--scratch", type=Path, help="a folder to work in; it must be empty or new")
    asked = parser.parse_args()
    suites = chosen([name for name in asked.only.split(",") if name])
    if asked.trial is not None and len(suites) != 1:
        parser.error("--trial is of one suite: name it with --only")
    if asked.scratch and asked.scratch.exists() and any(asked.scratch.iterdir()):
        parser.error(f"{asked.scratch} is not empty")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="covary-torture-", ignore_cleanup_errors=True) as made:
        scratch = (asked.scratch or Path(made)).resolve()
        with closing(Desks(scratch / "desks")) as desks:
            results = run_all(suites, asked, scratch, desks)
    minutes = (time.monotonic() - began) / 60
    print(f"\n{minutes:.1f} minutes, seed {asked.seed}")
    for line in (*list_breaches(results), *list_untried(results)):
        print(line)
    if asked.write:
        PAGE.parent.mkdir(exist_ok=True)
        command = shlex.join(["./run", "torture", *_without_scratch(sys.argv[1:])])
        before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        page = write_page(results, command, asked.seed, minutes, ALL, before)
        PAGE.write_text(page, encoding="utf-8")
    return int(any(outcome.breaches for outcomes in results.values() for outcome in outcomes))


def run_all(
    suites: Sequence[Suite], asked: argparse.Namespace, scratch: Path, desks: Desks
) -> dict[Suite, list[Outcome]]:
    """Run suites one after the other, and print how they go; what time one leaves is the others'."""
    numbers = range(asked.trials) if asked.trials else None if asked.trial is None else [asked.trial]
    began = time.monotonic()
    results: dict[Suite, list[Outcome]] = {}
    for number, suite in enumerate(suites):
        seconds = None
        if asked.minutes:
            left = max(0.0, 60 * asked.minutes - (time.monotonic() - began))
            seconds = left * suite.share / sum(each.share for each in suites[number:])
        print(f"{suite.name}: {suite.what}", flush=True)
        outcomes = results.setdefault(suite, [])
        printed = time.monotonic()
        folder = scratch / suite.name
        for outcome in run_suite(suite, folder, asked.seed, desks, trials=numbers, seconds=seconds):
            outcomes.append(outcome)
            print_breaches(suite, outcome, all_of_it=asked.trial is not None)
            if time.monotonic() - printed > EVERY_SECONDS:
                printed = time.monotonic()
                print(f"  {len(outcomes):,} trials", flush=True)
        print("  " + ", ".join(sum_up(suite, outcomes)[1:]), flush=True)
    return results


def _without_scratch(arguments: Sequence[str]) -> list[str]:
    """Leave out where it was run, which is nobody else's matter."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--scratch")
    return parser.parse_known_args(arguments)[1]


if __name__ == "__main__":
    sys.exit(main())
