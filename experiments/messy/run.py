"""How messy columns are read and joined: in tables that write the same facts in many ways, and real ones."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import covary
from covary.errors import CovaryError
from experiments.messy.judging import FEWEST, Join, Outcome, Refusal, judge
from experiments.messy.reading import read_columns, without_folder
from experiments.messy.real import REAL, real_questions, real_truth
from experiments.messy.report import parts_of
from experiments.messy.tables import write_collection
from experiments.messy.truth import Columns, Table, Truth
from experiments.writing import between_marks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "messy.md"
RESULTS = Path("results") / "messy"
BLANK_LINE = "\n\n"
Questions = Callable[[Table], list[Columns]]


def evaluate(
    index_folder: Path,
    collection_folder: Path,
    truth: Truth,
    spark: "SparkSession | None" = None,
    questions: Questions = lambda table: table.questions,
    check_values: bool = True,
) -> Outcome:
    """Index a collection, ask it about every key, and compare with the truth."""
    index = covary.build_index(collection_folder, into=index_folder, spark=spark, fresh=True)
    reading = read_columns(index, collection_folder, truth, check_values)
    joins: list[Join] = []
    refusals: list[Refusal] = []
    asked = 0
    for table in truth.tables:
        for key in questions(table):
            asked += 1
            value, name = table.numbers[0], ",".join(each.name for each in key)
            hits: Sequence[covary.Hit] = ()
            try:
                hits = index.query(
                    collection_folder / table.file, key=name, value=value.name, top=10_000, min_sample=FEWEST
                )
            except CovaryError as problem:
                refusals.append(
                    Refusal(table.name, name, value.name, without_folder(str(problem), collection_folder))
                )
            joins += judge(table, key, value, hits, truth)
    return Outcome(len(truth.tables), asked, reading, tuple(joins), tuple(refusals))


def evaluate_real(index_folder: Path, folder: Path, spark: "SparkSession | None" = None) -> Outcome:
    """Do the same on the eight real tables in a folder, with what is known of them by eye.

    Their numbers are not compared: a column of counts, percentages and durations has no one reading.
    """
    return evaluate(index_folder, folder, real_truth(folder), spark, real_questions, check_values=False)


def main(collections: list[str], into: Path | None, seed: int, write: bool) -> None:
    """Make tables, their index and the report, of real tables too, if given; `write` fills the page."""
    real = _folder_of_real_tables(collections)
    folder = (into or RESULTS) / f"seed-{seed}"
    truth = write_collection(folder / "tables", seed)
    found = {"generated": parts_of(evaluate(folder / "index", folder / "tables", truth))}
    if real:
        found["real"] = parts_of(evaluate_real(folder / "real-index", real))
    sections = [
        f"## {name.title()} tables\n\n{BLANK_LINE.join(parts.values())}" for name, parts in found.items()
    ]
    (folder / "messy.md").write_text(f"{BLANK_LINE.join(sections)}\n", encoding="utf-8")
    for name, parts in found.items():
        print(f"{name}, seed {seed}\n{parts['summary']}")
        for part, text in parts.items() if write else ():
            between_marks(PAGE, f"{name} {part}", text)
    print(folder / "messy.md")


def _folder_of_real_tables(collections: list[str]) -> Path | None:
    if not collections:
        return None
    folder = Path(collections[0])
    absent = [f"{name}.csv" for name in REAL if not (folder / f"{name}.csv").is_file()]
    if absent or len(collections) > 1:
        sys.exit(
            f"--page messy takes one folder, with {', '.join(f'{name}.csv' for name in REAL)}; "
            f"{', '.join(absent) or 'nothing'} is missing in {folder}"
        )
    return folder
