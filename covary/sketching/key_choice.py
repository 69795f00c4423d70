"""Which keys a table is sketched on: its columns, two that identify rows, or those a person named."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import expm1, log

import numpy as np
import polars as pl

from covary.arrays import starts_of_runs
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

MOST_JOINT_KEYS = 3  # per table
MOST_JOINED = 12  # columns, so that at most 66 joint keys are looked at
FEWEST_ROWS = 20
IDENTIFYING = 0.95  # distinct keys per row
MOST_ROWS_PER_KEY = 4
# Times as many keys as distinct values of either column: else one column follows from the other.
BEYOND_ONE = 1.5
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
        if are_years(rows[column]):
            return YEAR_READING
        return decide_key_reading(column, rows[column], whole=whole)

    return [Key.of(columns, tuple(map(reading, columns))) for columns in named]


def find_joint_keys(
    keys: Sequence[Key],
    read: Mapping[str, ReadColumn],
    profiles: Sequence[ColumnProfile],
    scheme: HashScheme,
) -> list[Key]:
    """Join two key columns to one key where they identify rows, or nearly, and neither does alone.

    Judged by some rows; those furthest from meeting at random come first.
    """
    keys = [key for key in keys if SEPARATOR not in key.name][:MOST_JOINED]
    columns = [next(iter(read[key.name].levels.values())) for key in keys]
    counts = [count_keys(column) for column in columns]
    by_name = {profile.name: profile for profile in profiles}
    candidates: list[tuple[float, bool, int, Key]] = []
    for one, other in combinations(range(len(columns)), 2):
        together = scheme.combine([columns[one], columns[other]])
        rows = together.hashes.size if together.present is None else int(together.present.sum())
        more, fewer = sorted((counts[one], counts[other]), reverse=True)
        if rows < FEWEST_ROWS or fewer < 2 or more >= IDENTIFYING * rows:
            continue
        count = count_keys(together)
        enough = max(more * BEYOND_ONE, rows / MOST_ROWS_PER_KEY)
        structure = _measure_structure(count, more * fewer, rows)
        if count >= IDENTIFYING * rows or (structure and count >= enough):
            key = _make_joint_key(keys[one], keys[other], read, scheme)
            if key.name in by_name:  # a column of that name would be taken for it
                continue
            timeless = not any(by_name[name].is_period for name in key.columns)
            candidates.append((-structure, timeless, more + fewer, key))
    # Then those with a time, and those of the fewest values: the likeliest to be held by other tables.
    return [key for *_, key in sorted(candidates, key=lambda each: each[:3])[:MOST_JOINT_KEYS]]


def _measure_structure(count: int, cells: int, rows: int) -> float:
    """Say how far two columns are from meeting at random: 0 if that explains how many keys they make.

    The rows of a panel hold each key once, where chance would repeat some; readings of several things per
    town and day repeat each key, where chance would hardly repeat any.
    """
    by_chance = cells * -expm1(-rows / cells)
    far = abs(log(count / by_chance))
    return far if far > LEAST_STRUCTURE else 0.0


def _make_joint_key(one: Key, other: Key, read: Mapping[str, ReadColumn], scheme: HashScheme) -> Key:
    """Put two keys together, at the granularities that bring keys together: of sparse ones many do not."""
    joint = Key.of(one.columns + other.columns, one.readings + other.readings)
    levels = [read[name].levels for name in joint.columns]
    kept: list[str] = []
    last = float("inf")
    for granularity in joint.granularities:
        if kept and granularity in ("week", "quarter"):
            continue
        count = count_keys(combine_at(levels, granularity, scheme))
        if count <= IDENTIFYING * last:
            kept.append(granularity)
            last = count
    return replace(joint, granularities=tuple(kept))


def count_keys(column: HashedColumn) -> int:
    """Count the keys of a column."""
    held = column.hashes if column.present is None else column.hashes[column.present]
    return int(np.count_nonzero(starts_of_runs(np.sort(held))))
