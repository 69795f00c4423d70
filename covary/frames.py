"""A frame or a path to a sketch, in this process."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import polars as pl
import pyarrow as pa

from covary.columns import profile_columns
from covary.errors import NoSuchColumn, UnreadableTable, UnusableColumn
from covary.kernel import finish, merge, sketch_rows
from covary.keys import dates_held_as_times, with_dates
from covary.sketches import DEFAULT_SIZE, Partial, Sketch, SketchConfig
from covary.sources import shown, table_at
from covary.tables import layout_of, plan_chunks, read_chunk

Frame = Any  # a Polars, pandas or Arrow table, or the path of a file
CHUNK_ROWS = 1 << 40  # a row's place in its table is its chunk times this, plus its place in the chunk
PARTIALS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table of any kind, as batches of rows."""

    name: str
    path: str | None
    columns: tuple[str, ...]
    batches: Iterator[pl.DataFrame]


def open_table(frame: Frame, columns: Sequence[str]) -> OpenTable:
    """Open some columns of a table; each must be there."""
    if isinstance(frame, str | os.PathLike):
        source = table_at(frame)
        layout = layout_of(source)
        _require(columns, source.name, layout.columns)
        batches = (
            batch
            for chunk in plan_chunks(source, layout)
            for batch in read_chunk(chunk, layout, list(dict.fromkeys(columns)))
        )
        return OpenTable(shown(source.name), shown(source.path), layout.columns, batches)
    rows = as_polars(frame)
    _require(columns, "the table", rows.columns)
    return OpenTable("", None, tuple(rows.columns), iter([rows[list(dict.fromkeys(columns))]]))


def as_polars(frame: Frame) -> pl.DataFrame:
    """Take a Polars, pandas or Arrow table as a Polars frame."""
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    kind = type(frame).__name__
    try:
        if type(frame).__module__.partition(".")[0] == "pandas" and kind == "DataFrame":
            return pl.from_pandas(frame)
        if hasattr(frame, "__arrow_c_stream__") and kind != "Series":
            return pl.DataFrame(frame)
    except (pl.exceptions.PolarsError, pa.ArrowException, ValueError, TypeError) as problem:
        raise UnreadableTable(f"the {kind}", str(problem).split("\n")[0]) from problem
    raise UnreadableTable(f"a {kind}", "give a Polars, pandas or Arrow table, or the path of a file")


def _require(wanted: Sequence[str], table: str, columns: Iterable[str]) -> None:
    for name in wanted:
        if not isinstance(name, str) or name not in columns:
            raise NoSuchColumn(name, table, columns)


def numbers_of(rows: pl.DataFrame, names: Sequence[str]) -> dict[str, pl.Series]:
    """Read columns as Float64: what is not a number becomes null."""
    return {name: _as_numbers(rows[name]) for name in names}


def _as_numbers(column: pl.Series) -> pl.Series:
    if isinstance(column.dtype, pl.Categorical | pl.Enum):
        column = column.cast(pl.String)
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        return pl.Series(column.name, [None], dtype=pl.Float64).new_from_index(0, column.len())
    numbers = column.cast(pl.Float64, strict=False)
    # White space around a number is rare: strip only where a cell was not understood.
    if column.dtype == pl.String and numbers.null_count() > column.null_count():
        numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    return numbers


def sketch_batches(
    batches: Iterable[pl.DataFrame],
    keys: Sequence[str],
    numbers: Sequence[str],
    config: SketchConfig,
    table: str = "",
    chunk: int = 0,
) -> list[Partial]:
    """Sketch all pairs of a chunk batch by batch, in memory that does not grow with the chunk."""
    waiting: list[list[Partial]] = []
    row = chunk * CHUNK_ROWS
    for rows in batches:
        waiting.append(sketch_rows(rows, keys, numbers_of(rows, numbers), config, table, row))
        row += rows.height
        if len(waiting) >= PARTIALS_AT_ONCE:
            waiting = [merge_all(waiting, config)]
    return merge_all(waiting, config)


def merge_all(parts: Sequence[Sequence[Partial]], config: SketchConfig) -> list[Partial]:
    """Merge the partials of several parts of a table, pair by pair."""
    return [merge(of_pair, config) for of_pair in zip(*parts, strict=True)]


def sketch(
    frame: Frame,
    key: str,
    value: str,
    size: int = DEFAULT_SIZE,
    aggregate: str = "mean",
    hash: str = "xxhash64",
) -> Sketch:
    """Sketch one ⟨key, number⟩ pair of a table: a Polars, pandas or Arrow frame, or a path.

    Args:
        frame: the table.
        key: the column that joins.
        value: the column of numbers.
        size: keys to keep; 1,024 gives a correlation of 0 a standard error of 0.03.
        aggregate: how rows of one key become one number.
        hash: "xxhash64", or "murmur3" for the paper's 32 bits.
    """
    return sketch_table(open_table(frame, [key, value]), key, value, SketchConfig(size, (aggregate,), hash))


def sketch_table(table: OpenTable, key: str, value: str, config: SketchConfig) -> Sketch:
    """Sketch one pair of an opened table, refusing columns that can't serve."""
    name = table.name or "the table"
    if key == value:
        raise UnusableColumn(f"the key and the value of {name} are both {key!r}; name two columns")
    first = next(table.batches, None)
    if first is None or not first.height:
        raise UnusableColumn(f"{name} has no rows")
    _check_key(first, key, name)
    dates = dates_held_as_times(first)
    batches = (with_dates(rows, dates) for rows in chain([first], table.batches))
    try:
        partials = sketch_batches(batches, [key], [value], config, table.name)
    except pl.exceptions.PanicException as problem:  # a date beyond what can be written, for example
        raise UnusableColumn(f"{key!r} or {value!r} of {name} can't be read: {problem}") from None
    finished = finish(partials, config)[0]
    if not finished.size:
        raise UnusableColumn(_why_empty(first, key, value, name))
    return finished


def _check_key(rows: pl.DataFrame, key: str, table: str) -> None:
    profile = profile_columns(rows[[key]])[0]
    if profile.kind == "number":
        raise UnusableColumn(f"column {key!r} of {table} measures; a key must identify: text, a code, a date")
    if rows[key].dtype.is_nested() or rows[key].dtype in (pl.Binary, pl.Object, pl.Duration):
        raise UnusableColumn(f"column {key!r} of {table} can't be a key: it holds {rows[key].dtype}")


def _why_empty(rows: pl.DataFrame, key: str, value: str, table: str) -> str:
    if rows[key].null_count() == rows.height:
        return f"key column {key!r} of {table} is empty"
    if rows[value].null_count() == rows.height:
        return f"value column {value!r} of {table} is empty"
    example = rows[value].drop_nulls().first()
    return f"value column {value!r} of {table} holds no numbers but, for example, {str(example)[:40]!r}"
