"""The paper's section 5 on any collections: every stage in order, each kept, then the report."""

import shlex
import shutil
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from covary.pipeline.session import open_session
from covary.query.ask import open_index
from experiments.artefact import Measured
from experiments.paper import folders, sbn
from experiments.paper.answers import answers, split
from experiments.paper.estimates import estimates
from experiments.paper.example import write_example
from experiments.paper.index_size import index_sizes
from experiments.paper.rankings import rankings
from experiments.paper.report import FIGURES, write_report
from experiments.paper.timings import timings
from experiments.paper.workplace import FULL, SMOKE, Scale, Workplace
from experiments.writing import between_marks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SYNTHETIC = "sbn"
RESULTS = Path("results")
PAGE = Path(__file__).parents[2] / "docs" / "measured" / "experiments.md"


def main(collections: list[str], into: Path | None, smoke: bool, seed: int, write: bool) -> None:
    """Run every stage that is not done yet, and write the report, also into the docs if told so."""
    started = time.monotonic()
    scale = replace(SMOKE if smoke else FULL, seed=seed)
    into = into or (RESULTS / "smoke" if smoke else RESULTS)
    if smoke and not collections:
        collections = [SYNTHETIC, str(write_example(into / "tables" / "example"))]
    workplaces = [_workplace(name, into, scale) for name in collections or [SYNTHETIC]]
    _require_different_names(workplaces)
    for workplace in workplaces:
        workplace.open()
    with open_session(None, None, None) as spark:
        measured = [measure(workplace, spark) for workplace in workplaces]
    text = write_report(measured, into, shlex.join(["./run", "experiments", *sys.argv[1:]]))
    if write:
        between_marks(PAGE, "report", text)
        shutil.copytree(into / FIGURES, PAGE.parent / FIGURES, dirs_exist_ok=True)
    minutes = (time.monotonic() - started) / 60
    print(f"{into / 'report.html'} and {into / 'report.md'}, after {minutes:.1f} minutes")


def _workplace(name: str, into: Path, scale: Scale) -> Workplace:
    tables = None if name == SYNTHETIC else Path(name).resolve()
    if tables and not tables.is_dir():
        sys.exit(
            f"{name} is no folder of tables; name folders, or {SYNTHETIC} for the paper's synthetic tables"
        )
    called = tables.name if tables else name
    if not called or set(called) & set("*?[]{}"):
        sys.exit(f"{name}: a folder without a name, or with one of *?[]{{}} in it, can't be a collection")
    return Workplace(called, into / called, scale, tables)


def _require_different_names(workplaces: list[Workplace]) -> None:
    for name, times in Counter([FIGURES, *(each.name for each in workplaces)]).items():
        if times > 1:
            sys.exit(f"two collections are called {name}, or one as the folder of figures: rename one")


def measure(workplace: Workplace, spark: "SparkSession") -> Measured:
    """Run every stage of one collection."""
    kind = folders if workplace.tables else sbn
    kind.sketch_all(workplace, spark)
    truth = kind.truth(workplace, spark)
    found = estimates(workplace, truth, spark)
    ranked = answered = columns = None
    if workplace.tables:
        columns = folders.columns(workplace, spark)
        tables = folders.catalogue(open_index(workplace.index))["table"].to_numpy()
        chosen = np.random.default_rng([workplace.scale.seed, 1]).permutation(tables.size)
        queries = chosen[: workplace.scale.ranked_queries]
        ranked = rankings(workplace, folders.lists(workplace, "lists", queries, spark), spark)
        asking, _ = split(workplace, tables.size)
        answered = answers(workplace, folders.lists(workplace, "answers-truth", asking, spark), tables)
    timed = timings(workplace, truth, columns)
    return Measured(workplace, truth, found, ranked, timed, answered, index_sizes(workplace))
