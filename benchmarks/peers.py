"""One question asked of the same lake by covary and by what people use today: each in a process of its own.

An answer is the ten tables whose number moves most with the query's. The truth is the exact join with every
table; quality is nDCG@10 against it.
"""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.lake import Lake
from experiments.metrics import gain

TOP, LEAST = 10, 3
RETRIEVED = 100  # by tantivy, to be ranked again
PERMUTATIONS, CONTAINMENT = 128, 0.2  # of MinHash, and the share of the query's keys that LSH asks for
Answer = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Peer:
    """What one of them took, and how good its answers are."""

    name: str
    build_seconds: float
    index_bytes: int
    median_ms: float
    worst_ms: float
    quality: float
    peak_mib: float


def measure(name: str, lake: Lake, scratch: Path) -> Peer:
    """Build what a peer needs, ask every query once after a first one that is not counted, and judge."""
    started = time.perf_counter()
    answer = PEERS[name](lake, scratch)
    built = time.perf_counter() - started
    size = (
        sum(file.stat().st_size for file in scratch.rglob("*") if file.is_file()) if scratch.exists() else 0
    )
    answer(lake.queries[0])
    times, answers = [], {}
    for query in lake.queries:
        started = time.perf_counter()
        answers[query] = answer(query)
        times.append((time.perf_counter() - started) * 1e3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    return Peer(name, built, size, float(np.median(times)), max(times), quality(lake, answers), peak)


def quality(lake: Lake, answers: dict[str, list[str]]) -> float:
    """Mean nDCG@10 of the answers against the exact correlation with every table."""
    truth = pl.read_parquet(lake.folder.with_suffix(".truth"))
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
    place = lake.folder.with_suffix(".truth")
    if place.exists():
        return
    rows = []
    for query in lake.queries:
        mine = _means(lake.path(query)).collect()
        for table in lake.names:
            r = _exact(mine, lake.path(table)) if table != query else None
            if r is not None:
                rows.append((query, table, r))
    pl.DataFrame(rows, schema=["query", "table", "r"], orient="row").write_parquet(place)


def _means(path: str) -> pl.LazyFrame:
    return pl.scan_parquet(path).group_by("key").agg(pl.col("number").mean())


def _exact(mine: pl.DataFrame, path: str) -> float | None:
    joined = mine.lazy().join(_means(path), on="key", suffix=" other")
    found = joined.select(pl.corr("number", "number other"), pl.len().alias("n")).collect().row(0)
    return found[0] if found[1] >= LEAST and found[0] is not None and np.isfinite(found[0]) else None


def _best(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda table: (-abs(scores[table]), table))[:TOP]


def polars_joins(lake: Lake, scratch: Path) -> Answer:
    def answer(query: str) -> list[str]:
        mine = _means(lake.path(query)).collect()
        found = {table: _exact(mine, lake.path(table)) for table in lake.names if table != query}
        return _best({table: r for table, r in found.items() if r is not None})

    return answer


def duckdb_joins(lake: Lake, scratch: Path) -> Answer:
    import duckdb

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


def covary_index(lake: Lake, scratch: Path) -> Answer:
    import covary

    index = covary.build_index(str(lake.folder), scratch / "index")

    def answer(query: str) -> list[str]:
        hits = index.query(lake.path(query), "key", "number", top=TOP, min_sample=LEAST)
        return [hit.table for hit in hits]

    return answer


def tantivy_and_ranking(lake: Lake, scratch: Path) -> Answer:
    """Sketches through a search engine, as in the paper: the 100 largest overlaps, ranked again."""
    import tantivy

    import covary

    sketches = {name: covary.sketch(lake.path(name), "key", "number") for name in lake.names}
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("table", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("key", tokenizer_name="raw", index_option="basic")
    schema = builder.build()
    (scratch / "tantivy").mkdir(parents=True)
    index = tantivy.Index(schema, str(scratch / "tantivy"))
    writer = index.writer(1_000_000_000, 1)
    for name, sketch in sketches.items():
        keys = [f"{key:016x}" for key in sketch.key_hashes.tolist()]
        writer.add_document(tantivy.Document(table=name, key=keys))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

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
        enough = {name: e.correlation for name, e in found.items() if e.sample_size >= LEAST}
        return _best({name: r for name, r in enough.items() if r is not None})

    return answer


def lsh_ensemble(lake: Lake, scratch: Path) -> Answer:
    """Find the tables that hold enough of the query's keys by MinHash, and join those in full."""
    from datasketch import MinHash, MinHashLSHEnsemble

    from covary.hashing import SCHEMES

    def signature(path: str) -> tuple[MinHash, int]:
        keys = pl.read_parquet(path, columns=["key"])["key"].unique()
        hashes = SCHEMES["xxhash64"].identify([keys])[0].hashes
        made = MinHash(PERMUTATIONS, hashfunc=int)
        made.update_batch((hashes >> np.uint64(32)).tolist())  # it takes 32 bits
        return made, len(keys)

    signatures = {name: signature(lake.path(name)) for name in lake.names}
    index = MinHashLSHEnsemble(CONTAINMENT, PERMUTATIONS, num_part=16)
    index.index((name, made, size) for name, (made, size) in signatures.items())

    def answer(query: str) -> list[str]:
        mine = _means(lake.path(query)).collect()
        near = [table for table in index.query(*signatures[query]) if table != query]
        found = {table: _exact(mine, lake.path(table)) for table in near}
        return _best({table: r for table, r in found.items() if r is not None})

    return answer


PEERS: dict[str, Callable[[Lake, Path], Answer]] = {
    "covary": covary_index,
    "tantivy, top 100 ranked again": tantivy_and_ranking,
    "LSH Ensemble, then full joins": lsh_ensemble,
    "Polars, full joins": polars_joins,
    "DuckDB, full joins": duckdb_joins,
}
