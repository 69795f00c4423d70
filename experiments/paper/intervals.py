"""How often each interval holds the correlation of the whole join, on the collections themselves."""

import polars as pl

from covary.statistics.intervals import INTERVALS
from experiments.artefact import Artefact, Measured
from experiments.measured.coverage import PAGE as GRID
from experiments.writing import part_of, table

SIZES, LEAST = (64, 256, 1024), 10


def intervals(collections: list[Measured]) -> Artefact:
    rows = []
    for collection in collections:
        known = collection.compared.filter(
            ~pl.col("exact"),
            pl.col("sample") >= LEAST,
            pl.col("pearson").is_not_nan(),
            pl.col("true pearson").is_not_nan(),
        )
        for size in SIZES:
            of_size = known.filter(pl.col("size") == size)
            rows.append(
                (collection.name, size, f"{of_size.height:,}", *(_cell(of_size, name) for name in INTERVALS))
            )
    text = (
        f"Joins not seen whole, on {LEAST} shared keys or more: how often the interval at 95 % holds the"
        " truth, and its mean length.\n\n"
    )
    heading = ("collection", "k", "joins", *INTERVALS)
    page = "docs/measured/coverage.md (`./run experiments --page coverage`)"
    grid = f"From {page}, over populations of known shape."
    text += f"{table(heading, rows)}\n\n{grid} {part_of(GRID, 'summary')}"
    return Artefact("Intervals", text, "The paper reports no coverage.")


def _cell(rows: pl.DataFrame, name: str) -> str:
    if rows.is_empty():
        return "–"
    low, high, true = rows[f"{name} low"], rows[f"{name} high"], rows["true pearson"]
    rounding = 1e-9
    held = ((low - rounding <= true) & (true <= high + rounding)).mean()
    return f"{held:.1%} ({(high - low).mean():.2f})"
