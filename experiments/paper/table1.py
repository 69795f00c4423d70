"""Table 1: MAP and nDCG of every ranker, with the improvement over exact containment."""

import numpy as np
import polars as pl

from experiments.artefact import Artefact, Measured
from experiments.metrics import EXACT, METRICS
from experiments.paper.rankings import SIZE
from experiments.writing import table

RESAMPLES, SEED = 2_000, 1


def table1(collections: list[Measured]) -> Artefact:
    parts = []
    for collection in collections:
        if collection.rankings is None or collection.rankings.is_empty():
            continue
        of_ranker = {name: rows for (name,), rows in collection.rankings.sort("left").group_by("ranker")}
        queries = of_ranker[EXACT].height
        rows = [
            (name, *(_cell(found[metric], of_ranker[EXACT][metric]) for metric in METRICS))
            for name, found in sorted(
                of_ranker.items(), key=lambda each: -sum(_mean(each[1][metric]) for metric in METRICS)
            )
        ]
        first = of_ranker[EXACT]
        share = first["listed"].sum() / first["joinable"].sum()
        said = (
            f"**{collection.name}**, {queries} queries; {share:.1%} of the columns that join are in the lists"
        )
        parts.append(f"{said}\n\n{table(('ranker', *METRICS), rows)}")
    text = (
        f"Sketches of {SIZE} keys; every column of another table that shares 3 of them with the query is in"
        " the list. Mean over queries, its 95 % interval by resampling queries, and the improvement over"
        " `jc-exact`, the exact containment.\n\n"
    )
    return Artefact("Table 1: ranking", text + "\n\n".join(parts), PUBLISHED)


def _mean(scores: pl.Series) -> float:
    """The mean of what is known; 0 when nothing is."""
    return scores.drop_nans().mean() or 0.0


def _cell(scores: pl.Series, baseline: pl.Series) -> str:
    values = scores.to_numpy()
    known = values[~np.isnan(values)]
    if not known.size:
        return "–"
    drawn = np.random.default_rng(SEED).integers(0, known.size, (RESAMPLES, known.size))
    low, high = np.percentile(known[drawn].mean(axis=1), (2.5, 97.5))
    better = known.mean() / max(_mean(baseline), 1e-9) - 1
    return f"{known.mean():.3f} [{low:.3f}, {high:.3f}] {round(better, 2) + 0.0:+.0%}"


# Table 1 of the paper (New York's tables of 2019): score, improvement over jc.
_SCORES = {
    "s4 (r·ci_h)": (".529 +193 %", ".467 +100 %", ".705 +50 %", ".841 +17 %"),
    "s3 (r_b·ci_b)": (".516 +186 %", ".428 +83 %", ".714 +52 %", ".845 +18 %"),
    "s1 (r)": (".507 +181 %", ".452 +93 %", ".699 +48 %", ".843 +18 %"),
    "s2 (r·se_z)": (".420 +133 %", ".472 +102 %", ".689 +46 %", ".832 +16 %"),
    "jc (exact)": (".180", ".234", ".471", ".717"),
    "jc (estimated)": (".172 -5 %", ".239 +2 %", ".480 +2 %", ".726 +1 %"),
    "random": (".161 -11 %", ".202 -14 %", ".481 +2 %", ".724 +1 %"),
}
PUBLISHED = table(("ranker", *METRICS), ((name, *scores) for name, scores in _SCORES.items()))
