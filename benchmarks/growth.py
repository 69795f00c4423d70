"""How answers slow down as an index grows from 1,000 to 1,000,000 columns, with the fitted exponent."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

import covary
from benchmarks.lake import LARGEST, SMALLEST
from benchmarks.queries import HASH_OF_ORDER
from covary.index.commit import commit, open_draft
from covary.index.manifest import Manifest
from covary.index.segment_files import write_segment
from covary.index.segment_layout import build_segment
from covary.index.table_records import TableRecord
from covary.query.options import QueryOptions
from covary.sketching.sketch_types import ColumnPair, Counts, Sketch, SketchConfig
from experiments.indexes import bytes_of

COUNTS = (1_000, 10_000, 100_000, 1_000_000)
SIZE, QUERIES, PER_SEGMENT = 256, 200, 50_000
WARM_UP = 10


@dataclass(frozen=True, slots=True)
class Grown:
    """An index of some size: what it takes, and how fast it answers."""

    columns: int
    entries: int
    build_seconds: float
    index_bytes: int
    joinable: float  # columns that share a key with a query, on average
    median_ms: float
    p99_ms: float


def synthetic_columns(count: int, seed: int = 1) -> Iterator[Sketch]:
    """Make sketches of columns over domains as many as the root of their number, popular by Zipf's law."""
    rng = np.random.default_rng(seed)
    domain_count = max(10, round(count**0.5))
    popularity = 1 / np.arange(1, domain_count + 1)
    domain_of = rng.choice(domain_count, size=count, p=popularity / popularity.sum())
    sizes = np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST), domain_count)).astype(int)
    # Only the smallest orders of a domain can be in a sketch: those of the rest need not be drawn.
    domains = [np.sort(rng.integers(0, 2**64, size, dtype=np.uint64))[: 8 * SIZE] for size in sizes]
    config = SketchConfig(SIZE)
    for number, domain in enumerate(domain_of):
        orders = domains[domain]
        held = orders[rng.random(orders.size) < rng.uniform(0.3, 1.0)][:SIZE]
        complete = orders.size < 8 * SIZE and held.size < SIZE
        counts = Counts(int(sizes[domain]), 0, 0, 0, -6.0, 6.0)
        values = rng.normal(size=held.size)
        pair = ColumnPair(f"t{number}", "key", "number")
        yield Sketch(pair, "mean", config, held * HASH_OF_ORDER, values, counts, complete)


def grow(count: int, folder: Path) -> Grown:
    """Write an index of so many columns and ask it."""
    started, entries, stored, asking = time.perf_counter(), 0, [], []
    chosen = set(
        np.random.default_rng(2).choice(count, min(count, QUERIES + WARM_UP), replace=False).tolist()
    )
    columns = synthetic_columns(count)
    with open_draft(folder) as draft:
        while batch := list(islice(columns, PER_SEGMENT)):
            entries += sum(sketch.size for sketch in batch)
            tables = [(TableRecord(sketch.pair.table, ""), [sketch]) for sketch in batch]
            stored.append(write_segment(build_segment(tables), draft.folder))
            asking += [sketch for sketch in batch if int(sketch.pair.table[1:]) in chosen]
        commit(draft, Manifest(SketchConfig(SIZE), tuple(stored)))
    built = time.perf_counter() - started
    weight = bytes_of(folder)
    times, joinable = _ask(covary.Index.open(folder), asking)
    return Grown(count, entries, built, weight, joinable, *np.percentile(times, (50, 99)).tolist())


def _ask(index: covary.Index, asking: list[Sketch]) -> tuple[np.ndarray, float]:
    settings, times, joinable = QueryOptions(), [], []
    for place, query in enumerate(asking):
        started = time.perf_counter()
        found = index.answer(query, settings)
        if place >= WARM_UP:
            times.append((time.perf_counter() - started) * 1e3)
            joinable.append(found.ranked.joinable)
    return np.array(times), float(np.mean(joinable))


def exponent(sizes: list[float], times: list[float]) -> float:
    """Fit time = c · size^e, and return e."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
