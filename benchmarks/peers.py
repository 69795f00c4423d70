"""One question asked of the same lake by covary and by what people use today.

An answer is the ten tables whose number moves most with the query's. Each first builds what it needs on disk;
then another process opens that and asks. The truth is the exact join with every table; quality is nDCG@10.
"""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import tantivy
from datasketch import MinHash, MinHashLSHEnsemble

import covary
from benchmarks.lake import Lake
from covary.sketching.hashing import SCHEMES
from covary.sketching.sketch_types import SketchConfig
from covary.statistics.influence import unseen_share
from experiments.indexes import SKETCHES, bytes_of, sketch_row, sketches_from
from experiments.metrics import gain

TOP, LEAST = 10, 3
RETRIEVED = 100  # by tantivy, to be ranked again
PERMUTATIONS, CONTAINMENT = 128, 0.2  # of MinHash, and the share of the query's keys that LSH asks for
SCHEME = "affine32"  # of its permutations
Answer = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Peer:
    """How something is built on disk, and how it then answers."""

    build: Callable[[Lake, Path], None]
    open: Callable[[Lake, Path], Answer]


@dataclass(frozen=True, slots=True)
class Built:
    """What building took."""

    seconds: float
    index_bytes: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What asking took, and how good the answers are."""

    open_seconds: float
    median_ms: float
    worst_ms: float
    quality: float
    peak_mib: float


def build(name: str, lake: Lake, scratch: Path) -> Built:
    """Build what a peer needs."""
    started = time.perf_counter()
    PEERS[name].build(lake, scratch)
    return Built(time.perf_counter() - started, bytes_of(scratch))


def ask(name: str, lake: Lake, scratch: Path) -> Asked:
    """Open what was built, ask every query once after a first one that is not counted, and judge."""
    started = time.perf_counter()
    answer = PEERS[name].open(lake, scratch)
    opened = time.perf_counter() - started
    answer(lake.queries[0])
    times, answers = [], {}
    for query in lake.queries:
        started = time.perf_counter()
        answers[query] = answer(query)
        times.append((time.perf_counter() - started) * 1e3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    truth = pl.read_parquet(lake.truth)
    return Asked(opened, float(np.median(times)), max(times), quality(truth, answers), peak)


def quality(truth: pl.DataFrame, answers: dict[str, list[str]]) -> float:
    """Mean nDCG@10 of the answers against the exact correlation with every table."""
    scores = []
    for query, found in answers.items():
        of_query = truth.filter(query=query)
        known = dict(zip(of_query["table"], of_query["r"].abs(), strict=True))
        shown = [known.pop(table, 0.0) for table in found]
        rest = sorted(known.values())  # worst first: what an answer leaves out must not count for it
        scores.append(gain(np.array(shown + [0.0] * (TOP - len(shown)) + rest), TOP))
    return float(np.nanmean(scores))


def write_truth(lake: Lake) -> None:
    """Join every query with every table in full, and keep the correlations."""
    if lake.truth.exists():
        return
    rows = []
    for query in lake.queries:
        mine = _means(lake.path(query)).collect()
        for table in lake.names:
            r = _exact(mine, lake.path(table)) if table != query else None
            if r is not None:
                rows.append((query, table, r))
    pl.DataFrame(rows, schema=["query", "table", "r"], orient="row").write_parquet(lake.truth)


def _means(path: str) -> pl.LazyFrame:
    return pl.scan_parquet(path).group_by("key").agg(pl.col("number").mean())


def _exact(mine: pl.DataFrame, path: str) -> float | None:
    joined = mine.lazy().join(_means(path), on="key", suffix=" other")
    found = joined.select(pl.corr("number", "number other"), pl.len().alias("n")).collect().row(0)
    return found[0] if found[1] >= LEAST and found[0] is not None and np.isfinite(found[0]) else None


def _best(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda table: (-abs(scores[table]), table))[:TOP]


def _build_nothing(lake: Lake, scratch: Path) -> None:
    """Full joins need the tables alone."""


def _ask_polars(lake: Lake, scratch: Path) -> Answer:
    def answer(query: str) -> list[str]:
        mine = _means(lake.path(query)).collect()
        found = {table: _exact(mine, lake.path(table)) for table in lake.names if table != query}
        return _best({table: r for table, r in found.items() if r is not None})

    return answer


def _ask_duckdb(lake: Lake, scratch: Path) -> Answer:
    connection = duckdb.connect()
    means = "SELECT key, avg(number) AS number FROM read_parquet('{}') GROUP BY key"

    def answer(query: str) -> list[str]:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE mine AS {means.format(lake.path(query))}")
        found = {}
        for table in lake.names:
            if table != query:
                r, n = connection.execute(
                    "SELECT corr(mine.number, other.number), count(*) FROM mine JOIN "
                    f"({means.format(lake.path(table))}) AS other USING (key)"
                ).fetchone()
                if n >= LEAST and r is not None and np.isfinite(r):
                    found[table] = r
        return _best(found)

    return answer


def _build_covary(lake: Lake, scratch: Path) -> None:
    covary.build_index(str(lake.folder), scratch / "index", fresh=True)


def _ask_covary(lake: Lake, scratch: Path) -> Answer:
    index = covary.open_index(scratch / "index")

    def answer(query: str) -> list[str]:
        return [
            hit.table for hit in index.query(lake.path(query), "key", "number", top=TOP, min_sample=LEAST)
        ]

    return answer


def _tantivy_schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("table", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("key", tokenizer_name="raw", index_option="basic")
    return builder.build()


def _build_tantivy(lake: Lake, scratch: Path) -> None:
    """Put sketches into a search engine, as in the paper, and beside it for ranking again."""
    sketches = [covary.sketch(lake.path(name), "key", "number") for name in lake.names]
    rows = [sketch_row(number, sketch) for number, sketch in enumerate(sketches)]
    pl.DataFrame(rows, schema=SKETCHES).write_parquet(scratch / "sketches.parquet")
    (scratch / "tantivy").mkdir()
    index = tantivy.Index(_tantivy_schema(), str(scratch / "tantivy"))
    writer = index.writer(1_000_000_000, 1)
    for name, sketch in zip(lake.names, sketches, strict=True):
        keys = [f"{key:016x}" for key in sketch.key_hashes.tolist()]
        writer.add_document(tantivy.Document(table=name, key=keys))
    writer.commit()
    writer.wait_merging_threads()


def _ask_tantivy(lake: Lake, scratch: Path) -> Answer:
    rows = pl.read_parquet(scratch / "sketches.parquet")
    sketches = dict(zip(lake.names, sketches_from(rows, SketchConfig()), strict=True))
    schema = _tantivy_schema()
    searcher = tantivy.Index.open(str(scratch / "tantivy")).searcher()

    def answer(query: str) -> list[str]:
        asked = covary.sketch(lake.path(query), "key", "number")
        terms = (
            tantivy.Query.term_query(schema, "key", f"{key:016x}", index_option="basic")
            for key in asked.key_hashes.tolist()
        )
        union = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        hits = searcher.search(union, RETRIEVED).hits
        tables = [searcher.doc(address)["table"][0] for _, address in hits]
        found = {name: covary.estimate(asked, sketches[name]) for name in tables if name != query}
        return _best({name: _rank(e) for name, e in found.items() if e.sample_size >= LEAST})

    return answer


def _rank(found: covary.Estimate) -> float:
    """Covary's own rule, so that only the retrieval differs."""
    error = np.sqrt(unseen_share(found.sample_size, found.join_size) / (max(found.sample_size, 4) - 3))
    return float(abs(found.correlation or 0.0) / (1 + error))


