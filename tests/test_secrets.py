import base64
import io
import json
import re
import sqlite3
import stat
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, quote, urlsplit

import polars as pl
import pytest
from typer.testing import CliRunner

import covary
from covary.build.upkeep import remove_tables
from covary.cli import app as cli
from covary.errors import CovaryError, NoSuchColumn, UnreadableTable
from covary.index.manifest import read_manifest
from covary.pipeline.spark_errors import check_address, name_spark_errors
from covary.query.ask import open_index
from covary.secrets import Secrets
from covary.sketching.sketch_table import sketch
from covary.tables.discover import find_table, find_tables, name_source
from covary.tables.location import Location
from covary.tables.url_marks import find_state_folder, make_mark

build_index = partial(covary.build_index, runner="process")

USER, PASSWORD, TOKEN = "alice-hush", "pa55 /hu#sh", "t0ken+hush=="
PLACES = [f"place {n}" for n in range(60)]


def csv(page=1):
    frame = pl.DataFrame({"place": PLACES, "x": [(n * n * page) % 53 + 0.5 for n in range(60)]})
    return frame.write_csv().encode()


def zipped():
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("one.csv", csv(3))
        archive.writestr("two.csv", csv(5))
        archive.writestr("three.xml", b"<x/>")
    return sink.getvalue()


@dataclass
class Web:
    """A server that gives its files only to whoever knows the secrets, and counts who asks."""

    address: str
    tokens: set
    asked: list = field(default_factory=list)

    def url(self, path, token=TOKEN, user=True, **more):
        who = f"{quote(USER)}:{quote(PASSWORD, safe='')}@" if user else ""
        words = "".join(f"&{name}={quote(str(value), safe='')}" for name, value in more.items())
        return f"http://{who}{self.address}{path}?token={quote(token, safe='')}{words}"


@pytest.fixture
def web():
    served = Web("", {TOKEN})
    right = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            url = urlsplit(self.path)
            asked = {name: values[0] for name, values in parse_qs(url.query).items()}
            served.asked.append(self.path)
            files = {
                "/a.csv": csv(int(asked.get("page", 1))),
                "/two.zip": zipped(),
                "/bad.parquet": b"PAR1 is not all",
            }
            if asked.get("token") not in served.tokens or self.headers["Authorization"] != right:
                return self.send_error(403, f"no {self.path}")
            if url.path not in files:
                return self.send_error(404, f"no {self.path}")
            content = files[url.path]
            if wanted := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or ""):
                self.send_response(206)
                first, last = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
                content = content[first : last + 1]
            else:
                self.send_response(200)
                self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)
            return None

        def do_HEAD(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.address = f"127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield served
        server.shutdown()


def everything_in(index):
    """Every byte of an index, and every cell of its tables, which are compressed."""
    found = []
    for path in Path(index).rglob("*"):
        if path.is_file():
            found.append(path.read_bytes())
            if path.suffix == ".parquet":
                found.append(json.dumps(pl.read_parquet(path).to_dicts(), ensure_ascii=False).encode())
    return b"\n".join(found)


def all_told(problem):
    """All that an error and those that led to it could tell."""
    told = []
    while problem is not None:
        told += [str(problem), repr(problem), repr(problem.args), repr(vars(problem))]
        problem = problem.__cause__ or problem.__context__
    return "\n".join(told)


def secrets_in(text, *more):
    text = text if isinstance(text, bytes) else text.encode()
    words = [USER, PASSWORD, TOKEN, "hush", *more]
    forms = {
        form
        for word in words
        for form in (word, quote(word, safe=""), base64.b64encode(word.encode()).decode())
    }
    return [form for form in forms if form.lower().encode() in text.lower()]


def test_no_secret_is_in_an_index_nor_on_the_screen(web, tmp_path, capfd, monkeypatch):
    with sqlite3.connect(tmp_path / "shop.db") as file:
        file.execute("CREATE TABLE sold (place TEXT, x REAL)")
        file.executemany("INSERT INTO sold VALUES (?, ?)", [(place, n) for n, place in enumerate(PLACES)])
    file.close()
    pl.DataFrame({"place": PLACES, "y": range(60)}).write_csv(tmp_path / "good.csv")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "env-hush-hush")
    sources = [
        web.url("/a.csv", page=1),
        web.url("/a.csv", page=2),
        web.url("/two.zip", pw="z1p-hush"),
        web.url("/bad.parquet", code="c0de-hush"),
        web.url("/missing.csv", sig="s1g-hush"),
        web.url("/a.csv", token="wrong-hush", jwt="eyJ-hush"),
        web.url("/a.csv", user=False) + "#access_token=fragment-hush",
        f"s3://KEY-hush:{TOKEN}/x@bucket/lake",
        "postgresql://alice-hush:hush/hush@127.0.0.1:1/db",
        "postgresql://alice-hush:hush%2Fhush@127.0.0.1:1/db?password=hush2&sslpassword=hush3#t",
        f"sqlite:///{tmp_path}/shop.db?secret=hush",
        f"sqlite:///{tmp_path}/none.db?secret=hush",
        "jdbc:sqlserver://127.0.0.1:1;user=alice-hush;password=hush",
        "simplecache::s3://KEY-hush:hush@bucket/x",
        str(tmp_path / "good.csv"),
    ]
    into = tmp_path / "index"
    monkeypatch.setattr(sys, "argv", ["covary", *sources])
    ran = CliRunner().invoke(cli.app, ["index", *sources, "--runner", "process", "--into", str(into)])
    assert ran.exit_code == 0, ran.output
    shown = [ran.output]
    for more in (["info"], ["info", "--json"], ["history", "--json"], ["check"]):
        shown.append(CliRunner().invoke(cli.app, [more[0], str(into), *more[1:]]).output)
    tables = open_index(into).tables
    read = tables.filter(pl.col("problem").is_null())["name"].to_list()
    assert len(read) == len(set(read)) == 6  # two pages, two of a zip, of a database, and a file
    assert tables["problem"].drop_nulls().len() >= 8
    assert secrets_in(everything_in(into)) == []
    assert secrets_in("\n".join(shown)) == []
    assert secrets_in("".join(capfd.readouterr())) == []
    assert secrets_in(" ".join(read)) == []
    # What leads to the data is there all the same.
    assert f"{web.address}/two.zip?token=…&pw=…" in shown[0] + shown[1]
    assert b"127.0.0.1:1/db" in everything_in(into)
    # A table is not told what moves with itself.
    [own] = tables.filter(path=name_source(web.url("/a.csv", page=1)))["name"]
    hits = open_index(into).query(web.url("/a.csv", page=1), key="place", value="x").hits
    assert {"two/one", "two/two"} <= {hit.table for hit in hits} <= {*read} - {own}


