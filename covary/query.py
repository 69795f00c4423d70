"""The top-k join-correlation query (paper, section 4): the method on one screen."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from covary.correlation import SMALLEST_SAMPLE, measure_named
from covary.errors import CovaryError
from covary.frames import Frame, open_table, sketch_table
from covary.index import Candidates, StoredSketches
from covary.intervals import fisher
from covary.joins import JoinedSample, check_comparable, join
from covary.ranking import DEFAULT_RANKER, ranker_named
from covary.sketches import Sketch, SketchConfig

DEFAULT_TOP = 10
TRUSTED_DIGITS = 9
DEFAULT_MIN_SAMPLE = 10  # on fewer keys, columns that have nothing to do with each other often look alike


@dataclass(frozen=True, slots=True)
class Estimate:
    """A correlation estimated from two sketches, and how sure it is.

    Attributes:
        correlation: None when it is undefined: fewer than three shared keys, or a constant column.
        low: lower end of the 95 % interval; equal to `correlation` when the whole join was seen.
        high: upper end.
        measure: "pearson" or "spearman".
        sample_size: shared keys that the estimate rests on.
        overlap: distinct keys that both columns hold.
        containment: the share of the left column's keys that the right column holds.
        join_size: rows of the join after aggregation, one for each shared key.
        exact: whether the sample is the whole join, so that nothing is estimated.
    """

    correlation: float | None
    low: float | None
    high: float | None
    measure: str
    sample_size: int
    overlap: float
    containment: float
    join_size: float
    exact: bool


@dataclass(frozen=True, slots=True)
class Hit(Estimate):
    """A column of the index that joins with the query, and how it moves with it.

    Attributes:
        table: the table that holds it.
        key: the column it joins on.
        value: the column itself.
        aggregate: how its rows of one key became one number.
        score: what the list is ordered by.
        rows: rows of the table.
        distinct_keys: distinct keys that have a number.
        dropped_rows: rows without a key or without a number.
    """

    table: str
    key: str
    value: str
    aggregate: str
    score: float
    rows: int
    distinct_keys: float
    dropped_rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as it stands in JSON, its column first."""
        column = {name: getattr(self, name) for name in ("table", "key", "value", "aggregate")}
        return column | asdict(self)


