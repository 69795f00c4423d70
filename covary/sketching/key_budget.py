"""How many keys of a table are worth their room: the best ones, so that the index stays in proportion.

Every key is sketched with every number, so a wide table could fill an index with hundreds of times its own
size. What its sketches may take follows from what it holds; beyond that the keys least likely to join go
first, then, where even one key is too much, numbers.
"""

from collections.abc import Sequence
from functools import cached_property
from math import prod

import numpy as np
import polars as pl

from covary.arrays import Integers
from covary.columns.key_reading import FEWEST_PERIODS, KeyReading
from covary.columns.profile import ColumnProfile, take_runs
from covary.columns.reasons import Cause
from covary.sketching.key_choice import count_keys
from covary.sketching.key_columns import Key, read_columns
from covary.sketching.sketch_types import SketchConfig

# What a table is taken to hold, and what its sketches take of an index, in bytes.
CELL_BYTES, COLUMN_BYTES = 8, 64
SKETCH_BYTES, ENTRY_BYTES, KEY_BYTES = 80, 8, 24
# The sketches of a table may take so many times what it holds; those of a small one more.
SHARE, SHARE_OF_SMALL, SMALL_BYTES = 2, 16, 2 << 20
MOST_BYTES = 64 << 20  # of any table, also of what a person named: about a tenth of the memory to make them
LOOKED_AT, RUNS = 16_384, 16  # rows
LONG_TEXT = 64  # bytes on average: more is a remark rather than a key
WIDESPREAD = {"time", "year", "country", "state"}


