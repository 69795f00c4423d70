"""Half of the columns ask, the other half is the index: how fast are answers, and do they hold the best."""

import time
from pathlib import Path

import numpy as np
import polars as pl

from covary.query.ask import Index, open_index
from covary.query.options import QueryOptions
from covary.sketching.sketch_types import Sketch
from experiments.indexes import is_index, write_sketches
from experiments.paper.workplace import Workplace, write

TOP, LEAST, RETRIEVED = 10, 10, 100
EVERYTHING, BY_OVERLAP = "all scored", f"top {RETRIEVED} by overlap"
MODES = {EVERYTHING: None, BY_OVERLAP: RETRIEVED}
ANSWERS = {"left": pl.Int64, "mode": pl.String, "joinable": pl.Int64, "ms": pl.Float64, "recall": pl.Float64}
WARM_UP = 20


def split(workplace: Workplace, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the columns at random into those that ask, of which some do, and those of the index."""
    order = np.random.default_rng([workplace.scale.seed, 2]).permutation(count)
    return order[: count // 2][: workplace.scale.timed_queries], np.sort(order[count // 2 :])


def answers(workplace: Workplace, truth: pl.DataFrame, tables: np.ndarray) -> pl.DataFrame:
    """Ask with a random half of the columns against the other half, n = 1024."""
    asking, corpus = split(workplace, tables.size)
    enough = truth.filter(pl.col("join_size") >= LEAST, pl.col("pearson").is_not_nan())
    true = np.zeros(tables.size)

    def make(place: Path) -> None:
        whole = open_index(workplace.index)
        half = workplace.folder / "index-of-half"
        if not is_index(half):
            write_sketches([whole.sketch_at(int(each)) for each in corpus], half)
        index = open_index(half)
        for left in asking[:WARM_UP]:
            _ask(index, whole.sketch_at(int(left)), np.empty(0, dtype=np.int64), None, true[corpus])
        found = []
        known = {left: rows for (left,), rows in enough.group_by("left")}
        for place_in_order, left in enumerate(asking.tolist()):
            sketch, own = whole.sketch_at(left), np.flatnonzero(tables[corpus] == tables[left])
            rows = known.get(left, enough.clear())
            true[:] = 0.0
            true[rows["right"].to_numpy()] = rows["pearson"].abs().to_numpy()
            # Taken in turns, since the second to ask finds its columns in the processor's caches.
            for mode in list(MODES)[:: 1 if place_in_order % 2 else -1]:
                found.append((left, mode, *_ask(index, sketch, own, MODES[mode], true[corpus])))
        write(pl.DataFrame(found, schema=ANSWERS, orient="row"), place)

    return workplace.stage("answers", make)


def _ask(
    index: Index, sketch: Sketch, own: np.ndarray, retrieve: int | None, true: np.ndarray
) -> tuple[int, float, float]:
    settings = QueryOptions(top=TOP, min_sample=LEAST, retrieve=retrieve)
    started = time.perf_counter()
    answer = index.answer(sketch, settings, own)
    took = (time.perf_counter() - started) * 1e3
    best = np.sort(true[true > 0])[::-1][:TOP]
    if not best.size:
        return answer.ranked.joinable, took, float("nan")
    # Columns that tie with the last of the best are as good as it.
    good = np.sum(true[answer.best] >= best[-1] - 1e-9) if answer.best.size else 0
    return answer.ranked.joinable, took, min(1.0, good / best.size)
