"""What an index remembers of a table: where it came from, what its columns serve as, what was lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import polars as pl
import pyarrow as pa

from covary.tables.source import locate_table

COLUMN_NOTE = pl.Struct(
    {
        "name": pl.String,
        "kind": pl.String,
        "role": pl.String,
        "reason": pl.String,
        "keys": pl.List(pl.String),
        "missing": pl.Int64,
        "not_understood": pl.Int64,
        "not_understood_examples": pl.List(pl.String),
        "canonical_examples": pl.List(pl.Array(pl.String, 2)),
    }
)
TABLES = pl.Schema(
    {
        "name": pl.String(),
        "path": pl.String(),
        "rows": pl.Int64(),
        "bytes": pl.Int64(),
        "version": pl.String(),
        "problem": pl.String(),
        "member": pl.String(),
        "source": pl.String(),
        "checksum": pl.String(),
        "damaged": pl.Boolean(),
    }
)
NOTES = pl.Schema(
    {
        "columns": pl.List(COLUMN_NOTE),
        "damage": pl.List(pl.String()),
        "left_out": pl.List(pl.String()),
        "remarks": pl.List(pl.String()),
    }
)


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """What was decided about a column, why, and what of it could not be used."""

    name: str
    kind: str  # what it holds
    role: str  # "key", "number", "key and number" or ""
    reason: str  # why, in plain words
    keys: tuple[str, ...] = ()  # that it is part of: itself, and with another column
    missing: int | None = None  # cells that are empty or a mark of absence; None: they were not counted
    not_understood: int | None = None  # cells that could not be read as what the column holds
    not_understood_examples: tuple[str, ...] = ()
    canonical_examples: tuple[tuple[str, str], ...] = ()  # some keys as written and as canonical text


@dataclass(frozen=True, slots=True)
class TableRecord:
    """What the index remembers of a table."""

    name: str  # of its own in the collection
    path: str  # an absolute path or a URL
    rows: int = 0  # that were read
    bytes: int = 0  # compressed if it is
    version: str = ""  # changes when the table does; "" where that can't be told without reading it
    problem: str | None = None  # why it was skipped
    columns: tuple[ColumnNote, ...] = ()
    member: str | None = None  # which table of a zip or a database
    source: str = ""  # what the person named when it was found
    checksum: str | None = None  # of its content, if that was asked for
    # A sentence each: what is wrong with it, and how it was read all the same; what of it was not sketched,
    # and why; how it was read, where that is no matter of course though nothing is wrong.
    damage: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def damaged(self) -> bool:
        """Whether it was read though something is wrong with it: short, so that each hit of it can say so."""
        return bool(self.damage)

    @property
    def location(self) -> str:
        """Where it is, and which table of what is there."""
        return locate_table(self.path, self.member)

    def columns_as(self, role: str) -> list[str]:
        """Return the names of the columns that serve as "key" or as "number"."""
        return [column.name for column in self.columns if role in column.role.split(" and ")]


def write_records(records: Sequence[TableRecord]) -> pl.DataFrame:
    """Write records as rows."""
    kinds = {**TABLES, **NOTES}
    fields = {name: [getattr(record, name) for record in records] for name in kinds if name != "columns"}
    return pl.DataFrame({**fields, "columns": _columns_of(records)}, schema=kinds)


def _columns_of(records: Sequence[TableRecord]) -> pl.Series:
    """Write the notes of each record as a cell, field by field: seven times as fast as note by note."""
    kind = pl.Series(dtype=COLUMN_NOTE).to_arrow().type
    notes = [note for record in records for note in record.columns]
    fields = [pa.array([getattr(note, field.name) for note in notes], field.type) for field in kind]
    ends = accumulate((len(record.columns) for record in records), initial=0)
    cells = pa.LargeListArray.from_arrays(
        pa.array(ends, pa.int64()), pa.StructArray.from_arrays(fields, fields=list(kind))
    )
    return pl.Series(cells)


def read_records(tables: pl.DataFrame) -> list[TableRecord]:
    """Read the records that rows hold."""
    return [
        TableRecord(
            **{name: cell for name, cell in row.items() if name != "damaged"}
            | {name: tuple(row[name]) for name in ("damage", "left_out", "remarks")}
            | {"columns": tuple(ColumnNote(**_freeze_lists(column)) for column in row["columns"])}
        )
        for row in tables.iter_rows(named=True)
    ]


def _freeze_lists(column: dict[str, Any]) -> dict[str, Any]:
    lists = {name: tuple(each) for name, each in column.items() if isinstance(each, list)}
    examples = tuple((written, text) for written, text in column["canonical_examples"])
    return column | lists | {"canonical_examples": examples}
