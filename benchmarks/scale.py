"""A synthetic lake at scale: indexes of 10,000 to 1,000,000 column pairs, opened, asked and added to.

Tables of one to seven columns belong to key domains, as many as the root of their number; a few are popular
and most are rare (Zipf), with 50 to 1,000,000 keys each. Columns of a domain move together more or less.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.lake import LARGEST, SMALLEST
from benchmarks.queries import HASH_OF_ORDER
from covary.index.commit import commit, open_draft
from covary.index.manifest import Manifest
from covary.index.segment_files import write_segment
from covary.index.segment_layout import build_segment
from covary.index.table_records import TableRecord
from covary.query.ask import Index
from covary.query.options import QueryOptions as Settings  # the name that older trees have, for timed.py
from covary.sketching.sketch_types import ColumnPair, Counts, Sketch, SketchConfig

COUNTS, SIZES = (10_000, 100_000, 1_000_000), (256, 1024)
ENTRIES_PER_SEGMENT = 1 << 25
QUERIES, WARM_UP = 300, 20
MOST_COLUMNS = 7
SeededTable = tuple[TableRecord, list[Sketch]]


@dataclass(frozen=True, slots=True)
class Scaled:
    """An index of some size: what it takes to open it, and how fast it answers."""

    pairs: int
    size: int
    entries: int
    bytes: int
    segments: int
    written_seconds: float
    open_seconds: float
    resident_mb: float  # of the process that opened it, before its first query
    imported_mb: float  # of the same process before it opened anything
    joinable: float  # columns that share a key with a query, on average
    postings: float  # keys that they share with it, together
    median_ms: float
    p99_ms: float


def synthetic_tables(pairs: int, size: int, seed: int = 1) -> Iterator[SeededTable]:
    """Make tables until they have so many columns."""
    rng = np.random.default_rng(seed)
    domain_count = max(10, round((pairs / 4) ** 0.5))
    popularity = 1 / np.arange(1, domain_count + 1)
    popularity /= popularity.sum()
    sizes = np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST), domain_count)).astype(int)
    # Only the smallest orders of a domain can be in a sketch: those of the rest need not be drawn.
    domains = [np.sort(rng.integers(0, 2**64, count, dtype=np.uint64))[: 8 * size] for count in sizes]
    common = [rng.normal(size=orders.size) for orders in domains]
    config, made, number = SketchConfig(size), 0, 0
    while made < pairs:
        domain = rng.choice(domain_count, p=popularity)
        orders = domains[domain]
        kept = np.flatnonzero(rng.random(orders.size) < rng.uniform(0.3, 1.0))[:size]
        complete = orders.size < 8 * size and kept.size < size
        hashes, counts = orders[kept] * HASH_OF_ORDER, Counts(int(sizes[domain]), 0, 0, 0, -6.0, 6.0)
        width = min(int(rng.integers(1, MOST_COLUMNS + 1)), pairs - made)
        shares = rng.random(width)[:, None]
        values = shares * common[domain][kept] + np.sqrt(1 - shares**2) * rng.normal(size=(width, kept.size))
        name = f"table {number}"
        sketches = [
            Sketch(
                ColumnPair(name, "key", f"number {n}"), "mean", config, hashes, values[n], counts, complete
            )
            for n in range(width)
        ]
        yield TableRecord(name, f"/lake/{name}.parquet", int(sizes[domain])), sketches
        made, number = made + width, number + 1


def write_index(pairs: int, size: int, folder: Path) -> float:
    """Write an index of synthetic tables; return the seconds it took."""
    started, stored = time.perf_counter(), []
    tables = synthetic_tables(pairs, size)
    with open_draft(folder) as draft:
        while batch := list(islice(tables, ENTRIES_PER_SEGMENT // (4 * size))):
            stored.append(write_segment(build_segment(batch), draft.folder))
        commit(draft, Manifest(SketchConfig(size), tuple(stored)))
    return time.perf_counter() - started


OPENING = """
import json, sys, time
import covary.query.ask
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) / 1000
before, started = resident(), time.perf_counter()
index = covary.query.ask.open_index(sys.argv[1])
print(json.dumps([time.perf_counter() - started, resident(), before]))
"""


def open_apart(folder: Path) -> tuple[float, float, float]:
    """Open an index in a new process: seconds, resident MB after, and before."""
    command = [sys.executable, "-c", OPENING, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, after, before = json.loads(done.stdout)
    return seconds, after, before


def ask(index: Index, count: int = QUERIES) -> tuple[np.ndarray, float, float]:
    """Ask with columns of the index: times in ms, columns that join, and keys that they share, on average."""
    numbers = np.random.default_rng(2).choice(index.sketch_count, count + WARM_UP, replace=False)
    settings, times, joinable, postings = Settings(), [], [], []
    for place, number in enumerate(numbers.tolist()):
        query = index.sketch_at(number)
        started = time.perf_counter()
        index.answer(query, settings)
        if place >= WARM_UP:
            times.append((time.perf_counter() - started) * 1e3)
            found = index.score(query)
            joinable.append(found.sketches.size)
            postings.append(found.sample_sizes.sum())
    return np.array(times), float(np.mean(joinable)), float(np.mean(postings))


def scale(pairs: int, size: int, folder: Path) -> Scaled:
    """Write an index of so many column pairs, open it and ask it."""
    written = 0.0 if (folder / "manifest.json").exists() else write_index(pairs, size, folder)
    opening = min((open_apart(folder) for _ in range(3)), key=lambda measured: measured[0])
    index = Index.open(folder)
    times, joinable, postings = ask(index)
    files = [file for stored in index.manifest.segments for file in stored.files.values()]
    return Scaled(
        pairs,
        size,
        sum(segment.entries for segment in index.segments),
        sum(file.size for file in files),
        len(index.segments),
        written,
        *opening,
        joinable,
        postings,
        *np.percentile(times, (50, 99)).tolist(),
    )
