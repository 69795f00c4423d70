"""Scores that order the whole candidate list: the paper's (section 4.4), baselines, and our rule."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from covary.arrays import Floats
from covary.errors import chosen
from covary.statistics.influence import unseen_share


@dataclass(frozen=True, slots=True, eq=False)
class CandidateList:
    """What a ranker may look at: every candidate, or what it costs time to find out of every candidate."""

    correlations: Floats  # NaN where undefined
    sample_sizes: Floats  # points that each rests on
    join_sizes: Floats  # rows of each whole join
    containments: Floats  # the share of the query's keys that each holds
    bootstrap: Callable[[], tuple[Floats, Floats]]  # finds PM1's estimates, and the lengths of its intervals
    hoeffding_lengths: Callable[[], Floats]  # finds those of the paper's intervals for small samples
    seed: int = 0  # of random scores


def finite_population(candidates: CandidateList) -> Floats:
    """|r|/(1 + error), the error shrinking as the sample approaches the whole join."""
    unseen = unseen_share(candidates.sample_sizes, candidates.join_sizes)
    return np.abs(candidates.correlations) / (1.0 + np.sqrt(unseen) * _fisher_error(candidates))


def absolute(candidates: CandidateList) -> Floats:
    """s1: |r|."""
    return np.abs(candidates.correlations)


def fisher_penalised(candidates: CandidateList) -> Floats:
    """s2: |r| times one minus the standard error of Fisher's z."""
    return np.abs(candidates.correlations) * (1.0 - _fisher_error(candidates))


def bootstrap_penalised(candidates: CandidateList) -> Floats:
    """s3: PM1's |r| times one minus half the length of its interval."""
    estimates, lengths = candidates.bootstrap()
    return np.abs(estimates) * (1.0 - lengths / 2.0)


def hoeffding_penalised(candidates: CandidateList) -> Floats:
    """s4: |r| times one minus the length of the Hoeffding interval, the shortest counting 0, the longest 1.

    It depends on units: the bound takes both columns to lie in one common range.
    """
    lengths = candidates.hoeffding_lengths()
    known = lengths[np.isfinite(lengths)]
    shortest, longest = known.min(initial=np.inf), known.max(initial=-np.inf)
    if not longest > shortest:
        return absolute(candidates)  # all equally long: none is riskier than another
    kept: Floats = 1.0 - (lengths - shortest) / (longest - shortest)
    return np.abs(candidates.correlations) * kept


def containment(candidates: CandidateList) -> Floats:
    """jc: the estimated share of the query's keys that a column holds, whatever its correlation."""
    return np.where(np.isnan(candidates.correlations), np.nan, candidates.containments)


def random_order(candidates: CandidateList) -> Floats:
    """Random scores between 0 and 1, the same for the same seed."""
    scores = np.random.default_rng(candidates.seed).random(candidates.correlations.size)
    return np.where(np.isnan(candidates.correlations), np.nan, scores)


def _fisher_error(candidates: CandidateList) -> Floats:
    error: Floats = 1.0 / np.sqrt(np.maximum(candidates.sample_sizes, 4.0) - 3.0)
    return error


@dataclass(frozen=True, slots=True)
class Ranker:
    """How candidates are ranked."""

    score: Callable[[CandidateList], Floats]  # of each
    words: str = ""  # what it goes by, for --help
    of_pearson: bool = False  # whether it needs intervals of Pearson's r
    is_baseline: bool = False  # whether it does not look at the correlation


RANKERS = {
    "finite-population": Ranker(finite_population, "|r|, less where little of the join was seen"),
    "s1": Ranker(absolute, "the paper's, as the next three: |r|"),
    "s2": Ranker(fisher_penalised, "less by Fisher's error"),
    "s3": Ranker(bootstrap_penalised, "less by half of pm1's interval", of_pearson=True),
    "s4": Ranker(hoeffding_penalised, "less by Hoeffding's, which depends on units", of_pearson=True),
    "jc": Ranker(containment, "overlap alone", is_baseline=True),
    "random": Ranker(random_order, is_baseline=True),
}
DEFAULT_RANKER = next(iter(RANKERS))


def ranker_named(name: str) -> Ranker:
    """Look a ranker up by name."""
    return chosen(name, RANKERS, "ranker")
