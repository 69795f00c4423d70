"""What sketches of several sizes say of each join that was measured in full."""

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from covary.query.ask import Index, open_index
from covary.statistics.correlation import SMALLEST_SAMPLE
from covary.statistics.intervals import INTERVALS, Sampled, interval_named
from covary.statistics.join import JoinedSample, join
from covary.statistics.measures import MEASURES
from experiments.indexes import read_index, smaller
from experiments.paper.workplace import Workplace, on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SKETCH_SIZES = (64, 128, 256, 512, 1024)
ESTIMATORS = ("pearson", "spearman", "rin", "qn", "pm1")
TASKS = 64
ESTIMATES = {
    "left": pl.Int64,
    "right": pl.Int64,
    "size": pl.Int64,  # most keys of a sketch
    "sample": pl.Int64,  # keys in both
    "exact": pl.Boolean,
    **dict.fromkeys(ESTIMATORS, pl.Float64),
    **{f"{name} {end}": pl.Float64 for name in INTERVALS for end in ("low", "high")},
}


def estimates(workplace: Workplace, truth: pl.DataFrame, spark: "SparkSession") -> pl.DataFrame:
    """Estimate every join of the truth from sketches of every size, by every estimator and interval."""
    index, seed = workplace.index, workplace.scale.seed
    open_index(index)  # checked once, not by every task

    def estimate_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
        found = []
        for left, right in pairs.iter_rows():
            found += _estimates_of(read_index(index), left, right, seed)
        return pl.DataFrame(found, schema=ESTIMATES, orient="row")

    def make(place: Path) -> None:
        on_spark(spark, truth.select("left", "right"), estimate_pairs, ESTIMATES, place, TASKS)

    return workplace.stage("estimates", make)


def _estimates_of(index: Index, left: int, right: int, seed: int) -> list[tuple[object, ...]]:
    whole_left, whole_right = index.sketch_at(left), index.sketch_at(right)
    rows: list[tuple[object, ...]] = []
    of_whole: tuple[object, ...] | None = None  # a join seen whole gives larger sketches nothing to add
    for size in SKETCH_SIZES:
        sample = join(smaller(whole_left, size), smaller(whole_right, size))
        if sample.size < SMALLEST_SAMPLE:
            continue
        measured = of_whole or _measured(sample, seed)
        of_whole = measured if sample.exact else None
        rows.append((left, right, size, sample.size, sample.exact, *measured))
    return rows


def _measured(sample: JoinedSample, seed: int) -> tuple[object, ...]:
    x, y = sample.x, sample.y
    values = [MEASURES[name].of(x, y, seed) for name in ESTIMATORS]
    ends: list[float] = []
    for name in INTERVALS:
        ranges = sample.x_range, sample.y_range
        given = Sampled(x, y, values[0], "pearson", sample.keys.join_size.value, *ranges, seed=seed)
        known = values[0] == values[0]
        found = interval_named(name, given) if known else None
        ends += [found.low, found.high] if found else [float("nan")] * 2
    return (*values, *ends)
