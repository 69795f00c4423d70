"""The first half of an answer: everything that joins with a query, scored, tested for chance and ranked."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covary.arrays import Floats, Integers, Truths
from covary.progress import OnCount
from covary.query.candidates import (
    best_join_per_column,
    describe_candidates,
    keep_largest_overlap,
    mark_common_keys,
)
from covary.query.open_segment import Candidates
from covary.query.options import QueryOptions
from covary.query.small_numbers import mark_unrelated
from covary.query.stored_sketches import StoredSketches
from covary.sketching.key_columns import SEPARATOR
from covary.sketching.sketch_types import Sketch
from covary.statistics.ranking import ranker_named
from covary.statistics.significance import p_values, quick_p_values

CLOSE_TEST_BELOW_P = 0.2  # p-values by Student's t above this need no moments: nothing there survives


@dataclass(frozen=True, slots=True, eq=False)
class RankedCandidates:
    """Every column that joins with a query, and those that were tested, with their scores."""

    own: int  # columns left out because they are the query's own
    joinable: int  # columns that share a key
    unrelated: int  # of those that join: on small numbers alone, under other names
    looked_at: int  # of those that join: all, or the ones to retrieve
    tested: Candidates  # those that share enough keys
    scores: Floats  # of those, by the ranker
    chance: Floats  # p-values of those, tested closely where they are small
    closely_tested: Truths  # which of them by the moments of their samples
    common: Truths  # which of them join on few keys that many tables share
    hosts: int  # how many tables those are


def rank_candidates(
    index: StoredSketches,
    queries: Sequence[Sketch],
    options: QueryOptions,
    left_out: Integers | None,
    on_progress: OnCount,
) -> RankedCandidates:
    """Score what joins and rank the whole list (section 4.4); test each by chance.

    Of the sketches of a query, each column joins with one.
    """
    how, ranker = options.how, ranker_named(options.rank)
    measure = how.definition.scores_by
    scored = Candidates.of_all([index.score(query, measure, asked) for asked, query in enumerate(queries)])
    if len(queries) > 1:
        scored = best_join_per_column(index, scored, options.fewest_keys)
    joinable = scored if left_out is None else scored.only(~np.isin(scored.sketches, left_out))
    related = joinable
    if not options.small_numbers:
        related = joinable.only(~_mark_unrelated(index, queries, joinable))
    looked_at = keep_largest_overlap(related, options.retrieve)
    tested = looked_at.only(looked_at.sample_sizes >= options.fewest_keys)
    common, hosts = mark_common_keys(index, queries, tested)
    scores = ranker.score(describe_candidates(index, queries, tested, how.seed, on_progress, common))
    chance = quick_p_values(tested.correlations, tested.sample_sizes)
    closely = chance < max(CLOSE_TEST_BELOW_P, options.max_q or 0.0)
    if not how.definition.p_value:
        chance[closely] = p_values(index.moments(queries, measure, tested.only(closely)))
    return RankedCandidates(
        own=scored.size - joinable.size,
        joinable=joinable.size,
        unrelated=joinable.size - related.size,
        looked_at=looked_at.size,
        tested=tested,
        scores=scores,
        chance=chance,
        closely_tested=closely,
        common=common,
        hosts=hosts,
    )


def _mark_unrelated(index: StoredSketches, queries: Sequence[Sketch], joinable: Candidates) -> Truths:
    """Mark joins on small numbers alone between columns of other names."""
    marked = np.zeros(joinable.size, dtype=np.bool_)
    for asked, query in enumerate(queries):
        if not query.pair.granularity and SEPARATOR not in query.pair.key:
            own = np.flatnonzero(joinable.asked == asked)
            marked[own] = mark_unrelated(index, query, joinable.only(own))
    return marked
