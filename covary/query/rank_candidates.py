"""The first half of an answer: everything that joins with a query, scored, tested for chance and ranked."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covary.arrays import Floats, Integers, Truths
from covary.query.candidates import OnProgress, candidate_list, common_keys, finest, largest_overlap
from covary.query.open_segment import Candidates
from covary.query.options import Settings
from covary.query.small_numbers import unrelated
from covary.query.stored_sketches import StoredSketches
from covary.sketching.key_columns import SEPARATOR
from covary.sketching.sketch_types import Sketch
from covary.statistics.estimate import HowToMeasure
from covary.statistics.ranking import ranker_named
from covary.statistics.significance import p_values, quick_p_values

WORTH_A_CLOSER_LOOK = 0.2  # p-values by Student's t above this need no moments: nothing there survives


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Every column that joins with a query, and those that were tested, with their scores.

    Attributes:
        own: columns left out because they are the query's own.
        joinable: columns that share a key.
        unrelated: of those that join: on small numbers alone, under other names.
        looked_at: of those that join: all, or the ones to retrieve.
        tested: those that share enough keys.
        scores: of those, by the ranker.
        chance: p-values of those, looked at closely where they are small.
        closer: which were looked at closely.
        common: which join on few keys that many tables share.
        hosts: how many tables those are.
    """

    own: int
    joinable: int
    unrelated: int
    looked_at: int
    tested: Candidates
    scores: Floats
    chance: Floats
    closer: Truths
    common: Truths
    hosts: int


def rank_all(
    index: StoredSketches,
    queries: Sequence[Sketch],
    settings: Settings,
    left_out: Integers | None,
    on_progress: OnProgress,
) -> Ranked:
    """Score what joins and rank the whole list (section 4.4); test each by chance.

    A query may come as several sketches, of which each column joins with one: its times at several
    granularities, finest first; the columns of its key in several orders.
    """
    how, rank = settings.how, ranker_named(settings.rank)
    scored = _score_each(index, queries, settings)
    joinable = scored if left_out is None else scored.only(~np.isin(scored.sketches, left_out))
    related = joinable
    if not settings.small_numbers:
        related = joinable.only(~_unrelated(index, queries, joinable))
    looked_at = largest_overlap(related, settings.retrieve)
    tested = looked_at.only(looked_at.sample_sizes >= settings.fewest_pairs)
    common, hosts = common_keys(index, queries, tested)
    scores = rank(candidate_list(index, queries, tested, how.seed, on_progress, common))
    chance = quick_p_values(tested.correlations, tested.sample_sizes)
    closer = chance < max(WORTH_A_CLOSER_LOOK, settings.max_q or 0.0)
    if not how.definition.p_value:
        look_closer(index, queries, tested, how, chance, closer)
    return Ranked(
        own=int(scored.sketches.size - joinable.sketches.size),
        joinable=joinable.sketches.size,
        unrelated=joinable.sketches.size - related.sketches.size,
        looked_at=looked_at.sketches.size,
        tested=tested,
        scores=scores,
        chance=chance,
        closer=closer,
        common=common,
        hosts=hosts,
    )


def look_closer(
    index: StoredSketches,
    queries: Sequence[Sketch],
    tested: Candidates,
    how: HowToMeasure,
    chance: Floats,
    closer: Truths,
) -> None:
    """Put p-values from the moments of the samples in place of the quick ones."""
    chance[closer] = p_values(index.moments(queries, how.definition.scores_by, tested.only(closer)))


def _score_each(index: StoredSketches, queries: Sequence[Sketch], settings: Settings) -> Candidates:
    """Score every column that joins with any sketch of a query, by the one that fits it best."""
    measure = settings.how.definition.scores_by
    found = [index.score(query, measure, asked) for asked, query in enumerate(queries)]
    if len(found) == 1:
        return found[0]
    return finest(index, Candidates.of_all(found), settings.fewest_pairs)


def _unrelated(index: StoredSketches, queries: Sequence[Sketch], joinable: Candidates) -> Truths:
    """Mark joins on small numbers alone between columns of other names."""
    marked = np.zeros(joinable.sketches.size, dtype=np.bool_)
    for asked, query in enumerate(queries):
        if not query.pair.granularity and SEPARATOR not in query.pair.key:
            own = np.flatnonzero(joinable.asked == asked)
            marked[own] = unrelated(index, query, joinable.only(own))
    return marked