MISTYPED = [
    " https://u:hush@localhost:1/x.csv",
    "\thttps://u:hush@localhost:1/x.csv",
    "http:///u:hush@localhost:1/y.csv",
    "https:/u:hush@localhost:1/x.csv",
    "postgresql:u:hush@h/db",
    "'s3://KEY:hush@bucket/x",
    "u:hush@h/db",
    "https:/h/x.csv?token=hush",
    "https:/u:hu*sh-hush@h/x.csv",
]


@pytest.mark.parametrize("source", MISTYPED)
def test_a_mistyped_url_is_refused_and_nowhere_shown(source, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"place": PLACES, "y": range(60)}).write_csv("good.csv")
    sides = ["--left-key", "place", "--left-value", "y", "--right-key", "place", "--right-value", "y"]
    for command in (["index", "good.csv", source, "--into", "i"], ["estimate", source, "good.csv", *sides]):
        monkeypatch.setattr(sys, "argv", ["covary", *command])
        ran = CliRunner().invoke(cli.app, command)
        assert ran.exit_code == 2
        assert "looks like a URL that is mistyped; write scheme://host/path" in ran.output
        assert secrets_in(ran.output) == []
    assert secrets_in(everything_in("i")) == []
    assert secrets_in("".join(capfd.readouterr())) == []
    monkeypatch.setattr(sys, "argv", ["covary", "info", "i", source])
    assert secrets_in(CliRunner().invoke(cli.app, ["info", "i", source]).output) == []


