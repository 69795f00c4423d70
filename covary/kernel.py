"""The kernel (paper, section 3): rows to partial sketches, partials to one, one to the finished sketches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from covary.aggregate import AGGREGATES, Floats, Grouped, States, concatenate, fold_rows, merge_states, stack
from covary.hashing import HashedKeys, Hashes, HashScheme, Orders, smallest_first
from covary.keys import key_text
from covary.sketches import ColumnPair, Counts, Partial, Sketch, SketchConfig

ROWS_AT_ONCE = 1 << 21  # at most, so that the limbs of sums stay exact
CELLS_AT_ONCE = 1 << 22  # rows x columns folded in one go: bounds memory
FIRST_BLOCK, LARGEST_BLOCK = 1 << 14, 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """Number columns ready to be folded: one row of the matrix each, NaN where no finite number stands."""

    names: tuple[str, ...]
    values: Floats
    has_gaps: npt.NDArray[np.bool_]
    counts: list[Counts]
    odd_rows: list[npt.NDArray[np.intp]]  # per column, where a NaN or an infinity stood

    def without(self, name: str) -> "_Numbers":
        kept = [place for place, mine in enumerate(self.names) if mine != name]
        if len(kept) == len(self.names):
            return self
        names = tuple(self.names[place] for place in kept)
        counts = [self.counts[place] for place in kept]
        odd_rows = [self.odd_rows[place] for place in kept]
        return _Numbers(names, self.values[kept], self.has_gaps[kept], counts, odd_rows)

    def counts_of(self, column: int, with_key: npt.NDArray[np.intp] | None) -> Counts:
        """Count what a column lacks in the rows that have a key: a row is dropped for one reason only."""
        counts = self.counts[column]
        if with_key is None:
            return counts
        missing = int(np.count_nonzero(np.isnan(self.values[column][with_key])))
        odd = int(np.count_nonzero(np.isin(self.odd_rows[column], with_key)))
        null_keys = counts.rows - with_key.size
        return replace(counts, null_keys=null_keys, null_values=missing - odd, not_finite=odd)


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
    odd_rows = [
        _places_of_odd(column) if null + count < rows else np.empty(0, dtype=np.intp)
        for column, null, count in zip(columns.values(), nulls, present.tolist(), strict=True)
    ]
    counts = [
        Counts(rows, 0, null, rows - null - count, low, high)
        for null, count, low, high in zip(nulls, present.tolist(), lows.tolist(), highs.tolist(), strict=True)
    ]
    return _Numbers(tuple(columns), values, has_gaps, counts, odd_rows)


def _places_of_odd(column: pl.Series) -> npt.NDArray[np.intp]:
    return np.flatnonzero(column.is_not_null().to_numpy() & ~np.isfinite(column.to_numpy()))


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
    step = max(1, min(ROWS_AT_ONCE, CELLS_AT_ONCE // len(numbers)))
    for start in range(0, max(rows.height, 1), step):
        part = rows.slice(start, step)
        columns = _numbers({name: column.slice(start, step) for name, column in numbers.items()})
        hashed = config.scheme.identify([key_text(part[key]) for key in keys])
        of_keys = (
            _sketch_key(key, key_hashes, columns, config, table, first_row + start)
            for key, key_hashes in zip(keys, hashed, strict=True)
        )
        parts.append([partial for of_key in of_keys for partial in of_key])
    return [merge(pieces, config) for pieces in zip(*parts, strict=True)]


def _sketch_key(
    key: str, hashed: HashedKeys, columns: _Numbers, config: SketchConfig, table: str, first_row: int
) -> list[Partial]:
    """Drop the rows above the n-th smallest hash, and fold only the few that remain."""
    columns = columns.without(key)
    hashes, orders = hashed.hashes, config.scheme.order(hashed.hashes)
    places = np.arange(hashes.size) if hashed.rows is None else hashed.rows
    found: dict[int, Partial] = {}
    for limit, chosen in _columns_by_limit(orders, places, columns, config.size).items():
        near = slice(None) if limit is None else np.flatnonzero(orders <= limit)
        distinct, grouped = _group(hashes[near], orders[near], config.scheme)
        rows = places[near]
        whole = chosen == list(range(len(columns.names))) and rows.size == columns.values.shape[1]
        values = columns.values if whole else columns.values[np.array(chosen)[:, None], rows]
        states = fold_rows(values, grouped, rows + first_row, config.states)
        for column, (kept, state, complete) in zip(chosen, _cut(distinct, states, config.size), strict=True):
            pair = ColumnPair(table, key, columns.names[column])
            counts = columns.counts_of(column, hashed.rows)
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
    """Return the size-th smallest distinct order, or None when no more than `size` are distinct.

    Of few rows none needs to be dropped: there, too, the answer is None.
    """
    if orders.size <= FIRST_BLOCK:
        return None
    smallest = orders[:0]
    cut = False
    start, length = 0, FIRST_BLOCK
    while start < orders.size:
        block = orders[start : start + length]
        start, length = start + length, min(2 * length, LARGEST_BLOCK)
        fresh = block[block < smallest[-1]] if cut else block
        if fresh.size:
            smallest = _distinct(np.concatenate([smallest, fresh]))
            cut = cut or smallest.size > size
            smallest = smallest[:size]
    return smallest[-1].item() if cut else None


def _distinct(numbers: Orders) -> Orders:
    ordered = np.sort(numbers)  # then comparing neighbours: faster than np.unique
    distinct: Orders = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return distinct


def _group(hashes: Hashes, orders: Orders, scheme: HashScheme) -> tuple[Hashes, Grouped]:
    """Return the distinct hashes in h_u order, ties by h, and which of them each row has."""
    if hashes.size > LARGEST_BLOCK:
        return _group_many(hashes, scheme)
    in_order = smallest_first(hashes, orders)
    ordered = hashes[in_order]
    is_new = np.ones(hashes.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    groups = np.empty(hashes.size, dtype=np.intp)
    groups[in_order] = np.cumsum(is_new) - 1
    distinct = ordered[is_new]
    return distinct, Grouped(groups, distinct.size)


def _group_many(hashes: Hashes, scheme: HashScheme) -> tuple[Hashes, Grouped]:
    # Ranking is twice as fast as sorting when rows are many.
    ranks = pl.Series(hashes).rank("dense").to_numpy().astype(np.intp) - 1
    distinct = np.empty(int(ranks.max()) + 1, dtype=hashes.dtype)
    distinct[ranks] = hashes
    in_order = smallest_first(distinct, scheme.order(distinct))
    place = np.empty(distinct.size, dtype=np.intp)
    place[in_order] = np.arange(distinct.size)
    return distinct[in_order], Grouped(place[ranks], distinct.size)


def _cut(hashes: Hashes, states: States, size: int) -> Iterator[tuple[Hashes, States, bool]]:
    """For each column keep the n smallest keys that have a value; say whether that was all of them."""
    present = states["count"] > 0
    if present.all():  # one array of hashes, shared by all columns
        kept, complete = hashes[:size].copy(), hashes.size <= size
        first = {name: array[:, :size] for name, array in states.items()}
        for column in range(present.shape[0]):
            yield kept, {name: array[column] for name, array in first.items()}, complete
        return
    for column in range(present.shape[0]):
        held = np.flatnonzero(present[column])
        state = {name: array[column][held[:size]] for name, array in states.items()}
        yield hashes[held[:size]], state, held.size <= size


def merge(partials: Sequence[Partial], config: SketchConfig) -> Partial:
    """Merge partials of one pair; neither their order nor their grouping changes a bit of the result.

    Exact, because a key among the n smallest overall is among the n smallest of every part that holds it.
    """
    if len(partials) == 1:
        return partials[0]
    every = np.concatenate([partial.hashes for partial in partials])
    distinct, grouped = _group(every, config.scheme.order(every), config.scheme)
    states = merge_states(concatenate([partial.states for partial in partials]), grouped)
    one_column = {name: array[None, :] for name, array in states.items()}
    hashes, state, all_kept = next(_cut(distinct, one_column, config.size))
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
        for array in (alike[0].hashes, *values.values()):
            array.setflags(write=False)  # sketches share them
        sketches += [
            Sketch(p.pair, name, config, p.hashes, values[name][column], p.counts, p.complete)
            for column, p in enumerate(alike)
            for name in config.aggregates
        ]
    return sketches
