"""The correlation of two columns after their join, and how sure it is, from their sketches alone."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from covary.errors import CovaryError
from covary.sketching.sketch_types import Sketch
from covary.statistics.intervals import CONFIDENCE, Interval, Sampled, interval_named
from covary.statistics.join import JoinedSample, join
from covary.statistics.measures import DEFAULT_MEASURE, Measure, measure_named, why_undefined
from covary.statistics.moments import moments_of
from covary.statistics.significance import p_values


@dataclass(frozen=True, slots=True)
class Estimate:
    """A correlation estimated from two sketches, and how sure it is.

    Attributes:
        correlation: None when it is undefined; `reason` says why.
        low: lower end of the interval; equal to `correlation` when the whole join was seen.
        high: upper end.
        measure: one of those that `covary query --help` lists.
        interval: the kind of interval; None when no interval is known to hold for the measure.
        confidence: how often such an interval is to hold the join's own correlation.
        p_value: how often shuffled numbers would look as strongly related, by a test of the measure itself
            or, where it has none, by that of the measure that all columns were scored by first.
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
            if not known.intervals:
                raise CovaryError(f"no interval is known to hold for {self.measure}: leave it out")
            choices = ", ".join(known.intervals)
            raise CovaryError(f"{self.measure} has no interval {self.interval!r}; choose from {choices}")
        if self.interval_name == "pm1" and self.confidence != CONFIDENCE:
            raise CovaryError("the interval pm1 is made for a confidence of 0.95; choose another one")
        if not isinstance(self.confidence, Real) or not 0.5 <= self.confidence < 1.0:
            raise CovaryError(f"the confidence must be at least 0.5 and below 1, not {self.confidence!r}")
        if not isinstance(self.seed, Integral) or self.seed < 0:
            raise CovaryError(f"the seed must be a whole number of at least 0, not {self.seed!r}")

    @property
    def definition(self) -> Measure:
        """The measure behind the name."""
        return measure_named(self.measure)

    @property
    def dearer(self) -> bool:
        """Whether the measure is too dear for all columns, so that another scores them first."""
        return self.definition.scores_by != self.measure

    @property
    def tested_by(self) -> str:
        """The measure whose test gives the p-values."""
        return self.measure if self.definition.p_value else self.definition.scores_by

    def value_of(self, sample: JoinedSample) -> float:
        """Measure a sample, or what the measure estimates when the sample is the whole join."""
        estimated = self.definition.estimates
        measured_by = measure_named(estimated) if estimated and sample.exact else self.definition
        return measured_by.of(sample.x, sample.y, self.seed)

    def p_value_of(self, sample: JoinedSample) -> float:
        """Return how often shuffled numbers would look as strongly related; NaN when undefined."""
        if self.definition.p_value:
            return self.definition.p_value(sample.x, sample.y)
        return float(p_values(moments_of(sample.x, sample.y, self.definition.scores_by))[0])

    @property
    def interval_name(self) -> str | None:
        """The interval that was chosen, or the measure's own."""
        return self.interval or next(iter(self.definition.intervals), None)


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
        measure: one of those that `covary query --help` lists.
        interval: one that holds for the measure; None: the first of these.
        confidence: how often the interval is to hold the join's own correlation.
        seed: of whatever is random.
    """
    return estimate_sample(join(left, right), HowToMeasure(measure, interval, confidence, seed))


def estimate_sample(sample: JoinedSample, how: HowToMeasure) -> Estimate:
    """Estimate the correlation of the join that a sample was drawn from."""
    r, p = how.value_of(sample), how.p_value_of(sample)
    ends = None if np.isnan(r) else _interval(sample, r, how)
    keys = sample.keys
    return Estimate(
        correlation=None if np.isnan(r) else r,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        measure=how.measure,
        interval=how.interval_name,
        confidence=how.confidence,
        p_value=None if np.isnan(p) else p,
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
    size, ranges = sample.keys.join_size.value, (sample.x_range, sample.y_range)
    given = Sampled(sample.x, sample.y, r, how.measure, size, *ranges, how.confidence, how.seed)
    return interval_named(how.interval_name, given)
