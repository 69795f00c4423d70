"""Synthetic bivariate normal tables (paper, section 5.1): pairs of tables with a known correlation.

The rows of a pair are a function of the seed and the pair's number, so they need not be stored: every task
that wants them makes them again.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from covary.columns.key_text import NORMALISERS
from covary.sketching.kernel import finish, sketch_rows
from covary.sketching.key_columns import exact_key
from covary.sketching.sketch_types import Sketch, SketchConfig
from experiments.indexes import SKETCHES, is_index, sketch_row, sketches_from, write_sketches
from experiments.paper.exact import TRUTH, correlations_of
from experiments.paper.workplace import Scale, Workplace, on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY_LETTERS = 16  # so many that no two of a table's random keys are equal
TASKS = 200


@dataclass(frozen=True, slots=True, eq=False)
class TablePair:
    """T_X and T_Y: T_Y holds a random part of T_X's keys."""

    left: pl.DataFrame
    right: pl.DataFrame


def table_pair(number: int, scale: Scale) -> TablePair:
    """Make a pair of tables: n up to 500,000 rows, r in (-1, 1), and a share c of the keys in both."""
    rng = np.random.default_rng([scale.seed, number])
    rows = int(rng.integers(1, scale.sbn_rows))
    r, c = rng.uniform(-1, 1), rng.uniform(0, 1)
    x, noise = rng.normal(size=(2, rows))
    left = pl.DataFrame({"key": _random_keys(rows, rng), "number": x})
    y = pl.DataFrame({"key": left["key"], "number": r * x + np.sqrt(1 - r * r) * noise})
    kept = rng.choice(rows, max(1, round(rows * c)), replace=False)  # a table without rows is none
    return TablePair(left, y[kept])


def _random_keys(count: int, rng: np.random.Generator) -> pl.Series:
    letters = rng.integers(ord("a"), ord("z") + 1, (count, KEY_LETTERS), dtype=np.uint8)
    starts = np.arange(count + 1, dtype=np.int32) * KEY_LETTERS
    return pl.Series(pa.StringArray.from_buffers(count, pa.py_buffer(starts), pa.py_buffer(letters)))


def sketch_all(workplace: Workplace, spark: "SparkSession") -> None:
    """Sketch both sides of every pair on Spark; sketch 2i is of T_X of pair i, 2i + 1 of T_Y."""
    config = SketchConfig(normaliser=NORMALISERS["exact"])

    def sketch_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
        made = []
        for number in pairs["pair"]:
            tables = table_pair(number, workplace.scale)
            for side, rows in enumerate((tables.left, tables.right)):
                made.append(sketch_row(2 * number + side, _sketch(f"{number} {'XY'[side]}", rows, config)))
        return pl.DataFrame(made, schema=SKETCHES)

    def make(place: Path) -> None:
        on_spark(spark, _numbers(workplace), sketch_pairs, SKETCHES, place, TASKS)

    rows = workplace.stage("sketches", make)
    if not is_index(workplace.index):
        write_sketches(list(sketches_from(rows, config)), workplace.index)


def _sketch(name: str, rows: pl.DataFrame, config: SketchConfig) -> Sketch:
    return finish(sketch_rows(rows, [exact_key("key")], {"number": rows["number"]}, config, name), config)[0]


def _numbers(workplace: Workplace) -> pl.DataFrame:
    return pl.DataFrame({"pair": range(workplace.scale.sbn_pairs)})


def truth(workplace: Workplace, spark: "SparkSession") -> pl.DataFrame:
    """Join every pair in full, and measure the join."""

    def join_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
        found = []
        for number in pairs["pair"]:
            tables = table_pair(number, workplace.scale)
            joined = tables.left.join(tables.right, on="key", suffix=" of Y")
            x, y = joined["number"].to_numpy(), joined["number of Y"].to_numpy()
            sizes = (joined.height, tables.left.height, tables.right.height)
            found.append((2 * number, 2 * number + 1, *sizes, *correlations_of(x, y)))
        return pl.DataFrame(found, schema=TRUTH, orient="row")

    return workplace.stage(
        "truth", lambda place: on_spark(spark, _numbers(workplace), join_pairs, TRUTH, place, TASKS)
    )
