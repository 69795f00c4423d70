"""A real collection: any folder of tables, all its ⟨key, number⟩ columns, and the exact joins of them.

The columns are read and averaged by key in one Spark job; others join them, by key text that was hashed to 64
bits only after it was seen that no two texts share a hash.
"""

from functools import lru_cache
from itertools import combinations
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from covary import build_index
from covary.columns.key_text import holds_dates, write_dates, write_key_text
from covary.columns.profile import profile_columns
from covary.columns.unused_cells import Tallies
from covary.query.ask import Index, open_index
from covary.sketching.hashing import SCHEMES
from covary.sketching.number_columns import read_number_columns
from covary.sketching.open_table import open_table
from covary.statistics.correlation import SMALLEST_SAMPLE
from experiments.indexes import is_index
from experiments.paper.exact import SIZES, TRUTH, correlations_of
from experiments.paper.workplace import Workplace, on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"column": pl.Int64, "key": pl.String, "hash": pl.Int64, "number": pl.Float64}
LISTS = SIZES | {"pearson": pl.Float64}
TASKS = 64


def sketch_all(workplace: Workplace, spark: "SparkSession") -> None:
    """Index the folder as anyone would."""
    if not is_index(workplace.index):
        print(f"{workplace.name}: index", flush=True)
        index = build_index(str(workplace.tables), workplace.index, spark, key_text="exact", fresh=True)
        for path, problem in index.tables.filter(pl.col("problem").is_not_null())[
            "path", "problem"
        ].iter_rows():
            print(f"{workplace.name}: left out {path}: {problem}", flush=True)


def catalogue(index: Index) -> pl.DataFrame:
    """List the columns of an index by the numbers of their sketches."""
    parts = []
    first = 0
    for segment in index.segments:
        of_table = segment.segment.tables.select(
            pl.col("name").alias("table"), "path", pl.int_range(pl.len()).alias("place")
        )
        rows = segment.segment.sketches.select("key", "value", pl.col("table").cast(pl.Int64).alias("place"))
        rows = rows.with_columns(column=first + pl.int_range(pl.len()))
        parts.append(rows.join(of_table, on="place").select("column", "table", "path", "key", "value"))
        first += segment.sketch_count
    return pl.concat(parts).sort("column")


def columns(workplace: Workplace, spark: "SparkSession") -> Path:
    """Read every column of the index again, in full: its mean for each key, by the key's text."""
    tables = catalogue(open_index(workplace.index)).group_by("table", "path", maintain_order=True)
    items = tables.agg("column", "key", "value").drop("table")
    items = items.filter(pl.col("path").is_unique())  # of several tables in one zip none can be opened alone

    def make(place: Path) -> None:
        on_spark(spark, items, _columns_of_tables, COLUMNS, place, TASKS)
        _require_one_text_a_hash(spark, place)

    return workplace.made("columns", make)


def _columns_of_tables(tables: pl.DataFrame) -> pl.DataFrame:
    found = [pl.DataFrame(schema=COLUMNS)]
    for path, numbers, keys, values in tables.iter_rows():
        rows = pl.concat(open_table(path, list(dict.fromkeys([*keys, *values]))).batches)
        readings = {profile.name: profile.number for profile in profile_columns(rows)}
        for number, key, value in zip(numbers, keys, values, strict=True):
            read = read_number_columns(rows, {value: readings[value]}, Tallies())[value]
            write = write_dates if holds_dates(rows[key]) else write_key_text
            cells = pl.DataFrame({"key": write(rows[key]), "number": read})
            present = cells.filter(pl.col("key") != "", pl.col("number").is_finite())
            means = present.group_by("key").agg(pl.col("number").mean())
            hashes = SCHEMES["xxhash64"].identify([means["key"]])[0].hashes.view(np.int64)
            found.append(
                means.with_columns(column=pl.lit(number, pl.Int64), hash=pl.Series(hashes)).select(*COLUMNS)
            )
    return pl.concat(found)


def _require_one_text_a_hash(spark: "SparkSession", place: Path) -> None:
    texts = spark.read.parquet(str(place)).select("hash", "key").distinct()
    shared = texts.groupBy("hash").count().filter("count > 1").count()
    if shared:
        raise SystemExit(f"{shared} hashes stand for two keys each: joins by hash would not be exact")


