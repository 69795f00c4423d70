"""Partial sketches as rows, to travel from the task that read a chunk to the one that merges the table."""

import json
from dataclasses import asdict

import pyarrow as pa

from covary.arrays import Row
from covary.columns.unused_cells import Tallies, Tally
from covary.index.segment_files import as_arrow
from covary.sketching.sketch_types import ColumnPair, Counts, Partial
from covary.tables.faults import Faults

PARTIAL = pa.schema(
    [
        pa.field("table", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("value", pa.string()),
        pa.field("granularity", pa.string()),
        pa.field("complete", pa.bool_()),
        pa.field("counts", pa.string()),
        pa.field("states", pa.binary()),
        pa.field("room", pa.int32()),
        pa.field("rows", pa.int64()),
        pa.field("tallies", pa.string()),
        pa.field("faults", pa.string()),
        pa.field("problem", pa.string()),
        pa.field("lasting", pa.bool_()),
    ]
)


SQL_TYPES = {
    pa.int32(): "int",
    pa.int64(): "long",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
}


def write_sql_schema(schema: pa.Schema) -> str:
    """Write a schema as Spark wants it: it takes columns by their order."""
    return ", ".join(f"{field.name} {SQL_TYPES[field.type]}" for field in schema)


PARTIAL_SQL = write_sql_schema(PARTIAL)


def pack_partial(table: int, partial: Partial, rows: int) -> Row:
    """Write a partial sketch as a row."""
    arrays = {"hash": partial.hashes, **partial.states}
    states = pa.record_batch({name: as_arrow(array) for name, array in arrays.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, states.schema) as writer:
        writer.write_batch(states)
    return {
        "table": table,
        "key": partial.pair.key,
        "value": partial.pair.value,
        "granularity": partial.pair.granularity,
        "complete": partial.complete,
        "counts": json.dumps(asdict(partial.counts)),
        "states": sink.getvalue().to_pybytes(),
        "room": partial.room,
        "rows": rows,
    }


def pack_tallies(table: int, tallies: Tallies, faults: Faults) -> Row:
    """Write what a chunk could not use, and what was wrong with its text, as a row."""
    counted = json.dumps({name: asdict(tally) for name, tally in tallies.items()})
    return {"table": table, "tallies": counted, "faults": json.dumps(asdict(faults))}


def unpack_faults(row: Row) -> Faults:
    """Read the faults that a row holds."""
    return Faults(**json.loads(row["faults"]))


def unpack_tallies(row: Row) -> Tallies:
    """Read the tallies that a row holds."""
    tallies = json.loads(row["tallies"])
    return Tallies(
        {name: Tally(**tally | {"examples": tuple(tally["examples"])}) for name, tally in tallies.items()}
    )


def unpack_partial(row: Row, table: str) -> Partial:
    """Read the partial sketch that a row holds."""
    states = pa.ipc.open_stream(row["states"]).read_all()
    arrays = {name: states.column(name).to_numpy() for name in states.column_names}
    return Partial(
        ColumnPair(table, row["key"], row["value"], row["granularity"]),
        arrays.pop("hash"),
        arrays,
        Counts(**json.loads(row["counts"])),
        row["complete"],
        row["room"],
    )
