"""Every runner makes the same bytes of the same tables, whatever format they are in."""

import gzip
import sqlite3
from zipfile import ZIP_DEFLATED, ZipFile

import duckdb
import numpy as np
import polars as pl
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

import covary
from covary.errors import CovaryError, NoTables
from covary.pipeline import plan as plans
from covary.pipeline.process_runner import ProcessRunner, _count_processes

AGGREGATES = ("mean", "sum", "first", "last", "min", "max", "count")


def rows(count=400, seed=3):
    rng = np.random.default_rng(seed)
    gaps = [None if rng.random() < 0.2 else float(value) for value in np.round(rng.normal(size=count), 6)]
    places = [f"place {number}" for number in rng.integers(0, 150, count)]
    return pl.DataFrame({"place": places, "x": rng.normal(size=count), "y": gaps})


def write_iceberg(folder):
    catalog = SqlCatalog("lake", uri="sqlite://", warehouse=f"file://{folder}")
    catalog.create_namespace("ns")
    catalog.create_table("ns.iceberg", rows().to_arrow().schema).append(rows().to_arrow())


def write_sqlite(file):
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE t (place TEXT, x REAL, y REAL)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows().rows())
    connection.commit()
    connection.close()


def write_duckdb(file):
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t (place TEXT, x DOUBLE, y DOUBLE)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows(50).rows())


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """A table in each format that can be read, one that is large, and files that can't be read."""
    folder = tmp_path_factory.mktemp("formats")
    rows().write_csv(folder / "a.csv")
    rows().write_csv(folder / "b.tsv", separator="\t")
    rows().write_ndjson(folder / "c.jsonl")
    rows().write_parquet(folder / "d.parquet")
    rows().write_ipc(folder / "e.arrow")
    with ZipFile(folder / "f.zip", "w", ZIP_DEFLATED) as packed:
        packed.writestr("inside.csv", rows().write_csv())
    (folder / "g.csv.gz").write_bytes(gzip.compress(rows().write_csv().encode()))
    write_sqlite(folder / "h.sqlite")
    write_duckdb(folder / "i.duckdb")
    write_deltalake(folder / "delta", rows().to_arrow())
    write_iceberg(folder)
    rows(6000).write_csv(folder / "large.csv")
    (folder / "empty.csv").touch()
    (folder / "broken.parquet").write_bytes(b"PAR1 and no more")
    return folder


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(plans, "CHUNK_BYTES", 32 << 10)


class WatchedRunner(ProcessRunner):
    """Keeps the plan that it ran."""

    def run(self, plan, settings):
        self.plan = plan
        super().run(plan, settings)


@pytest.fixture
def by_process(collection, small_chunks, tmp_path):
    runner = WatchedRunner()
    index = covary.build_index(
        collection, tmp_path / "process", runner=runner, size=64, aggregates=AGGREGATES
    )
    assert "large" in {table.source.name for table in runner.plan.large}
    return index


def test_each_format_is_read(by_process):
    read = by_process.tables.filter(pl.col("problem").is_null())
    counts = dict(read.select("name", "rows").iter_rows())
    assert {"a", "b", "c", "d", "e", "delta", "large"} <= counts.keys()
    assert sorted(counts.values()) == [50, *[400] * 10, 6000]
    assert by_process.tables["problem"].drop_nulls().len() == 2


def test_spark_makes_the_same_bytes(by_process, spark, collection, bytes_of, tmp_path):
    covary.build_index(collection, tmp_path / "spark", spark, size=64, aggregates=AGGREGATES)
    assert bytes_of(tmp_path / "spark") == bytes_of(tmp_path / "process")


def test_tasks_in_any_order_make_the_same_bytes(by_process, collection, bytes_of, tmp_path, runner_here):
    covary.build_index(collection, tmp_path / "here", runner=runner_here, size=64, aggregates=AGGREGATES)
    assert bytes_of(tmp_path / "here") == bytes_of(tmp_path / "process")


def test_several_processes_make_the_same_bytes(by_process, collection, bytes_of, tmp_path, monkeypatch):
    monkeypatch.setattr("covary.pipeline.process_runner._count_processes", lambda plan: 3)
    covary.build_index(collection, tmp_path / "three", runner="process", size=64, aggregates=AGGREGATES)
    assert bytes_of(tmp_path / "three") == bytes_of(tmp_path / "process")


def test_a_small_collection_takes_one_process():
    assert _count_processes(plans.Plan((), (), ())) == 1


def test_progress_is_reported_without_spark(collection, tmp_path):
    reports = []
    covary.build_index(collection, tmp_path / "index", runner="process", on_progress=reports.append)
    assert (reports[-1].done, reports[-1].spark) == (reports[-1].total, "without")
    assert reports[-1].total >= 12


def test_limits_hold_without_spark(collection, tmp_path):
    with pytest.raises(NoTables, match=r"it took longer than 0.001 s; --table-timeout sets another limit"):
        covary.build_index(collection / "large.csv", tmp_path / "i", runner="process", table_timeout=1e-3)


def test_a_task_that_fails_ends_the_others(collection, tmp_path, monkeypatch):
    def fail(*_):
        raise CovaryError("no more")

    monkeypatch.setattr("covary.pipeline.process_runner._submit_plan", fail)
    with pytest.raises(CovaryError, match="no more"):
        covary.build_index(collection, tmp_path / "index", runner="process")
    assert not (tmp_path / "index").exists()