@pytest.mark.parametrize(
    "into",
    ["postgresql://me:hush@h/db", "s3://KEY:hush/xy@bucket/i", "https://h/i?token=hush", "file:///i#hush"],
)
def test_a_url_is_no_index_and_made_into_no_folder(into, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"place": PLACES, "y": range(60)}).write_csv("good.csv")
    asked = ["--key", "place", "--value", "y", "--index", into]
    commands = [["index", "good.csv", "--into", into], ["query", "good.csv", *asked], ["remove", into, "t"]]
    for command in (*commands, *([name, into] for name in ("info", "check", "history", "compact"))):
        monkeypatch.setattr(sys, "argv", ["covary", *command])
        ran = CliRunner().invoke(cli.app, command)
        assert ran.exit_code == 2
        assert "an index is a folder of this machine" in ran.output
        assert secrets_in(ran.output) == []
    assert secrets_in("".join(capfd.readouterr())) == []
    assert [each.name for each in tmp_path.iterdir()] == ["good.csv"]


@pytest.mark.parametrize("name", ["a:b@c.csv", "https:a@b.csv", " s3:x@y.csv", "s3:/KEY:x@y.csv"])
def test_a_file_of_a_name_like_a_url_is_a_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(exist_ok=True)
    pl.DataFrame({"place": PLACES, "y": range(60)}).write_csv(name)
    assert name_source(name) == str(tmp_path / name)
    [table] = find_tables([name]).tables
    assert table.location.text == find_table(name).location.text == str(tmp_path / name)
    glob = f"{name[:-5]}*.csv"
    assert [table.location.text for table in find_tables([glob]).tables] == [str(tmp_path / name)]


@pytest.mark.parametrize("mark", [",", "&", "%3F", "%26", "%3b"])
def test_a_parameter_after_another_mark_is_one(mark):
    source = f"https://host/2013,a&b/a.csv{mark}token=hush"
    assert name_source(source) == f"https://host/2013,a&b/a.csv{mark}token=…"


@pytest.mark.parametrize(
    "source",
    [
        "s3://bucket/d/x,y=1.csv",
        "s3://bucket/d/p&q=2.csv",
        "s3://bucket/a=1,b=2/part.parquet",
        "https://host/year=2013,month=1/a.csv",
        "https://host/x,y=1.csv",
    ],
)
def test_such_a_mark_in_a_name_is_part_of_it(source):
    assert name_source(source) == source
    assert Location(source).bare == source


def test_what_was_not_stored_is_asked_for_again_and_its_tables_stay(web, tmp_path):
    pl.DataFrame({"place": PLACES, "y": range(60)}).write_csv(tmp_path / "good.csv")
    into = tmp_path / "index"
    index = build_index(
        [web.url("/a.csv", page=1), web.url("/a.csv", page=2), tmp_path / "good.csv"], into, runner="process"
    )
    names = sorted(index.tables["name"])
    before = len(web.asked)
    index = build_index(None, into)
    assert len(web.asked) == before  # nobody was asked for "…"
    good = index.tables.filter(pl.col("problem").is_null())
    assert sorted(good["name"]) == names
    assert index.tables["problem"].drop_nulls().to_list() == [
        "users, passwords and the values of parameters are never stored; name it again in full"
    ] * 2  # fmt: skip
    told = CliRunner().invoke(
        cli.app, ["index", "--runner", "process", "--into", str(into)], env={"COLUMNS": "300"}
    )
    assert told.exit_code == 0
    assert told.output.count("name it again in full") == 2
    # Named again with another token and password it is the same; the other page is still not to be seen.
    web.tokens.add("n3w")
    sources = read_manifest(into).sources
    index = build_index(web.url("/a.csv", token="n3w", page=2), into)
    assert len(web.asked) > before
    assert read_manifest(into).sources == sources
    assert sorted(index.tables.filter(pl.col("problem").is_null())["name"]) == names
    assert index.tables["problem"].drop_nulls().len() == 1


def test_a_source_that_lacks_what_was_hidden_is_not_fetched_as_it_is(web, tmp_path):
    shown = name_source(web.url("/a.csv", page=1))
    for look in (
        lambda: find_tables([shown]),
        lambda: find_table(shown),
        lambda: sketch(shown, "place", "x"),
    ):
        with pytest.raises(UnreadableTable, match="name it again in full"):
            look()
    assert web.asked == []


def test_a_table_is_removed_by_the_url_that_it_was_named_by(web, tmp_path):
    pl.DataFrame({"place": PLACES, "y": range(60)}).write_csv(tmp_path / "good.csv")
    first, second = web.url("/a.csv", page=1), web.url("/a.csv", page=2)
    build_index([first, second, tmp_path / "good.csv"], tmp_path / "index")
    remove_tables(tmp_path / "index", first)
    left = open_index(tmp_path / "index").tables["path"].to_list()
    assert sorted(left) == sorted([name_source(second), str(tmp_path / "good.csv")])
    with pytest.raises(CovaryError) as told:
        remove_tables(tmp_path / "index", web.url("/b.csv"))
    assert secrets_in(all_told(told.value)) == []


