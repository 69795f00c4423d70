"""The kernel (paper, section 3): rows to partial sketches, partials to one, one to the finished sketches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from covary.aggregate import AGGREGATES, Floats, Grouped, States, concatenate, fold_rows, merge_states
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
class NumberColumn:
    """A column of numbers ready to be folded: NaN where a value is missing or not finite."""

    values: Floats
    counts: Counts
    has_gaps: bool


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


def number_column(column: pl.Series) -> NumberColumn:
    """Prepare a Float64 column, counting what is missing and what is not finite."""
    nulls = column.null_count()
    values = column.fill_null(float("nan")).to_numpy() if nulls else column.to_numpy()
    finite = np.isfinite(values)
    present = int(np.count_nonzero(finite))
    if present < values.size:
        values = np.where(finite, values, np.nan)
    low, high = (np.nanmin(values), np.nanmax(values)) if present else (np.inf, -np.inf)
    counts = Counts(values.size, 0, nulls, values.size - nulls - present, float(low), float(high))
    return NumberColumn(values, counts, present < values.size)


def sketch_rows(
    rows: pl.DataFrame,
    keys: Sequence[str],
    numbers: Mapping[str, pl.Series],
    config: SketchConfig,
    table: str = "",
    first_row: int = 0,
) -> list[Partial]:
    """Sketch every pair of a key column of `rows` and a Float64 column of `numbers`."""
    partials: list[list[Partial]] = []
    for start in range(0, max(rows.height, 1), ROWS_AT_ONCE):
        part = rows.slice(start, ROWS_AT_ONCE)
        columns = {name: number_column(column.slice(start, ROWS_AT_ONCE)) for name, column in numbers.items()}
        sketched = (_sketch_key(part[key], columns, config, table, first_row + start) for key in keys)
        partials.append([partial for of_key in sketched for partial in of_key])
    return [merge(pieces, config) for pieces in zip(*partials, strict=True)]


def _sketch_key(
    key: pl.Series, columns: Mapping[str, NumberColumn], config: SketchConfig, table: str, first_row: int
) -> list[Partial]:
    """Hash all keys at once, drop the rows above the n-th smallest, and fold only the few that remain."""
    hashes, with_key = config.scheme.identify(key_text(key))
    places = np.arange(key.len()) if with_key is None else with_key
    orders = config.scheme.order(hashes)
    wanted = {name: column for name, column in columns.items() if name != key.name}
    partials = []
    for limit, names in _columns_by_limit(orders, places, wanted, config.size).items():
        near = np.arange(orders.size) if limit is None else np.flatnonzero(orders <= limit)
        distinct, grouped = _group(hashes[near])
        rows = places[near]
        values = np.stack([wanted[name].values[rows] for name in names])
        states = fold_rows(values, grouped, rows + first_row, config.states)
        smallest = _Smallest(distinct, config)
        for column, name in enumerate(names):
            counts = replace(wanted[name].counts, null_keys=key.len() - hashes.size)
            state = {state: array[column] for state, array in states.items()}
            pair = ColumnPair(table, key.name, name)
            partials.append(smallest.cut(Partial(pair, distinct, state, counts, limit is None)))
    return partials


def _columns_by_limit(
    orders: Orders, places: npt.NDArray[np.intp], columns: Mapping[str, NumberColumn], size: int
) -> dict[Any, list[str]]:
    """Group columns by the order above which no row of theirs can be in the sketch."""
    groups: dict[Any, list[str]] = {}
    whole = [name for name, column in columns.items() if not column.has_gaps]
    if whole:
        groups[_nth_smallest(orders, size)] = whole
    for name, column in columns.items():
        if column.has_gaps:
            # A gap takes a key's row away, so the n smallest keys of this column reach further up.
            limit = _nth_smallest(orders[~np.isnan(column.values[places])], size)
            groups.setdefault(limit, []).append(name)
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
        self._first = self._order[: config.size]
        self._first_hashes = hashes[self._first]  # one array, shared by all columns without gaps

    def cut(self, partial: Partial) -> Partial:
        """Keep the n smallest keys that have a value in this column."""
        order, first, hashes = self._order, self._first, self._first_hashes
        present = partial.states["count"] > 0
        if not present.all():
            order = order[present[order]]
            first = order[: self._size]
            hashes = self._hashes[first]
        complete = partial.complete and order.size <= self._size
        states = {name: array[first] for name, array in partial.states.items()}
        return Partial(partial.pair, hashes, states, partial.counts, complete)


def merge(partials: Sequence[Partial], config: SketchConfig) -> Partial:
    """Merge partials of one pair; neither their order nor their grouping changes a bit of the result.

    Exact, because a key among the n smallest overall is among the n smallest of every part that holds it.
    """
    if len(partials) == 1:
        return partials[0]
    hashes = np.concatenate([partial.hashes for partial in partials])
    distinct, grouped = _group(hashes)
    merged = Partial(
        partials[0].pair,
        distinct,
        merge_states(concatenate([partial.states for partial in partials]), grouped),
        reduce(add, (partial.counts for partial in partials)),
        all(partial.complete for partial in partials),
    )
    return _Smallest(distinct, config).cut(merged)


def finish(partial: Partial, config: SketchConfig) -> list[Sketch]:
    """Turn a fully merged partial into one sketch per aggregate."""
    return [
        Sketch(
            partial.pair,
            name,
            config,
            partial.hashes,
            AGGREGATES[name].finish(partial.states),
            partial.counts,
            partial.complete,
        )
        for name in config.aggregates
    ]
