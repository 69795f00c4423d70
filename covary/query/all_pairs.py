"""The most correlated pairs of columns of a whole index: every column asked against all others.

Columns are asked one by one, like queries, so that a key held by all of them costs each of them the same and
no task all of it. What a task finds is small: its best pairs, and how many p-values it saw of which size.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from covary.arrays import Floats, Integers
from covary.query.ask import Index
from covary.query.candidates import TRUSTED_DIGITS, show_nothing
from covary.query.hits import Hit, QueryNote, column_text, estimate_text
from covary.query.options import Settings
from covary.query.rank_candidates import rank_all
from covary.sketching.sketch_types import Sketch

# p-values are counted in bins a thousandth wide: by their exponent and the first ten bits after it.
BIN_SHIFT = 42
EXACTLY = 10**6  # terms of a sum that are added one by one
PRINTED = 20  # pairs that print() shows


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns of an index that join, and how they move together: one as what was asked, one as a hit."""

    left: QueryNote
    right: Hit

    def to_dict(self) -> dict[str, Any]:
        """Return the pair as it stands in JSON."""
        return {"left": asdict(self.left), "right": self.right.to_dict()}


@dataclass(frozen=True, slots=True)
class Pairs:
    """The most correlated pairs, best first, and how many were compared.

    Attributes:
        path: the folder of the index.
        columns: columns that were asked.
        compared: pairs of columns that share enough keys, each counted once.
        survivors: pairs with a q-value up to `level`.
        level: the share of chance among them.
        pairs: the best.
        elapsed_ms: how long it took.
    """

    path: str
    columns: int
    compared: int
    survivors: int
    level: float
    pairs: tuple[Pair, ...] = field(repr=False)
    elapsed_ms: float

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, place: int) -> Pair:
        return self.pairs[place]

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def __str__(self) -> str:
        lines = [
            f"{place:>3} {estimate_text(pair.right)} "
            f"{pair.left.table}.{pair.left.value} and {column_text(pair.right)}"
            for place, pair in enumerate(self.pairs[:PRINTED], start=1)
        ]
        more = [f"... and {len(self) - PRINTED:,} more"] if len(self) > PRINTED else []
        return "\n".join((f"{self.compared:,} pairs of {self.columns:,} columns compared", *lines, *more))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as it stands in JSON."""
        facts = {name: getattr(self, name) for name in self.__slots__ if name not in {"path", "pairs"}}
        return {"index": self.path} | facts | {"pairs": [pair.to_dict() for pair in self.pairs]}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of an index: their sketches, one for each granularity, the finest first.

    Attributes:
        of_sketch: the column of each sketch, -1 if its table was removed.
        sketches: the sketches, column after column.
        starts: where those of each column start, and where the last end.
    """

    of_sketch: Integers
    sketches: Integers
    starts: Integers

    @property
    def count(self) -> int:
        """How many columns there are."""
        return self.starts.size - 1

    def sketches_of(self, column: int) -> Integers:
        """Return the sketches of one column."""
        return self.sketches[self.starts[column] : self.starts[column + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What some columns were compared with: the best pairs of them, and every p-value, counted.

    Attributes:
        left: sketches that were asked.
        right: sketches that they were compared with.
        scores: of the best pairs.
        chance: their p-values.
        hosts: how many tables join on keys as common as theirs, 0 if they are not.
        bins: kinds of p-values, by size.
        counts: how many there were of each.
    """

    left: Integers
    right: Integers
    scores: Floats
    chance: Floats
    hosts: Integers
    bins: Integers
    counts: Integers


def columns_of(index: Index) -> Columns:
    """Bring together the sketches of each column."""
    of_sketch, first = [np.empty(0, dtype=np.int64)], 0
    for segment in index.segments:
        arrays = segment.segment.arrays
        facts = [segment.table_of, *(arrays[f"sketches.{name}"] for name in ("key", "value", "aggregate"))]
        _, column = np.unique(np.stack(facts), axis=1, return_inverse=True)
        of_sketch.append(np.where(segment.living, column.reshape(-1) + first, -1))
        first += int(column.max(initial=-1)) + 1
    column = np.concatenate(of_sketch)
    # Of one column, sketches lie in the order in which they were made: the finest granularity first.
    order = np.argsort(column, kind="stable")[np.count_nonzero(column < 0) :]
    present, starts = np.unique(column[order], return_index=True)
    numbered = np.full(column.size, -1)
    numbered[order] = np.searchsorted(present, column[order])
    return Columns(numbered, order, np.append(starts, order.size))


def compare_columns(
    index: Index, columns: Columns, some: Iterable[int], settings: Settings, last_bin: int | None = None
) -> Found:
    """Compare some columns with all that come after them.

    Args:
        index: that they are of.
        columns: all of it.
        some: those to compare.
        settings: of the question.
        last_bin: pairs with p-values beyond it are counted, but are not among the best.
    """
    best: list[Found] = []
    for column in some:
        best.append(_compare(index, columns, column, settings, last_bin))
        if len(best) > 100:
            best = [together(best, settings.top)]
    return together(best, settings.top)


def _compare(index: Index, columns: Columns, column: int, settings: Settings, last_bin: int | None) -> Found:
    numbers = columns.sketches_of(column)
    queries = [index.sketch_at(int(number)) for number in numbers]
    ranked = rank_all(index, queries, settings, _same_table(index, int(numbers[0])), show_nothing)
    later = columns.of_sketch[ranked.tested.sketches] > column
    tested, scores, chance = ranked.tested.only(later), ranked.scores[later], ranked.chance[later]
    known = chance[~np.isnan(chance)]
    bins, counts = np.unique(_bins(known), return_counts=True)
    if last_bin is not None:
        scores = np.where(_bins(chance) <= last_bin, scores, np.nan)
    found = Found(
        numbers[tested.asked],
        tested.sketches,
        scores,
        chance,
        np.where(ranked.common[later], ranked.hosts, 0),
        bins,
        counts,
    )
    return together([found], settings.top)


def _bins(chance: Floats) -> Integers:
    """Return the bin of each p-value: positive numbers are ordered as their bits are."""
    bits: Integers = np.ascontiguousarray(chance).view(np.int64) >> BIN_SHIFT
    return bits


def _same_table(index: Index, sketch: int) -> Integers:
    """Return the sketches of the table that a sketch is of."""
    first = 0
    for segment in index.segments:
        if sketch < first + segment.sketch_count:
            own = segment.table_of == segment.table_of[sketch - first]
            return first + np.flatnonzero(own)
        first += segment.sketch_count
    raise IndexError(sketch)


def together(parts: Sequence[Found], top: int) -> Found:
    """Put together what was found apart: the best of all, and all counts."""
    if not parts:
        nothing, none = np.empty(0, dtype=np.int64), np.empty(0)
        return Found(nothing, nothing, none, none, nothing, nothing, nothing)
    left, right, scores, chance, hosts, bins, counts = (
        np.concatenate([getattr(part, name) for part in parts]) for name in Found.__slots__
    )
    rounded = np.where(np.isnan(scores), -np.inf, np.round(scores, TRUSTED_DIGITS))
    order = np.lexsort((right, left, -rounded))[:top]
    order = order[rounded[order] > -np.inf]
    distinct, place = np.unique(bins, return_inverse=True)
    summed = np.bincount(place, weights=counts, minlength=distinct.size).astype(np.int64)
    return Found(left[order], right[order], rounded[order], chance[order], hosts[order], distinct, summed)


def q_values(found: Found) -> dict[str, Floats]:
    """Return the q-value of each bin of p-values, by correction.

    Those of a bin count as the largest of it, so a q-value is at most a thousandth too large.
    """
    tests = max(int(found.counts.sum()), 1)
    largest = ((found.bins + 1) << BIN_SHIFT).view(np.float64)
    q = np.minimum.accumulate((largest * tests / np.cumsum(found.counts))[::-1])[::-1]
    few = np.arange(1, min(tests, EXACTLY) + 1)
    however_dependent = (1 / few).sum() + np.log(tests / few.size)  # 1 + 1/2 + ... + 1/tests
    return {"bh": np.minimum(q, 1.0), "by": np.minimum(q * however_dependent, 1.0)}


def survivors(found: Found, settings: Settings) -> int:
    """Count the pairs whose q-value is small enough."""
    return int(found.counts[q_values(found)[settings.correction] <= settings.level].sum())


def bin_to_ask_for(found: Found, settings: Settings) -> int | None:
    """Return the last bin of p-values that survive, if better pairs that don't have crowded others out."""
    if settings.max_q is None:
        return None
    surviving = found.bins[q_values(found)[settings.correction] <= settings.max_q]
    last = int(surviving.max(initial=-1))
    shown = np.count_nonzero(_bins(found.chance) <= last)
    return last if shown < min(settings.top, survivors(found, settings)) else None


def measured(index: Index, found: Found, settings: Settings) -> Iterator[Pair]:
    """Measure the best pairs closely."""
    q = q_values(found)
    place = np.searchsorted(found.bins, _bins(found.chance))
    both = q["bh"][place], q["by"][place]
    rows = zip(found.left, found.right, found.scores, *both, found.hosts, strict=True)
    for left, right, score, q_value, q_by, hosts in rows:
        if settings.max_q is not None and {"bh": q_value, "by": q_by}[settings.correction] > settings.max_q:
            continue
        query: Sketch = index.sketch_at(int(left))
        hit = index.hit(query, int(right), settings.how, float(score), [q_value, q_by], int(hosts) or None)
        yield Pair(QueryNote.of(query), hit)
