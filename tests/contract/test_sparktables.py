"""Tables, views and queries of a Spark session are sketched as the same rows in a file are."""

import subprocess
import sys

import polars as pl
import pytest

import covary
from covary.errors import UnreadableTable
from covary.history import read_history


@pytest.fixture
def catalog(spark, lake, tmp_path):
    """A database with a table, a view and a broken view."""
    spark.sql(f"CREATE DATABASE places LOCATION '{tmp_path}/warehouse'")
    middle = spark.read.parquet(str(lake.folder / "middle.parquet"))
    middle.repartition(5).write.saveAsTable("places.middle")
    spark.sql("CREATE VIEW places.positive AS SELECT place, y FROM places.middle WHERE y > 0")
    spark.sql("CREATE TABLE places.base (place STRING, y DOUBLE) USING parquet")
    spark.sql("CREATE VIEW places.broken AS SELECT place, y FROM places.base")
    spark.sql("DROP TABLE places.base")
    yield "places"
    spark.sql("DROP DATABASE places CASCADE")


def assert_same(left, right):
    assert left.key_hashes.tolist() == right.key_hashes.tolist()
    assert left.values.tolist() == right.values.tolist()
    assert left.complete == right.complete


@pytest.mark.parametrize("size", [64, 1024])
def test_a_table_gives_the_sketch_of_its_file(spark, lake, catalog, tmp_path, size):
    index = covary.build_index("spark:places.middle", tmp_path / "index", spark, size=size)
    expected = covary.sketch(lake.folder / "middle.parquet", "place", "y", size=size)
    assert_same(index.sketch("places.middle", "place", "y"), expected)
    [record] = index.tables.to_dicts()
    assert (record["path"], record["rows"]) == ("spark:places.middle", 300)


def test_a_database_is_all_its_tables_and_views(spark, lake, catalog, tmp_path):
    index = covary.build_index(["spark:places", lake.folder / "weak.arrow"], tmp_path / "index", spark)
    problems = dict(index.tables.select("name", "problem").iter_rows())
    assert set(problems) == {"places.middle", "places.positive", "places.broken", "weak"}
    assert {name for name, problem in problems.items() if problem} == {"places.broken"}
    assert "places" in problems["places.broken"]
    assert "\n" not in problems["places.broken"]
    hits = index.query(lake.query, "place", "x")
    assert {hit.table for hit in hits} == {"places.middle", "places.positive", "weak"}


def test_a_query_is_a_table(spark, lake, catalog, tmp_path):
    source = "spark:SELECT place, y FROM places.middle  WHERE y < 0"
    index = covary.build_index(source, tmp_path / "index", spark)
    rows = pl.read_parquet(lake.folder / "middle.parquet").filter(pl.col("y") < 0)
    name = "SELECT place, y FROM places.middle WHERE y < 0"
    assert_same(index.sketch(name, "place", "y"), covary.sketch(rows, "place", "y"))
    # Nobody can tell whether it changed: it is read again.
    covary.build_index(None, tmp_path / "index", spark)
    assert read_history(tmp_path / "index")[-1].changed in {0, 1}
    assert covary.open_index(tmp_path / "index").tables.height == 1


def test_a_session_keeps_its_own_settings(spark, catalog, tmp_path):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    covary.build_index("spark:places.middle", tmp_path / "index", spark)
    assert spark.conf.get(name) == before


@pytest.mark.parametrize("source", ["spark:places.nothing", "spark:nowhere", "spark:a.b.c.d.e"])
def test_what_is_not_there_is_named(spark, catalog, tmp_path, source):
    with pytest.raises(UnreadableTable, match=source):
        covary.build_index(source, tmp_path / "index", spark)
    with pytest.raises(UnreadableTable, match="only covary index reads tables of Spark"):
        covary.sketch(source, "a", "b")


def test_a_view_without_rows_or_without_numbers_is_no_trouble(spark, catalog, tmp_path):
    spark.sql("CREATE VIEW places.empty AS SELECT place, y FROM places.middle WHERE y > 1e9")
    spark.sql("CREATE VIEW places.words AS SELECT place FROM places.middle")
    index = covary.build_index("spark:places", tmp_path / "index", spark)
    problems = dict(index.tables.select("name", "problem").iter_rows())
    assert problems["places.empty"] is None
    assert problems["places.words"] is None


STOPPED = """
import sys
from pathlib import Path
from covary.pipeline import sketch_spark_tables
from covary.plans import PARTS, PROGRESS, Settings
from covary.sketches import SketchConfig
from covary.sparksession import start_session
from covary.sparksources import spark_tables

for name in (PARTS, PROGRESS):
    Path(sys.argv[1], name).mkdir()
spark = start_session("local[1]")
spark.range(9).createOrReplaceTempView("numbers")
tables = spark_tables("spark:numbers", spark)
spark.sparkContext._jsc.sc().stop()  # as a cluster that is lost ends it, unknown to Python
print(sketch_spark_tables(tables, 0, Settings(SketchConfig(64), (), (), sys.argv[1]), spark))
"""


def test_a_spark_that_is_lost_is_no_fault_of_its_tables(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", STOPPED, tmp_path], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert not ended.stdout  # no list of tables that could not be read
    assert "org.apache.spark" in ended.stderr
