"""Figure 4: the error of each estimator by how many keys the two sketches share."""

from itertools import pairwise

import numpy as np
import polars as pl

from experiments.artefact import Artefact, Measured, panels
from experiments.paper.estimates import ESTIMATORS, SKETCH_SIZES
from experiments.writing import table

EDGES = (3, 5, 10, 20, 40, 80, 160, 320, 640, 1025)
TICKS = (3, 10, 30, 100, 300, 1000)
FEWEST = 5  # joins in a bin, for its error to be shown


def figure4(collections: list[Measured]) -> Artefact:
    picture, places = panels(len(collections), len(SKETCH_SIZES), 2.4, 2.4)
    parts = []
    for collection in collections:
        cut = collection.compared.filter(~pl.col("exact"))
        rows = []
        for size in SKETCH_SIZES:
            panel = places.pop(0)
            of_size = cut.filter(pl.col("size") == size)
            for estimator in ESTIMATORS:
                errors = errors_by_sample(of_size, estimator)
                panel.plot(EDGES[:-1], errors, marker=".", label=estimator)
                rows.append((size, estimator, *(_shown(error) for error in errors)))
            panel.set_xscale("log")
            panel.set_xticks(TICKS, map(str, TICKS))
            panel.minorticks_off()
            panel.set(xlim=(2.5, 1200), ylim=(0, 1), title=f"{collection.name}, k = {size}")
            panel.set(xlabel="keys in both sketches", ylabel="RMSE")
        panel.legend(fontsize=6)
        bins = [f"{low} to {high - 1}" for low, high in pairwise(EDGES)]
        parts.append(f"**{collection.name}**\n\n{table(('k', 'estimator', *bins), rows)}")
    text = (
        "RMSE by the keys that the two sketches share, over joins not seen whole (where one was, the error"
        " is 0).\n\n"
    )
    return Artefact("Figure 4: error by sample size", text + "\n\n".join(parts), PUBLISHED, picture)


def errors_by_sample(rows: pl.DataFrame, estimator: str) -> list[float]:
    """Root mean squared errors, one for each bin of sample sizes."""
    truth = rows["true pearson" if estimator == "pm1" else f"true {estimator}"].to_numpy()
    error = rows[estimator].to_numpy() - truth
    known = ~np.isnan(error)
    which = np.digitize(rows["sample"].to_numpy(), EDGES) - 1
    found = []
    for place in range(len(EDGES) - 1):
        mine = error[known & (which == place)]
        found.append(float(np.sqrt(np.mean(mine**2))) if mine.size >= FEWEST else float("nan"))
    return found


def _shown(error: float) -> str:
    return "–" if np.isnan(error) else f"{error:.3f}".lstrip("0")


PUBLISHED = (
    "The paper shows lines for New York's tables: the error falls as the intersection grows, for all"
    " estimators and sizes, and settles at roughly 0.1; Qn has spikes."
)
