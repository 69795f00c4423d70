import gzip
import io
import socket
import time
import zipfile
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import boto3
import fsspec
import polars as pl
import pytest
from fsspec.implementations.http import ex as LINKS  # noqa: N812  (as fsspec looks for them)

import covary
from covary.errors import MissingPart, UnreadableTable
from covary.tables.discover import find_table, find_tables
from covary.tables.files import NO_ANSWER, _with_short_tags, describe_error, file_system
from covary.tables.location import Location
from covary.tables.read import plan_chunks, read_chunk, read_layout

build_index = partial(covary.build_index, runner="process")

FRAME = pl.DataFrame({"key": [f"k{n}" for n in range(200)], "x": range(200)})


def packed(write):
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def zipped(members):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sink.getvalue()


CSV = FRAME.write_csv().encode()
OBJECTS = {
    "lake/a.csv": CSV,
    "lake/2013/b.csv.gz": gzip.compress(CSV),
    "lake/2013/c.parquet": packed(FRAME.write_parquet),
    "lake/2013/d.arrow": packed(FRAME.write_ipc),
    "lake/e.jsonl": packed(FRAME.write_ndjson),
    "lake/f.zip": zipped({"f.csv": CSV}),
    "lake/empty.csv": b"",
    "lake/notes.md": b"no table",
    "lake/_hidden/g.csv": CSV,
}


@pytest.fixture
def s3(s3_server):
    """A bucket of tables."""
    client = boto3.client("s3")
    client.create_bucket(Bucket="tables")
    for key, body in OBJECTS.items():
        client.put_object(Bucket="tables", Key=key, Body=body)
    return client


def test_a_bucket_is_listed_like_a_folder(s3):
    tables, skipped, unlisted = find_tables(["s3://tables/lake"])
    names = [table.name for table in tables]
    assert sorted(names) == ["2013/b", "2013/c", "2013/d", "a", "e", "f"]
    assert [(each.path, each.reason.text) for each in skipped] == [
        ("s3://tables/lake/empty.csv", "the file is empty")
    ]
    assert unlisted == []


def test_every_format_is_read_through_the_api(s3):
    for table in find_tables(["s3://tables/lake"]).tables:
        layout = read_layout(table)
        frames = [
            frame
            for chunk in plan_chunks(table, layout, chunk_bytes=500)
            for frame in read_chunk(chunk, layout)
        ]
        assert pl.concat(frames)["x"].cast(pl.Int64).to_list() == FRAME["x"].to_list(), table.name


def test_a_glob_and_a_single_object(s3):
    assert [t.name for t in find_tables(["s3://tables/lake/2013/*.parquet"]).tables] == ["c"]
    assert [t.name for t in find_tables(["s3://tables/lake/a.csv"]).tables] == ["a"]
    assert find_table("s3://tables/lake/a.csv").size == len(CSV)


def test_an_object_has_another_version_when_its_content_changes(s3):
    lake = Location("s3://tables/lake/a.csv")
    before = lake.state()
    s3.put_object(Bucket="tables", Key="lake/a.csv", Body=CSV)
    assert lake.state() == before
    s3.put_object(Bucket="tables", Key="lake/a.csv", Body=CSV.replace(b"k7", b"q7"))
    assert lake.state().size == before.size
    assert lake.state().version != before.version


@pytest.mark.parametrize("url", ["s3://nowhere/lake", "s3://tables/no/such", "s3://tables/no*"])
def test_what_is_not_there_is_named(s3, url):
    with pytest.raises(UnreadableTable, match=r"s3://"):
        find_tables([url])
    tables, _, unlisted = find_tables([url, "s3://tables/lake/a.csv"])
    assert [table.name for table in tables] == ["a"]
    assert [each.path for each in unlisted] == [url]


def test_a_scheme_without_its_package_names_it(monkeypatch):
    with pytest.raises(MissingPart, match="pip install 'gcsfs'"):
        find_tables(["gs://bucket/x.csv"])
    with pytest.raises(UnreadableTable, match="nothing://x"):
        find_tables(["nothing://x"])


@contextmanager
def serving(handler):
    """A server on loopback while the block runs, and its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def web(tmp_path):
    """A server of files on loopback, and its address."""
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "a.csv").write_text("place,x\n" + "".join(f"p{n},{n * n / 7}\n" for n in range(50)))
    with serving(partial(SimpleHTTPRequestHandler, directory=tmp_path / "web")) as server_and_address:
        yield server_and_address


@pytest.mark.parametrize("question", ["", "?day=1"])
def test_a_file_on_the_web_is_a_table_and_stays_one_while_its_server_is_down(web, tmp_path, question):
    server, address = web
    pl.DataFrame({"place": ["a", "b"], "x": [1.5, 2.5]}).write_csv(tmp_path / "good.csv")
    index = build_index(
        [f"{address}/a.csv{question}", tmp_path / "good.csv"], tmp_path / "index", runner="process"
    )
    assert sorted(index.tables["name"]) == ["a", "good"]
    server.shutdown()
    server.server_close()
    index = build_index(None, tmp_path / "index")
    assert sorted(index.tables.filter(pl.col("problem").is_null())["name"]) == ["a", "good"]
    [problem] = index.tables["problem"].drop_nulls()
    # What a question asked is not stored, so that it can't be asked again.
    assert ("name it again in full" if question else "can't be reached") in problem


def test_a_key_in_a_url_is_in_no_reason():
    _, _, unlisted = find_tables(["s3://AK:s3cret@bucket/x", __file__.replace("test_remotefiles.py", "*.py")])
    assert "s3cret" not in str(unlisted)


def serve_badly(listening, manner):
    """Accept whoever comes, and answer in a bad manner."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nContent-Type: text/csv\r\n\r\n"
    held = []
    with suppress(OSError):
        while True:
            talk, _ = listening.accept()
            held.append(talk)
            asked = talk.recv(4000)
            if manner == "silent":
                continue
            talk.sendall(head)
            if asked.startswith(b"GET"):
                talk.sendall(b"key,x\n1,2\n")
            if manner == "broken off" or asked.startswith(b"HEAD"):
                talk.shutdown(socket.SHUT_RDWR)
    for talk in held:
        talk.close()


