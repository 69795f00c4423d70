"""Half of the columns ask, the other half is the index: how fast are answers, and do they hold the best."""

import time
from pathlib import Path

import numpy as np
import polars as pl

from covary.query import Index, Settings, open_index
from covary.sketches import Sketch
from experiments.folders import read_columns
from experiments.indexes import write_sketches
from experiments.workplace import Workplace, write

TOP, LEAST, RETRIEVED = 10, 10, 100
EVERYTHING, BY_OVERLAP = "all scored", f"top {RETRIEVED} by overlap"
MODES = {EVERYTHING: None, BY_OVERLAP: RETRIEVED}
ANSWERS = {"left": pl.Int64, "mode": pl.String, "joinable": pl.Int64, "ms": pl.Float64, "recall": pl.Float64}
WARM_UP = 20


def answers(workplace: Workplace, columns: Path, tables: np.ndarray) -> pl.DataFrame:
    """Ask with a random half of the columns against the other half, n = 1024."""
    rng = np.random.default_rng([workplace.scale.seed, 2])
    order = rng.permutation(tables.size)
    asking, corpus = order[: tables.size // 2], np.sort(order[tables.size // 2 :])

    def make(place: Path) -> None:
        whole, every = open_index(workplace.index), read_columns(columns)
        sketches = [whole.sketch_at(int(number)) for number in corpus]
        index = write_sketches(sketches, workplace.folder / "index-of-half")
        found = []
        chosen = asking[: workplace.scale.timed_queries]
        for place_in_order, left in enumerate([*chosen[:WARM_UP], *chosen]):
            sketch = whole.sketch_at(int(left))
            own = np.flatnonzero(tables[corpus] == tables[left])
            sizes, pearson = every.correlations_with(int(left))
            known = (sizes >= LEAST) & (tables != tables[left]) & ~np.isnan(pearson)
            true = np.where(known, np.abs(np.nan_to_num(pearson)), 0.0)[corpus]
            for mode, retrieve in MODES.items():
                row = _ask(index, sketch, own, retrieve, true)
                if place_in_order >= len(chosen[:WARM_UP]):
                    found.append((int(left), mode, *row))
        write(pl.DataFrame(found, schema=ANSWERS, orient="row"), place)

    return workplace.stage("answers", make)


def _ask(
    index: Index, sketch: Sketch, own: np.ndarray, retrieve: int | None, true: np.ndarray
) -> tuple[int, float, float]:
    settings = Settings(top=TOP, min_sample=LEAST, retrieve=retrieve)
    started = time.perf_counter()
    answer = index.answer(sketch, settings, own)
    took = (time.perf_counter() - started) * 1e3
    best = np.sort(true[true > 0])[::-1][:TOP]
    if not best.size:
        return answer.joinable, took, float("nan")
    # Columns that tie with the last of the best are as good as it.
    good = np.sum(true[answer.best] >= best[-1] - 1e-9) if answer.best.size else 0
    return answer.joinable, took, min(1.0, good / best.size)
