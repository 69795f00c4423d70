from pathlib import Path

import numpy as np
import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

import covary
from covary.pipeline import plan as plans
from covary.sketching.sketch_types import SketchConfig
from covary.tables.discover import find_tables

SIZE = 64
PARTS = 4


def rows():
    rng = np.random.default_rng(11)
    x = rng.normal(size=2000)
    places = [f"place {number}" for number in rng.integers(0, 300, 2000)]
    return pl.DataFrame({"place": places, "x": x, "part": [n % PARTS for n in range(2000)]})


@pytest.fixture(scope="module")
def lakehouse(tmp_path_factory):
    """A folder with a Delta table, an Iceberg table, a CSV file, and a Delta table that lacks a file."""
    folder = tmp_path_factory.mktemp("lakehouse")
    rows().write_csv(folder / "c.csv")
    for name in ("d", "broken"):
        write_deltalake(folder / name, rows().to_arrow(), partition_by="part")
        DeltaTable(folder / name).delete("x > 2")
    Path(DeltaTable(folder / "broken").file_uris()[0]).unlink()
    catalog = SqlCatalog("lake", uri="sqlite://", warehouse=f"file://{folder}")
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.i", rows().to_arrow().schema)
    for part in range(PARTS):
        table.append(rows().filter(part=part).to_arrow())
    table.delete("x > 2")
    return folder


@pytest.mark.parametrize(("chunk_bytes", "parts"), [(plans.PACKED_CHUNK_BYTES, 1), (1 << 10, PARTS)])
def test_lakehouse_tables_are_indexed(lakehouse, tmp_path, monkeypatch, chunk_bytes, parts):
    monkeypatch.setattr(plans, "PACKED_CHUNK_BYTES", chunk_bytes)
    settings = plans.TaskSettings(SketchConfig(SIZE), (), (), str(tmp_path))
    cut = {
        table.source.name: len(table.chunks)
        for table in plans.plan(find_tables([lakehouse]).tables, settings).large
    }
    assert (cut.get("d", 1), cut.get("ns/i", 1)) == (parts, parts)

    index = covary.build_index(lakehouse, tmp_path / "index", runner="process", size=SIZE)

    kept = rows().filter(pl.col("x") <= 2)
    for table, expected in (("c", rows()), ("d", kept), ("ns/i", kept)):
        found = index.sketch(table, "place", "x", "mean")
        made = covary.sketch(expected, "place", "x", size=SIZE)
        assert found.key_hashes.tolist() == made.key_hashes.tolist()
        assert found.values.tolist() == pytest.approx(made.values.tolist(), rel=1e-9)
    read = {table["name"]: table for table in index.tables.iter_rows(named=True)}
    for table in ("d", "ns/i"):
        assert (read[table]["rows"], read[table]["problem"]) == (kept.height, None)
    assert read["broken"]["problem"].startswith("its data file part=")
    assert read["broken"]["problem"].endswith(".parquet: there is no such file")
