"""`./run bench --since REVISION`: queries and builds of this tree beside an earlier commit's, in one run."""

import json
import os
import subprocess
import sys
from pathlib import Path

from experiments.writing import table

ROOT = Path(__file__).parents[1]
TASKS = {"prepare": 1, "ask": 5, "build": 2}  # and how often each is run, in turns; the best counts
Seconds = dict[str, float]


def compare(revision: str, scratch: Path) -> None:
    """Run each task in both trees by turns, and print the best times and their ratios."""
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", f"{revision}^{{commit}}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    earlier = (scratch / f"tree-{commit}").resolve()
    if not earlier.exists():
        earlier.mkdir(parents=True)
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", str(earlier)], input=archive.stdout, check=True)
    trees = {"before": earlier, "now": ROOT}
    best: dict[str, Seconds] = {name: {} for name in trees}
    for task, rounds in TASKS.items():
        for turn in range(rounds):
            # Which goes first changes with each round: the second finds a warmer machine.
            for name in sorted(trees, reverse=turn % 2 == 1):
                folder = (scratch / f"since-{name}").resolve()
                folder.mkdir(parents=True, exist_ok=True)
                for what, seconds in _run(task, trees[name], folder).items():
                    best[name][what] = min(seconds, best[name].get(what, seconds))
    rows = [
        (what, f"{best['before'][what] * 1e3:,.2f}", f"{now * 1e3:,.2f}", f"{now / best['before'][what]:.2f}")
        for what, now in best["now"].items()
    ]
    print(table(("measured", f"{commit}, ms", "now, ms", "ratio"), rows))


def _run(task: str, tree: Path, folder: Path) -> Seconds:
    command = [sys.executable, str(Path(__file__).with_name("timed.py")), task, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    seconds: Seconds = json.loads(done.stdout.splitlines()[-1])
    return seconds
