import datetime
import sqlite3

import polars as pl
import pytest

import covary.pipeline.plan
from covary import build_index
from covary.errors import NoTables
from covary.pipeline.process_runner import ProcessRunner

ROWS = 4000
FRAME = pl.DataFrame(
    {
        "place": [f"place {n * 7 % 900}" for n in range(ROWS)],
        "day": [datetime.date(2013, 1, 1) + datetime.timedelta(days=n % 300) for n in range(ROWS)],
        "x": [n * n % 1013 for n in range(ROWS)],
        "n": [n % 89 for n in range(ROWS)],
    }
)


@pytest.fixture
def shop(database):
    """Two tables of the same rows, one of them beyond reach, and a user who may only read."""
    values = ", ".join(f"('{place}', '{day}', {x}, {n})" for place, day, x, n in FRAME.rows())
    database.run(
        "CREATE TABLE sold (place text, day date, x double precision, n numeric)",
        f"INSERT INTO sold VALUES {values}",
        "CREATE TABLE wages AS SELECT * FROM sold",
        "CREATE VIEW few AS SELECT * FROM sold WHERE n < 40",
        "CREATE VIEW broken AS SELECT place, x / (n - n) AS x FROM sold",
        "GRANT SELECT ON sold, few, broken TO PUBLIC",
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN PASSWORD 'hush%reader'",
    )
    yield database
    database.run("DROP OWNED BY reader", "DROP ROLE reader")


def sketches(index, table):
    every = map(index.sketch_at, range(index.sketch_count))
    return {
        (made.pair.key, made.pair.value, made.pair.granularity): (
            made.key_hashes.tolist(),
            made.values.tolist(),
        )
        for made in every
        if made.pair.table == table
    }


def test_a_server_is_indexed_in_parts_like_a_file(monkeypatch, spark, shop, tmp_path):
    monkeypatch.setattr(covary.pipeline.plan, "CHUNK_BYTES", 50_000)
    FRAME.write_parquet(tmp_path / "sold.parquet")
    url = shop.url.replace("covary:hush-hush", "reader:hush%25reader")
    gone = url.replace(shop.host, "127.0.0.1:1")
    index = build_index([url, gone, tmp_path / "sold.parquet"], tmp_path / "index", spark, size=256)
    tables = {row["name"]: row for row in index.tables.rows(named=True)}
    problems = {name: row["problem"] for name, row in tables.items() if row["problem"]}
    assert problems.pop("postgresql://127.0.0.1:1/shop").startswith("connection to server")
    assert problems == {"shop/broken": "division by zero", "shop/wages": "permission denied for table wages"}
    assert {name: row["rows"] for name, row in tables.items() if row["rows"]} == {
        "shop/sold": ROWS,
        "shop/few": FRAME.filter(pl.col("n") < 40).height,
        "sold": ROWS,
    }
    assert sketches(index, "sold")
    assert sketches(index, "shop/sold") == sketches(index, "sold")
    assert tables["shop/sold"]["path"] == tables["shop/sold"]["source"] == f"postgresql://{shop.host}/shop"
    kept = b"".join(path.read_bytes() for path in (tmp_path / "index").rglob("*") if path.is_file())
    assert b"reader" not in kept
    assert b"hush" not in kept
    # Its own columns are left out, those of the tables beside it are not.
    hits = index.query(f"{url}#few", key="place", value="x", top=20).hits
    assert {hit.table for hit in hits} == {"shop/sold", "sold"}


class WatchedRunner(ProcessRunner):
    """Keeps the plan that it ran."""

    def run(self, plan, settings):
        self.plan = plan
        super().run(plan, settings)


def test_the_table_was_cut_into_parts(monkeypatch, shop, tmp_path):
    """The test above must not pass because all was read in one piece."""
    monkeypatch.setattr(covary.pipeline.plan, "CHUNK_BYTES", 50_000)
    runner = WatchedRunner()
    build_index(f"{shop.url}#sold", tmp_path / "index", runner=runner)
    [table] = runner.plan.large
    assert (table.source.name, bool(table.source.snapshot)) == ("shop/sold", True)
    assert len(table.chunks) > 4


def test_database_files_are_indexed(tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as file:
        file.execute("CREATE TABLE sold (place TEXT, day TEXT, x REAL, n INTEGER)")
        file.executemany("INSERT INTO sold VALUES (?, ?, ?, ?)", FRAME.cast({"day": pl.String}).rows())
        file.execute("CREATE TABLE empty (k TEXT, x REAL)")
    file.close()
    FRAME.write_parquet(tmp_path / "other.parquet")
    index = build_index(tmp_path, tmp_path / "index", runner="process", size=256)
    problems = {row["name"]: row["problem"] for row in index.tables.rows(named=True)}
    assert problems == {"shop/sold": None, "shop/empty": None, "other": None}
    assert sketches(index, "shop/sold") == sketches(index, "other")


def test_a_database_without_tables_is_told_without_its_password(database, tmp_path):
    with pytest.raises(NoTables) as told:
        build_index(database.url, tmp_path / "index", runner="process")
    place = f"postgresql://{database.host}/shop"
    assert str(told.value) == f"no tables in {place}; no index was changed"


def test_a_user_is_not_stored_and_comes_from_the_environment(monkeypatch, shop, tmp_path):
    FRAME.write_parquet(tmp_path / "other.parquet")
    index = build_index(
        [f"{shop.url}#sold", tmp_path / "other.parquet"], tmp_path / "index", runner="process"
    )
    before = index.tables.drop("source")
    monkeypatch.setenv("PGUSER", "nobody-else")
    index = build_index(None, tmp_path / "index", runner="process")
    assert index.tables.filter(pl.col("problem").is_null()).height == 2
    [problem] = index.tables["problem"].drop_nulls()
    assert "no password supplied; give it in PGPASSWORD" in problem
    monkeypatch.setenv("PGPASSWORD", "hush-hush")
    [problem] = build_index(None, tmp_path / "index", runner="process").tables["problem"].drop_nulls()
    assert "authentication failed" in problem
    assert "see whether its user and password are right: PGUSER, PGPASSWORD" in problem
    monkeypatch.setenv("PGUSER", "covary")
    index = build_index(None, tmp_path / "index", runner="process")
    assert index.tables["problem"].drop_nulls().to_list() == []
    assert index.tables.drop("source").sort("name").equals(before.sort("name"))
