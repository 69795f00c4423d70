"""The list of candidates as a ranker sees it, with what is dear to compute only where a ranker asks."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from covary.arrays import Floats, Integers, Truths
from covary.columns.times import GRANULARITIES
from covary.progress import OnCount
from covary.query.open_segment import Candidates
from covary.query.stored_sketches import StoredSketches
from covary.sketching.sketch_types import Sketch
from covary.statistics.bootstrap import pm1, pm1_ends
from covary.statistics.hoeffding import small_sample_lengths
from covary.statistics.join import join
from covary.statistics.key_sets import distinct_keys
from covary.statistics.ranking import CandidateList

TRUSTED_DIGITS = 9
FEW_KEYS, MANY_HOSTS = 60, 10
HOSTS_LOOKED_AT = 64
ENDLESS = 1e300
DEPTHS = {granularity: depth for depth, granularity in enumerate(("", *GRANULARITIES))}


def ignore_progress(done: int, total: int) -> None:
    """Ignore progress."""


def describe_candidates(
    index: StoredSketches,
    queries: Sequence[Sketch],
    candidates: Candidates,
    seed: int,
    on_progress: OnCount,
    common: Truths | None = None,
) -> CandidateList:
    """Describe candidates for a ranker.

    The few keys of a common key, such as months, are taken for a sample of many: that a join on them was seen
    whole says little where any table would join.
    """
    keys = np.array([max(distinct_keys(query).value, 1.0) for query in queries])
    joins = candidates.join_sizes
    return CandidateList(
        candidates.correlations,
        candidates.sample_sizes,
        joins if common is None else np.where(common, ENDLESS, joins),
        np.minimum(1.0, joins / keys[candidates.asked]),
        lambda: _bootstrap(index, queries, candidates, seed, on_progress),
        lambda: _hoeffding_lengths(index, queries, candidates),
        seed,
    )


def best_join_per_column(index: StoredSketches, candidates: Candidates, fewest_keys: int) -> Candidates:
    """Keep one way to join with each column: on enough keys, at the finest granularity, on the most keys."""
    columns = index.columns_at(candidates.sketches).with_columns(
        table=pl.Series(index.tables_at(candidates.sketches)),
        too_few=pl.Series(candidates.sample_sizes < fewest_keys),
        asked=pl.Series(candidates.asked),  # the finest first
        shared=pl.Series(-candidates.sample_sizes),
        depth=pl.col("granularity").replace_strict(DEPTHS, return_dtype=pl.Int64),
        position=np.arange(candidates.size),
    )
    kept = columns.sort("too_few", "depth", "shared", "asked", "position").unique(
        ["table", "key", "value", "aggregate"], keep="first"
    )
    return candidates.only(np.sort(kept["position"].to_numpy()))


def mark_common_keys(
    index: StoredSketches, queries: Sequence[Sketch], candidates: Candidates
) -> tuple[Truths, int]:
    """Mark the joins on few keys that many tables share, as months do; return how many tables those are."""
    marked = np.zeros(candidates.size, dtype=np.bool_)
    few = np.flatnonzero(candidates.join_sizes <= FEW_KEYS)
    of_table = index.tables_at(candidates.sketches[few])
    tables, first = np.unique(of_table, return_index=True)
    if tables.size < MANY_HOSTS:
        return marked, 0
    keys = [
        np.intersect1d(
            queries[candidates.asked[row]].key_hashes, index.sketch_at(candidates.sketches[row]).key_hashes
        )
        for row in few[first[:HOSTS_LOOKED_AT]]
    ]
    distinct, holders = np.unique(np.concatenate(keys), return_counts=True)
    shared = [holders[np.searchsorted(distinct, own)].mean() >= MANY_HOSTS for own in keys]
    # Beyond those looked at, tables are taken to be like most of them.
    is_host = np.concatenate([shared, np.full(tables.size - len(shared), np.mean(shared) > 0.5)])
    marked[few] = is_host[np.searchsorted(tables, of_table)]
    return marked, int(is_host.sum())


def order_best_first(candidates: Candidates, scores: Floats, count: int) -> tuple[Integers, Floats]:
    """Return the positions of the best, best first, and their scores; those without a score are left out.

    Equal scores come in the order of the index. The last digits depend on the order of sums: without them
    copies of a column tie.
    """
    scores = np.where(np.isnan(scores), -np.inf, np.round(scores, TRUSTED_DIGITS))
    near = np.arange(scores.size)
    if scores.size > 4 * count:
        near = np.flatnonzero(scores >= np.partition(scores, -count)[-count])
    order = near[np.lexsort((candidates.sketches[near], -scores[near]))][:count]
    order = order[scores[order] > -np.inf]
    return order, scores[order]


def keep_largest_overlap(candidates: Candidates, count: int | None) -> Candidates:
    """Keep as many as `count` that share the most sampled keys; None keeps all."""
    if count is None:
        return candidates
    order = np.lexsort((candidates.sketches, -candidates.sample_sizes))
    return candidates.only(order[:count])


def count_undefined(candidates: Candidates) -> int:
    """Count those without a correlation."""
    return int(np.count_nonzero(np.isnan(candidates.correlations)))


def _bootstrap(
    index: StoredSketches, queries: Sequence[Sketch], candidates: Candidates, seed: int, on_progress: OnCount
) -> tuple[Floats, Floats]:
    """Resample every candidate; NaN where r is undefined."""
    total = candidates.size
    estimates, lengths = np.full(total, np.nan), np.full(total, np.nan)
    for row in np.flatnonzero(~np.isnan(candidates.correlations)):
        on_progress(int(row), total)
        query = queries[candidates.asked[row]]
        sample = join(query, index.sketch_at(candidates.sketches[row]))
        low, high = pm1_ends(sample.x, sample.y, seed)
        estimates[row], lengths[row] = pm1(sample.x, sample.y, seed), high - low
    return estimates, lengths


def _hoeffding_lengths(index: StoredSketches, queries: Sequence[Sketch], candidates: Candidates) -> Floats:
    moments = index.moments(queries, "pearson", candidates)
    own_lows, own_highs = np.array([query.value_range for query in queries])[candidates.asked].T
    ranges = [index.sketch_at(number).value_range for number in candidates.sketches]
    lows, highs = np.array(ranges).reshape(-1, 2).T
    lengths = small_sample_lengths(
        (moments.x_mean, moments.y_mean),
        (moments.x_deviation, moments.y_deviation),
        np.minimum(lows, own_lows),
        np.maximum(highs, own_highs),
        moments.size,
    )
    return np.where(np.isnan(candidates.correlations), np.nan, lengths)
