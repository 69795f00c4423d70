"""The kernel (paper, section 3): rows to partial sketches, partials to one, one to the finished sketches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, groupby
from operator import add

import numpy as np
import numpy.typing as npt
import polars as pl

from covary.arrays import Array, starts_of_runs
from covary.columns.unused_cells import Tallies
from covary.sketching.aggregate import (
    AGGREGATES,
    Grouped,
    States,
    concatenate,
    fold_rows,
    merge_states,
    stack,
)
from covary.sketching.hashing import Hashes, HashScheme, Orders, sort_by_order
from covary.sketching.key_columns import (
    HashedKeys,
    Key,
    ReadColumn,
    collect_readings,
    hash_keys,
    read_columns,
)
from covary.sketching.number_columns import NumberColumns, stack_numbers
from covary.sketching.sketch_types import ColumnPair, Partial, Sketch, SketchConfig

ROWS_AT_ONCE = 1 << 21  # at most, so that the limbs of sums stay exact
CELLS_AT_ONCE = 1 << 22  # rows x columns folded in one go: bounds memory
ROWS_WORTH_A_STEP = 1 << 14  # of a wide table rather fewer columns are folded at once than fewer rows
FEWEST_AT_ONCE, MOST_AT_ONCE = 1 << 14, 1 << 18  # rows among which the smallest hashes are looked for

Limit = int | float | None  # the order above which no row can be in a sketch; None: any row can
Smallest = tuple[Hashes, States, bool]  # the smallest keys of a column, and whether those are all of them


def sketch_rows(
    rows: pl.DataFrame,
    keys: Sequence[Key],
    numbers: Mapping[str, pl.Series],
    config: SketchConfig,
    table: str = "",
    first_row: int = 0,
    tallies: Tallies | None = None,
    known: Mapping[str, ReadColumn] | None = None,
) -> list[Partial]:
    """Sketch every pair of a key of `rows`, at each of its granularities, and a Float64 column of `numbers`.

    What can't be used of the key columns is added to `tallies`. `known` holds them, if they have been read.
    """
    if not numbers:
        return []
    tallies = Tallies() if tallies is None else tallies
    parts: list[list[Partial]] = []
    readings = collect_readings(keys)
    step = min(ROWS_AT_ONCE, max(ROWS_WORTH_A_STEP, CELLS_AT_ONCE // len(numbers)))
    for start in range(0, max(rows.height, 1), step):
        if known and rows.height <= step:
            read = known
        else:
            read = read_columns(rows.slice(start, step), readings, config.scheme)
        for name, column in read.items():
            tallies.add(name, column.unused)
        some = {name: column.slice(start, step) for name, column in numbers.items()}
        parts.append(sketch_columns(read, keys, some, config, table, first_row + start))
    return merge_partials(parts, config)


def sketch_columns(
    columns: Mapping[str, ReadColumn],
    keys: Sequence[Key],
    numbers: Mapping[str, pl.Series],
    config: SketchConfig,
    table: str,
    first_row: int,
) -> list[Partial]:
    """Sketch rows whose key columns have been read: of a wide table some number columns at a time."""
    hashed = hash_keys(keys, columns, config.scheme)
    rows = len(next(iter(numbers.values())))
    # Of few rows fewer cells: finding their keys anew for more columns costs little, and saves memory.
    cells = CELLS_AT_ONCE >> 2 if rows <= ROWS_WORTH_A_STEP else CELLS_AT_ONCE
    at_once = max(1, cells // max(rows, 1))
    names = list(numbers)
    # Of each key and granularity one after the other, in however many steps its columns are folded.
    partials: dict[tuple[str, str], list[Partial]] = {
        (key.name, granularity): [] for key in keys for granularity in key.granularities
    }
    for start in range(0, len(names), at_once):
        values = stack_numbers({name: numbers[name] for name in names[start : start + at_once]})
        for key, levels in zip(keys, hashed, strict=True):
            others = values.without(key.columns)
            for partial in _sketch_key(key, levels, others, config, table, first_row):
                partials[key.name, partial.pair.granularity].append(partial)
    return list(chain.from_iterable(partials.values()))


@dataclass(frozen=True, slots=True, eq=False)
class _Folded:
    """All rows folded by key, none dropped: what a coarser granularity can be made from."""

    distinct: Hashes
    states: States
    rows: npt.NDArray[np.intp]  # a row of each key, among those that have one


def _sketch_key(
    key: Key,
    levels: Sequence[HashedKeys],
    columns: NumberColumns,
    config: SketchConfig,
    table: str,
    first_row: int,
) -> list[Partial]:
    """Sketch a key at each granularity: from a finer one where that was folded whole, else from rows."""
    if not columns.names:
        return []
    partials: list[Partial] = []
    finer: _Folded | None = None
    for hashed, room in zip(levels, key.rooms(config), strict=True):
        if finer is None:
            smallest, folded = _fold_rows_near(hashed, columns, config, first_row, room)
        else:
            folded = _fold_finer(hashed, finer, config.scheme)
            smallest = list(_cut(folded.distinct, folded.states, room))
        if hashed.granularity != "week":  # which lies in two months as often as not
            finer = folded
        for column, (kept, states, complete) in enumerate(smallest):
            pair = ColumnPair(table, key.name, columns.names[column], hashed.granularity)
            counts = columns.counts_of(column, hashed.rows)
            partials.append(Partial(pair, kept, states, counts, complete, room))
    return partials


def _fold_finer(hashed: HashedKeys, finer: _Folded, scheme: HashScheme) -> _Folded:
    """Fold the keys of a finer granularity, which are far fewer than the rows."""
    coarse = hashed.hashes[finer.rows]
    distinct, grouped = _group(coarse, scheme.order(coarse), scheme)
    return _Folded(distinct, merge_states(finer.states, grouped), finer.rows[_find_row_of_each_key(grouped)])


def _fold_rows_near(
    hashed: HashedKeys, columns: NumberColumns, config: SketchConfig, first_row: int, room: int
) -> tuple[list[Smallest], _Folded | None]:
    """Drop the rows above the n-th smallest hash, and fold only the few that remain."""
    hashes, orders = hashed.hashes, config.scheme.order(hashed.hashes)
    with_key = np.arange(hashes.size) if hashed.rows is None else hashed.rows
    smallest: dict[int, Smallest] = {}
    folded: _Folded | None = None
    for limit, chosen in _group_columns_by_limit(orders, with_key, columns, room).items():
        near = slice(None) if limit is None else np.flatnonzero(orders <= limit)
        distinct, grouped = _group(hashes[near], orders[near], config.scheme)
        rows = with_key[near]
        every_column = chosen == list(range(len(columns.names)))
        every_cell = every_column and rows.size == columns.values.shape[1]
        values = columns.values if every_cell else columns.values[np.array(chosen)[:, None], rows]
        states = fold_rows(values, grouped, rows + first_row, config.states)
        if limit is None and every_column:
            folded = _Folded(distinct, states, _find_row_of_each_key(grouped))
        for column, (kept, state, complete) in zip(chosen, _cut(distinct, states, room), strict=True):
            smallest[column] = kept, state, complete and limit is None
    return [smallest[column] for column in sorted(smallest)], folded


def _find_row_of_each_key(keys: Grouped) -> npt.NDArray[np.intp]:
    rows = np.empty(keys.count, dtype=np.intp)
    rows[keys.groups] = np.arange(keys.groups.size)
    return rows


def _group_columns_by_limit(
    orders: Orders, with_key: npt.NDArray[np.intp], columns: NumberColumns, size: int
) -> dict[Limit, list[int]]:
    """Group columns by the order above which no row of theirs can be in the sketch."""
    groups: dict[Limit, list[int]] = {}
    whole = np.flatnonzero(~columns.has_gaps).tolist()
    if whole:
        groups[_find_nth_smallest(orders, size)] = whole
    for column in np.flatnonzero(columns.has_gaps).tolist():
        # A gap takes a key's row away, so the n smallest keys of this column reach further up.
        limit = _find_nth_smallest(orders[~np.isnan(columns.values[column][with_key])], size)
        groups.setdefault(limit, []).append(column)
    return groups


def _find_nth_smallest(orders: Orders, size: int) -> Limit:
    """Return the size-th smallest distinct order, or None when no more than `size` are distinct.

    Of few rows none needs to be dropped: there, too, the answer is None.
    """
    if orders.size <= FEWEST_AT_ONCE:
        return None
    smallest = orders[:0]
    cut = False
    start, length = 0, FEWEST_AT_ONCE
    while start < orders.size:
        some = orders[start : start + length]
        start, length = start + length, min(2 * length, MOST_AT_ONCE)
        smaller = some[some < smallest[-1]] if cut else some
        if smaller.size:
            ordered = np.sort(np.concatenate([smallest, smaller]))
            smallest = ordered[starts_of_runs(ordered)]  # faster than np.unique
            cut = cut or smallest.size > size
            smallest = smallest[:size]
    return smallest[-1].item() if cut else None


def _group(hashes: Hashes, orders: Orders, scheme: HashScheme) -> tuple[Hashes, Grouped]:
    """Return the distinct hashes in h_u order, ties by h, and which of them each row has."""
    if hashes.size > MOST_AT_ONCE:
        return _group_many(hashes, scheme)
    in_order = sort_by_order(hashes, orders)
    ordered = hashes[in_order]
    is_new = starts_of_runs(ordered)
    groups = np.empty(hashes.size, dtype=np.intp)
    groups[in_order] = np.cumsum(is_new) - 1
    distinct = ordered[is_new]
    return distinct, Grouped(groups, distinct.size)


def _group_many(hashes: Hashes, scheme: HashScheme) -> tuple[Hashes, Grouped]:
    # Ranking is twice as fast as sorting when rows are many.
    ranks = pl.Series(hashes).rank("dense").to_numpy().astype(np.intp) - 1
    distinct = np.empty(int(ranks.max()) + 1, dtype=hashes.dtype)
    distinct[ranks] = hashes
    in_order = sort_by_order(distinct, scheme.order(distinct))
    group_of_rank = np.empty(distinct.size, dtype=np.intp)
    group_of_rank[in_order] = np.arange(distinct.size)
    return distinct[in_order], Grouped(group_of_rank[ranks], distinct.size)


def _cut(hashes: Hashes, states: States, size: int) -> Iterator[Smallest]:
    """Keep the n smallest keys of each column that have a value."""
    present = states["count"] > 0
    if present.all():  # one array of hashes, shared by all columns
        kept, complete = hashes[:size].copy(), hashes.size <= size
        first = states if complete else {name: _copy_first(array, size) for name, array in states.items()}
        for column in range(present.shape[0]):
            yield kept, {name: array[column] for name, array in first.items()}, complete
        return
    for column in range(present.shape[0]):
        held = np.flatnonzero(present[column])
        state = {name: array[column][held[:size]] for name, array in states.items()}
        yield hashes[held[:size]], state, held.size <= size


def _copy_first(array: Array, size: int) -> Array:
    """Copy the first keys, so that the rest, often many times as much, can be forgotten."""
    if array.strides[0] == 0:  # the same row for all columns
        return np.broadcast_to(array[0, :size].copy(), (array.shape[0], size))
    return array[:, :size].copy()


def merge_partials(parts: Sequence[Sequence[Partial]], config: SketchConfig) -> list[Partial]:
    """Merge the partials of several parts of a table, pair by pair: those that share their keys at once.

    Exact, because a key among the n smallest overall is among the n smallest of every part that holds it.
    Neither the order nor the grouping of the parts changes a bit of the result.
    """
    if len(parts) == 1:
        return list(parts[0])
    merged: list[Partial] = []
    start = 0
    for stop in range(1, len(parts[0]) + 1):
        shares = stop < len(parts[0]) and all(part[stop].hashes is part[start].hashes for part in parts)
        width = (stop - start) * sum(part[start].hashes.size for part in parts)
        if not shares or width >= CELLS_AT_ONCE:
            merged += _merge_columns([part[start:stop] for part in parts], config)
            start = stop
    return merged


def _merge_columns(parts: Sequence[Sequence[Partial]], config: SketchConfig) -> list[Partial]:
    """Merge the partials of columns that have the same keys, in each of several parts."""
    every = np.concatenate([part[0].hashes for part in parts])
    distinct, grouped = _group(every, config.scheme.order(every), config.scheme)
    states = merge_states(
        concatenate([stack([partial.states for partial in part]) for part in parts]), grouped
    )
    room = parts[0][0].room
    merged: list[Partial] = []
    for column, (hashes, state, all_kept) in enumerate(_cut(distinct, states, room)):
        of_pair = [part[column] for part in parts]
        counts = reduce(add, (partial.counts for partial in of_pair))
        complete = all_kept and all(partial.complete for partial in of_pair)
        merged.append(Partial(of_pair[0].pair, hashes, state, counts, complete, room))
    return merged


def finish(partials: Sequence[Partial], config: SketchConfig) -> list[Sketch]:
    """Turn fully merged partials into one sketch per pair and aggregate, in the order of both."""
    sketches: list[Sketch] = []
    sharing = [list(group) for _, group in groupby(partials, key=lambda partial: id(partial.hashes))]
    for _, groups in groupby(sharing, key=len):  # as many columns: the granularities of a key, at once
        alike = list(groups)
        states = concatenate([stack([partial.states for partial in group]) for group in alike])
        values = {name: AGGREGATES[name].finish(states) for name in config.aggregates}
        for array in (*(group[0].hashes for group in alike), *values.values()):
            array.setflags(write=False)  # sketches share them
        start = 0
        for group in alike:
            keys = slice(start, start + group[0].hashes.size)
            start = keys.stop
            sketches += [
                Sketch(p.pair, name, config, p.hashes, values[name][column, keys], p.counts, p.complete)
                for column, p in enumerate(group)
                for name in config.aggregates
            ]
    return sketches