def _signature(path: str) -> tuple[MinHash, int]:
    keys = pl.read_parquet(path, columns=["key"])["key"].unique()
    made = MinHash(PERMUTATIONS, hashfunc=int, scheme=SCHEME)
    hashes = SCHEMES["xxhash64"].identify([keys])[0].hashes >> np.uint64(32)  # it takes 32 bits
    made.update_batch(hashes.tolist())
    return made, len(keys)


def _build_lsh(lake: Lake, scratch: Path) -> None:
    made = [_signature(lake.path(name)) for name in lake.names]
    values, sizes = np.stack([each.hashvalues for each, _ in made]), np.array([size for _, size in made])
    np.savez(scratch / "signatures.npz", values=values, sizes=sizes)


def _ask_lsh(lake: Lake, scratch: Path) -> Answer:
    """Find the tables that hold enough of the query's keys by MinHash, and join those in full."""
    kept = np.load(scratch / "signatures.npz")
    index = MinHashLSHEnsemble(CONTAINMENT, PERMUTATIONS, num_part=16)
    index.index(
        (name, MinHash(PERMUTATIONS, hashfunc=int, hashvalues=values, scheme=SCHEME), int(size))
        for name, values, size in zip(lake.names, kept["values"], kept["sizes"], strict=True)
    )

    def answer(query: str) -> list[str]:
        mine = _means(lake.path(query)).collect()
        near = [table for table in index.query(*_signature(lake.path(query))) if table != query]
        found = {table: _exact(mine, lake.path(table)) for table in near}
        return _best({table: r for table, r in found.items() if r is not None})

    return answer


FULL_JOINS = "Polars, full joins"
PEERS = {
    "covary": Peer(_build_covary, _ask_covary),
    "tantivy, top 100 ranked again": Peer(_build_tantivy, _ask_tantivy),
    "LSH Ensemble, then full joins": Peer(_build_lsh, _ask_lsh),
    FULL_JOINS: Peer(_build_nothing, _ask_polars),
    "DuckDB, full joins": Peer(_build_nothing, _ask_duckdb),
}
