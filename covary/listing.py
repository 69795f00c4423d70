"""The list of candidates as a ranker sees it, with what is dear to know found only when a ranker asks."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from covary.aggregate import Floats
from covary.bootstrap import pm1, pm1_ends
from covary.hoeffding import small_sample_lengths
from covary.index import Candidates, StoredSketches
from covary.joins import join
from covary.keysets import distinct_keys
from covary.ranking import CandidateList
from covary.sketches import Sketch

TRUSTED_DIGITS = 9
OnProgress = Callable[[int, int], None]


def candidate_list(
    index: StoredSketches, query: Sketch, candidates: Candidates, seed: int, on_progress: OnProgress
) -> CandidateList:
    """Describe candidates for a ranker."""
    keys = max(distinct_keys(query).value, 1.0)
    return CandidateList(
        candidates.correlations,
        candidates.sample_sizes,
        candidates.join_sizes,
        np.minimum(1.0, candidates.join_sizes / keys),
        lambda: _bootstrap(index, query, candidates, seed, on_progress),
        lambda: _hoeffding_lengths(index, query, candidates),
        seed,
    )


def best_first(candidates: Candidates, scores: Floats, count: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the places of the best, best first, and their scores; those without a score are left out.

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


def _bootstrap(
    index: StoredSketches, query: Sketch, candidates: Candidates, seed: int, on_progress: OnProgress
) -> tuple[Floats, Floats]:
    """Resample every candidate; NaN where r is undefined."""
    total = candidates.sketches.size
    estimates, lengths = np.full(total, np.nan), np.full(total, np.nan)
    for place in np.flatnonzero(~np.isnan(candidates.correlations)):
        on_progress(int(place), total)
        sample = join(query, index.sketch_at(int(candidates.sketches[place])))
        low, high = pm1_ends(sample.x, sample.y, seed)
        estimates[place], lengths[place] = pm1(sample.x, sample.y, seed), high - low
    return estimates, lengths


def _hoeffding_lengths(index: StoredSketches, query: Sketch, candidates: Candidates) -> Floats:
    moments = index.moments(query, "pearson", candidates.sketches)
    own_low, own_high = query.value_range
    lows, highs = index.value_ranges(candidates.sketches)
    lengths = small_sample_lengths(
        (moments.x_mean, moments.y_mean),
        (moments.x_deviation, moments.y_deviation),
        np.minimum(lows, own_low),
        np.maximum(highs, own_high),
        moments.size,
    )
    return np.where(np.isnan(candidates.correlations), np.nan, lengths)
