"""The paper's section 5 on any collections: every stage in order, each kept, then the report."""

import shlex
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from covary.query import open_index
from covary.sparksession import session
from experiments import folders, sbn
from experiments.answers import answers
from experiments.artefact import Measured
from experiments.estimates import estimates
from experiments.indexsize import index_sizes
from experiments.rankings import rankings
from experiments.report import FIGURES, write_report
from experiments.timings import timings
from experiments.workplace import FULL, SMOKE, Workplace
from experiments.writing import between_marks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SYNTHETIC = "sbn"
PAGE = Path(__file__).parents[1] / "docs" / "experiments.md"


def main(collections: list[str], into: Path, smoke: bool, seed: int, write: bool) -> None:
    """Run every stage that is not done yet, and write the report, also into the docs if told so."""
    started = time.monotonic()
    scale = replace(SMOKE if smoke else FULL, seed=seed)
    workplaces = [_workplace(name, into, scale) for name in collections or [SYNTHETIC]]
    with session(None, None, None) as spark:
        measured = [measure(workplace.open(), spark) for workplace in workplaces]
    command = shlex.join(
        ["./run", "experiments", *(Path(name).name for name in collections), *_switches(smoke, seed)]
    )
    text = write_report(measured, into, command)
    if write:
        between_marks(PAGE, "report", text)
        shutil.copytree(into / FIGURES, PAGE.parent / FIGURES, dirs_exist_ok=True)
    minutes = (time.monotonic() - started) / 60
    print(f"{into / 'report.html'} and {into / 'report.md'}, after {minutes:.1f} minutes")


def _switches(smoke: bool, seed: int) -> list[str]:
    return (["--smoke"] if smoke else []) + (["--seed", str(seed)] if seed != FULL.seed else [])


def _workplace(name: str, into: Path, scale: object) -> Workplace:
    tables = None if name == SYNTHETIC else Path(name).absolute()
    if tables and not tables.is_dir():
        sys.exit(
            f"{name} is no folder of tables; name folders, or {SYNTHETIC} for the paper's synthetic tables"
        )
    return Workplace(tables.name if tables else name, into / (tables.name if tables else name), scale, tables)


def measure(workplace: Workplace, spark: "SparkSession") -> Measured:
    """Run every stage of one collection."""
    kind = folders if workplace.tables else sbn
    kind.sketch_all(workplace, spark)
    truth = kind.truth(workplace, spark)
    found = estimates(workplace, truth, spark)
    ranked = answered = columns = None
    if workplace.tables:
        columns = folders.columns(workplace, spark)
        ranked = rankings(workplace, folders.lists(workplace, spark), spark)
        tables = folders.catalogue(open_index(workplace.index))["table"].to_numpy()
        answered = answers(workplace, columns, tables)
    timed = timings(workplace, truth, columns)
    return Measured(workplace, truth, found, ranked, timed, answered, index_sizes(workplace))
