"""How long a join and its correlations take on all rows, and on sketches: in memory, one by one."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from covary.query.ask import Index, open_index
from covary.sketching.sketch_types import Sketch
from covary.statistics.correlation import pearson, spearman
from covary.statistics.join import join
from experiments.paper import sbn
from experiments.paper.workplace import Workplace, write

TIMED = ("full join", "full pearson", "full spearman", "sketch join", "sketch pearson", "sketch spearman")
BY_INDEX = {"index pearson": "pearson", "index spearman": "spearman"}
TIMINGS = {"left": pl.Int64, "right": pl.Int64} | dict.fromkeys((*TIMED, *BY_INDEX), pl.Float64)
WARM_UP = 10
MOST_SYNTHETIC = 300  # which take long to make
Frames = tuple[int, int, pl.DataFrame, pl.DataFrame]


def timings(workplace: Workplace, truth: pl.DataFrame, columns: Path | None) -> pl.DataFrame:
    """Time a random choice of the joins; milliseconds."""
    chosen = truth.sample(min(truth.height, workplace.scale.timed), seed=workplace.scale.seed)
    index = open_index(workplace.index)

    def make(place: Path) -> None:
        frames = _of_folder(columns, chosen) if columns else _of_sbn(chosen.head(MOST_SYNTHETIC), workplace)
        rows = [(left, right, *_times(index, left, right, *tables)) for left, right, *tables in frames]
        # The first load code and memory, which is nobody's time.
        write(pl.DataFrame(rows[min(WARM_UP, len(rows) - 1) :], schema=TIMINGS, orient="row"), place)

    return workplace.stage("timings", make)


def _times(
    index: Index, left: int, right: int, left_rows: pl.DataFrame, right_rows: pl.DataFrame
) -> list[float]:
    joined, joining = _timed(lambda: left_rows.join(right_rows, on="key", suffix=" right"))
    measures = (pl.corr("number", "number right", method=method) for method in ("pearson", "spearman"))
    full = [joining, *(_timed(lambda measure=measure: joined.select(measure))[1] for measure in measures)]
    sketches = index.sketch_at(left), index.sketch_at(right)
    sample, joining = _timed(lambda: join(*sketches))
    small = [joining, *(_timed(lambda of=of: of(sample.x, sample.y))[1] for of in (pearson, spearman))]
    return [*full, *small, *(_time_of_scoring(index, sketches[0], measure) for measure in BY_INDEX.values())]


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    done = work()
    return done, (time.perf_counter() - started) * 1e3


def _time_of_scoring(index: Index, query: Sketch, measure: str) -> float:
    """Time the index joining and scoring all columns that share a key, for each of them."""
    scored, took = _timed(lambda: index.score(query, measure))
    return took / scored.sketches.size


def _of_sbn(chosen: pl.DataFrame, workplace: Workplace) -> Iterator[Frames]:
    for left, right in chosen.select("left", "right").iter_rows():
        tables = sbn.table_pair(left // 2, workplace.scale)
        yield left, right, tables.left, tables.right


def _of_folder(columns: Path, chosen: pl.DataFrame) -> Iterator[Frames]:
    wanted = np.union1d(chosen["left"], chosen["right"])
    rows = pl.scan_parquet(columns / "*.parquet").filter(pl.col("column").is_in(wanted)).collect()
    of_column = {number: mine.select("key", "number") for (number,), mine in rows.group_by("column")}
    for left, right in chosen.select("left", "right").iter_rows():
        yield left, right, of_column[left], of_column[right]
