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
        ("table", pa.int32()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("granularity", pa.string()),
        ("complete", pa.bool_()),
        ("counts", pa.string()),
        ("states", pa.binary()),
        ("room", pa.int32()),
        ("rows", pa.int64()),
        ("tallies", pa.string()),
        ("faults", pa.string()),
        ("problem", pa.string()),
        ("lasting", pa.bool_()),
    ]
)


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


def pack_unused(table: int, tallies: Tallies, faults: Faults) -> Row:
    """Write what a chunk could not use, and what was wrong with its text, as a row."""
    counted = json.dumps({name: asdict(tally) for name, tally in tallies.items()})
    return {"table": table, "tallies": counted, "faults": json.dumps(asdict(faults))}


def unpack_unused(row: Row) -> tuple[Tallies, Faults]:
    """Read what such a row holds."""
    tallies = {
        name: Tally(**tally | {"examples": tuple(tally["examples"])})
        for name, tally in json.loads(row["tallies"]).items()
    }
    return Tallies(tallies), Faults(**json.loads(row["faults"]))


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
