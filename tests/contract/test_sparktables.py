"""Tables, views and queries of a Spark session are sketched as the same rows in a file are."""

import os
import subprocess
import sys

import polars as pl
import pytest

import covary
from covary.errors import UnreadableTable
from covary.index.history import read_history
from covary.tables.spark_catalog import list_spark_tables, open_spark_rows


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


TABLES = {"middle", "positive", "broken"}
NO_QUERIES = (
    "INSERT OVERWRITE DIRECTORY '{folder}' USING csv SELECT 1",
    "CREATE TABLE places.made AS SELECT 1 AS z",
    "DROP TABLE places.middle",
    "TRUNCATE TABLE places.middle",
    "DELETE FROM places.middle",
    "SET spark.covary.pwned=1",
    "ADD JAR '{folder}/precious.csv'",
    "CACHE TABLE places.middle",
    "CALL system.rollback()",
    "SHOW TABLES",
    "EXPLAIN SELECT 1",
    "EXECUTE IMMEDIATE 'DROP TABLE places.middle'",
    "WITH x AS (SELECT 'a', 1D) INSERT INTO places.middle SELECT * FROM x",
    "FROM places.middle INSERT INTO places.middle SELECT place, y",
    "SELECT 1; DROP TABLE places.middle",
    "SELECT 1) x; DROP TABLE places.middle --",
    "SELECT 1) INSERT INTO places.middle SELECT 'a', 1D --\\",
    "SELECT 1) SELECT * FROM covary_source) INSERT INTO places.middle SELECT 'a', 1D --\\",
    "BEGIN DROP TABLE places.middle; END",
    "/* SELECT */ DROP TABLE places.middle",
    "SELECT place FROM places.middle )",
    "",
)


def test_what_is_no_query_is_refused_and_not_run(spark, catalog, tmp_path):
    (tmp_path / "precious.csv").write_text("a,b\n1,2\n")
    for text in NO_QUERIES:
        with pytest.raises(UnreadableTable, match=r"takes it for no query|may start a program"):
            list_spark_tables(f"spark:{text.format(folder=tmp_path)}", spark)
        assert (tmp_path / "precious.csv").exists(), text
        assert {table.name for table in spark.catalog.listTables(catalog)} == TABLES, text
        assert spark.table("places.middle").count() == 300, text
    assert spark.conf.get("spark.covary.pwned", None) is None
    with pytest.raises(UnreadableTable, match="takes it for no query"):
        covary.build_index(f"spark:{NO_QUERIES[1]}", tmp_path / "index", spark)


CALLS = "('java.lang.System', 'setProperty', 'covary.pwned', '1')"
MORE_THAN_READING = (
    f"SELECT java_method{CALLS} AS z FROM VALUES (1)",
    f"SELECT Reflect /* so */ {CALLS} AS z",
    f"SELECT try_reflect{CALLS} AS z",
    f"SELECT `reflect`{CALLS} AS z",
    f"SELECT identifier('java_' || 'method'){CALLS} AS z",
    f"SELECT ref${{spark.sql.optimizer.excludedRules}}lect{CALLS} AS z",
    "SELECT '${env:HOME}' AS z",
    "SELECT TRANSFORM(place) USING 'touch {file}' AS (z) FROM places.middle",
    "SELECT TRANSFORM(place) uſıng 'touch {file}' AS (z) FROM places.middle",
    "FROM places.middle MAP place USING -- so\n'touch {file}' AS z",
)


def test_a_query_that_could_do_more_than_read_is_refused_and_not_run(spark, catalog, tmp_path):
    file = tmp_path / "touched"
    for text in MORE_THAN_READING:
        with pytest.raises(UnreadableTable, match="covary only reads"):
            list_spark_tables(f"spark:{text.replace('{file}', str(file))}", spark)
    assert not file.exists()
    asked = "SELECT java_method('java.lang.System', 'getProperty', 'covary.pwned') AS z"
    assert spark.sql(asked).collect()[0].z == "null"


def test_every_form_of_a_query_is_read(spark, lake, catalog):
    for text in (
        "WITH covary_source AS (SELECT place, y FROM places.middle) SELECT * FROM covary_source",
        "FROM places.middle SELECT place, y -- as they are \\",
        "TABLE places.middle;",
        "(SELECT place, y FROM places.middle ORDER BY y)",
        "SELECT place, y FROM places.middle JOIN places.middle AS other USING (place, y)",
        "/* all */ FROM places.middle |> WHERE y IS NOT NULL",
    ):
        [table] = list_spark_tables(f"spark:{text}", spark)
        assert open_spark_rows(table.location.text, spark).select("place", "y").count() == 300, text


def test_a_name_is_only_ever_a_name(spark, catalog, tmp_path):
    for name in ("places.middle;DROP", "csv.`/etc/passwd`", "`places`.`middle`; --", "${env:HOME}"):
        with pytest.raises(UnreadableTable):
            list_spark_tables(f"spark:{name}", spark)
    [table] = list_spark_tables("spark:`places`.`middle`", spark)
    assert open_spark_rows(table.location.text, spark).count() == 300


STOPPED = """
import sys
from pathlib import Path
from covary.pipeline.spark_tables import sketch_spark_tables
from covary.pipeline.plan import PARTS, PROGRESS, TaskSettings
from covary.sketching.sketch_types import SketchConfig
from covary.pipeline.session import start_session
from covary.tables.spark_catalog import list_spark_tables

for name in (PARTS, PROGRESS):
    Path(sys.argv[1], name).mkdir()
spark = start_session("local[1]")
spark.range(9).createOrReplaceTempView("numbers")
tables = list_spark_tables("spark:numbers", spark)
spark.sparkContext._jsc.sc().stop()  # as a cluster that is lost ends it, unknown to Python
print(sketch_spark_tables(tables, 0, TaskSettings(SketchConfig(64), (), (), sys.argv[1]), spark))
"""


def test_a_spark_that_is_lost_is_no_fault_of_its_tables(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", STOPPED, tmp_path]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert list(temporary.iterdir()) == []
    assert ended.returncode == 1
    assert not ended.stdout  # no list of tables that could not be read
    assert "org.apache.spark" in ended.stderr
