import datetime
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, nullcontext
from dataclasses import replace

import duckdb
import polars as pl
import pytest
from adbc_driver_postgresql import dbapi

from covary.errors import MissingPart, UnreadableTable
from covary.sketching.sketch_table import sketch
from covary.tables.databases import hold_in_one_state, is_database
from covary.tables.discover import find_table, find_tables
from covary.tables.read import Chunk, plan_chunks, read_chunk, read_layout
from covary.tables.reader import WHOLE

DAYS = [datetime.date(2013, 1, 1) + datetime.timedelta(days=n % 365) for n in range(2000)]
FRAME = pl.DataFrame(
    {
        "id": [n * 7 % 1009 for n in range(2000)],
        "place": [f"Pláce {n % 300}" for n in range(2000)],
        "day": DAYS,
        "x": [n / 7 for n in range(2000)],
        "n": [None if n % 9 == 0 else n - 1000 for n in range(2000)],
    }
)
SOLD = "CREATE TABLE sold (id bigint, place text, day date, x {float}, n {numeric})"


def read_whole(source):
    layout = read_layout(source)
    return pl.concat(read_chunk(Chunk(source, 0, *WHOLE), layout))


def read_parts(chunks, layout):
    return pl.concat([frame for chunk in chunks for frame in read_chunk(chunk, layout)])


def reasons(listing):
    return {each.path: each.reason.text for each in (*listing.skipped, *listing.unlisted)}


@pytest.fixture
def sold(database):
    """A table like FRAME on the server."""
    rows = ", ".join(
        f"({i}, '{place}', '{day}', {x!r}, {'NULL' if n is None else n})"
        for i, place, day, x, n in FRAME.rows()
    )
    database.run(SOLD.format(float="double precision", numeric="numeric"), f"INSERT INTO sold VALUES {rows}")
    return database


@pytest.fixture
def shop(tmp_path):
    """A table like FRAME in a SQLite file, beside others."""
    with sqlite3.connect(tmp_path / "shop.sqlite") as file:
        file.execute(SOLD.format(float="REAL", numeric="INTEGER"))
        rows = FRAME.with_columns(pl.col("day").cast(pl.String)).rows()
        file.executemany("INSERT INTO sold VALUES (?, ?, ?, ?, ?)", rows)
        file.execute("CREATE VIEW cheap AS SELECT * FROM sold WHERE x < 5")
        file.execute('CREATE TABLE "odd ""name#1" (rowid TEXT, "a b" REAL, picture BLOB)')
        file.execute("""INSERT INTO "odd ""name#1" VALUES ('k', 1.5, x'00'), ('l', 'many', NULL)""")
        file.execute("CREATE TABLE coded (code TEXT PRIMARY KEY, x REAL) WITHOUT ROWID")
        file.execute("INSERT INTO coded VALUES ('a', 1), ('b', 2)")
    file.close()
    return tmp_path / "shop.sqlite"


@pytest.fixture
def ducks(tmp_path):
    """A table like FRAME in a DuckDB file, beside others."""
    with duckdb.connect(tmp_path / "ducks.duckdb") as file:
        file.execute(SOLD.format(float="DOUBLE", numeric="DECIMAL(12, 2)"))
        file.register("frame", FRAME.to_arrow())
        file.execute("INSERT INTO sold SELECT * FROM frame")
        file.execute("CREATE VIEW cheap AS SELECT * FROM sold WHERE x < 5")
        file.execute("CREATE VIEW outside AS SELECT * FROM read_csv('/etc/passwd')")
        file.execute('CREATE SCHEMA "odd ""schema"')
        file.execute(
            """CREATE TABLE "odd ""schema"."A b" AS SELECT 'k' AS "Key", [1] AS list, 'a'::enum('a') AS kind,
            'infinity'::timestamp AS never, '2013-01-01'::timestamp AS once, 1::hugeint AS huge"""
        )
    return tmp_path / "ducks.duckdb"


# PostgreSQL