@pytest.fixture
def bad_web(monkeypatch):
    """Start servers that answer badly; none is waited for for long."""
    monkeypatch.setattr("covary.tables.files.SECONDS_WITHOUT_A_BYTE", 0.3)
    with ExitStack() as at_end:

        def start(manner):
            listening = at_end.enter_context(socket.create_server(("127.0.0.1", 0)))
            serving = Thread(target=serve_badly, args=(listening, manner), daemon=True)
            serving.start()
            at_end.callback(listening.shutdown, socket.SHUT_RDWR)
            return f"http://127.0.0.1:{listening.getsockname()[1]}"

        yield start


@pytest.mark.parametrize(
    ("manner", "reason"),
    [("silent", "did not answer"), ("stuck", "did not answer"), ("broken off", "middle")],
)
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.zip", "a.csv.gz"])
def test_a_server_that_answers_badly_is_given_up_in_words(bad_web, manner, reason, name):
    started = time.monotonic()
    with pytest.raises(UnreadableTable, match=reason):
        find_table(f"{bad_web(manner)}/{name}")
    assert time.monotonic() - started < 5


def test_a_server_that_says_nothing_is_asked_for_no_more_than_one_file(bad_web):
    started = time.monotonic()
    with pytest.raises(UnreadableTable, match="did not answer"):
        find_tables([f"{bad_web('silent')}/a.csv"])
    assert time.monotonic() - started < 5


def test_what_is_configured_for_the_web_stays(monkeypatch):
    monkeypatch.setitem(fsspec.config.conf, "https", {"client_kwargs": {"headers": {"a": "b"}}})
    files, _ = file_system("simplecache::https://h/a.csv")
    files = getattr(files, "fs", files)
    assert files.client_kwargs["headers"] == {"a": "b"}
    assert files.client_kwargs["timeout"].total is None


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (TimeoutError(), NO_ANSWER),
        (TimeoutError(110, "Connection timed out"), "Connection timed out"),
        (ValueError(), "ValueError"),
        (FileNotFoundError(2, "No such file"), "No such file"),
    ],
)
def test_no_error_is_told_without_words(problem, words):
    assert describe_error(problem) == words


def page_without_end(listening, piece, pause):
    """Answer whoever comes with a page that goes on for ever."""
    with suppress(OSError):
        while True:
            talk, _ = listening.accept()
            Thread(target=talk_without_end, args=(talk, piece, pause), daemon=True).start()


def talk_without_end(talk, piece, pause):
    with suppress(OSError), talk:
        asked = talk.recv(4000)
        talk.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\n\r\n")
        while asked.startswith(b"GET"):
            talk.sendall(piece)
            time.sleep(pause)


@pytest.mark.parametrize(("piece", "pause"), [(b'<a href="x.csv">x</a>\n' * 3000, 0), (b" ", 0.02)])
def test_a_page_without_end_is_given_up(monkeypatch, piece, pause):
    monkeypatch.setattr("covary.tables.files.SECONDS_FOR_A_PAGE", 1.0)
    monkeypatch.setattr("covary.tables.files.LARGEST_PAGE", 1 << 20)
    started = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=page_without_end, args=(listening, piece, pause), daemon=True).start()
        with pytest.raises(UnreadableTable, match=r"longer than any list|did not answer in time"):
            find_tables([f"http://127.0.0.1:{listening.getsockname()[1]}/lake/"])
        listening.shutdown(socket.SHUT_RDWR)
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("begun", ["<a ", "<a" + " " * 50, "<a\t\n"])
def test_links_are_found_in_a_page_of_tags_that_never_end(begun):
    page = '<a class="x" href="first.csv">' + begun * 30_000 + '<A  HREF="last.csv">'
    started = time.monotonic()
    names = [each[2] for each in LINKS.findall(_with_short_tags(page))]
    assert names == ["first.csv", "last.csv"]
    assert time.monotonic() - started < 5


class Endless(SimpleHTTPRequestHandler):
    """Of every folder, two more below it."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b'<a href="a/">a</a><a href="b/">b</a>')

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_):
        pass


def test_pages_that_lead_to_pages_for_ever_are_given_up(monkeypatch):
    monkeypatch.setattr("covary.tables.remote.MOST_PAGES", 30)
    with (
        serving(Endless) as (_, address),
        pytest.raises(UnreadableTable, match="more pages than can be looked through"),
    ):
        find_tables([f"{address}/lake/"])


class HalfBroken(Endless):
    """A folder with a file, and one below it that does not answer."""

    def do_GET(self):
        if "/below/" in self.path:
            time.sleep(1)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/csv" if ".csv" in self.path else "text/html")
        self.end_headers()
        self.wfile.write(b'<a href="t.csv">t</a><a href="below/">b</a>')

    do_HEAD = do_GET  # noqa: N815


def test_a_page_below_that_does_not_answer_is_not_passed_by_in_silence(monkeypatch):
    monkeypatch.setattr("covary.tables.files.SECONDS_WITHOUT_A_BYTE", 0.3)
    with serving(HalfBroken) as (_, address), pytest.raises(UnreadableTable, match="did not answer in time"):
        find_tables([f"{address}/lake/"])
