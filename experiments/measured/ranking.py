"""How well each ranker orders the columns of real collections, against the exact correlations."""

from pathlib import Path

import numpy as np

from covary.query.candidates import describe_candidates
from covary.statistics.ranking import RANKERS
from experiments.measured.lakes import Lake, Question
from experiments.metrics import EXACT, METRICS, metrics_of
from experiments.writing import between_marks, table

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "ranking.md"
SIZES = (64, 256)


def scores_of(lake: Lake, question: Question, ranker: str) -> np.ndarray:
    if ranker == EXACT:
        return question.containment
    given = describe_candidates(
        lake.index, [question.sketch], question.candidates, 0, lambda done, total: None
    )
    return RANKERS[ranker].score(given)


def measure(lake: Lake, question: Question, ranker: str) -> list[float]:
    scores = scores_of(lake, question, ranker)
    return metrics_of(question.truth, scores, question.candidates.sketches)


def main(folders: list[str]) -> None:
    """Rank every query of every collection by every ranker, and write docs/measured/ranking.md."""
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