def test_all_tables_but_the_systems_are_listed(database):
    database.run(
        "CREATE TABLE orders (k text, x int)",
        "CREATE VIEW big AS SELECT * FROM orders",
        "CREATE MATERIALIZED VIEW stored AS SELECT * FROM orders",
        'CREATE SCHEMA "Odd ""schema"',
        'CREATE TABLE "Odd ""schema"."a.b c" (k text)',
        "CREATE TABLE years (y int, x int) PARTITION BY RANGE (y)",
        "CREATE TABLE years_1 PARTITION OF years FOR VALUES FROM (1) TO (10)",
        "INSERT INTO years VALUES (3, 4)",
    )
    tables = find_tables([database.url]).tables
    assert [table.name for table in tables] == [
        'shop/Odd "schema.a.b c', "shop/big", "shop/orders", "shop/stored", "shop/years",
    ]  # fmt: skip
    assert tables[0].member == '"Odd ""schema"."a.b c"'
    assert read_layout(tables[0]).columns == ("k",)
    assert read_whole(tables[-1]).rows() == [(3, 4)]
    assert [bool(table.version) for table in tables] == [True, False, True, True, True]


def test_one_table_is_named_after_the_mark(sold):
    sold.run("CREATE TABLE other (x int)")
    for name in ("sold", "public.sold", 'public."sold"', "public.%73old"):
        assert find_table(f"{sold.url}#{name}").name == "shop/sold"
    assert [table.name for table in find_tables([f"{sold.url}#sold", sold.url]).tables] == [
        "shop/sold",
        "shop/other",
    ]
    with pytest.raises(UnreadableTable, match=r"no table 'sole' in it; there are: public.other, public.sold"):
        find_table(f"{sold.url}#sole")
    with pytest.raises(UnreadableTable, match=r"holds 2 tables .*#public.other"):
        find_table(sold.url)


def test_every_row_is_in_exactly_one_part(database):
    database.run(
        "CREATE TABLE t AS SELECT i, repeat('x', i % 50) AS filler FROM generate_series(1, 20000) i",
        "DELETE FROM t WHERE i BETWEEN 5000 AND 12000",
        "CREATE TABLE child () INHERITS (t)",
        "INSERT INTO child VALUES (1, 'of a child')",
        "CREATE TABLE plain AS SELECT i FROM generate_series(1, 20000) i",
    )
    with hold_in_one_state(find_tables([database.url]).tables) as tables:
        named = {table.name: table for table in tables}
        plain, parent = named["shop/plain"], named["shop/t"]
        layout = read_layout(plain)
        chunks = plan_chunks(plain, layout, 100_000)
        assert len(chunks) > 5
        parts = [read_parts([chunk], layout)["i"].to_list() for chunk in chunks]
        assert all(parts)
        assert [i for part in parts for i in part] == list(range(1, 20001))
        # A parent's rows are its children's too: by blocks they could not be told apart.
        assert len(plan_chunks(parent, read_layout(parent), 100_000)) == 1
        assert read_whole(parent).height == 20000 - 7001 + 1


def test_a_table_is_cut_only_where_its_state_is_held(sold):
    table = find_table(f"{sold.url}#sold")
    assert len(plan_chunks(table, read_layout(table), 10_000)) == 1


def test_all_parts_are_of_one_state(sold):
    with hold_in_one_state([find_table(f"{sold.url}#sold")]) as [table]:
        layout = read_layout(table)
        chunks = plan_chunks(table, layout, 20_000)
        assert len(chunks) > 3
        first = list(read_chunk(chunks[0], layout))
        sold.run("UPDATE sold SET x = -1", "DELETE FROM sold WHERE n > 0", "INSERT INTO sold VALUES (5)")
        rows = pl.concat([*first, read_parts(chunks[1:], layout)])
    assert rows.drop("n").equals(FRAME.drop("n"))
    assert rows["n"].cast(pl.Int64).equals(FRAME["n"])


@pytest.mark.parametrize(
    "change", ["TRUNCATE sold", "VACUUM FULL sold", "ALTER TABLE sold ALTER n TYPE text"]
)
def test_a_table_that_is_written_anew_while_it_is_read_fails(sold, change):
    with hold_in_one_state([find_table(f"{sold.url}#sold")]) as [table]:
        layout = read_layout(table)
        chunks = plan_chunks(table, layout, 20_000)
        list(read_chunk(chunks[0], layout))
        sold.run(change)
        with pytest.raises(UnreadableTable, match="it changed while it was read; try again"):
            list(read_chunk(chunks[-1], layout))


