"""Confidence intervals for a correlation estimated from a sample of a join (paper, section 4.3), and ours."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from covary.arrays import Floats
from covary.errors import chosen
from covary.sketching.sketch_types import Range
from covary.statistics.bootstrap import pm1_ends
from covary.statistics.hoeffding import hoeffding_ends
from covary.statistics.influence import influence_ends, unseen_share
from covary.statistics.measures import measure_named
from covary.statistics.moments import moments_of

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """The ends of a confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """What an interval is computed from."""

    x: Floats
    y: Floats
    correlation: float  # what was measured
    measure: str = "pearson"
    join_size: float = inf  # infinite when unknown; the sample's size when the join was seen whole
    x_range: Range = (-inf, inf)  # bounds of all values of the column, after aggregation
    y_range: Range = (-inf, inf)
    confidence: float = CONFIDENCE  # how often intervals hold what they promise
    seed: int = 0  # of resampling

    @property
    def size(self) -> int:
        """How many points were sampled."""
        return int(self.x.size)


def interval_named(name: str, sample: Sampled) -> Interval:
    """Compute the interval of this name: [r, r] when the sample is the whole join."""
    kind = chosen(name, INTERVALS, "interval")
    r = sample.correlation
    if sample.join_size <= sample.size:
        return Interval(r, r)
    ends = kind.compute(sample)
    # Resampled ends, and bounds of next to nothing, may leave the estimate or the scale.
    return Interval(min(r, max(-1.0, ends.low)), max(r, min(1.0, ends.high)))


def influence(sample: Sampled) -> Interval:
    """Our interval: from the influence of each point, wider where few points carry the error."""
    ends = measure_named(sample.measure).influence_ends
    if ends:
        return Interval(*ends(sample.x, sample.y, sample.correlation, sample.join_size, sample.confidence))
    moments = moments_of(sample.x, sample.y)
    low, high = influence_ends(moments, np.array([sample.join_size]), sample.confidence)
    return Interval(float(low[0]), float(high[0]))


def fisher(sample: Sampled) -> Interval:
    """Fisher's z interval, narrowed by how much of the join was seen: too narrow on skewed columns."""
    from scipy.special import ndtri  # noqa: PLC0415

    r = sample.correlation
    if sample.size <= 3:
        return Interval(-1.0, 1.0)
    if abs(r) == 1.0:
        return Interval(r, r)
    unseen = float(unseen_share(sample.size, sample.join_size))
    half = float(ndtri(0.5 + sample.confidence / 2.0)) * np.sqrt(unseen / (sample.size - 3))
    return Interval(float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half)))


def pm1(sample: Sampled) -> Interval:
    """Modified percentiles of 599 resamples (paper, section 5.3), made for 95 %."""
    return Interval(*pm1_ends(sample.x, sample.y, sample.seed))


def hoeffding(sample: Sampled) -> Interval:
    """The paper's bound for any distribution: true, and [-1, 1] below some thousands of points."""
    return Interval(*hoeffding_ends(sample.x, sample.y, sample.x_range, sample.y_range, sample.confidence))


def hoeffding_small(sample: Sampled) -> Interval:
    """The paper's variant for small samples (HFD): it compares risks, and promises nothing."""
    ranges = sample.x_range, sample.y_range
    return Interval(*hoeffding_ends(sample.x, sample.y, *ranges, sample.confidence, small_sample=True))


@dataclass(frozen=True, slots=True)
class IntervalKind:
    """How an interval is computed, and in words for --help what it is good for."""

    compute: Callable[[Sampled], Interval]
    words: str = ""


INTERVALS = {
    "influence": IntervalKind(influence, "honest on skewed columns"),
    "fisher": IntervalKind(fisher),
    "pm1": IntervalKind(pm1),
    "hoeffding": IntervalKind(hoeffding, "the paper's"),
    "hoeffding-small": IntervalKind(hoeffding_small, "the paper's for small samples"),
}
