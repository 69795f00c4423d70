"""What it costs to keep an index up to date, and to compare all columns of one."""

import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from pyspark.sql import SparkSession

import covary
from benchmarks.measure import Result, seconds
from covary.pipeline.session import start_session

TABLES, NEW_SHARE, ROWS = 4_000, 0.01, 1_200
PAIR_COLUMNS, PAIR_ROWS, DOMAIN, COLUMNS_PER_TABLE = 10_000, 5_000, 20_000, 4
JOINED_COLUMNS = (40, 80, 160)  # by full joins: as many as can be waited for
ROUNDS = 3


def write_table(file: Path, seed: int) -> None:
    """2 keys and 4 numbers."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2013-01-01") + rng.integers(0, 3650, ROWS)
    numbers = {f"number_{n}": rng.normal(100, 25, ROWS).round(4) for n in range(4)}
    keys = {"day": days, "place": [f"place {n}" for n in rng.integers(0, 5000, ROWS)]}
    pl.DataFrame(keys | numbers).write_csv(file)


def adding_against_building() -> Result:
    """The time to add 1 % of new tables, as a share of the time to build all of them, in one session."""
    spark = start_session()
    new = int(TABLES * NEW_SHARE)
    with tempfile.TemporaryDirectory() as folder:
        tables, index = Path(folder, "tables"), Path(folder, "index")
        tables.mkdir()
        for number in range(TABLES):
            write_table(tables / f"{number:05}.csv", number)
        covary.build_index(tables, Path(folder, "warm-up"), spark)
        full, added = [], []
        for number in range(ROUNDS):
            full.append(seconds(lambda: covary.build_index(tables, index, spark, fresh=True)))
            for place in range(new):
                write_table(tables / f"new-{number}-{place}.csv", 10**6 + number * new + place)
            added.append(seconds(lambda: covary.build_index(None, index, spark)))
            for file in tables.glob("new-*"):
                file.unlink()
    return Result(
        f"adding {new} tables to an index of {TABLES:,}: share of the time of a full build",
        min(added) / min(full),
        0.03,
        False,
        f"adding {min(added):.2f} s, building all {min(full):.1f} s",
    )


def write_columns(folder: Path, columns: int, seed: int = 5) -> None:
    """Write tables of one domain, so that all of their columns join."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    common = rng.normal(size=DOMAIN)
    for number in range(-(-columns // COLUMNS_PER_TABLE)):
        kept = rng.choice(DOMAIN, PAIR_ROWS, replace=False)
        shares = rng.random(COLUMNS_PER_TABLE) * 0.6
        values = {
            f"v{n}": share * common[kept] + np.sqrt(1 - share**2) * rng.normal(size=PAIR_ROWS)
            for n, share in enumerate(shares)
        }
        pl.DataFrame({"key": [f"key {n}" for n in kept], **values}).write_parquet(
            folder / f"{number:05}.parquet"
        )


def pairs_against_full_joins() -> Result:
    """The time for a pair of columns by full joins in Spark SQL, over that by `covary pairs`, index built."""
    spark = start_session()
    with tempfile.TemporaryDirectory() as folder:
        tables, index = Path(folder, "tables"), Path(folder, "index")
        write_columns(tables, PAIR_COLUMNS)
        covary.build_index(tables, index, spark, keys=["key"], size=256)
        started = time.perf_counter()
        found = covary.spark.pairs(index, 1000, spark)
        ours = (time.perf_counter() - started) / found.compared
        sql = [(count, full_joins(tables, count, spark)) for count in JOINED_COLUMNS]
    joined, took = sql[-1][1]
    theirs = took / joined
    shown = ", ".join(f"{count} columns {s:.1f} s" for count, (_, s) in sql)
    return Result(
        f"pairs of {found.columns:,} columns ({found.compared:,} compared): times faster than full joins in "
        f"Spark SQL, per pair",
        theirs / ours,
        50,
        True,
        f"covary {ours * found.compared:.0f} s; Spark SQL: {shown}",
    )


def full_joins(tables: Path, columns: int, spark: SparkSession) -> tuple[int, float]:
    """Correlate every pair of columns of different tables by one self-join on the key; pairs and seconds."""
    files = sorted(map(str, tables.iterdir()))[: columns // COLUMNS_PER_TABLE]
    rows = spark.read.parquet(*files).selectExpr("input_file_name() AS file", "*")
    stacked = ", ".join(f"'v{n}', v{n}" for n in range(COLUMNS_PER_TABLE))
    rows.selectExpr(
        "file", "key", f"stack({COLUMNS_PER_TABLE}, {stacked}) AS (name, value)"
    ).createOrReplaceTempView("long")
    query = """
        SELECT a.file, a.name, b.file AS other, b.name AS other_name, corr(a.value, b.value) AS r
        FROM long a JOIN long b ON a.key = b.key AND a.file < b.file
        GROUP BY a.file, a.name, b.file, b.name
    """
    started = time.perf_counter()
    found = spark.sql(query).count()
    return found, time.perf_counter() - started