def test_a_table_that_loses_a_column_or_goes_away_fails(sold):
    table = find_table(f"{sold.url}#sold")
    layout = read_layout(table)
    sold.run("ALTER TABLE sold DROP COLUMN x")
    with pytest.raises(UnreadableTable, match="it changed while it was read; try again"):
        list(read_chunk(Chunk(table, 0, *WHOLE), layout))
    sold.run("DROP TABLE sold")
    with pytest.raises(UnreadableTable, match=r'relation "public.sold" does not exist'):
        list(read_chunk(Chunk(table, 0, *WHOLE), layout))


def test_a_server_that_does_not_come_to_list_its_tables_is_told(database, monkeypatch):
    database.run("CREATE TABLE orders (k text, x int)")
    monkeypatch.setattr("covary.tables.formats.postgresql.SECONDS_TO_LIST", 1)
    with dbapi.connect(database.url) as busy, busy.cursor() as cursor:
        cursor.execute("LOCK TABLE orders")
        with pytest.raises(UnreadableTable, match="canceling statement due to statement timeout"):
            find_tables([database.url])


READS_FOR_EVER = """
import sys
from covary.tables.formats import postgresql
from covary.tables.discover import find_tables
from covary.tables.read import Chunk, read_layout, read_chunk
from covary.tables.reader import WHOLE

postgresql.LOOK_FOR_US = postgresql.LOOK_FOR_US.replace("10s", "100ms")
[table] = find_tables([sys.argv[1]]).tables
print("reading", flush=True)
next(read_chunk(Chunk(table, 0, *WHOLE), read_layout(table)))
"""


def test_a_server_stops_working_for_a_reader_that_was_ended(database):
    database.run("CREATE VIEW endless AS SELECT 'k' AS k, 1 AS x FROM pg_sleep(600)")
    command = [sys.executable, "-c", READS_FOR_EVER, database.url]
    at_work = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%endless%' AND state = 'active' " \
        "AND pid <> pg_backend_pid()"  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
        reader.stdout.readline()
        wait_until(lambda: database.run(at_work) == [(1,)])
        reader.kill()
    wait_until(lambda: database.run(at_work) == [(0,)])


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_server_that_goes_away_in_the_middle_is_told(sold):
    sold.run("CREATE TABLE large AS SELECT i, repeat('x', 500) AS k FROM generate_series(1, 100000) i")
    with hold_in_one_state([find_table(f"{sold.url}#large")]) as [table]:
        layout = read_layout(table)
        chunks = plan_chunks(table, layout, 20 << 20)
        rows = read_chunk(chunks[0], layout)
        next(rows)
        sold.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        with pytest.raises(UnreadableTable, match=r"terminat|connection"):
            list(rows)
        with pytest.raises(UnreadableTable, match="the connection that held its state was lost; try again"):
            list(read_chunk(chunks[1], layout))


def test_types_are_those_that_a_file_would_have(database):
    database.run(
        "CREATE TYPE mood AS ENUM ('glad')",
        "CREATE DOMAIN amount AS numeric(8, 2)",
        """CREATE TABLE t AS SELECT 12345678901234567890.50::numeric AS "n u", 1.25::amount AS "A",
        7::money AS money, 'glad'::mood AS mood, 'ab'::char(5) AS padded, true AS yes,
        1::int2 AS small, 2.5::float4 AS single,
        '2013-05-01'::date AS day, '2013-05-01 10:00+02'::timestamptz AS at, 'infinity'::timestamp AS never,
        '-infinity'::date AS nowhere, '10:30'::time AS clock, 'NaN'::numeric AS nan,
        '6f9619ff-8b86-d011-b42d-00cf4fc964ff'::uuid AS "q""uote", '10.0.0.1/24'::inet AS net,
        '{}'::jsonb AS json, ARRAY[1] AS list, 'x'::bytea AS bytes, '1 day'::interval AS span,
        '(1,2)'::point AS p""",
    )
    assert read_whole(find_table(database.url)).rows(named=True) == [
        {
            "n u": "12345678901234567890.50",
            "A": "1.25",
            "money": "7.00",
            "mood": "glad",
            "padded": "ab",
            "yes": True,
            "small": 1,
            "single": 2.5,
            "day": datetime.date(2013, 5, 1),
            "at": datetime.datetime(2013, 5, 1, 8, tzinfo=datetime.UTC),
            "never": None,
            "nowhere": None,
            "clock": datetime.time(10, 30),
            "nan": "NaN",
            'q"uote': "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            "net": "10.0.0.1/24",
        }
    ]


