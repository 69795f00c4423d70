"""Secrets in every form of URL, searched for in every file, message and command line."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from torture.goodtables import write_good
from torture.law import leaked
from torture.trials import Outcome, Suite
from torture.workplace import Record, Workplace

PARAMETERS = (
    "pass", "code", "pw", "jwt", "password", "token", "sig", "api_key", "apikey", "access", "session",
    "sas", "pin",
    "X-Amz-Signature", "se", "user", "id", "ticket", "k", "credential",
    "client_secret", "sslkey", "sslpassword",
)  # fmt: skip


class Form(NamedTuple):
    """A URL with secrets, and how it is given."""

    name: str
    url: str
    as_option: str = ""  # instead of as a source


class Secrets:
    """Words that stand nowhere else, made as they are needed."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.by_name: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """Make one, and remember what it is."""
        self.by_name[name] = f"S3cr{self.rng.bytes(5).hex()}"
        return self.by_name[name]


def forms(secret: Secrets, port: int, folder: Path) -> list[Form]:
    """Every form in which somebody gives a secret."""
    at = f"127.0.0.1:{port}"
    closed = "127.0.0.1:1"
    every = "&".join(f"{name}={secret(f'{name}=')}" for name in PARAMETERS)
    made = [
        Form("a user and a password", f"http://{secret('user')}:{secret('password')}@{at}/a.csv"),
        Form("a token for a user", f"http://{secret('token')}@{at}/a.csv"),
        Form("every parameter", f"http://{at}/a.csv?{every}"),
        Form(
            "parameters after semicolons",
            f"http://{at}/a.csv;jsessionid={secret('jsessionid')}?a=1;pw={secret('pw;')}",
        ),
        *(
            Form(f"a parameter after {mark}", f"http://{at}/a.csv{mark}token={secret(mark)}")
            for mark in (",", "&", "%3F", "%26", "%3b")
        ),
        Form("a parameter without a name", f"http://{at}/a.csv?{secret('bare parameter')}"),
        Form(
            "a fragment", f"http://{at}/a.csv#access_token={secret('fragment')}&x={secret('in a fragment')}"
        ),
        Form("a path that is a parameter", f"http://{at}/no/a.csv?path=/x/{secret('path')}.csv"),
        Form(
            "a page that is not there",
            f"http://{secret('user')}:{secret('password')}@{at}/missing.csv?code={secret('code')}",
        ),
        Form("a page that is refused", f"http://{at}/refused.csv?jwt={secret('jwt')}#t={secret('t')}"),
        Form("a server that fails", f"http://{at}/fails.csv?pass={secret('pass')}"),
        Form("a server that sends elsewhere", f"http://{at}/elsewhere.csv?pass={secret('pass elsewhere')}"),
        Form("a server that answers no table", f"http://{at}/noise.parquet?pw={secret('noise')}"),
        Form(
            "nobody there", f"http://{secret('user')}:{secret('password')}@{closed}/a.csv?pw={secret('pw')}"
        ),
        Form(
            "no such host",
            f"https://{secret('user')}:{secret('password')}@nowhere.invalid/a.csv?pw={secret('pw')}",
        ),
        Form("keys of an object store", f"s3://{secret('KEY')}:{secret('SECRET')}@bucket/a.csv"),
        Form(
            "an object with a version", f"s3://bucket/a.csv?versionId=1&X-Amz-Signature={secret('signature')}"
        ),
        Form("keys of another store", f"gs://{secret('KEY')}:{secret('SECRET')}@bucket/a.csv"),
        Form("a store of Azure", f"abfs://c@account.dfs.core.windows.net/a.csv?sig={secret('sig')}"),
        Form("a server for files", f"sftp://{secret('user')}:{secret('password')}@{closed}/a.csv"),
        Form("an older server for files", f"ftp://{secret('user')}:{secret('password')}@{closed}/a.csv"),
        Form(
            "a chain",
            f"simplecache::http://{secret('user')}:{secret('password')}@{at}/a.csv?pw={secret('pw')}",
        ),
        Form("a zip behind a URL", f"zip://a.csv::http://{at}/a.zip?pw={secret('pw')}"),
        Form(
            "two secrets in one",
            f"http://{at}/a.csv?odbc_connect={quote('DRIVER=x;UID=u;PWD=' + secret('PWD'))}",
        ),
    ]
    password = f"{secret('first word')} {secret('second word')}/{secret('after a slash')}"
    for scheme in (
        "postgresql",
        "postgres",
        "mysql",
        "mysql+pymysql",
        "mariadb",
        "oracle",
        "mssql+pyodbc",
        "snowflake",
        "trino",
        "clickhouse",
        "redshift",
    ):
        made += [
            Form(f"{scheme}, a password", f"{scheme}://me:{secret('password')}@{closed}/db"),
            Form(f"{scheme}, a password as it is", f"{scheme}://me:{password}@{closed}/db"),
            Form(
                f"{scheme}, a password in %", f"{scheme}://me:{quote(password, safe='')}@{closed}/db#orders"
            ),
            Form(
                f"{scheme}, parameters",
                f"{scheme}://{closed}/db?password={secret('password=')}&sslpassword={secret('sslpassword')}&passfile={secret('passfile')}&code={secret('code')}",
            ),
        ]
    odbc = f"DRIVER={{x}};SERVER={closed};UID=me;PWD={secret('PWD')}"
    made += [
        Form("ODBC in one parameter", f"mssql+pyodbc:///?odbc_connect={quote(odbc)}"),
        Form("ODBC as it is", f"mssql+pyodbc:///?odbc_connect={odbc}"),
        Form("SQLite with a key", f"sqlite:///{folder}/none.db?key={secret('key')}"),
        Form("SQLite as a file URI", f"sqlite:///file:{folder}/none.db?uri=true&vfs={secret('vfs')}"),
        Form("DuckDB with a key", f"duckdb:///{folder}/none.duckdb?motherduck_token={secret('motherduck')}"),
        Form(
            "a dialect that nobody knows", f"nonsense://me:{secret('password')}@{closed}/db?pw={secret('pw')}"
        ),
        Form("a broken port", f"postgresql://me:{secret('password')}@127.0.0.1:port/db"),
        Form("a broken escape", f"postgresql://me:{secret('before')}%zz{secret('after')}@{closed}/db"),
        Form("a broken IPv6 host", f"http://me:{secret('password')}@[::1/a.csv?pw={secret('pw')}"),
        Form("two at signs", f"postgresql://me:{secret('before')}@{secret('between')}@{closed}/db"),
        Form("a query of Spark's", "spark:SELECT * FROM nowhere"),
        Form(
            "a master with a password",
            f"spark://me:{secret('password')}@{closed}?token={secret('token')}",
            "--master",
        ),
        Form(
            "a Connect server with a token",
            f"sc://{closed}/;token={secret('token')};user_id={secret('user_id')}",
            "--remote",
        ),
        Form("a Connect server with a password", f"sc://me:{secret('password')}@{closed}", "--remote"),
        Form("nothing that is a master", f"nonsense://me:{secret('password')}@{closed}", "--master"),
    ]
    return made


@contextmanager
def serving() -> Iterator[int]:
    """Serve tables on loopback, and errors that say back what was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code = next(
                (
                    code
                    for name, code in (("missing", 404), ("refused", 403), ("fails", 500), ("elsewhere", 302))
                    if name in self.path
                ),
                200,
            )
            body = (
                f"no: {self.path} {self.headers}".encode() if code != 200 or "noise" in self.path else TABLE
            )
            self.send_response(code, f"{code} {self.path}")
            if code == 302:
                self.send_header("Location", f"/missing.csv{self.path}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


TABLE = "\n".join(["place,y", *(f"place {n},{n * n % 97}" for n in range(150))]).encode()


def how_many() -> int:
    """How many forms there are."""
    return len(forms(Secrets(np.random.default_rng(0)), 1, Path("/")))


def _run(workplace: Workplace, numbers: Iterator[int]) -> Iterator[Outcome]:
    with serving() as port:
        for trial in numbers:
            yield _try(workplace, trial, port)


def _try(workplace: Workplace, trial: int, port: int) -> Outcome:
    secret = Secrets(workplace.rng(trial))
    home = workplace.empty("home")
    asked = write_good(home / "data")
    every = forms(secret, port, home)
    form = every[trial % len(every)]
    record = Record(workplace, trial, form.name)
    index, alone = (workplace.empty(name) / "index" for name in ("both", "alone"))
    data, url = str(home / "data"), form.url
    question = ("--key", "place", "--value", "y", "--index", str(index))
    fresh = trial % 7 == 0  # the command lines of all children are then seen, too
    build = workplace.fresh if fresh or form.as_option else workplace.spark_desk
    if form.as_option:
        record.run(build, "index", data, "--into", str(index), form.as_option, url, deadline=120)
    else:
        record.run(build, "index", data, url, "--into", str(index), deadline=120)
        record.run(workplace.spark_desk, "index", url, "--into", str(alone), "--json", deadline=120)
        record.run(workplace.spark_desk, "index", "--into", str(index), deadline=120)
        record.run(workplace.desk, "query", url, *question)
        record.run(
            workplace.desk,
            "estimate",
            url,
            str(asked),
            "--left-key",
            "place",
            "--left-value",
            "y",
            "--right-key",
            "place",
            "--right-value",
            "x",
        )
        record.run(
            workplace.desk, "query", str(asked), "--key", "place", "--value", url, "--index", str(index)
        )
        record.run(workplace.desk, "remove", str(index), url)
    for command in (("info", "--json"), ("info",), ("history", "--json"), ("check", "--json")):
        record.run(workplace.desk, command[0], str(index), *command[1:])
    given = {name: word for name, word in secret.by_name.items() if word in url}
    desks = [
        desk.folder / part
        for desk in (workplace.desk, workplace.spark_desk)
        for part in ("home", "tmp", "here", "log")
    ]
    fresh_places = [workplace.folder / "fresh" / part for part in ("home", "tmp", "here")]
    record.breaches += leaked(given, record.ran, index, alone, home, *desks, *fresh_places)
    return record.outcome()


def suites() -> list[Suite]:
    """Secrets planted in URLs."""
    return [
        Suite(
            "secrets",
            how_many(),
            4.0,
            _run,
            "passwords, keys, tokens in each form of URL; searched for in each file and message",
        )
    ]
