"""Which keys a table is sketched on: its columns, the pairs that identify rows, or those a person named."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import expm1, log

import numpy as np
import polars as pl

from covary.columns.key_reading import (
    YEAR_READING,
    KeyReading,
    are_years,
    decide_exact_reading,
    decide_key_reading,
)
from covary.columns.key_text import NORMALISERS
from covary.columns.profile import ColumnProfile
from covary.sketching.hashing import HashedColumn, HashScheme
from covary.sketching.key_columns import SEPARATOR, Key, ReadColumn, combine_at

MOST_JOINT_KEYS = 3  # of columns, per table
MOST_PAIRED = 12  # columns, so that at most 66 pairs are looked at
FEWEST_ROWS = 20
IDENTIFYING = 0.95  # distinct keys per row
MOST_ROWS_PER_PAIR = 4
BEYOND_ONE = 1.5  # times as many pairs as distinct values of either column: else one tells the other
LEAST_STRUCTURE = 0.05


def split_key(key: str, columns: Collection[str]) -> tuple[str, ...]:
    """Return the columns that a key names, one or several with commas in between; () if one isn't there."""
    if key in columns:
        return (key,)
    parts = tuple(part.strip() for part in key.split(SEPARATOR))
    return parts if set(parts) <= set(columns) and len(set(parts)) == len(parts) else ()


def decide_keys(
    named: Sequence[tuple[str, ...]],
    rows: pl.DataFrame,
    profiles: Sequence[ColumnProfile],
    normaliser: str,
    whole: bool = True,
) -> list[Key]:
    """Decide how the columns of some keys are read; `whole`: whether these are all rows of the table."""
    known = {profile.name: profile.key for profile in profiles}

    def reading(column: str) -> KeyReading:
        if normaliser == NORMALISERS["exact"]:
            return decide_exact_reading(rows[column])
        if reading := known.get(column):
            return reading
        return (
            YEAR_READING if are_years(rows[column]) else decide_key_reading(column, rows[column], whole=whole)
        )

    return [Key.of(columns, tuple(map(reading, columns))) for columns in named]


def find_joint_keys(
    keys: Sequence[Key],
    read: Mapping[str, ReadColumn],
    profiles: Sequence[ColumnProfile],
    scheme: HashScheme,
) -> list[Key]:
    """Pair the key columns that together identify rows, or nearly, where neither does alone.

    Judged by some rows; those furthest from meeting at random come first.
    """
    keys = [key for key in keys if SEPARATOR not in key.name][:MOST_PAIRED]
    columns = [next(iter(read[key.name].levels.values())) for key in keys]
    counts = [count_keys(column) for column in columns]
    by_name = {profile.name: profile for profile in profiles}
    found: list[tuple[float, bool, int, Key]] = []
    for one, other in combinations(range(len(columns)), 2):
        together = scheme.combine([columns[one], columns[other]])
        rows = together.hashes.size if together.present is None else int(together.present.sum())
        more, fewer = sorted((counts[one], counts[other]), reverse=True)
        if rows < FEWEST_ROWS or fewer < 2 or more >= IDENTIFYING * rows:
            continue
        count = count_keys(together)
        told_apart = max(more * BEYOND_ONE, rows / MOST_ROWS_PER_PAIR)
        structure = _structure(count, more * fewer, rows)
        if count >= IDENTIFYING * rows or (structure and count >= told_apart):
            pair = _pair(keys[one], keys[other], read, scheme)
            if pair.name in by_name:  # a column of that name would be taken for it
                continue
            timeless = not any(by_name[name].is_period for name in pair.columns)
            found.append((-structure, timeless, more + fewer, pair))
    # Then those with a time, and those of the fewest values: the likeliest to be held by other tables.
    return [pair for *_, pair in sorted(found, key=lambda each: each[:3])[:MOST_JOINT_KEYS]]


def _structure(count: int, cells: int, rows: int) -> float:
    """Say how far two columns are from meeting at random: 0 if that explains how many pairs there are.

    The rows of a panel hold each pair once, where chance would repeat some; readings of several things per
    place and day repeat each pair, where chance would hardly repeat any.
    """
    by_chance = cells * -expm1(-rows / cells)
    far = abs(log(count / by_chance))
    return far if far > LEAST_STRUCTURE else 0.0


def _pair(one: Key, other: Key, read: Mapping[str, ReadColumn], scheme: HashScheme) -> Key:
    """Put two keys together, at the granularities that bring keys together: of sparse ones many do not."""
    pair = Key.of(one.columns + other.columns, one.readings + other.readings)
    levels = [read[name].levels for name in pair.columns]
    kept: list[str] = []
    last = float("inf")
    for granularity in pair.granularities:
        if kept and granularity in ("week", "quarter"):
            continue
        count = count_keys(combine_at(levels, granularity, scheme))
        if count <= IDENTIFYING * last:
            kept.append(granularity)
            last = count
    return replace(pair, granularities=tuple(kept))


def count_keys(column: HashedColumn) -> int:
    """Count the keys of a column."""
    held = column.hashes if column.present is None else column.hashes[column.present]
    ordered = np.sort(held)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1 if ordered.size else 0