def test_the_version_changes_when_the_table_does(sold):
    def version():
        return find_table(f"{sold.url}#sold").version

    seen = [version()]
    list(read_chunk(Chunk(find_table(f"{sold.url}#sold"), 0, *WHOLE), read_layout(find_table(sold.url))))
    assert version() == seen[0]
    for change in (
        "INSERT INTO sold VALUES (1)",
        "UPDATE sold SET x = 2 WHERE id = 1",
        "DELETE FROM sold WHERE id = 1",
        "ALTER TABLE sold RENAME COLUMN x TO y",
        "TRUNCATE sold",
    ):
        sold.run(change)
        assert version() not in seen, change
        seen.append(version())


def test_nothing_is_ever_written(sold):
    sold.run(
        "CREATE TABLE log (k text)",
        "CREATE FUNCTION noted() RETURNS int LANGUAGE sql AS $$INSERT INTO log VALUES ('seen') RETURNING 1$$",
        "CREATE VIEW spy AS SELECT noted() AS x",
    )
    with pytest.raises(UnreadableTable, match="cannot execute INSERT in a read-only transaction"):
        read_whole(find_table(f"{sold.url}#spy"))
    assert sold.run("SELECT count(*) FROM log") == [(0,)]


def test_a_wrong_password_is_told_without_the_password(sold, tmp_path):
    FRAME.write_csv(tmp_path / "good.csv")
    url = sold.url.replace("hush-hush", "wrong%2Fpass")
    with pytest.raises(UnreadableTable) as caught:
        find_tables([url])
    shown = f"postgresql://{sold.host}/shop"
    advice = "see whether its user and password are right: PGUSER, PGPASSWORD, the file .pgpass"
    reason = f'password authentication failed for user "…"; {advice}'
    assert str(caught.value) == f"can't read {shown}: {reason}"
    listing = find_tables([url, tmp_path])
    assert [table.name for table in listing.tables] == ["good"]
    assert reasons(listing) == {shown: reason}


def test_a_password_from_the_environment_will_do(sold, monkeypatch):
    url = sold.url.replace(":hush-hush", "")
    with pytest.raises(UnreadableTable, match="no password supplied; give it in PGPASSWORD"):
        find_table(url)
    monkeypatch.setenv("PGPASSWORD", "hush-hush")
    assert read_whole(find_table(url)).height == FRAME.height


@pytest.mark.parametrize(
    "password", ["se/cret", "se?cret", "se#cret", "se@cret", "100%secret", "1#secret", "se:cret"]
)
def test_a_password_that_breaks_the_url_is_not_shown(password):
    with pytest.raises(UnreadableTable) as caught:
        find_table(f"postgresql://me:{password}@127.0.0.1:1/db")
    assert "cret" not in str(caught.value)
    assert "100" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_no_name_shows_a_password(sold):
    other = sold.url.replace("covary:", "%63ovary:")
    names = [table.name for table in find_tables([sold.url, other]).tables]
    assert names == ["shop/sold"]  # the same table, whoever asks for it
    assert "hush" not in find_table(sold.url).location.shown


# Files


def test_database_files_are_sources_like_others(shop, ducks):
    tables, skipped, _ = find_tables([shop.parent])
    assert [table.name for table in tables] == [
        "ducks/cheap", "ducks/outside", "ducks/sold", 'ducks/odd "schema.A b',
        "shop/cheap", "shop/coded", 'shop/odd "name#1', "shop/sold",
    ]  # fmt: skip
    assert skipped == []
    sizes = {table.name: table.size for table in tables}
    assert sizes["shop/sold"] > 0.9 * shop.stat().st_size
    assert sizes["ducks/sold"] > 0.9 * ducks.stat().st_size


