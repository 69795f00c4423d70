"""Table 2: the time of a join, of Pearson's and of Spearman's correlation, on all rows and on sketches."""

import numpy as np

from experiments.artefact import Artefact, Measured
from experiments.paper.timings import BY_INDEX, TIMED
from experiments.writing import table

PERCENTILES = (75, 90, 99, 99.9)
ROWS = ("mean", "std. dev.", *(f"{share:g} %" for share in PERCENTILES))


def table2(collections: list[Measured]) -> Artefact:
    parts = []
    for collection in collections:
        if collection.timings.is_empty():
            continue
        columns = [_column(collection.timings[name].to_numpy()) for name in (*TIMED, *BY_INDEX)]
        rows = [(name, *(f"{column[place]:.3f}" for column in columns)) for place, name in enumerate(ROWS)]
        heading = f"**{collection.name}**, {collection.timings.height} joins, milliseconds"
        parts.append(f"{heading}\n\n{table(('', *TIMED, *BY_INDEX), rows)}")
    text = (
        "All rows: Polars, in memory, columns that were averaged by key before. Sketches: of 1,024 keys,"
        " in memory; the set statistics that every joined sample carries are part of its time. *index*: what"
        " a column costs a query, which joins and scores all that share a key at once.\n\n"
    )
    return Artefact("Table 2: running time", text + "\n\n".join(parts), PUBLISHED)


def _column(times: np.ndarray) -> list[float]:
    return [float(times.mean()), float(times.std()), *np.percentile(times, PERCENTILES).tolist()]


# Table 2 of the paper, milliseconds, in the order of TIMED.
_TIMES = (
    (42.219, 0.240, 8.494, 0.026, 0.000, 0.004),
    (367.696, 9.314, 134.357, 5.618, 0.042, 0.279),
    (0.231, 0.005, 0.141, 0.003, 0.000, 0.002),
    (7.038, 0.011, 0.154, 0.006, 0.001, 0.004),
    (1360.605, 0.385, 29.583, 0.012, 0.003, 0.013),
    (4021.838, 51.278, 2731.154, 0.021, 0.007, 0.033),
)
PUBLISHED = table(("", *TIMED), ((name, *times) for name, times in zip(ROWS, _TIMES, strict=True)))
