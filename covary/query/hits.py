"""What a query answers: the best hits, how many may be chance, and what was left out.

To add an answer column, add a field to Hit and its value to make_hit, and show it in covary.cli.answer_view.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from covary.sketching.sketch_types import ColumnPair, Sketch
from covary.statistics.estimate import Estimate, HowToMeasure, estimate_sample
from covary.statistics.join import join
from covary.statistics.key_sets import distinct_keys


@dataclass(frozen=True, slots=True)
class MetColumns:
    """Two columns that were joined, how each was read, and keys that met only because they were."""

    query: str  # the query's column
    query_reading: str  # what it holds
    column: str  # the hit's column
    reading: str  # what it holds
    # A key as the query writes it, as the hit writes it, and as both were read.
    examples: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """How the keys of a hit met those of the query, column by column."""

    columns: tuple[MetColumns, ...]


@dataclass(frozen=True, slots=True)
class Hit(Estimate):
    """A column of the index that joins with the query, and how it moves with it.

    Attributes:
        table: the table that holds it.
        key: the column it joins on.
        value: the column itself.
        aggregate: how its rows of one key became one number.
        score: what the list is ordered by.
        q_value: the share of chance among all columns at least as strong (Benjamini-Hochberg).
        q_value_by: the same, however the columns depend on each other (Benjamini-Yekutieli).
        rows: rows of the table.
        distinct_keys: distinct keys that have a number, at this granularity.
        dropped_rows: rows without a key or without a number.
        rows_per_key: how many rows became one number, on average.
        granularity: what times were rounded down to so as to join: "hour", "day", ...; "moment" if nothing
            was, "" if the key holds no times.
        query_key: the query's key, its columns in the order in which they meet those of `key`.
        met: the query's columns and those of the hit that they met.
        query_distinct_keys: distinct keys of the query at this granularity.
        query_rows_per_key: how many rows of the query became one number, on average.
        hosts: how many tables join on as few keys as this one, if they are many: such a join says little.
        damaged: whether something was wrong with the table that holds it, though it was read.
        explanation: how the keys met, if that was asked for.
    """

    table: str
    key: str
    value: str
    aggregate: str
    score: float
    q_value: float
    q_value_by: float
    rows: int
    distinct_keys: float
    dropped_rows: int
    rows_per_key: float
    granularity: str
    query_key: str
    met: tuple[tuple[str, str], ...]
    query_distinct_keys: float
    query_rows_per_key: float
    hosts: int | None
    damaged: bool = False
    explanation: Explanation | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the hit as it stands in JSON, its column first."""
        column = {name: getattr(self, name) for name in ("table", "key", "value", "aggregate")}
        return column | asdict(self)


class Standing(NamedTuple):
    """Where a column stands in the list; see Hit."""

    score: float
    q_value: float
    q_value_by: float
    hosts: int | None


def make_hit(
    query: Sketch,
    column: Sketch,
    how: HowToMeasure,
    standing: Standing,
    met: tuple[tuple[str, str], ...],
    damaged: bool,
) -> Hit:
    """Measure a column closely, and tell all that is known of it."""
    counts, keys, own_keys = column.counts, distinct_keys(column).value, distinct_keys(query).value
    return Hit(
        **_fields_of(estimate_sample(join(query, column), how)),
        **_fields_of(column.pair),
        **standing._asdict(),
        aggregate=column.aggregate,
        rows=counts.rows,
        distinct_keys=keys,
        dropped_rows=counts.rows - counts.kept_rows,
        rows_per_key=counts.kept_rows / max(keys, 1.0),
        query_key=query.pair.key,
        met=met,
        query_distinct_keys=own_keys,
        query_rows_per_key=query.counts.kept_rows / max(own_keys, 1.0),
        damaged=damaged,
    )


def _fields_of(value: Estimate | ColumnPair) -> dict[str, Any]:
    # Of plain values only; dataclasses.asdict would copy each, a tenth of what making a hit takes.
    return {name: getattr(value, name) for name in value.__slots__}