def test_a_table_of_a_file_is_named_after_the_mark(shop, ducks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_table("shop.sqlite#sold").name == "shop/sold"
    assert find_table('shop.sqlite#odd "name#1').member == 'odd "name#1'
    assert find_table("ducks.duckdb#cheap").format == "duckdb"
    assert [table.name for table in find_tables(["shop.sqlite#sold"]).tables] == ["shop/sold"]
    with pytest.raises(UnreadableTable, match=r"holds 4 tables \(cheap, coded, .*shop.sqlite#cheap"):
        find_table("shop.sqlite")
    with pytest.raises(UnreadableTable, match="no table 'sole' in it; there are: cheap, coded"):
        find_table("shop.sqlite#sole")
    with pytest.raises(UnreadableTable, match="no such file"):
        find_table("other.sqlite#sole")
    with sqlite3.connect("one.db") as file:
        file.execute("CREATE TABLE t (k, x)")
    file.close()
    assert (find_table("one.db").name, find_table("one.db").member) == ("one", "t")


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.db", b"Berkeley or so", "no SQLite or DuckDB file, whatever its name says"),
        ("a.duckdb", b"Berkeley or so", "no DuckDB file, whatever its name says"),
        ("a.sqlite", b"SQLite format 3\0 and no more", "file is not a database"),
        ("a.duckdb", b"\0\0\0\0\0\0\0\0DUCK and no more", ""),
        ("a.sqlite3.gz", b"\x1f\x8b\x08", "a compressed SQLite file isn't read; unpack it"),
    ],
)
def test_what_is_no_database_is_skipped_with_a_reason(tmp_path, name, data, reason):
    (tmp_path / name).write_bytes(data)
    FRAME.write_csv(tmp_path / "good.csv")
    listing = find_tables([tmp_path])
    assert [table.name for table in listing.tables] == ["good"]
    assert reason in reasons(listing)[str(tmp_path / name)]


def test_sqlite_without_tables_is_skipped(tmp_path):
    with sqlite3.connect(tmp_path / "none.db") as file:
        file.execute("PRAGMA user_version = 1")
    file.close()
    assert reasons(find_tables([tmp_path])) == {str(tmp_path / "none.db"): "a SQLite file without tables"}


def test_a_remote_database_must_be_copied(shop):
    import fsspec  # noqa: PLC0415

    fsspec.filesystem("memory").pipe("/lake/shop.sqlite", shop.read_bytes())
    listing = find_tables(["memory://lake"])
    assert listing.tables == []
    [reason] = reasons(listing).values()
    assert reason == "a SQLite file is read only where it lies on this machine; copy it here"