@dataclass(frozen=True, slots=True)
class QueryNote:
    """What was asked."""

    table: str
    key: str
    value: str
    aggregate: str
    rows: int
    distinct_keys: float
    dropped_rows: int

    @classmethod
    def of(cls, sketch: Sketch) -> "QueryNote":
        """Say what a sketch was made of."""
        pair, keys = sketch.pair, sketch.distinct_keys
        rows, dropped = sketch.counts.rows, _dropped(sketch)
        return cls(pair.table, pair.key, pair.value, sketch.aggregate, rows, keys, dropped)


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """The answer: the best hits in order, and what was left out.

    Attributes:
        query: what was asked.
        candidates: joinable columns that were scored.
        hidden: joinable columns left out because too few keys are shared.
        own: columns of the queried table itself, left out.
        constant: joinable columns without a correlation, because a side does not vary where they join.
        hits: the best, best first.
        min_sample: the fewest shared keys that a hit may rest on.
        elapsed_ms: time taken, sketching the query included.
    """

    query: QueryNote
    candidates: int
    hidden: int
    own: int
    constant: int
    hits: tuple[Hit, ...]
    measure: str
    rank: str
    min_sample: int
    elapsed_ms: float

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: Any) -> Any:
        return self.hits[place]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __str__(self) -> str:
        lines = (
            f"{place:>3} {hit.correlation:+.2f} [{hit.low:+.2f}, {hit.high:+.2f}] n={hit.sample_size}  "
            f"{hit.table}.{hit.value} ({hit.aggregate} per {hit.key})"
            for place, hit in enumerate(self.hits, start=1)
        )
        return "\n".join((f"{self.candidates} columns join with {self.query.key}", *lines))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as it stands in JSON."""
        return asdict(self) | {"hits": [hit.to_dict() for hit in self.hits]}


def estimate(left: Sketch, right: Sketch, measure: str = "pearson") -> Estimate:
    """Estimate the correlation of two columns after their join, from their sketches alone."""
    return estimate_sample(join(left, right), measure)


def estimate_sample(sample: JoinedSample, measure: str) -> Estimate:
    """Estimate the correlation of the join that a sample was drawn from."""
    r = measure_named(measure)(sample.x, sample.y)
    meeting = sample.join
    common = (measure, sample.size, meeting.overlap, meeting.containment, meeting.overlap, meeting.exact)
    if np.isnan(r):
        return Estimate(None, None, None, *common)
    interval = fisher(r, sample.size, sample.size if meeting.exact else meeting.overlap)
    return Estimate(r, interval.low, interval.high, *common)


class Index(StoredSketches):
    """An index opened for questions."""

    def query(
        self,
        frame: Frame,
        key: str,
        value: str,
        *,
        aggregate: str = "mean",
        top: int = DEFAULT_TOP,
        measure: str = "pearson",
        rank: str = DEFAULT_RANKER,
        min_sample: int = DEFAULT_MIN_SAMPLE,
        retrieve: int | None = None,
        include_own: bool = False,
    ) -> Hits:
        """Find the columns that join with a table on `key` and move with its column `value`.

        Args:
            frame: a Polars, pandas or Arrow table, or the path of a file.
            key: the column to join on.
            value: the column of numbers.
            aggregate: how rows of one key of the query become one number.
            top: how many hits to return.
            measure: "pearson" or "spearman".
            rank: "finite-population", or the paper's "s1" or "s2".
            min_sample: the fewest shared keys that a hit may rest on.
            retrieve: rank only this many columns, those with the largest overlap; the paper takes 100.
            include_own: also return columns of the queried file, if the index holds it.
        """
        started = time.perf_counter()
        measure_named(measure)
        ranker_named(rank)
        _require_at_least(1, top, "the number of hits")
        _require_at_least(0, min_sample, "the smallest sample")
        if retrieve is not None:
            _require_at_least(1, retrieve, "the number of columns to rank")
        config = SketchConfig(self.config.size, (aggregate,), self.config.hash)
        check_comparable(self.config, config)
        table = open_table(frame, [key, value])
        query = sketch_table(table, key, value, config)
        scored = self.score(query, measure)
        own = np.isin(scored.sketches, self.made_from(table.path))
        candidates = scored if include_own else scored.only(~own)
        if retrieve is not None:
            candidates = _largest_overlap(candidates, retrieve)
        shown = candidates.only(candidates.sample_sizes >= max(min_sample, SMALLEST_SAMPLE))
        best = _best(shown, rank, top)
        return Hits(
            query=QueryNote.of(query),
            candidates=int(candidates.sketches.size),
            hidden=int(candidates.sketches.size - shown.sketches.size),
            own=0 if include_own else int(np.count_nonzero(own)),
            constant=int(np.count_nonzero(np.isnan(shown.correlations))),
            hits=tuple(_hit(self, query, int(shown.sketches[at]), score, measure) for at, score in best),
            measure=measure,
            rank=rank,
            min_sample=min_sample,
            elapsed_ms=(time.perf_counter() - started) * 1e3,
        )


def open_index(path: str | Path) -> Index:
    """Open an index, checking every file against its checksum. Needs neither Spark nor Java."""
    return Index.open(path)


def _require_at_least(least: int, number: object, what: str) -> None:
    if not isinstance(number, int) or number < least:
        raise CovaryError(f"{what} must be a whole number of at least {least}, not {number!r}")


def _largest_overlap(candidates: Candidates, count: int) -> Candidates:
    order = np.lexsort((candidates.sketches, -candidates.sample_sizes))
    return candidates.only(order[:count])


def _best(candidates: Candidates, rank: str, top: int) -> list[tuple[int, float]]:
    """Return place and score of the best, best first; equal scores come in the order of the index."""
    scores = ranker_named(rank)(candidates.correlations, candidates.sample_sizes, candidates.join_sizes)
    # The last digits depend on the order of sums: without them copies of a column tie. NaN never leads.
    scores = np.where(np.isnan(scores), -np.inf, np.round(scores, TRUSTED_DIGITS))
    if scores.size > 4 * top:
        near = np.flatnonzero(scores >= np.partition(scores, -top)[-top])
    else:
        near = np.arange(scores.size)
    order = near[np.lexsort((candidates.sketches[near], -scores[near]))][:top]
    return [(int(place), float(scores[place])) for place in order if scores[place] > -np.inf]


def _hit(index: StoredSketches, query: Sketch, number: int, score: float, measure: str) -> Hit:
    found = index.sketch_at(number)
    return Hit(
        **asdict(estimate(query, found, measure)),
        **asdict(found.pair),
        aggregate=found.aggregate,
        score=score,
        rows=found.counts.rows,
        distinct_keys=found.distinct_keys,
        dropped_rows=_dropped(found),
    )


def _dropped(sketch: Sketch) -> int:
    """Count the rows without a key or without a number."""
    counts = sketch.counts
    return counts.null_keys + counts.null_values + counts.not_finite
