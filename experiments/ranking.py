"""How well each ranker orders the columns of real collections, against the exact correlations."""

from pathlib import Path

import numpy as np

from covary.listing import candidate_list
from covary.ranking import RANKERS
from experiments.lakes import Lake, Question
from experiments.writing import between_marks, table

PAGE = Path(__file__).parents[1] / "docs" / "ranking.md"
SIZES = (64, 256)
METRICS = ("MAP(r>.75)", "MAP(r>.5)", "nDCG@5", "nDCG@10")
EXACT = "jc-exact"


def average_precision(relevant: np.ndarray) -> float:
    """Of a ranked list; NaN when nothing in it is relevant."""
    if not relevant.any():
        return float("nan")
    found = np.cumsum(relevant) / np.arange(1, relevant.size + 1)
    return float(found[relevant].mean())


def gain(truth: np.ndarray, count: int) -> float:
    """Normalised discounted cumulative gain of the first so many; NaN when there is nothing to gain."""
    discounts = 1 / np.log2(np.arange(min(count, truth.size)) + 2)
    best = float(np.sort(truth)[::-1][:count] @ discounts)
    return float(truth[:count] @ discounts) / best if best > 0 else float("nan")


def scores_of(lake: Lake, question: Question, ranker: str) -> np.ndarray:
    if ranker == EXACT:
        return question.containment
    given = candidate_list(lake.index, question.sketch, question.candidates, 0, lambda done, total: None)
    return RANKERS[ranker](given)


def measure(lake: Lake, question: Question, ranker: str) -> list[float]:
    scores = np.nan_to_num(scores_of(lake, question, ranker), nan=-np.inf)
    truth = question.truth[np.lexsort((question.candidates.sketches, -scores))]
    return [average_precision(truth > 0.75), average_precision(truth > 0.5), gain(truth, 5), gain(truth, 10)]


def main(folders: list[str]) -> None:
    """Rank every query of every collection by every ranker, and put the table into docs/ranking.md."""
    rankers = (*RANKERS, EXACT)
    columns: dict[str, dict[str, str]] = {}
    for folder in folders:
        for size in SIZES:
            lake = Lake(Path(folder), size)
            questions = [question for question in lake.questions() if question.truth.size > 1]
            heading = f"{lake.name}, n = {size} ({len(questions)} queries)"
            columns[heading] = {}
            for ranker in rankers:
                means = np.nanmean([measure(lake, question, ranker) for question in questions], axis=0)
                columns[heading][ranker] = " ".join(f"{mean:.3f}".lstrip("0") for mean in means)
                print(f"{heading}: {ranker} {columns[heading][ranker]}", flush=True)
    rows = [(ranker, *(found[ranker] for found in columns.values())) for ranker in rankers]
    between_marks(PAGE, "ranking", f"{', '.join(METRICS)}:\n\n{table(('ranker', *columns), rows)}")
