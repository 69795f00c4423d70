"""Rows to hashed keys: one column or several as one key, at each granularity of its times."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial

import numpy as np
import numpy.typing as npt
import polars as pl

from covary.arrays import Integers, Truths, starts_of_runs
from covary.columns.key_reading import CELLS, MARKS, YEAR, KeyReading, read_key_times, write_keys
from covary.columns.key_text import write_key_text
from covary.columns.periods import name_periods, number_periods
from covary.columns.time_forms import ABSENT_TIMES
from covary.columns.times import TimeReading
from covary.columns.unused_cells import Tally, take_examples
from covary.sketching.hashing import SCHEMES, HashedColumn, Hashes, HashScheme
from covary.sketching.sketch_types import SketchConfig

SEPARATOR = ","  # between the columns of a key, as a person writes them
FEW_CELLS = 64
MANY_ROWS = 1 << 15
PROBED_ROWS, REPEATED_SHARE = 1 << 14, 0.75
LONGEST_SHOWN = 1_000  # characters of an example
EXAMPLES_KEPT = 32  # of a column of an index, to show how its keys were made canonical
LAST_BITS = (1 << 16) - 1
SPAN_BITS = 12  # 4,096 periods, hashed together: eleven years of days
MOST_SPANS = 64  # of one column: beyond, the periods themselves are hashed
KEPT_SPANS = 512
VIEWS = pl.CompatLevel.newest()
Examples = tuple[tuple[str, str], ...]
Rows = npt.NDArray[np.intp]
Levels = dict[str, HashedColumn]  # by granularity


@dataclass(frozen=True, slots=True)
class Key:
    """A key: one column or several together, and how each is read."""

    columns: tuple[str, ...]
    readings: tuple[KeyReading, ...]
    granularities: tuple[str, ...]  # at which it is sketched, finest first; ("",) without times
    stored: bool = True  # in an index, or else of a query, which has full room at every granularity

    @classmethod
    def of(cls, columns: tuple[str, ...], readings: tuple[KeyReading, ...]) -> "Key":
        """Make a key that is sketched at every granularity; of several times, each keeps its finest."""
        offered = readings[0].offered if len(readings) == 1 else _list_granularities(readings)
        return cls(columns, readings, offered)

    def for_query(self) -> "Key":
        """Return the key as a query has it: not stored, so at every granularity, however few its keys."""
        return replace(self, granularities=_list_granularities(self.readings), stored=False)

    def rooms(self, config: SketchConfig) -> list[int]:
        """Return how many keys its sketches have room for at each granularity."""
        depths = range(len(self.granularities))
        return [config.room(depth) if self.stored else config.size for depth in depths]

    @property
    def name(self) -> str:
        """The key as a person writes it."""
        return SEPARATOR.join(self.columns)

    @property
    def is_joint(self) -> bool:
        """Whether it is made of several columns."""
        return len(self.columns) > 1


def _list_granularities(readings: Sequence[KeyReading]) -> tuple[str, ...]:
    times = [reading.granularities for reading in readings if any(reading.granularities)]
    return times[0] if len(times) == 1 else ("",)


def collect_readings(keys: Iterable[Key]) -> dict[str, KeyReading]:
    """Return how the columns of some keys are read, each once."""
    return {name: reading for key in keys for name, reading in zip(key.columns, key.readings, strict=True)}


def exact_key(column: str) -> Key:
    """Take the raw text of a column as the key."""
    return Key.of((column,), (KeyReading(),))


@dataclass(frozen=True, slots=True, eq=False)
class HashedKeys:
    """The identities of the rows that have a key, and which rows they are (None: all)."""

    granularity: str
    hashes: Hashes
    rows: Rows | None


@dataclass(frozen=True, slots=True, eq=False)
class ReadColumn:
    """A key column, read: hashed at each granularity, what is no key, and how to have canonical texts."""

    levels: Levels
    unused: Tally
    texts_of: Callable[[Rows], list[str]]  # at the finest granularity

    def examples(self, column: pl.Series, scheme: HashScheme, most: int) -> Examples:
        """Return keys as written and as canonical text: those first in the order of sampling."""
        finest = next(iter(self.levels.values()))
        rows = np.arange(column.len()) if finest.present is None else np.flatnonzero(finest.present)
        orders = scheme.order(finest.hashes[rows])
        ascending = np.argsort(orders, kind="stable")
        chosen = rows[ascending[starts_of_runs(orders[ascending])][:most]]
        written = write_key_text(_take_cells(column, chosen)).cast(pl.String).to_list()
        examples = zip(written, self.texts_of(chosen), strict=True)
        return tuple(example for example in examples if len(example[0]) <= LONGEST_SHOWN)


def _take_cells(column: pl.Series, rows: Rows) -> pl.Series:
    # One by one, few cells are had sooner than by a call of Polars'.
    if rows.size > FEW_CELLS:
        return column.alias(CELLS).gather(rows)
    return pl.Series([column[row] for row in rows.tolist()], dtype=column.dtype)


def _take_texts(texts: pl.Series, rows: Rows) -> list[str]:
    return _take_cells(texts, rows).to_list()


def read_columns(
    rows: pl.DataFrame, readings: Mapping[str, KeyReading], scheme: HashScheme
) -> dict[str, ReadColumn]:
    """Read and hash key columns."""
    columns: dict[str, ReadColumn] = {}
    for name, reading in readings.items():
        if reading.time:
            columns[name] = _read_times(rows[name], reading.time, reading.granularities, scheme)
        elif _repeats(rows[name], reading):
            columns[name] = _read_repeating(rows[name], reading, scheme)
    others = {name: reading for name, reading in readings.items() if name not in columns}
    return columns | _read_texts(rows, others, scheme) if others else columns


def _read_texts(
    rows: pl.DataFrame, readings: Mapping[str, KeyReading], scheme: HashScheme
) -> dict[str, ReadColumn]:
    """Read columns that hold no times, all at once: on a small table the calls of Polars are the cost."""
    texts = write_keys(rows, readings)
    columns: dict[str, ReadColumn] = {}
    for (name, reading), text, hashed in zip(readings.items(), texts, scheme.identify(texts), strict=True):
        keys = _drop_marks(hashed, reading, scheme)
        columns[name] = _make_read_column(reading, keys, partial(_take_texts, text))
    return columns


def _make_read_column(
    reading: KeyReading, keys: HashedColumn, texts_of: Callable[[Rows], list[str]]
) -> ReadColumn:
    missing = 0 if keys.present is None else int(np.count_nonzero(~keys.present))
    return ReadColumn({reading.granularities[0]: keys}, Tally(missing), texts_of)


def _repeats(column: pl.Series, reading: KeyReading) -> bool:
    """Whether a long column of text holds the same cells again and again."""
    if reading.kind == "exact" or column.dtype != pl.String or column.len() <= MANY_ROWS:
        return False
    return column.head(PROBED_ROWS).n_unique() <= REPEATED_SHARE * PROBED_ROWS


def _read_repeating(column: pl.Series, reading: KeyReading, scheme: HashScheme) -> ReadColumn:
    """Read each distinct cell once."""
    # As views of text, which are not copied: a few long cells may stand in millions of rows. Without a name,
    # in which a NUL makes Polars panic.
    encoded = column.alias(CELLS).to_arrow(compat_level=VIEWS).dictionary_encode()
    cells = pl.Series(CELLS, encoded.dictionary)
    distinct = _read_texts(cells.to_frame(), {CELLS: reading}, scheme)[CELLS]
    (hashed,) = distinct.levels.values()
    cell_of_row = encoded.indices.fill_null(0).to_numpy()
    present = None if hashed.present is None else hashed.present[cell_of_row]
    if encoded.null_count:
        is_valid = encoded.is_valid().to_numpy(zero_copy_only=False)
        present = is_valid if present is None else present & is_valid
    keys = HashedColumn(hashed.hashes[cell_of_row], present)
    return _make_read_column(reading, keys, lambda rows: distinct.texts_of(cell_of_row[rows]))


def _drop_marks(column: HashedColumn, reading: KeyReading, scheme: HashScheme) -> HashedColumn:
    """Take marks of absence for what they are, known by their hashes: comparing text takes longer."""
    if reading.kind == "exact":
        return column
    marks, endings = _hash_marks(scheme.name)
    alike = np.flatnonzero(endings[column.hashes & LAST_BITS])  # few rows, if any, have to be looked up
    marked = alike[np.isin(column.hashes[alike], marks)]
    if not marked.size:
        return column
    absent = np.zeros(column.hashes.size, dtype=np.bool_)
    absent[marked] = True
    return HashedColumn(column.hashes, ~absent if column.present is None else column.present & ~absent)


@cache
def _hash_marks(scheme: str) -> tuple[Hashes, Truths]:
    """Return the hashes of all marks of absence, and which last bits they have."""
    marks = SCHEMES[scheme].identify([pl.Series([mark for mark in MARKS if mark])])[0].hashes
    endings = np.zeros(LAST_BITS + 1, dtype=np.bool_)
    endings[marks & LAST_BITS] = True
    return marks, endings


def hash_keys(
    keys: Sequence[Key], columns: Mapping[str, ReadColumn], scheme: HashScheme
) -> list[list[HashedKeys]]:
    """Put the columns of each key together, finest granularity first."""
    return [
        [_hash_at(key, columns, granularity, scheme) for granularity in key.granularities] for key in keys
    ]


def combine_at(columns: Sequence[Levels], granularity: str, scheme: HashScheme) -> HashedColumn:
    """Put columns together at a granularity; one without it has one only: that of its text, or its finest."""
    return scheme.combine([levels.get(granularity) or next(iter(levels.values())) for levels in columns])


def _hash_at(key: Key, columns: Mapping[str, ReadColumn], granularity: str, scheme: HashScheme) -> HashedKeys:
    hashed = combine_at([columns[name].levels for name in key.columns], granularity, scheme)
    if hashed.present is None:
        return HashedKeys(granularity, hashed.hashes, None)
    rows = np.flatnonzero(hashed.present)
    return HashedKeys(granularity, hashed.hashes[rows], rows)


def _read_times(
    column: pl.Series, reading: TimeReading, granularities: Sequence[str], scheme: HashScheme
) -> ReadColumn:
    """Hash the period that each row's time falls in, at each granularity."""
    times = read_key_times(column, reading)
    present = times.is_not_null().to_numpy() if times.null_count() else None
    numbers = number_periods(times.to_physical().fill_null(0).to_numpy(), granularities)
    levels = {
        granularity: HashedColumn(hash_periods(each, granularity, scheme), present)
        for granularity, each in zip(granularities, numbers, strict=True)
    }
    unused = _count_unread(column, times)
    return ReadColumn(levels, unused, lambda rows: name_periods(numbers[0][rows], granularities[0]).to_list())


