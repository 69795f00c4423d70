"""A frame or a path to a sketch, in this process."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations

import polars as pl

from covary.columns.key_text import choose_normaliser
from covary.columns.numbers import NumberReading
from covary.columns.profile import ColumnProfile, profile_columns
from covary.columns.times import GRANULARITIES
from covary.columns.unused_cells import Tallies
from covary.errors import DamagedTable, NoSuchColumn, UnusableColumn
from covary.sketching.kernel import finish, merge_partials, sketch_rows
from covary.sketching.key_choice import decide_keys
from covary.sketching.key_columns import SEPARATOR, Key, ReadColumn
from covary.sketching.number_columns import read_number_columns
from covary.sketching.open_table import Frame, KeyName, OpenTable, open_table
from covary.sketching.sketch_types import DEFAULT_SIZE, Partial, Sketch, SketchConfig

MOST_KEY_COLUMNS = 3
CHUNK_ROWS = 1 << 40  # a row's number is its chunk times this, plus its number in the chunk
# Partial sketches wait to be merged, many at once, until they are so many or weigh so much.
PARTIALS_AT_ONCE, BYTES_AT_ONCE = 16, 64 << 20
PARTIAL_BYTES = 1024  # of a partial sketch besides its arrays


def sketch_batches(
    batches: Iterable[pl.DataFrame],
    keys: Sequence[Key],
    numbers: Mapping[str, NumberReading],
    config: SketchConfig,
    tallies: Tallies,
    table: str = "",
    chunk: int = 0,
    known: Mapping[str, ReadColumn] | None = None,
) -> list[Partial]:
    """Sketch all pairs of a chunk batch by batch, in memory that does not grow with the chunk.

    `known` holds the key columns of the first batch, if they have been read.
    """
    waiting: list[list[Partial]] = []
    key_tallies = Tallies()
    row, weight = chunk * CHUNK_ROWS, 0
    for rows in batches:
        read = read_number_columns(rows, numbers, tallies)
        waiting.append(sketch_rows(rows, keys, read, config, table, row, key_tallies, known))
        known = None
        row += rows.height
        weight += _weigh(waiting[-1])
        if len(waiting) >= PARTIALS_AT_ONCE or (len(waiting) > 1 and weight >= BYTES_AT_ONCE):
            waiting = [merge_partials(waiting, config)]
            weight = _weigh(waiting[0])
    for name, tally in key_tallies.items():
        if name not in numbers:  # a column that is both is counted once
            tallies.add(name, tally)
    return merge_partials(waiting, config)


def _weigh(partials: Sequence[Partial]) -> int:
    return sum(PARTIAL_BYTES + sum(array.nbytes for array in partial.states.values()) for partial in partials)


def sketch(
    frame: Frame,
    key: KeyName,
    value: str,
    size: int = DEFAULT_SIZE,
    aggregate: str = "mean",
    hash: str = "xxhash64",
    key_text: str | None = None,
    by: str | None = None,
) -> Sketch:
    """Sketch one ⟨key, number⟩ pair of a table: a Polars, pandas or Arrow frame, or a path.

    Args:
        frame: the table.
        key: the column that joins; or several, as "date,zip" or ["date", "zip"].
        value: the column of numbers.
        size: keys to keep; 1,024 gives a correlation of 0 a standard error of 0.03.
        aggregate: how rows of one key become one number.
        hash: "xxhash64", or "murmur3" for the paper's 32 bits.
        key_text: "canonical", or "exact" for raw text; None: exact with murmur3, canonical otherwise.
        by: what times in the key are rounded down to: "hour", "day", "week", "month", "quarter" or "year";
            None: nothing, as they are.
    """
    config = SketchConfig(size, (aggregate,), hash, choose_normaliser(key_text, hash))
    if not isinstance(value, str):
        raise NoSuchColumn(value, "the table", ())
    return sketch_table(open_table(frame, key, value), value, config).at(by)[0].sketch


@dataclass(frozen=True, slots=True, eq=False)
class SketchWithKey:
    """A sketch of a queried table: at one granularity, with the columns of its key in one order."""

    sketch: Sketch
    key: Key


@dataclass(frozen=True, slots=True, eq=False)
class PairSketches:
    """All sketches of one ⟨key, number⟩ pair of a table, finest granularity first."""

    sketches: tuple[SketchWithKey, ...]
    rows: pl.DataFrame  # the first of the table, to show keys as they are written
    damage: tuple[str, ...] = ()  # what is wrong with the table

    def at(self, granularity: str | None) -> tuple[SketchWithKey, ...]:
        """Return the sketches of one granularity, or all."""
        if granularity is None:
            return self.sketches
        if granularity not in GRANULARITIES:
            known = ", ".join(GRANULARITIES)
            raise UnusableColumn(f"there is no granularity {granularity!r}; there are: {known}")
        chosen = tuple(each for each in self.sketches if each.sketch.pair.granularity == granularity)
        if not chosen:
            offered = dict.fromkeys(each.sketch.pair.granularity for each in self.sketches)
            has = f"its times are by {', '.join(offered)}" if any(offered) else "it holds no times"
            key = self.sketches[0].sketch.pair.key
            raise UnusableColumn(f"{key!r} can't be joined by {granularity!r}: {has}")
        return chosen

    @property
    def ambiguous(self) -> tuple[str, ...]:
        """The columns of the key whose cells leave open which number is the day."""
        key = self.sketches[0].key
        times = zip(key.columns, key.readings, strict=True)
        return tuple(name for name, reading in times if reading.time and reading.time.ambiguous)


def sketch_table(
    table: OpenTable, value: str, config: SketchConfig, *, any_order: bool = False
) -> PairSketches:
    """Sketch one pair of an opened table at every granularity, refusing columns that can't serve.

    With `any_order` also with the columns of the key in every other order.
    """
    name = table.name or "the table"
    if value in table.key:
        raise UnusableColumn(f"the key and the value of {name} are both {value!r}; name two columns")
    if len(table.key) > MOST_KEY_COLUMNS:
        raise UnusableColumn(f"a key has at most {MOST_KEY_COLUMNS} columns, not {len(table.key)}")
    first = next(table.batches, None)
    if first is None or not first.height:
        raise UnusableColumn(f"{name} has no rows")
    second = next(table.batches, None)
    batches = chain([first], [] if second is None else [second], table.batches)
    sample, whole = first if table.sample is None else table.sample, second is None
    profiles = profile_columns(sample, whole)
    for column in table.key:
        _check_key(first, column, profiles, name)
    orders = list(permutations(table.key)) if any_order else [table.key]
    decided = decide_keys(orders, sample, profiles, config.normaliser, whole)
    keys = {key.name: key.for_query() for key in decided}
    numbers = {each.name: each.number for each in profiles if each.name == value}
    try:
        partials = sketch_batches(batches, [*keys.values()], numbers, config, Tallies(), table.name)
    except pl.exceptions.PanicException as problem:  # a date beyond what can be written, for example
        columns = f"{SEPARATOR.join(table.key)!r} or {value!r}"
        raise UnusableColumn(f"{columns} of {name} can't be read: {problem}") from None
    damage = tuple(table.damage)
    if damage:
        warnings.warn(f"{name} is damaged: {'; '.join(damage)}", DamagedTable, stacklevel=3)
    sketches = finish(partials, config)
    if not sketches[0].size:
        raise UnusableColumn(_explain_empty(first, table.key, value, name, sketches[0].counts.null_keys))
    finest_first = next(iter(keys.values())).granularities
    sketches.sort(key=lambda sketch: finest_first.index(sketch.pair.granularity))
    with_keys = tuple(SketchWithKey(sketch, keys[sketch.pair.key]) for sketch in sketches)
    return PairSketches(with_keys, first, damage)


def _check_key(rows: pl.DataFrame, key: str, profiles: Sequence[ColumnProfile], table: str) -> None:
    profile = next(each for each in profiles if each.name == key)
    if profile.kind == "number":
        raise UnusableColumn(f"column {key!r} of {table} measures; a key must identify: text, a code, a date")
    if rows[key].dtype.is_nested() or rows[key].dtype in (pl.Binary, pl.Object, pl.Duration):
        raise UnusableColumn(f"column {key!r} of {table} can't be a key: it holds {rows[key].dtype}")


def _explain_empty(rows: pl.DataFrame, key: Sequence[str], value: str, table: str, without_key: int) -> str:
    for column in key:
        if rows[column].null_count() == rows.height:
            return f"key column {column!r} of {table} is empty"
    if without_key >= rows.height:
        mark = str(rows[key[0]].drop_nulls().first())[:40]
        return f"key column {key[0]!r} of {table} holds no keys but, for example, {mark!r}"
    if rows[value].null_count() == rows.height:
        return f"value column {value!r} of {table} is empty"
    example = rows[value].drop_nulls().first()
    return f"value column {value!r} of {table} holds no numbers but, for example, {str(example)[:40]!r}"