@pytest.mark.parametrize("name", ["shop.sqlite#sold", "ducks.duckdb#sold"])
def test_every_row_of_a_file_is_in_exactly_one_part(shop, ducks, name):
    table = find_table(shop.parent / name)
    layout = read_layout(table)
    chunks = plan_chunks(table, layout, table.size // 8)
    assert len(chunks) in {8, 9}
    parts = [read_parts([chunk], layout) for chunk in chunks]
    assert min(part.height for part in parts) > 100
    assert pl.concat(parts)["id"].cast(pl.Int64).to_list() == FRAME["id"].to_list()


def test_rows_numbered_high_do_not_take_the_share_of_others(shop):
    with sqlite3.connect(shop) as file:
        file.execute("CREATE TABLE high (id INTEGER PRIMARY KEY)")
        file.execute("INSERT INTO high VALUES (1 << 60)")
    file.close()
    assert find_table(f"{shop}#sold").size > 0.1 * shop.stat().st_size


def test_a_damaged_table_of_a_file_costs_no_other(tmp_path):
    with sqlite3.connect(tmp_path / "t.db") as file:
        for name in ("a", "b", "c"):
            file.execute(f"CREATE TABLE {name} (place TEXT, x REAL)")
            file.execute(f"INSERT INTO {name} VALUES ('p', 1)")
        [[page]] = file.execute("SELECT rootpage FROM sqlite_master WHERE name = 'b'").fetchall()
        [[size]] = file.execute("PRAGMA page_size").fetchall()
    file.close()
    with (tmp_path / "t.db").open("r+b") as content:
        content.seek((page - 1) * size)
        content.write(b"\x77")
    tables, skipped, _ = find_tables([tmp_path])
    assert [table.name for table in tables] == ["t/a", "t/b", "t/c"]
    assert not skipped
    for table in tables:
        with pytest.raises(UnreadableTable, match="malformed") if table.member == "b" else nullcontext():
            assert read_whole(table).height == 1


def test_rows_with_any_numbers_are_read(tmp_path):
    with sqlite3.connect(tmp_path / "t.db") as file:
        file.execute("CREATE TABLE t (oid INTEGER PRIMARY KEY, rowid TEXT)")
        file.executemany("INSERT INTO t VALUES (?, ?)", [(n, f"k{n}") for n in (-(2**62), -1, 0, 5, 2**62)])
    file.close()
    table = replace(find_table(tmp_path / "t.db"), size=1000)
    layout = read_layout(table)
    chunks = plan_chunks(table, layout, 100)
    assert len(chunks) == 10
    assert read_parts(chunks, layout)["rowid"].to_list() == [f"k{n}" for n in (-(2**62), -1, 0, 5, 2**62)]


@pytest.mark.parametrize("name", ["cheap", "coded"])
def test_what_has_no_row_numbers_is_read_whole(shop, name):
    table = replace(find_table(f"{shop}#{name}"), size=1000)
    [chunk] = plan_chunks(table, read_layout(table), 100)
    assert read_parts([chunk], read_layout(table)).height == {"cheap": 35, "coded": 2}[name]


def test_views_made_of_many_others_are_listed_without_a_look_into_them(tmp_path):
    with sqlite3.connect(tmp_path / "t.db") as file:
        file.execute("CREATE TABLE v0 (a TEXT, b REAL)")
        for n in range(1, 26):
            file.execute(f"CREATE VIEW v{n} AS SELECT l.a, r.b FROM v{n - 1} l, v{n - 1} r")
    file.close()
    started = time.monotonic()
    assert len(find_tables([tmp_path / "t.db"]).tables) == 26
    assert time.monotonic() - started < 2


def test_many_tables_are_listed_once_for_all(tmp_path, monkeypatch):
    with sqlite3.connect(tmp_path / "t.db") as file:
        for n in range(50):
            file.execute(f"CREATE TABLE t{n} (a TEXT, b REAL)")
    file.close()
    connect, listings = sqlite3.connect, []

    def traced(*arguments, **options):
        database = connect(*arguments, **options)
        database.set_trace_callback(lambda sql: listings.append(sql) if "sqlite_master" in sql else None)
        return database

    monkeypatch.setattr(sqlite3, "connect", traced)
    assert len(find_tables([tmp_path / "t.db"]).tables) == 50
    assert len(listings) == 1


def test_what_an_index_of_sqlite_keeps_for_itself_is_no_table(tmp_path):
    with sqlite3.connect(tmp_path / "t.db") as file:
        try:
            file.execute("CREATE VIRTUAL TABLE words USING fts4(a, b)")
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no full-text search")
        for name in ("words_of_mine", "segments", "other_content"):
            file.execute(f"CREATE TABLE {name} (a TEXT, b REAL)")
    file.close()
    listed = [table.member for table in find_tables([tmp_path / "t.db"]).tables]
    assert listed == ["other_content", "segments", "words_of_mine"]


def test_cells_of_sqlite_are_text_of_any_type(shop):
    rows = read_whole(find_table(f'{shop}#odd "name#1')).rows(named=True)
    assert rows == [{"rowid": "k", "a b": "1.5"}, {"rowid": "l", "a b": "many"}]


def test_types_of_duckdb(ducks):
    assert read_whole(find_table(f'{ducks}#odd "schema.A b')).rows(named=True) == [
        {"Key": "k", "kind": "a", "never": None, "once": datetime.datetime(2013, 1, 1), "huge": 1}
    ]


def test_a_view_of_duckdb_reads_nothing_outside_of_its_file(ducks):
    with pytest.raises(UnreadableTable, match=r"disabled"):
        read_layout(find_table(f"{ducks}#outside"))


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_reading_sqlite_leaves_everything_as_it_was(shop, mode):
    with sqlite3.connect(shop) as file:
        file.execute(f"PRAGMA journal_mode = {mode}")
    file.close()
    before = {path.name: path.read_bytes() for path in shop.parent.iterdir()}
    assert read_whole(find_table(f"{shop}#sold")).height == FRAME.height
    assert {path.name: path.read_bytes() for path in shop.parent.iterdir()} == before


def test_what_is_only_in_the_log_is_read_and_changes_the_version(shop):
    before = find_table(f"{shop}#sold")
    file = sqlite3.connect(shop)
    file.execute("PRAGMA journal_mode = WAL")
    file.execute("INSERT INTO sold VALUES (1, 'new', '2013-01-01', 1, 1)")
    file.commit()
    table = find_table(f"{shop}#sold")
    assert read_whole(table).height == FRAME.height + 1
    file.execute("DELETE FROM sold WHERE place = 'new'")
    file.commit()
    assert len({before.version, table.version, find_table(f"{shop}#sold").version}) == 3
    file.close()


def test_a_file_that_changes_while_it_is_read_fails(shop):
    table = find_table(f"{shop}#sold")
    layout = read_layout(table)
    chunks = plan_chunks(table, layout, table.size // 4)
    list(read_chunk(chunks[0], layout))
    with sqlite3.connect(shop) as file:
        file.execute("DELETE FROM sold WHERE id = 7")
    file.close()
    with pytest.raises(UnreadableTable, match="it changed while it was read; try again"):
        list(read_chunk(chunks[1], layout))


def test_a_damaged_file_fails(shop):
    table = find_table(f"{shop}#sold")
    content = bytearray(shop.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    shop.write_bytes(content)
    with pytest.raises(UnreadableTable, match="malformed"):
        read_whole(table)


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        *(("shop.sqlite", suffix) for suffix in ("-journal", "-wal", "-shm")),
        *(("ducks.duckdb", suffix) for suffix in (".wal", ".wal.checkpoint", ".wal.recovery")),
    ],
)
def test_a_pipe_beside_a_database_is_refused_by_name(shop, ducks, name, suffix):
    path = shop.parent / name
    table = find_table(f"{path}#sold")
    os.mkfifo(f"{path}{suffix}")
    listing = find_tables([shop.parent])
    refusal = f"{name}{suffix} is not a regular file, and opening it may never end; remove it"
    assert reasons(listing) == {str(path): refusal}
    assert len(listing.tables) == 4
    with pytest.raises(UnreadableTable, match=refusal):
        read_layout(table)
    if name == "shop.sqlite":
        with pytest.raises(UnreadableTable, match=refusal):
            find_tables([f"sqlite:///{path}"])


COMPUTES_FOR_EVER = """
import sys
from covary.tables.discover import find_table
from covary.tables.read import Chunk, read_chunk
from covary.tables.reader import WHOLE, Layout

rows = read_chunk(Chunk(find_table(sys.argv[1]), 0, *WHOLE), Layout(("k", "x")))
print("reading", flush=True)
next(rows)
"""


@pytest.mark.parametrize("source", ["{}#endless", "sqlite:///{}#endless"])
def test_ctrl_c_ends_a_view_of_sqlite_that_computes_for_ever(shop, source):
    with sqlite3.connect(shop) as file:
        file.execute(
            "CREATE VIEW endless AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
            "SELECT 'k' AS k, sum(x) AS x FROM c"
        )
    file.close()
    command = [sys.executable, "-c", COMPUTES_FOR_EVER, source.format(shop)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
        try:
            assert reader.stdout.readline() == "reading\n"
            time.sleep(0.2)
            reader.send_signal(signal.SIGINT)
            errors = reader.communicate(timeout=5)[1]
        finally:
            reader.kill()
    assert errors.splitlines()[-1] == "KeyboardInterrupt"


# Any other, through SQLAlchemy


def test_any_database_is_read_through_sqlalchemy(shop):
    tables = find_tables([f"sqlite:///{shop}"]).tables
    assert [table.name for table in tables] == ["shop/cheap", "shop/coded", 'shop/odd "name#1', "shop/sold"]
    assert [table.format for table in tables] == ["sql"] * 4
    assert read_whole(tables[3]).equals(read_whole(find_table(f"{shop}#sold")))
    assert read_whole(tables[2]).equals(read_whole(find_table(f'{shop}#odd "name#1')))


def test_a_file_by_url_is_known_in_every_folder(shop, monkeypatch):
    odd = shop.rename(shop.with_name("my shop.v2.db"))
    monkeypatch.chdir(odd.parent)
    table = find_table("sqlite:///my shop.v2.db#sold")
    monkeypatch.chdir("/")
    assert table.name == "my shop.v2/sold"
    assert read_whole(table).height == FRAME.height


def test_a_column_of_an_unknown_type_is_read(tmp_path):
    with sqlite3.connect(tmp_path / "t.db") as file:
        file.execute("CREATE TABLE t (k ODDTYPE(7), x REAL, picture BLOB)")
        file.execute("INSERT INTO t VALUES ('a', 1, x'00')")
    file.close()
    assert read_whole(find_table(f"sqlite:///{tmp_path}/t.db")).rows() == [("a", "1.0")]


def test_a_database_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(UnreadableTable, match="unable to open database file"):
        find_tables([f"sqlite:///{tmp_path}/none.db"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "package"),
    [("snowflake://me:pw@host/db", "snowflake-sqlalchemy"), ("oracle://me:pw@host/db", "oracledb")],
)
def test_a_missing_driver_is_named(url, package):
    with pytest.raises(MissingPart, match=rf"pip install '{package}'") as caught:
        find_tables([url])
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["s3://b/k", "https://x.org/a.csv", "gs://b", "/data/a.db", "hdfs://x/y", "nothing://x"]
)
def test_urls_of_files_are_no_databases(url):
    assert not is_database(url)


@pytest.mark.parametrize(
    "url", ["postgres://h/d", "postgresql+psycopg://h/d", "mysql+pymysql://h/d", "mssql://h/d"]
)
def test_urls_of_databases_are_known(url):
    assert is_database(url)


def test_nothing_of_a_database_is_loaded_to_read_files():
    code = (
        "import sys; from covary.tables.databases import is_database; assert not is_database('s3://b/k');"
        "print([each for each in ('sqlalchemy', 'duckdb', 'adbc_driver_postgresql') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# The same rows from anywhere


@pytest.mark.parametrize("key", ["id", "place", "day", "day,place"])
@pytest.mark.parametrize("value", ["x", "n"])
def test_a_sketch_is_the_same_wherever_the_rows_are(sold, shop, ducks, tmp_path, key, value):
    FRAME.write_csv(tmp_path / "t.csv")
    FRAME.write_parquet(tmp_path / "t.parquet")
    expected = sketch(tmp_path / "t.csv", key, value, size=64)
    assert expected.size == 64
    others = (f"{sold.url}#sold", f"{shop}#sold", f"{ducks}#sold", f"sqlite:///{shop}#sold")
    for source in (tmp_path / "t.parquet", *others):
        other = sketch(source, key, value, size=64)
        assert other.key_hashes.tolist() == expected.key_hashes.tolist(), source
        assert other.values.tolist() == expected.values.tolist(), source


def test_a_view_that_makes_huge_cells_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "huge.sqlite")) as file:
        file.execute("CREATE VIEW huge AS SELECT hex(zeroblob(90000000)) AS place, 1 AS y")
    with pytest.raises(UnreadableTable, match="string or blob too big"):
        read_whole(find_table(tmp_path / "huge.sqlite"))


def test_a_duckdb_view_that_makes_huge_cells_is_refused(tmp_path):
    with duckdb.connect(str(tmp_path / "huge.duckdb")) as file:
        file.execute("CREATE VIEW huge AS SELECT repeat('x', 200000000) AS place, i AS y FROM range(2) t(i)")
    with pytest.raises(UnreadableTable, match="a cell of it has more than 128 MB"):
        read_whole(find_table(tmp_path / "huge.duckdb"))