def hash_periods(numbers: Integers, granularity: str, scheme: HashScheme) -> Hashes:
    """Hash the names of periods, given by their numbers: few are ever needed, so each is hashed once."""
    if not numbers.size:
        return np.empty(0, dtype=scheme.identity_type)
    first, last = int(numbers.min()) >> SPAN_BITS, int(numbers.max()) >> SPAN_BITS
    if granularity == "moment" or last - first >= MOST_SPANS:
        distinct, positions = np.unique(numbers, return_inverse=True)
        return _hash_names(distinct, granularity, scheme)[positions]
    spans = [_hash_span(number, granularity, scheme.name) for number in range(first, last + 1)]
    every = spans[0] if len(spans) == 1 else np.concatenate(spans)
    hashes: Hashes = every[numbers - (first << SPAN_BITS)]
    return hashes


@lru_cache(KEPT_SPANS)
def _hash_span(number: int, granularity: str, scheme: str) -> Hashes:
    first = number << SPAN_BITS
    hashes = _hash_names(np.arange(first, first + (1 << SPAN_BITS)), granularity, SCHEMES[scheme])
    hashes.setflags(write=False)
    return hashes


def _hash_names(numbers: Integers, granularity: str, scheme: HashScheme) -> Hashes:
    names = name_periods(numbers, granularity)
    return scheme.identify([YEAR + names if granularity == "year" else names])[0].hashes.copy()


def _count_unread(column: pl.Series, times: pl.Series) -> Tally:
    nulls = column.null_count()
    if times.null_count() == nulls:
        return Tally(nulls)
    cells = column.alias(CELLS)
    unread = cells.filter(times.is_null() & cells.is_not_null()).cast(pl.String).str.strip_chars()
    unread = unread.filter(~unread.str.to_lowercase().is_in(sorted(ABSENT_TIMES)))
    return Tally(times.null_count() - unread.len(), unread.len(), take_examples(unread))