def test_one_source_for_two_users_is_refused(tmp_path):
    with pytest.raises(CovaryError, match=r"postgresql://h/db is named twice") as told:
        build_index(
            ["postgresql://alice:hush1@h/db", "postgresql://bob:hush2@h/db"],
            tmp_path / "index",
            runner="process",
        )
    assert secrets_in(str(told.value), "alice", "bob") == []


CLOSED = "127.0.0.1:1"


@pytest.mark.parametrize(
    "source",
    [
        "http://alice-hush:hush%20hush@{web}/missing.csv?token=hush",
        "http://alice-hush:hush@{web}/a.csv?code=hush",
        f"http://alice-hush:hush@{CLOSED}/a.csv?code=hush;hush",
        f"http://hush-token@{CLOSED}/a.csv",
        f"zip://x.csv::http://alice-hush:hush@{CLOSED}/a.zip?pw=hush",
        "s3://KEY-hush:hush/hush@bucket/x.csv",
        "s3://KEY-hush:hush@bucket/x.csv",
        "gs://KEY-hush:hush@bucket/x.csv",
        f"ftp://alice-hush:hush@{CLOSED}/a.csv",
        f"sftp://alice-hush:hu sh@{CLOSED}/hush@a.csv",
        f"postgresql://alice-hush:hush@{CLOSED}/db?sslpassword=hush&application_name=hush",
        f"postgresql://alice-hush:hu sh@{CLOSED}/db?port=hush",
        f"postgresql://alice-hush:hu/sh?hush#hush@{CLOSED}/db",
        "postgresql://alice-hush:hush/db",
        f"mysql+pymysql://alice-hush:hush@{CLOSED}/db?ssl_key=hush",
        f"mysql://alice-hush:hush@{CLOSED}/db#access_token=hush",
        "mssql+pyodbc:///?odbc_connect=DRIVER%3D%7Bhush%7D%3BPWD%3Dhush",
        "sqlite:////no/such/folder/x.db?key=hush",
        "unknown://alice-hush:hush@host/x?y=hush",
        "jdbc:postgresql://host/db;password=hush",
        "jdbc:oracle:thin:alice-hush/hush@//host:1/db",
        "DRIVER={{x}};SERVER=h;UID=alice-hush;PWD={{hush;hush}}",
        "host=h dbname=d user=u password=hush",
        "spark:SELECT * FROM csv.`s3a://KEY-hush:hush@bucket/x`",
    ],
)
@pytest.mark.parametrize("look", [find_table, lambda source: find_tables([source])], ids=["table", "tables"])
def test_no_error_of_any_library_tells_a_secret(web, source, look):
    with pytest.raises(CovaryError) as told:
        look(source.format(web=web.address))
    assert secrets_in(all_told(told.value)) == []
    assert len(str(told.value)) > 20


def test_no_error_on_the_way_tells_a_secret(web, monkeypatch):
    url = web.url("/bad.parquet", code="c0de-hush")
    with pytest.raises(UnreadableTable) as told:
        sketch(url, "place", "x")
    assert secrets_in(all_told(told.value)) == []
    assert told.value.__cause__ is None
    table = find_table(web.url("/a.csv"))
    assert secrets_in(table.location.shown + table.name) == []
    web.tokens.clear()
    with pytest.raises(UnreadableTable) as told:
        sketch(web.url("/a.csv"), "place", "x")
    assert secrets_in(all_told(told.value)) == []


@pytest.mark.parametrize(
    ("master", "remote"),
    [
        (None, "sc://127.0.0.1:1/;token=hush;user_id=alice-hush"),
        ("spark://alice-hush:hush@127.0.0.1:1", None),
        ("alice-hush:hush@127.0.0.1", None),
        (None, "https://alice-hush:hush@host/?token=hush"),
    ],
)
def test_the_address_of_spark_is_told_without_its_token(master, remote):
    with pytest.raises(CovaryError, match=r"Spark .*(127\.0\.0\.1|host)") as told:
        check_address(master, remote)
    assert secrets_in(all_told(told.value)) == []


