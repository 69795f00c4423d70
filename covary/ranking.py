"""Scores that order the whole candidate list (paper, section 4.4), and the rule that beats them."""

from collections.abc import Callable

import numpy as np

from covary.aggregate import Floats
from covary.errors import chosen
from covary.intervals import unseen_factor

Ranker = Callable[[Floats, Floats, Floats], Floats]


def _standard_error(sample_size: Floats) -> Floats:
    error: Floats = 1.0 / np.sqrt(np.maximum(sample_size, 4.0) - 3.0)
    return error


def absolute(correlation: Floats, sample_size: Floats, join_size: Floats) -> Floats:
    """s1: |r| (paper, section 4.4)."""
    return np.abs(correlation)


def fisher_penalised(correlation: Floats, sample_size: Floats, join_size: Floats) -> Floats:
    """s2: |r| times one minus the standard error of Fisher's z (paper, section 4.4)."""
    return np.abs(correlation) * (1.0 - _standard_error(sample_size))


def finite_population(correlation: Floats, sample_size: Floats, join_size: Floats) -> Floats:
    """|r|/(1 + error), the error shrinking as the sample approaches the whole join."""
    error = unseen_factor(sample_size, join_size) * _standard_error(sample_size)
    return np.abs(correlation) / (1.0 + error)


DEFAULT_RANKER = "finite-population"
RANKERS: dict[str, Ranker] = {
    DEFAULT_RANKER: finite_population,
    "s1": absolute,
    "s2": fisher_penalised,
}


def ranker_named(name: str) -> Ranker:
    """Look a ranker up by name."""
    return chosen(name, RANKERS, "ranker")
