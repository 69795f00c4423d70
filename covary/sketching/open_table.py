"""A table of any kind, opened: a Polars, pandas or Arrow frame, or a path, as batches of some columns."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa

from covary.errors import NoSuchColumn, UnreadableTable, UnusableColumn
from covary.sketching.key_choice import split_key
from covary.sketching.key_columns import SEPARATOR
from covary.tables.discover import find_table
from covary.tables.faults import Faults
from covary.tables.location import writable
from covary.tables.read import describe_damage, plan_chunks, read_chunk, read_layout, sample_rows
from covary.tables.reader import Layout
from covary.tables.source import locate_table

Frame = Any  # a Polars, pandas or Arrow table, or the path of a file, or a URL
KeyName = str | Sequence[str]  # a column, or several: "date,zip" or ["date", "zip"]
SAMPLED_CHUNK_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table of any kind, as batches of rows."""

    name: str
    path: str | None  # where it is, down to which table of a database
    columns: tuple[str, ...]
    key: tuple[str, ...]  # the columns of the key
    batches: Iterator[pl.DataFrame]
    sample: pl.DataFrame | None = None  # from all over a large file, to decide how its columns are read
    layout: Layout | None = None
    faults: Faults = field(default_factory=Faults)

    @property
    def damage(self) -> list[str]:
        """What is wrong with it, as far as its batches have been read."""
        return describe_damage(self.layout, self.faults) if self.layout else []


def open_table(frame: Frame, key: KeyName, value: str | None = None) -> OpenTable:
    """Open the columns of a key, and one of numbers; each must be there."""
    if isinstance(frame, str | os.PathLike):
        source = find_table(frame)
        layout = read_layout(source)
        named, wanted = _choose_columns(key, value, source.name, layout.columns)
        chunks = plan_chunks(source, layout, SAMPLED_CHUNK_BYTES)
        faults = Faults()
        batches = (batch for chunk in chunks for batch in read_chunk(chunk, layout, wanted, faults))
        sample = sample_rows(source, layout, chunks)[wanted] if len(chunks) > 1 else None
        path = locate_table(*source.identity)
        name = writable(source.name)
        return OpenTable(name, path, layout.columns, named, batches, sample, layout, faults)
    rows = to_polars(frame)
    named, wanted = _choose_columns(key, value, "the table", rows.columns)
    return OpenTable("", None, tuple(rows.columns), named, iter([rows[wanted]]))


def _choose_columns(
    key: KeyName, value: str | None, table: str, columns: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the columns that make up a key, and all that are read: these and the value."""
    named = _find_key_columns(key, table, columns)
    values = () if value is None else (value,)
    _require(values, table, columns)
    return named, list(dict.fromkeys((*named, *values)))


def _find_key_columns(key: KeyName, table: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that make up a key."""
    if isinstance(key, str):
        named = split_key(key, columns)
        if not named:
            parts = [part.strip() for part in key.split(SEPARATOR)]
            if len(set(parts)) < len(parts):
                raise UnusableColumn(f"the key {key!r} names a column twice; name each once")
            # If it was meant as several columns, the error names the one that is missing, not the whole.
            _require(parts if set(parts) & set(columns) else (key,), table, columns)
        return named
    named = tuple(key) if isinstance(key, Sequence) else (key,)
    _require(named or ("",), table, columns)
    if len(set(named)) < len(named):
        raise UnusableColumn(f"the key {SEPARATOR.join(named)!r} names a column twice; name each once")
    return named


def to_polars(frame: Frame) -> pl.DataFrame:
    """Take a Polars, pandas or Arrow table as a Polars frame."""
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    kind = type(frame).__name__
    try:
        if type(frame).__module__.partition(".")[0] == "pandas" and kind == "DataFrame":
            # Polars has no type for pandas' periods and intervals: they become text.
            types = frame.dtypes.items()
            odd = [name for name, dtype in types if str(dtype).startswith(("period", "interval"))]
            return pl.from_pandas(frame.astype(dict.fromkeys(odd, str)) if odd else frame)
        if hasattr(frame, "__arrow_c_stream__") and kind != "Series":
            return pl.DataFrame(frame)
    except (pl.exceptions.PolarsError, pa.ArrowException, ValueError, TypeError) as problem:
        raise UnreadableTable(f"the {kind}", str(problem).split("\n")[0]) from problem
    raise UnreadableTable(f"a {kind}", "give a Polars, pandas or Arrow table, or the path of a file")


def _require(wanted: Sequence[str], table: str, columns: Iterable[str]) -> None:
    for name in wanted:
        if not isinstance(name, str) or name not in columns:
            raise NoSuchColumn(name, table, columns)
