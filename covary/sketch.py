"""The kernel (paper, section 3): rows to partial sketches, partials to one, one to the finished sketches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import groupby
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from covary.aggregate import AGGREGATES, Floats, Grouped, States, concatenate, fold_rows, merge_states, stack
from covary.errors import SketchError
from covary.hashing import SCHEMES, Hashes, HashScheme, Orders, smallest_first
from covary.keys import NORMALISER, key_text

DEFAULT_SIZE = 1024
ROWS_AT_ONCE = 1 << 21  # rows folded in one go: bounds memory, and keeps the limbs of sums exact
FIRST_BLOCK, LARGEST_BLOCK = 1 << 14, 1 << 18


@dataclass(frozen=True, slots=True)
class SketchConfig:
    """The settings of a sketch; two sketches can be compared when all but the aggregates are equal."""

    size: int = DEFAULT_SIZE
    aggregates: tuple[str, ...] = ("mean",)
    hash: str = "xxhash64"
    normaliser: str = NORMALISER

    def __post_init__(self) -> None:
        if self.size < 3:
            raise SketchError(f"a sketch needs room for at least 3 keys, not {self.size}")
        for name in self.aggregates:
            if name not in AGGREGATES:
                raise SketchError(f"there is no aggregate {name!r}; choose from {', '.join(AGGREGATES)}")
        if self.hash not in SCHEMES:
            raise SketchError(f"there is no hash {self.hash!r}; choose from {', '.join(SCHEMES)}")

    @property
    def scheme(self) -> HashScheme:
        """The hash functions behind the name."""
        return SCHEMES[self.hash]

    @property
    def states(self) -> frozenset[str]:
        """The states that the aggregates need."""
        return frozenset[str]().union(*(AGGREGATES[name].states for name in self.aggregates))


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """A key column and a number column of one table."""

    table: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Counts:
    """What was seen, what was dropped, and the range of the numbers."""

    rows: int
    null_keys: int
    null_values: int
    not_finite: int
    minimum: float
    maximum: float

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.rows + other.rows,
            self.null_keys + other.null_keys,
            self.null_values + other.null_values,
            self.not_finite + other.not_finite,
            min(self.minimum, other.minimum),
            max(self.maximum, other.maximum),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """The sketch of some rows of a table: its n smallest keys in h_u order, with states that merge."""

    pair: ColumnPair
    hashes: Hashes
    states: States
    counts: Counts
    complete: bool


@dataclass(frozen=True, eq=False)
class Sketch:
    """A finished sketch of ⟨key, number⟩: the n smallest keys in h_u order, one number for each."""

    pair: ColumnPair
    aggregate: str
    config: SketchConfig
    key_hashes: Hashes
    values: Floats
    counts: Counts
    complete: bool

    @property
    def size(self) -> int:
        """How many keys the sketch holds."""
        return int(self.key_hashes.size)

    @cached_property
    def units(self) -> Floats:
        """The h_u of each key."""
        return self.config.scheme.unit(self.key_hashes)

    @property
    def threshold(self) -> float:
        """The h_u at which keys were cut off; 1 when none was."""
        return 1.0 if self.complete else float(self.units[-1])

    @property
    def distinct_keys(self) -> float:
        """Distinct keys of the column: exact when complete, else (n-1)/U(n) (paper, section 2.1)."""
        return float(self.size) if self.complete else (self.size - 1) / self.threshold


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """Number columns ready to be folded: one row of the matrix each, NaN where no finite number stands."""

    names: tuple[str, ...]
    values: Floats
    has_gaps: npt.NDArray[np.bool_]
    counts: list[Counts]

    def without(self, name: str) -> "_Numbers":
        kept = [place for place, mine in enumerate(self.names) if mine != name]
        if len(kept) == len(self.names):
            return self
        names = tuple(self.names[place] for place in kept)
        return _Numbers(names, self.values[kept], self.has_gaps[kept], [self.counts[place] for place in kept])


def _numbers(columns: Mapping[str, pl.Series]) -> _Numbers:
    """Stack Float64 columns, counting what is missing and what is not finite."""
    values = np.stack([column.to_numpy() for column in columns.values()])  # nulls arrive as NaN
    finite = np.isfinite(values)
    present = np.count_nonzero(finite, axis=1)
    has_gaps = present < values.shape[1]
    if has_gaps.any():
        values = np.where(finite, values, np.nan)
    lows = np.fmin.reduce(values, axis=1, initial=np.inf) + 0.0  # never -0, which would depend on the order
    highs = np.fmax.reduce(values, axis=1, initial=-np.inf) + 0.0
    nulls = [column.null_count() for column in columns.values()]
    rows = values.shape[1]
    counts = [
        Counts(rows, 0, null, rows - null - count, low, high)
        for null, count, low, high in zip(nulls, present.tolist(), lows.tolist(), highs.tolist(), strict=True)
    ]
    return _Numbers(tuple(columns), values, has_gaps, counts)


def sketch_rows(
    rows: pl.DataFrame,
    keys: Sequence[str],
    numbers: Mapping[str, pl.Series],
    config: SketchConfig,
    table: str = "",
    first_row: int = 0,
) -> list[Partial]:
    """Sketch every pair of a key column of `rows` and a Float64 column of `numbers`, in that order."""
    if not numbers:
        return []
    parts: list[list[Partial]] = []
    for start in range(0, max(rows.height, 1), ROWS_AT_ONCE):
        part = rows.slice(start, ROWS_AT_ONCE)
        columns = _numbers({name: column.slice(start, ROWS_AT_ONCE) for name, column in numbers.items()})
        of_keys = (
            _sketch_key(part[key], columns.without(key), config, table, first_row + start) for key in keys
        )
        parts.append([partial for of_key in of_keys for partial in of_key])
    return [merge(pieces, config) for pieces in zip(*parts, strict=True)]


def _sketch_key(
    key: pl.Series, columns: _Numbers, config: SketchConfig, table: str, first_row: int
) -> list[Partial]:
    """Hash all keys at once, drop the rows above the n-th smallest, and fold only the few that remain."""
    hashes, with_key = config.scheme.identify(key_text(key))
    places = np.arange(key.len()) if with_key is None else with_key
    orders = config.scheme.order(hashes)
    found: dict[int, Partial] = {}
    for limit, chosen in _columns_by_limit(orders, places, columns, config.size).items():
        near = np.arange(orders.size) if limit is None else np.flatnonzero(orders <= limit)
        distinct, grouped = _group(hashes[near])
        rows = places[near]
        states = fold_rows(columns.values[chosen][:, rows], grouped, rows + first_row, config.states)
        smallest = _Smallest(distinct, config)
        for column, (kept, state, complete) in zip(chosen, smallest.cut(states), strict=True):
            counts = replace(columns.counts[column], null_keys=key.len() - hashes.size)
            pair = ColumnPair(table, key.name, columns.names[column])
            found[column] = Partial(pair, kept, state, counts, complete and limit is None)
    return [found[column] for column in sorted(found)]


def _columns_by_limit(
    orders: Orders, places: npt.NDArray[np.intp], columns: _Numbers, size: int
) -> dict[Any, list[int]]:
    """Group columns by the order above which no row of theirs can be in the sketch."""
    groups: dict[Any, list[int]] = {}
    whole = np.flatnonzero(~columns.has_gaps).tolist()
    if whole:
        groups[_nth_smallest(orders, size)] = whole
    for column in np.flatnonzero(columns.has_gaps).tolist():
        # A gap takes a key's row away, so the n smallest keys of this column reach further up.
        limit = _nth_smallest(orders[~np.isnan(columns.values[column][places])], size)
        groups.setdefault(limit, []).append(column)
    return groups


def _nth_smallest(orders: Orders, size: int) -> Any:
    """Return the size-th smallest distinct order, or None when no more than `size` are distinct."""
    smallest = orders[:0]
    cut = False
    start, length = 0, FIRST_BLOCK
    while start < orders.size:
        block = orders[start : start + length]
        start, length = start + length, min(2 * length, LARGEST_BLOCK)
        fresh = block[block < smallest[-1]] if cut else block
        if fresh.size:
            smallest = np.unique(np.concatenate([smallest, fresh]))
            cut = cut or smallest.size > size
            smallest = smallest[:size]
    return smallest[-1].item() if cut else None


def _group(hashes: Hashes) -> tuple[Hashes, Grouped]:
    """Return the distinct hashes, sorted, and which of them each row has."""
    if hashes.size < LARGEST_BLOCK:
        distinct, groups = np.unique(hashes, return_inverse=True)
        return distinct, Grouped(groups, distinct.size)
    groups = pl.Series(hashes).rank("dense").to_numpy().astype(np.intp) - 1  # twice as fast on many rows
    distinct = np.empty(int(groups.max()) + 1, dtype=hashes.dtype)
    distinct[groups] = hashes
    return distinct, Grouped(groups, distinct.size)


class _Smallest:
    """The n smallest of some keys, in h_u order, ties by h (paper, section 3.1)."""

    def __init__(self, hashes: Hashes, config: SketchConfig) -> None:
        self._hashes = hashes
        self._size = config.size
        self._order = smallest_first(config.scheme, hashes)

    def cut(self, states: States) -> Iterator[tuple[Hashes, States, bool]]:
        """For each column keep the n smallest keys that have a value; say whether that was all of them."""
        present = states["count"] > 0
        if present.all():  # one array of hashes, shared by all columns
            first = self._order[: self._size]
            kept, complete = self._hashes[first], self._order.size <= self._size
            states = {name: array[:, first] for name, array in states.items()}
            for column in range(present.shape[0]):
                yield kept, {name: array[column] for name, array in states.items()}, complete
            return
        for column in range(present.shape[0]):
            order = self._order[present[column][self._order]]
            first = order[: self._size]
            state = {name: array[column][first] for name, array in states.items()}
            yield self._hashes[first], state, order.size <= self._size


def merge(partials: Sequence[Partial], config: SketchConfig) -> Partial:
    """Merge partials of one pair; neither their order nor their grouping changes a bit of the result.

    Exact, because a key among the n smallest overall is among the n smallest of every part that holds it.
    """
    if len(partials) == 1:
        return partials[0]
    distinct, grouped = _group(np.concatenate([partial.hashes for partial in partials]))
    states = merge_states(concatenate([partial.states for partial in partials]), grouped)
    one_column = {name: array[None, :] for name, array in states.items()}
    hashes, state, all_kept = next(_Smallest(distinct, config).cut(one_column))
    counts = reduce(add, (partial.counts for partial in partials))
    complete = all_kept and all(partial.complete for partial in partials)
    return Partial(partials[0].pair, hashes, state, counts, complete)


def finish(partials: Sequence[Partial], config: SketchConfig) -> list[Sketch]:
    """Turn fully merged partials into one sketch per pair and aggregate."""
    sketches: list[Sketch] = []
    for _, sharing in groupby(partials, key=lambda partial: id(partial.hashes)):
        alike = list(sharing)
        states = stack([partial.states for partial in alike])  # columns with the same keys at once
        values = {name: AGGREGATES[name].finish(states) for name in config.aggregates}
        sketches += [
            Sketch(p.pair, name, config, p.hashes, values[name][column], p.counts, p.complete)
            for column, p in enumerate(alike)
            for name in config.aggregates
        ]
    return sketches
