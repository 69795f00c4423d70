"""How a question is to be answered: what a person may choose, checked."""

from dataclasses import dataclass, field
from numbers import Integral, Real

import numpy as np

from covary.arrays import Floats, Integers
from covary.errors import CovaryError
from covary.statistics.correlation import SMALLEST_SAMPLE
from covary.statistics.estimate import HowToMeasure
from covary.statistics.ranking import DEFAULT_RANKER, OF_PEARSON, ranker_named
from covary.statistics.significance import correction_named

DEFAULT_TOP = 10
DEFAULT_MIN_SAMPLE = 10  # on fewer keys, columns that have nothing to do with each other often look alike
DEFAULT_LEVEL = 0.05  # share of chance among the columns that are said to survive
DEFAULT_SHORTLIST = 200
DEFAULT_CORRECTION = "bh"


@dataclass(frozen=True, slots=True)
class Settings:
    """How a question is to be answered; see Index.query."""

    how: HowToMeasure = field(default_factory=HowToMeasure)
    rank: str = DEFAULT_RANKER
    top: int = DEFAULT_TOP
    min_sample: int = DEFAULT_MIN_SAMPLE
    retrieve: int | None = None
    shortlist: int = DEFAULT_SHORTLIST
    max_q: float | None = None
    correction: str = DEFAULT_CORRECTION
    small_numbers: bool = False

    def __post_init__(self) -> None:
        ranker_named(self.rank)
        correction_named(self.correction)
        _require_at_least(1, self.top, "the number of hits (--top)")
        _require_at_least(0, self.min_sample, "the smallest sample (--min-sample)")
        _require_at_least(1, self.shortlist, "the length of the shortlist (--shortlist)")
        if self.retrieve is not None:
            _require_at_least(1, self.retrieve, "the number of columns to rank (--retrieve)")
        if self.max_q is not None and not (isinstance(self.max_q, Real) and 0 < self.max_q <= 1):
            raise CovaryError(f"the largest q (--max-q) must be above 0 and at most 1, not {self.max_q!r}")
        if self.rank in OF_PEARSON and self.how.definition.scores_by != "pearson":
            raise CovaryError(f"{self.rank} ranks by Pearson's r: use --measure pearson, or another --rank")

    @property
    def level(self) -> float:
        """The share of chance up to which columns are said to survive."""
        return DEFAULT_LEVEL if self.max_q is None else float(self.max_q)

    @property
    def fewest_pairs(self) -> int:
        """The fewest pairs that a hit may rest on."""
        return max(self.min_sample, SMALLEST_SAMPLE)

    def allowed(self, scores: Floats, chance: Floats, places: Integers) -> Floats:
        """Take the scores off those whose q-value is too large."""
        if self.max_q is None:
            return scores
        return np.where(correction_named(self.correction)(chance)[places] <= self.max_q, scores, np.nan)


def _require_at_least(least: int, number: object, what: str) -> None:
    if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
        raise CovaryError(f"{what} must be a whole number of at least {least}, not {number!r}")
