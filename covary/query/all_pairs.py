"""The most correlated pairs of columns of a whole index: every column asked against all others.

Each column is used as a query, so that a key which all columns hold costs each of them the same, and no task
all of it. What a task returns is small: its best pairs, and how many p-values there were of which size.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from covary.arrays import Floats, Integers
from covary.query.ask import Index
from covary.query.candidates import TRUSTED_DIGITS, ignore_progress
from covary.query.hits import Hit, QueryNote, Standing, column_text, estimate_text
from covary.query.options import QueryOptions
from covary.query.rank_candidates import rank_candidates

# p-values are counted in bins a thousandth wide: by their exponent and the first ten bits after it.
BIN_SHIFT = 42
TERMS_ADDED_ONE_BY_ONE = 10**6  # the rest of a longer sum by a logarithm
PRINTED = 20  # pairs that print() shows


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns of an index that join, and how they move together: one as what was asked, one as a hit."""

    left: QueryNote
    right: Hit

    def to_dict(self) -> dict[str, object]:
        """Return the pair as it stands in JSON."""
        return {"left": asdict(self.left), "right": self.right.to_dict()}


@dataclass(frozen=True, slots=True)
class Pairs:
    """The most correlated pairs, best first, and how many were compared."""

    path: str  # of the index
    columns: int  # each used as a query
    compared: int  # pairs of columns that share enough keys, each counted once
    survivors: int  # significant pairs: those with a q-value up to `level`
    level: float  # the share of them that chance may have made (the false discovery rate)
    pairs: tuple[Pair, ...] = field(repr=False)
    elapsed_ms: float

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, position: int) -> Pair:
        return self.pairs[position]

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def __str__(self) -> str:
        lines = [
            f"{number:>3} {estimate_text(pair.right)} "
            f"{pair.left.table}.{pair.left.value} and {column_text(pair.right)}"
            for number, pair in enumerate(self.pairs[:PRINTED], start=1)
        ]
        more = [f"... and {len(self) - PRINTED:,} more"] if len(self) > PRINTED else []
        return "\n".join((f"{self.compared:,} pairs of {self.columns:,} columns compared", *lines, *more))

    def to_dict(self) -> dict[str, object]:
        """Return the answer as it stands in JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in {"path", "pairs"}}
        return {"index": self.path} | plain | {"pairs": [pair.to_dict() for pair in self.pairs]}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of an index: their sketches, one for each granularity, the finest first."""

    of_sketch: Integers  # the column of each sketch, -1 if its table was removed
    sketches: Integers  # column after column
    starts: Integers  # where those of each column start, and where the last end

    @property
    def count(self) -> int:
        """How many columns there are."""
        return self.starts.size - 1

    def sketches_of(self, column: int) -> Integers:
        """Return the sketches of one column."""
        return self.sketches[self.starts[column] : self.starts[column + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What some columns were compared with: the best pairs of them, and every p-value, counted."""

    left: Integers  # sketches that were used as queries
    right: Integers  # sketches that they were compared with
    scores: Floats  # of the best pairs
    chance: Floats  # their p-values
    hosts: Integers  # how many tables join on keys as common as theirs, 0 if they are not
    bins: Integers  # kinds of p-values, by size
    counts: Integers  # how many there were of each


def list_columns(index: Index) -> Columns:
    """Bring together the sketches of each column."""
    of_sketch, first = [np.empty(0, dtype=np.int64)], 0
    for segment in index.segments:
        arrays = segment.segment.arrays
        named = [segment.table_of, *(arrays[f"sketches.{name}"] for name in ("key", "value", "aggregate"))]
        _, column = np.unique(np.stack(named), axis=1, return_inverse=True)
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
    index: Index, columns: Columns, some: Iterable[int], options: QueryOptions, last_bin: int | None = None
) -> Comparison:
    """Compare some columns with all that come after them.

    Pairs with p-values beyond the last bin are counted, but are not among the best.
    """
    best: list[Comparison] = []
    for column in some:
        best.append(_compare(index, columns, column, options, last_bin))
        if len(best) > 100:
            best = [merge_comparisons(best, options.top)]
    return merge_comparisons(best, options.top)


def _compare(
    index: Index, columns: Columns, column: int, options: QueryOptions, last_bin: int | None
) -> Comparison:
    numbers = columns.sketches_of(column)
    queries = [index.sketch_at(number) for number in numbers]
    own = index.sketches_beside(numbers[0])
    ranked = rank_candidates(index, queries, options, own, ignore_progress)
    later = columns.of_sketch[ranked.tested.sketches] > column
    tested, scores, chance = ranked.tested.only(later), ranked.scores[later], ranked.chance[later]
    known = chance[~np.isnan(chance)]
    bins, counts = np.unique(_bins(known), return_counts=True)
    if last_bin is not None:
        scores = np.where(_bins(chance) <= last_bin, scores, np.nan)
    hosts = np.where(ranked.common[later], ranked.hosts, 0)
    compared = Comparison(numbers[tested.asked], tested.sketches, scores, chance, hosts, bins, counts)
    return merge_comparisons([compared], options.top)


def _bins(chance: Floats) -> Integers:
    """Return the bin of each p-value: positive numbers are ordered as their bits are."""
    bits: Integers = np.ascontiguousarray(chance).view(np.int64) >> BIN_SHIFT
    return bits


def merge_comparisons(parts: Sequence[Comparison], top: int) -> Comparison:
    """Merge comparisons of different columns: the best pairs of all, and all counts."""
    if not parts:
        nothing, none = np.empty(0, dtype=np.int64), np.empty(0)
        return Comparison(nothing, nothing, none, none, nothing, nothing, nothing)
    left, right, scores, chance, hosts, bins, counts = (
        np.concatenate([getattr(part, name) for part in parts]) for name in Comparison.__slots__
    )
    rounded = np.where(np.isnan(scores), -np.inf, np.round(scores, TRUSTED_DIGITS))
    order = np.lexsort((right, left, -rounded))[:top]
    order = order[rounded[order] > -np.inf]
    distinct, kind = np.unique(bins, return_inverse=True)
    summed = np.bincount(kind, weights=counts, minlength=distinct.size).astype(np.int64)
    return Comparison(
        left[order], right[order], rounded[order], chance[order], hosts[order], distinct, summed
    )


def q_values_of_bins(compared: Comparison) -> dict[str, Floats]:
    """Return the q-value of each bin of p-values, by correction.

    Those of a bin count as the largest of it, so a q-value is at most a thousandth too large.
    """
    tests = max(int(compared.counts.sum()), 1)
    largest = ((compared.bins + 1) << BIN_SHIFT).view(np.float64)
    q = np.minimum.accumulate((largest * tests / np.cumsum(compared.counts))[::-1])[::-1]
    few = np.arange(1, min(tests, TERMS_ADDED_ONE_BY_ONE) + 1)
    however_dependent = (1 / few).sum() + np.log(tests / few.size)  # 1 + 1/2 + ... + 1/tests
    return {"bh": np.minimum(q, 1.0), "by": np.minimum(q * however_dependent, 1.0)}


def count_survivors(compared: Comparison, options: QueryOptions) -> int:
    """Count the pairs whose q-value is small enough."""
    return int(compared.counts[q_values_of_bins(compared)[options.correction] <= options.level].sum())


def find_last_bin(compared: Comparison, options: QueryOptions) -> int | None:
    """Return the last bin of p-values that survive, if better pairs that don't have crowded others out."""
    if options.max_q is None:
        return None
    surviving = compared.bins[q_values_of_bins(compared)[options.correction] <= options.max_q]
    last = int(surviving.max(initial=-1))
    shown = np.count_nonzero(_bins(compared.chance) <= last)
    return last if shown < min(options.top, count_survivors(compared, options)) else None


def measure_pairs(index: Index, compared: Comparison, options: QueryOptions) -> Iterator[Pair]:
    """Measure the best pairs closely."""
    q = q_values_of_bins(compared)
    kinds = np.searchsorted(compared.bins, _bins(compared.chance))
    rows = zip(compared.left, compared.right, compared.scores, compared.hosts, kinds, strict=True)
    for left, right, score, hosts, kind in rows:
        if options.max_q is None or q[options.correction][kind] <= options.max_q:
            query = index.sketch_at(left)
            standing = Standing(float(score), float(q["bh"][kind]), float(q["by"][kind]), int(hosts) or None)
            yield Pair(QueryNote.of(query), index.hit(query, right, options.how, standing))
