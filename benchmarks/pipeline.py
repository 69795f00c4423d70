"""The Spark pipeline against Spark's own scan, and against a plain loop that only reads."""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from pyspark.sql import SparkSession

import covary
from benchmarks.kernel import many_rows
from benchmarks.measure import Result, best_in_turns
from covary.pipeline.session import start_session

FILES, FILE_ROWS, NUMBERS = 1_000, 1_330, 6


def _session_as_spark_makes_it() -> SparkSession:
    """Spark with its own settings: ours keep the JVM small, and would slow the scan we are held to."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    return SparkSession.builder.master("local[*]").config(map=quiet).getOrCreate()


def parquet_against_scan() -> Result:
    spark = _session_as_spark_makes_it()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.parquet")
        many_rows().write_parquet(file, row_group_size=1_000_000)

        def scan_and_sum() -> object:
            return spark.read.parquet(str(file)).selectExpr("sum(length(key))", "sum(value)").collect()

        def build() -> object:
            return covary.build_index(file, into=Path(folder, "index"), spark=spark, fresh=True)

        ours, theirs = best_in_turns(build, scan_and_sum)
    return Result(
        "pipeline on a 10 M-row Parquet file: time relative to Spark's own scan and sum of the two columns",
        ours / theirs,
        1.3,
        False,
        f"covary {ours:.2f} s, Spark {theirs:.2f} s",
    )


def write_small_files(folder: Path, seed: int = 1) -> int:
    """2 keys and 6 numbers each, about 93 KB; returns the bytes written."""
    rng = np.random.default_rng(seed)
    days = pl.date_range(pl.date(2010, 1, 1), pl.date(2019, 12, 31), eager=True).cast(pl.String)
    for number in range(FILES):
        pl.DataFrame(
            {
                "date": days.gather(rng.integers(0, days.len(), FILE_ROWS)),
                "place": pl.select(
                    pl.format("place {}", pl.lit(pl.Series(rng.integers(0, 5_000, FILE_ROWS))))
                ).to_series(),
                **{f"number_{n}": rng.normal(100, 25, FILE_ROWS).round(4) for n in range(NUMBERS)},
            }
        ).write_csv(folder / f"table_{number:04}.csv")
    return sum(file.stat().st_size for file in folder.iterdir())


def small_files_against_reading() -> list[Result]:
    """With raw keys, as reading alone is compared with; and with all that canonical keys bring."""
    spark = start_session()
    with tempfile.TemporaryDirectory() as folder:
        tables = Path(folder, "tables")
        tables.mkdir()
        size = write_small_files(tables)
        paths = sorted(tables.iterdir())

        def read_all() -> None:
            for path in paths:
                pl.read_csv(path)

        def build(key_text: str) -> object:
            return covary.build_index(tables, Path(folder, key_text), spark, key_text=key_text, fresh=True)

        exact, theirs = best_in_turns(lambda: build("exact"), read_all)
        canonical, again = best_in_turns(lambda: build("canonical"), read_all)
    files = f"1,000 CSV files ({size / 1e6:.0f} MB, 2 keys x 6 numbers)"
    return [
        Result(
            f"{files}, raw keys, 12 sketches each: time relative to reading them in Polars",
            exact / theirs,
            2.5,
            False,
            f"covary {exact:.2f} s, Polars {theirs:.2f} s",
        ),
        Result(
            f"{files}, canonical keys, 42 sketches each: time relative to reading them in Polars",
            canonical / again,
            5.0,
            False,
            f"covary {canonical:.2f} s, Polars {again:.2f} s",
        ),
    ]
