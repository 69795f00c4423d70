"""The correlation of two columns after their join, and how sure it is, from their sketches alone."""

from dataclasses import dataclass

import numpy as np

from covary.aggregate import Floats
from covary.errors import CovaryError
from covary.intervals import CONFIDENCE, Interval, Sampled, interval_named
from covary.joins import JoinedSample, join
from covary.measures import DEFAULT_MEASURE, Measure, measure_named, why_undefined
from covary.moments import moments_of
from covary.significance import p_values
from covary.sketches import Sketch


@dataclass(frozen=True, slots=True)
class Estimate:
    """A correlation estimated from two sketches, and how sure it is.

    Attributes:
        correlation: None when it is undefined; `reason` says why.
        low: lower end of the interval; equal to `correlation` when the whole join was seen.
        high: upper end.
        measure: "pearson", "spearman", "rin", "qn", "pm1", "kendall", "distance" or "chatterjee".
        interval: the kind of interval; None when no interval is known to hold for the measure.
        confidence: how often such an interval holds the join's own correlation: 0.95.
        p_value: how often shuffled numbers would look as strongly related; of the measure that scores all
            columns (pearson for pm1; spearman for qn, kendall, distance and chatterjee).
        sample_size: shared keys that the estimate rests on.
        overlap: distinct keys that both columns hold.
        overlap_error: its standard error; 0 when counted.
        containment: the share of the left column's keys that the right column holds.
        containment_error: its standard error.
        join_size: rows of the join after aggregation, one for each shared key.
        exact: whether the sample is the whole join, so that nothing is estimated.
        reason: why there is no correlation, or None.
    """

    correlation: float | None
    low: float | None
    high: float | None
    measure: str
    interval: str | None
    confidence: float
    p_value: float | None
    sample_size: int
    overlap: float
    overlap_error: float
    containment: float
    containment_error: float
    join_size: float
    exact: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class HowToMeasure:
    """What a person may choose about an estimate: the measure, the interval, its confidence, and a seed."""

    measure: str = DEFAULT_MEASURE
    interval: str | None = None
    confidence: float = CONFIDENCE
    seed: int = 0

    def __post_init__(self) -> None:
        known = measure_named(self.measure)
        if self.interval is not None and self.interval not in known.intervals:
            choices = ", ".join(known.intervals) or "none is known to hold"
            raise CovaryError(f"{self.measure} has no interval {self.interval!r}; choose from: {choices}")
        if not isinstance(self.confidence, float) or not 0.5 <= self.confidence < 1.0:
            raise CovaryError(f"the confidence must be at least 0.5 and below 1, not {self.confidence!r}")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise CovaryError(f"the seed must be a whole number of at least 0, not {self.seed!r}")

    @property
    def known(self) -> Measure:
        """The measure behind the name."""
        return measure_named(self.measure)

    def value_of(self, x: Floats, y: Floats) -> float:
        """Measure a sample; NaN when undefined."""
        return self.known.of(x, y, self.seed)

    @property
    def interval_name(self) -> str | None:
        """The interval that was chosen, or the measure's own."""
        return self.interval or next(iter(self.known.intervals), None)


def estimate(
    left: Sketch,
    right: Sketch,
    measure: str = DEFAULT_MEASURE,
    *,
    interval: str | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Estimate:
    """Estimate the correlation of two columns after their join, from their sketches alone.

    Args:
        left: a sketch.
        right: another, made with the same hash.
        measure: "pearson", "spearman", "rin", "qn", "pm1", "kendall", "distance" or "chatterjee".
        interval: "influence" (the default where it holds), "fisher", "pm1", "hoeffding" or "hoeffding-small".
        confidence: how often the interval is to hold the join's own correlation.
        seed: of whatever is random.
    """
    return estimate_sample(join(left, right), HowToMeasure(measure, interval, confidence, seed))


def estimate_sample(sample: JoinedSample, how: HowToMeasure) -> Estimate:
    """Estimate the correlation of the join that a sample was drawn from."""
    r = how.value_of(sample.x, sample.y)
    ends = None if np.isnan(r) else _interval(sample, r, how)
    keys = sample.keys
    return Estimate(
        correlation=None if np.isnan(r) else r,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        measure=how.measure,
        interval=how.interval_name,
        confidence=how.confidence,
        p_value=_p_value(sample, how),
        sample_size=sample.size,
        overlap=keys.intersection.value,
        overlap_error=keys.intersection.error,
        containment=keys.left_containment.value,
        containment_error=keys.left_containment.error,
        join_size=keys.join_size.value,
        exact=sample.exact,
        reason=why_undefined(sample.x, sample.y, how.measure) if np.isnan(r) else None,
    )


def _interval(sample: JoinedSample, r: float, how: HowToMeasure) -> Interval | None:
    if sample.exact:
        return Interval(r, r)
    if how.interval_name is None:
        return None
    given = Sampled(
        sample.x,
        sample.y,
        r,
        how.measure,
        sample.keys.join_size.value,
        sample.x_range,
        sample.y_range,
        how.confidence,
        how.seed,
    )
    return interval_named(how.interval_name, given)


def _p_value(sample: JoinedSample, how: HowToMeasure) -> float | None:
    p = float(p_values(moments_of(sample.x, sample.y, how.known.scores_by))[0])
    return None if np.isnan(p) else p
