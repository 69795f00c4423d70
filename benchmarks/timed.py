"""What `./run bench --since` times, run in the tree of either commit: python timed.py TASK FOLDER.

It imports the covary, and the benchmarks, of the tree that PYTHONPATH names, so only names that both have are
used. Prints one JSON object: what was measured → seconds.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUESTIONS = 300
TABLES = 400
ROWS = 5_000_000


def _timed(work: Callable[..., object], *arguments: Any) -> float:
    started = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - started


def prepare(folder: Path) -> dict[str, float]:
    """Write the indexes that are asked."""
    from benchmarks.scale import write_index

    return {
        "writing an index of 100,000 columns, n=256": write_index(100_000, 256, folder / "wide"),
        "writing an index of 10,000 columns, n=1,024": write_index(10_000, 1024, folder / "deep"),
    }


def ask(folder: Path) -> dict[str, float]:
    """Ask the first question of a process, and then many, twice."""
    import numpy as np

    import covary
    from covary import open_index

    del covary
    seconds = {}
    for name, columns in (("wide", "100,000 columns, n=256"), ("deep", "10,000 columns, n=1,024")):
        index = open_index(folder / name)
        numbers = np.random.default_rng(3).choice(index.sketch_count, QUESTIONS + 1, replace=False).tolist()
        queries = [index.sketch_at(number) for number in numbers]
        started = time.perf_counter()
        index = open_index(folder / name)
        _score_and_ask(index, queries[0])
        seconds[f"{columns}: opened and asked once"] = time.perf_counter() - started
        for again in ("first time", "again"):
            scored = [_timed(index.score, query) for query in queries[1:]]
            asked = [_timed(_score_and_ask, index, query) for query in queries[1:]]
            for what, times in (("scored", scored), ("asked", asked)):
                seconds[f"{columns}: {what} {again}, median"] = float(np.median(times))
                seconds[f"{columns}: {what} {again}, p99"] = float(np.percentile(times, 99))
    return seconds


def _score_and_ask(index: Any, query: Any) -> None:
    from benchmarks.scale import Settings

    index.answer(query, Settings())


def build(folder: Path) -> dict[str, float]:
    """Build indexes of many small files and of a large one, in a running session, each once unmeasured."""
    import covary
    from benchmarks import kernel, pipeline

    tables, large = folder / "tables", folder / "rows.parquet"
    if not tables.exists():
        tables.mkdir()
        pipeline.FILES = TABLES
        pipeline.write_small_files(tables)
        kernel.many_rows(ROWS).write_parquet(large, row_group_size=1_000_000)
    spark = pipeline.start_session()

    def best(source: Path, **options: str) -> float:
        def once() -> None:
            covary.build_index(source, folder / "built", spark, fresh=True, **options)

        once()
        return min(_timed(once) for _ in range(3))

    return {
        f"building {TABLES} CSV files, canonical keys": best(tables),
        f"building {TABLES} CSV files, raw keys": best(tables, key_text="exact"),
        f"building a Parquet file of {ROWS:,} rows": best(large),
    }


if __name__ == "__main__":
    task = {"prepare": prepare, "ask": ask, "build": build}[sys.argv[1]]
    print(json.dumps(task(Path(sys.argv[2]))))