class Columns:
    """All columns of a collection in full, by number, keys as hashes in ascending order."""

    def __init__(self, place: Path, count: int) -> None:
        rows = pl.read_parquet(place / "*.parquet", columns=["column", "hash", "number"]).sort(
            "column", "hash"
        )
        self.owner, self.keys, self.numbers = (rows[name].to_numpy() for name in rows.columns)
        self.count = count
        self.starts = np.searchsorted(self.owner, np.arange(self.count + 1))
        largest = np.zeros(count)
        np.maximum.at(largest, self.owner, np.abs(self.numbers))
        self._scaled = np.ldexp(
            self.numbers, -np.frexp(largest)[1][self.owner]
        )  # so that no square overflows
        self._by_key = np.argsort(self.keys, kind="stable")
        self._keys_in_order = self.keys[self._by_key]

    def size(self, column: int) -> int:
        """How many keys a column has."""
        return int(self.starts[column + 1] - self.starts[column])

    def of(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a column's keys and numbers."""
        mine = slice(self.starts[column], self.starts[column + 1])
        return self.keys[mine], self.numbers[mine]

    def join(self, left: int, right: int) -> tuple[np.ndarray, np.ndarray]:
        """Join two columns in full."""
        (left_keys, x), (right_keys, y) = self.of(left), self.of(right)
        _, in_left, in_right = np.intersect1d(left_keys, right_keys, assume_unique=True, return_indices=True)
        return x[in_left], y[in_right]

    def correlations_with(self, left: int) -> tuple[np.ndarray, np.ndarray]:
        """Join a column with all others at once: the size of each join, and its Pearson correlation."""
        keys, _ = self.of(left)
        numbers = self._scaled[self.starts[left] : self.starts[left + 1]]
        if not keys.size:
            return np.zeros(self.count, dtype=np.int64), np.full(self.count, np.nan)
        first = np.searchsorted(self._keys_in_order, keys)
        counts = np.searchsorted(self._keys_in_order, keys, side="right") - first
        ends = np.cumsum(counts)
        met = self._by_key[np.repeat(first - ends + counts, counts) + np.arange(ends[-1])]
        right, x, y = self.owner[met], np.repeat(numbers, counts), self._scaled[met]
        sizes = np.bincount(right, minlength=self.count)
        return sizes, np.bincount(
            right, _standardised(x, right, sizes) * _standardised(y, right, sizes), self.count
        )


def _standardised(values: np.ndarray, group: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Take the mean of its group off each value, and scale each group to length 1; NaN where constant."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(group, values, sizes.size) / sizes
        apart = values - means[group]
        norms = np.sqrt(np.bincount(group, apart * apart, sizes.size))
        norms[norms <= 1e-12 * np.sqrt(sizes) * np.abs(means)] = np.nan  # nothing but rounding
        return apart / norms[group]


@lru_cache(maxsize=1)
def read_columns(place: Path, count: int) -> Columns:
    """Read the columns once in a process."""
    return Columns(place, count)


def truth(workplace: Workplace, spark: "SparkSession") -> pl.DataFrame:
    """Join all 2-combinations of columns in full, or a sample of them where they are many, and measure."""
    place, count = columns(workplace, spark), open_index(workplace.index).sketch_count

    def join_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
        every = read_columns(place, count)
        found = []
        for left, right in pairs.iter_rows():
            x, y = every.join(left, right)
            if x.size >= SMALLEST_SAMPLE:
                sizes = (x.size, every.size(left), every.size(right))
                found.append((left, right, *sizes, *correlations_of(x, y)))
        return pl.DataFrame(found, schema=TRUTH, orient="row")

    def make(made: Path) -> None:
        on_spark(spark, chosen_combinations(workplace), join_pairs, TRUTH, made, TASKS)

    return workplace.stage("truth", make)


def chosen_combinations(workplace: Workplace) -> pl.DataFrame:
    """Choose pairs of columns, lower number first: all of them, or a random sample."""
    count, most = open_index(workplace.index).sketch_count, workplace.scale.combinations
    if comb(count, 2) <= most:
        pairs = np.array(list(combinations(range(count), 2)), dtype=np.int64).reshape(-1, 2)
    else:
        rng = np.random.default_rng([workplace.scale.seed, 0])
        number = np.sort(rng.choice(comb(count, 2), most, replace=False))
        right = (
            np.sqrt(8 * number + 1).astype(np.int64) + 1
        ) // 2  # pairs are numbered by their right column
        right -= right * (right - 1) // 2 > number
        pairs = np.stack([number - right * (right - 1) // 2, right], axis=1)
    return pl.DataFrame({"left": pairs[:, 0], "right": pairs[:, 1]})


def lists(workplace: Workplace, name: str, queries: np.ndarray, spark: "SparkSession") -> pl.DataFrame:
    """Join some columns each with all columns of other tables, in full, as a stage of this name."""
    place = columns(workplace, spark)
    tables = catalogue(open_index(workplace.index))["table"].to_numpy()

    def join_queries(asking: pl.DataFrame) -> pl.DataFrame:
        every = read_columns(place, tables.size)
        found = [pl.DataFrame(schema=LISTS)]
        key_counts = np.diff(every.starts)
        for left in asking["left"]:
            sizes, pearson = every.correlations_with(left)
            right = np.flatnonzero((sizes >= SMALLEST_SAMPLE) & (tables[: every.count] != tables[left]))
            rows = {"right": right, "join_size": sizes[right], "right_keys": key_counts[right]}
            mine = pl.DataFrame(rows | {"pearson": pearson[right]})
            mine = mine.with_columns(left=pl.lit(left), left_keys=pl.lit(int(key_counts[left])))
            found.append(mine.select(*LISTS).cast(LISTS))
        return pl.concat(found)

    def make(made: Path) -> None:
        on_spark(spark, pl.DataFrame({"left": queries.astype(np.int64)}), join_queries, LISTS, made, TASKS)

    return workplace.stage(name, make)