@dataclass(frozen=True, slots=True)
class QueryNote:
    """What was asked."""

    table: str
    key: str
    value: str
    aggregate: str
    granularity: str
    rows: int
    distinct_keys: float
    dropped_rows: int

    @classmethod
    def of(cls, sketch: Sketch) -> "QueryNote":
        """Say what a sketch was made of."""
        pair, counts, keys = sketch.pair, sketch.counts, distinct_keys(sketch).value
        dropped = counts.rows - counts.kept_rows
        return cls(
            pair.table, pair.key, pair.value, sketch.aggregate, pair.granularity, counts.rows, keys, dropped
        )


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """The answer: the best hits in order, and what was left out.

    Attributes:
        query: what was asked.
        candidates: columns that share a sampled key with the query.
        hidden: columns looked at, but left out because too few keys are shared.
        own: columns of the queried table itself, left out.
        unrelated: columns left out that share only small numbers, under another name.
        common: columns that join on few keys which many tables share, such as months; ranked lower.
        hosts: how many tables those are.
        constant: joinable columns without a correlation, because a side does not vary where they join.
        tested: columns with a correlation, and so a p-value.
        survivors: how many of them have a q-value of at most `level`.
        level: the share of chance allowed among the survivors: `max_q`, or 0.05.
        correction: which q-values `survivors` and `max_q` go by: "bh" or "by".
        max_q: the largest q-value of a hit, or None.
        retrieve: how many columns were looked at, those sharing the most sampled keys; None for all.
        shortlist: how many columns were measured by a dearer measure, or None when all were.
        undefined: how many of those have no value of that measure.
        scored_by: the measure that scored all columns.
        tested_by: the measure whose test gives the p-values.
        hits: the best, best first.
        by_chance: the best hits of the query with its numbers shuffled, or None when not asked for.
        measure: what the hits were measured by.
        interval: the kind of interval, or None.
        confidence: how often such an interval holds the join's own correlation.
        rank: what the list is ordered by.
        min_sample: the fewest shared keys that a hit may rest on.
        seed: of shuffling, resampling and random ranking.
        ambiguous: columns of the query's key in which day or month first can't be told.
        damage: what is wrong with the queried table, and how it was read all the same.
        elapsed_ms: time taken, sketching the query included.
    """

    query: QueryNote
    candidates: int
    hidden: int
    own: int
    unrelated: int
    common: int
    hosts: int
    constant: int
    tested: int
    survivors: int
    level: float
    correction: str
    max_q: float | None
    retrieve: int | None
    shortlist: int | None
    undefined: int
    scored_by: str
    tested_by: str
    hits: tuple[Hit, ...]
    by_chance: tuple[Hit, ...] | None
    measure: str
    interval: str | None
    confidence: float
    rank: str
    min_sample: int
    seed: int
    ambiguous: tuple[str, ...]
    damage: tuple[str, ...]
    elapsed_ms: float

    @property
    def shown_of(self) -> int:
        """How many columns join on enough keys, of those that were looked at."""
        related = self.candidates - self.unrelated
        looked_at = related if self.retrieve is None else min(related, self.retrieve)
        return looked_at - self.hidden

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, position: Any) -> Any:
        return self.hits[position]

    def __str__(self) -> str:
        lines = (
            f"{number:>3} {estimate_text(hit)} {column_text(hit)}"
            for number, hit in enumerate(self.hits, start=1)
        )
        return "\n".join((f"{self.shown_of} columns join on {self.query.key}", *lines))

    def to_dict(self) -> dict[str, object]:
        """Return the answer as it stands in JSON."""
        by_chance = None if self.by_chance is None else [hit.to_dict() for hit in self.by_chance]
        return asdict(self) | {"hits": [hit.to_dict() for hit in self.hits], "by_chance": by_chance}


def estimate_text(hit: Hit) -> str:
    """Return the estimate of a hit, as a printed answer has it."""
    return (
        f"{_number(hit.correlation)} [{_number(hit.low)}, {_number(hit.high)}] "
        f"n={hit.sample_size} of {'' if hit.exact else '~'}{hit.join_size:.0f} q={hit.q_value:.2g}"
    )


def column_text(hit: Hit) -> str:
    """Return the column of a hit, as a printed answer has it."""
    by = f", by {hit.granularity}" if hit.granularity not in ("", "moment") else ""
    return f"{hit.table}.{hit.value} ({hit.aggregate} per {hit.key}{by})"


def _number(end: float | None) -> str:
    return "?" if end is None else f"{end:+.2f}"