class Budget:
    """What the sketches of a table may take of an index, and what each key would take."""

    def __init__(
        self,
        rows: pl.DataFrame,
        profiles: Sequence[ColumnProfile],
        config: SketchConfig,
        size: int | None = None,
    ) -> None:
        """Look at a table; `size` are its bytes where it lies, if these are not all of its rows."""
        self._rows = rows
        self._profiles = {profile.name: profile for profile in profiles}
        self._config = config
        self._whole = size is None
        self._present = {column.name: rows.height - column.null_count() for column in rows.get_columns()}
        held = CELL_BYTES * sum(self._present.values()) + COLUMN_BYTES * rows.width
        held = held if size is None else max(held, size)
        self.room = min(max(SHARE * held, min(SHARE_OF_SMALL * held, SMALL_BYTES)), MOST_BYTES)
        self._key_counts: dict[str, dict[str, int]] = {}

    @cached_property
    def _sampled(self) -> pl.DataFrame:
        return take_runs(self._rows, LOOKED_AT, RUNS)

    def choose_keys(
        self, keys: Sequence[Key], numbers: Sequence[str], room: int, *, named: bool
    ) -> list[Key]:
        """Choose the keys for which there is room, but always the likeliest to join, or the first named."""
        present = self._most_keys(numbers)
        if not numbers or sum(self._most_bytes(key, present) for key in keys) <= room:
            return list(keys)
        order = list(range(len(keys)))
        if not named:
            order.sort(key=lambda number: self._reasons_against(keys[number]))
        kept = [order[position] for position in self._fill([keys[each] for each in order], present, room)]
        if order[0] not in kept:
            return [keys[order[0]]]
        return [keys[number] for number in sorted(kept)]

    def choose_joint_keys(
        self, joint: Sequence[Key], keys: Sequence[Key], numbers: Sequence[str]
    ) -> list[Key]:
        """Choose the keys of several columns for which there is room beside the keys of one."""
        present = self._most_keys(numbers)
        if sum(self._most_bytes(key, present) for key in (*keys, *joint)) <= self.room:
            return list(joint)
        left = self.room - sum(self._estimate_bytes(key, present) for key in keys)
        return [joint[number] for number in self._fill(joint, present, left)]

    def choose_numbers(self, keys: Sequence[Key], numbers: Sequence[str], room: int) -> list[str]:
        """Choose the numbers for which there is room with these keys: those of which most cells are there."""
        present = self._most_keys(numbers)
        if sum(self._most_bytes(key, present) for key in keys) <= room:
            return list(numbers)
        costs = np.zeros(len(numbers), dtype=np.int64)
        for key in keys:
            for held in self._estimate_keys(key):
                room -= KEY_BYTES * held
                costs += SKETCH_BYTES + ENTRY_BYTES * np.minimum(held, present)
        fullest = np.argsort(-present, kind="stable")
        fit = int(np.count_nonzero(np.cumsum(costs[fullest]) <= room))
        return [numbers[position] for position in sorted(fullest[: max(fit, 1)].tolist())]

    def _fill(self, keys: Sequence[Key], present: Integers, room: int) -> list[int]:
        """Fill the room with keys, one after the other; return the numbers of those that fit."""
        kept: list[int] = []
        for number, key in enumerate(keys):
            cost = self._estimate_bytes(key, present)
            if cost <= room:
                kept.append(number)
                room -= cost
        return kept

    def _most_keys(self, numbers: Sequence[str]) -> Integers:
        """Count the keys that a sketch of each number can have at most."""
        if not self._whole:
            return np.full(len(numbers), self._config.size, dtype=np.int64)
        return np.array([self._present[name] for name in numbers], dtype=np.int64)

    def _most_bytes(self, key: Key, present: Integers) -> int:
        rows = self._rows.height if self._whole else self._config.size
        return _sum_bytes([min(room, rows) for room in key.rooms(self._config)], present)

    def _estimate_bytes(self, key: Key, present: Integers) -> int:
        return _sum_bytes(self._estimate_keys(key), present)

    def _estimate_keys(self, key: Key) -> list[int]:
        """Estimate the keys that a sketch holds at each granularity."""
        rows = self._sampled.height
        held = []
        for granularity, room in zip(key.granularities, key.rooms(self._config), strict=True):
            of_each = zip(key.columns, key.readings, strict=True)
            distinct = min(prod(self._count_keys(*each, granularity) for each in of_each), rows)
            # Of a part of a table all keys may have been seen only if they repeat.
            held.append(min(room, distinct) if self._whole or 2 * distinct <= rows else room)
        return held

    def _count_keys(self, column: str, reading: KeyReading, granularity: str) -> int:
        """Count the keys of a column in the sample; one without the granularity has one only."""
        counts = self._key_counts.get(column)
        if counts is None:
            if reading.time:
                read = read_columns(self._sampled, {column: reading}, self._config.scheme)
                counts = {level: count_keys(hashed) for level, hashed in read[column].levels.items()}
            else:
                counts = {"": self._sampled[column].n_unique()}
            self._key_counts[column] = counts
        return counts.get(granularity) or next(iter(counts.values()))

    def _reasons_against(self, key: Key) -> tuple[bool, int, float]:
        """Say what speaks against a column as a key: too few keys, what they are, how many are missing."""
        (column,), (reading,) = key.columns, key.readings
        profile, cells = self._profiles[column], self._sampled[column]
        missing = cells.null_count() / max(len(cells), 1)
        return (
            self._count_keys(column, reading, "") < FEWEST_PERIODS,
            _rank_by_likelihood(profile, cells),
            round(missing, 1),
        )


def _sum_bytes(held: Sequence[int], present: Integers) -> int:
    """Estimate what a key takes of an index, given how many keys its sketches hold at each granularity."""
    entries = sum(int(np.minimum(keys, present).sum()) for keys in held)
    return KEY_BYTES * sum(held) + SKETCH_BYTES * len(held) * present.size + ENTRY_BYTES * entries


def _rank_by_likelihood(profile: ColumnProfile, cells: pl.Series) -> int:
    """Rank a key column by how unlikely another table holds it: times and places first, then codes."""
    kind = profile.key.kind if profile.key else "text"
    if kind in WIDESPREAD:
        return 0
    if kind == "boolean" or profile.is_period or profile.reason.cause is Cause.ROW_NUMBER:
        return 2
    if cells.dtype != pl.String:
        return 1
    length = cells.alias("").str.len_bytes().sum() / max(len(cells) - cells.null_count(), 1)
    return 2 if length > LONG_TEXT else 1
