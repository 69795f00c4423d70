"""How well each ranker orders the columns that join with a query, query by query."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from covary.query.ask import Index, open_index
from covary.query.candidates import describe_candidates
from covary.statistics.correlation import SMALLEST_SAMPLE
from covary.statistics.ranking import RANKERS
from experiments.indexes import is_index, read_index, smaller, write_sketches
from experiments.metrics import EXACT, METRICS, metrics_of
from experiments.paper.workplace import Workplace, on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZE = 256
TASKS = 64
LENGTHS = {"joinable": pl.Int64, "listed": pl.Int64}  # columns that join in full, and of these in the list
RANKINGS = {"left": pl.Int64, "ranker": pl.String} | LENGTHS | dict.fromkeys(METRICS, pl.Float64)


def index_of(workplace: Workplace, size: int) -> Path:
    """Return the same index with smaller sketches, making it if it is not there."""
    place = workplace.folder / f"index-{size}"
    if not is_index(place):
        whole = open_index(workplace.index)
        sketches = [smaller(whole.sketch_at(number), size) for number in range(whole.sketch_count)]
        write_sketches(sketches, place)
    return place


def rankings(workplace: Workplace, lists: pl.DataFrame, spark: "SparkSession") -> pl.DataFrame:
    """Rank the list of every query by every ranker, and compare with the truth."""
    place, seed = index_of(workplace, SIZE), workplace.scale.seed
    items = lists.group_by("left").agg("right", "join_size", "left_keys", "pearson")

    def rank_queries(queries: pl.DataFrame) -> pl.DataFrame:
        index = read_index(place)
        found = [
            row for query in queries.iter_rows(named=True) for row in _metrics_of_query(index, query, seed)
        ]
        return pl.DataFrame(found, schema=RANKINGS, orient="row")

    def make(made: Path) -> None:
        on_spark(spark, items, rank_queries, RANKINGS, made, TASKS)

    return workplace.stage("rankings", make)


def _metrics_of_query(index: Index, query: dict, seed: int) -> list[tuple[object, ...]]:
    right = np.array(query["right"])
    order = np.argsort(right)
    right = right[order]
    pearson, shared = np.array(query["pearson"])[order], np.array(query["join_size"])[order]
    sketch = index.sketch_at(query["left"])
    scored = index.score(sketch)
    scored = scored.only((scored.sample_sizes >= SMALLEST_SAMPLE) & np.isin(scored.sketches, right))
    if scored.sketches.size < 2:
        return []
    places = np.searchsorted(right, scored.sketches)
    truth = np.abs(np.nan_to_num(pearson[places]))
    # Each query draws anew: else the columns of one table, with the same list, would share one random order.
    own_seed = seed * 10**6 + query["left"]
    given = describe_candidates(index, [sketch], scored, own_seed, lambda done, total: None)
    scores = {name: ranker.score(given) for name, ranker in RANKERS.items()}
    containment = shared[places] / query["left_keys"][0]
    scores[EXACT] = np.where(np.isnan(scored.correlations), np.nan, containment)
    return [
        (
            query["left"],
            name,
            right.size,
            scored.sketches.size,
            *metrics_of(truth, of_ranker, scored.sketches),
        )
        for name, of_ranker in scores.items()
    ]
