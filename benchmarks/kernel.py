"""Sketching 10 M rows of 1 M distinct text keys in one process, against a Polars group-by of the frame."""

from functools import partial

import numpy as np
import polars as pl

import covary
from benchmarks.measure import Result, best_in_turns

ROWS, KEYS = 10_000_000, 1_000_000


def many_rows(rows: int = ROWS, keys: int = KEYS, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = pl.DataFrame({"key": rng.integers(0, keys, rows), "value": rng.normal(size=rows)})
    return numbers.with_columns(pl.format("key-{}", "key").alias("key"))


def sketch_against_group_by() -> list[Result]:
    """By raw keys, as the group-by has them; and by canonical ones, which are read and checked first."""
    frame = many_rows()
    results = []
    for keys, text, wanted in (("raw", "exact", 5), ("canonical", "canonical", 1)):
        ours, theirs = best_in_turns(
            partial(covary.sketch, frame, key="key", value="value", key_text=text),
            lambda: frame.group_by("key").agg(pl.col("value").mean()),
        )
        results.append(
            Result(
                f"sketching 10 M rows, 1 M {keys} text keys, n=1024: times faster than Polars group_by mean",
                theirs / ours,
                wanted,
                True,
                f"covary {ours:.2f} s, Polars {theirs:.2f} s",
            )
        )
    return results
