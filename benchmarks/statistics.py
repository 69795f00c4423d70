"""Correlations and intervals of 10,000 candidates of 1,024 pairs, and resampling, against plain loops."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import covary
from benchmarks.measure import Result, best_in_turns
from benchmarks.queries import HASH_OF_ORDER
from covary.sketching.sketch_types import ColumnPair, Counts, Sketch, SketchConfig
from covary.statistics.bootstrap import resample
from covary.statistics.influence import influence_ends
from experiments.indexes import write_sketches

CANDIDATES, SIZE, DRAWS = 10_000, 1024, 599


def alike_sketches(count: int = CANDIDATES, seed: int = 1) -> list[Sketch]:
    """Sketches of one key domain, that all share all of their keys."""
    rng = np.random.default_rng(seed)
    keys = np.sort(rng.integers(0, 2**64, SIZE, dtype=np.uint64)) * HASH_OF_ORDER
    config, counts = SketchConfig(SIZE), Counts(SIZE, 0, 0, 0, -5.0, 5.0)
    pairs = [ColumnPair(f"table {number}", "key", "value") for number in range(count)]
    return [
        Sketch(pair, "mean", config, keys, rng.normal(size=SIZE), counts, complete=False) for pair in pairs
    ]


def candidates_at_once() -> list[Result]:
    sketches = alike_sketches()
    query = sketches[0]
    with tempfile.TemporaryDirectory() as folder:
        index = write_sketches(sketches, Path(folder, "index"))
        return [
            _against_a_loop(index, sketches, "pearson", stats.pearsonr, 10),
            _against_a_loop(index, sketches, "spearman", stats.spearmanr, 5),
            *_intervals(index, query),
        ]


def _against_a_loop(
    index: covary.Index, sketches: list[Sketch], measure: str, theirs: Callable[..., Any], target: float
) -> Result:
    query = sketches[0]
    ours, loop = best_in_turns(
        lambda: index.score(query, measure),
        lambda: [theirs(query.values, sketch.values) for sketch in sketches],
        rounds=2,
    )
    return Result(
        f"{measure} of 10,000 candidates of n=1024: times faster than a loop over SciPy's {theirs.__name__}",
        loop / ours,
        target,
        True,
        f"covary {1e3 * ours:.0f} ms, SciPy {loop:.1f} s",
    )


def _intervals(index: covary.Index, query: Sketch) -> list[Result]:
    joined = index.score(query)
    sizes = np.full(joined.sketches.size, 20.0 * SIZE)
    both, alone = best_in_turns(
        lambda: influence_ends(index.moments([query], "pearson", joined), sizes, 0.95),
        lambda: index.score(query),
        rounds=15,
    )
    detail = f"correlations alone {1e3 * alone:.0f} ms, correlations and intervals {1e3 * both:.0f} ms"
    return [
        Result(
            "our interval of 10,000 candidates of n=1024: its time relative to that of their correlations",
            (both - alone) / alone,
            2,
            False,
            detail,
        )
    ]


def resampling() -> Result:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, SIZE))

    def loop() -> list[float]:
        draws = []
        for _ in range(DRAWS):
            drawn = rng.integers(0, SIZE, SIZE)
            draws.append(np.corrcoef(x[drawn], y[drawn])[0, 1])
        return draws

    ours, theirs = best_in_turns(lambda: resample(x, y, DRAWS), loop)
    return Result(
        "PM1, 599 resamples of 1,024 pairs: times faster than a loop of NumPy resamples",
        theirs / ours,
        20,
        True,
        f"covary {1e3 * ours:.1f} ms, NumPy {1e3 * theirs:.0f} ms",
    )