class SparkConnectGrpcException(Exception):
    __module__ = "pyspark.errors.exceptions.connect"


def test_what_spark_says_is_told_without_the_token():
    with pytest.raises(CovaryError) as told, name_spark_errors("sc://host:1/;token=hush%2Fhush"):
        raise SparkConnectGrpcException("metadata: authorization Bearer hush/hush; hush%2Fhush")
    assert secrets_in(all_told(told.value)) == []
    assert str(told.value).startswith("Spark at sc://host:1/;token=… failed: ")


def test_a_mistake_in_a_command_does_not_show_what_was_typed(monkeypatch):
    url = "postgresql://alice-hush:hush@host/db?password=hush"
    command = ["query", "a.csv", url, "--key", "k", "--value", "x", "--index", "i"]
    monkeypatch.setattr(sys, "argv", ["covary", *command])
    ran = CliRunner().invoke(cli.app, command)
    assert ran.exit_code == 2
    assert "unexpected extra argument" in ran.output
    assert secrets_in(ran.output) == []


def test_values_of_many_marks_are_hidden_in_little_time():
    started = time.monotonic()
    url = "https://h/x.csv?a=" + "=hush&" * 2 + '"=' * 2000 + "hush"
    assert "hush" not in Secrets.of(url).hide(f"can't read {url}")
    assert time.monotonic() - started < 60  # where each mark costs all before it, it takes far longer


@pytest.mark.parametrize("length", range(20))
def test_a_name_is_cut_only_after_its_secrets_are_hidden(length):
    typed = f"postgresql://me:{'x' * length}first second/third@127.0.0.1:1/database-{'y' * 40}"
    said = str(NoSuchColumn(typed, "a.csv", ["place"]))
    assert "there is no column 'postgresql://…@127.0.0.1:1/database-" in said
    assert not re.search("first|second|third", said)


def test_a_bug_does_not_show_what_was_typed(monkeypatch):
    def broken(index):
        try:
            raise ValueError("at http://alice-hush:hush@host/")
        except ValueError as problem:
            raise KeyError("hush was not expected") from problem

    monkeypatch.setattr("covary.query.ask.open_index", broken)
    command = ["query", "http://alice-hush:hush@host/a.csv", "--key", "k", "--value", "x", "--index", "i"]
    monkeypatch.setattr(sys, "argv", ["covary", *command])
    ran = CliRunner().invoke(cli.app, command)
    assert str(ran.exception) == "KeyError: '… was not expected'"
    assert ran.exception.__suppress_context__


@pytest.fixture
def other_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    return tmp_path / "other" / "covary"


def test_only_who_has_the_key_can_try_values(other_state, monkeypatch):
    mine = make_mark("https://h/a.csv?pin=1234")
    assert find_state_folder() == other_state
    assert len(mine) == 8
    assert make_mark("https://h/a.csv?pin=1234") == mine
    assert len({make_mark(f"https://h/a.csv?pin={pin}") for pin in range(100)}) == 100
    assert make_mark("https://h/b.csv?pin=1234") != mine  # nor does it tell where else the value is used
    [key] = other_state.iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(other_state.stat().st_mode) == 0o700
    assert len(key.read_bytes()) == 32
    monkeypatch.setenv("XDG_STATE_HOME", str(other_state / "third"))
    assert make_mark("https://h/a.csv?pin=1234") != mine


def test_no_key_is_made_where_none_is_needed(other_state):
    for url in (
        "/data/a.csv?x=1",
        "https://h/a.csv",
        "https://me:pw@h/a.csv?X-Amz-Signature=1&sig=2",
        "s3://b/x",
    ):
        assert make_mark(url) == ""
    assert make_mark("https://h/a.csv?page=1", make_key=False) == ""
    assert not other_state.exists()


def test_a_key_that_can_not_be_kept_is_told_with_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(CovaryError, match="set XDG_STATE_HOME to a folder that you can write to"):
        make_mark("https://h/a.csv?page=1")


def test_two_that_make_the_key_at_once_have_the_same(other_state):
    marking = "from covary.tables.url_marks import make_mark; print(make_mark('https://h/a.csv?page=1'))"
    command = [sys.executable, "-c", marking]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    marks = {child.communicate(timeout=60)[0] for child in children}
    assert len(marks) == 1
    assert len(list(other_state.iterdir())) == 1
