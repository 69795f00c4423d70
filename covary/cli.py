"""The command line: arguments in; an answer, or one clear line, out.

A command imports what it needs when it runs, so that --help and --version answer at once.
"""

import json
import logging
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer
from typer.core import TyperGroup

from covary.errors import CovaryError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from covary.answers import IndexFacts
    from covary.build import Progress
    from covary.query import Hits, Index

PIPE_WIDTH = 120
SECONDS_BETWEEN_LINES = 5.0
SECONDS_TO_CONNECT = 5.0
SPARK_PORTS = {"spark": 7077, "sc": 15002}
LOCAL = r"local(\[(\d+|\*)(,\d+)?\])?"
MASTERS = re.compile(rf"{LOCAL}|local-cluster\[.+\]|(spark|k8s)://.+|yarn")
REMOTES = re.compile(rf"{LOCAL}|sc://.+")
SPARK_MODULES = {"pyspark", "py4j", "grpc"}
STOPPED = 130


HELP = """\
Which tables join with mine on this key and hold a column that moves together with mine, and how sure are we?

covary reads a collection of tables once and keeps a small sketch of every pair of a key column and a number \
column. Then it answers from the sketches in milliseconds, without joining anything.

\b
covary demo                                        see it work on real data
covary index data/ --into my.covary                read your tables, once
covary query sales.csv --key date --value revenue --index my.covary
                                                   ask what moves with revenue
"""


class Commands(TyperGroup):
    """Runs a command and translates whatever goes wrong into a line and an exit code; nothing else does."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except CovaryError as mistake:
            complain(str(mistake))
            raise typer.Exit(mistake.exit_code) from None
        except KeyboardInterrupt:
            complain("stopped; no index was changed")
            raise typer.Exit(STOPPED) from None
        except BrokenPipeError:
            # Whoever read our answer has enough of it; Python would complain when it closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        return result


app = typer.Typer(
    name="covary",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog="Every command explains itself: covary query --help",
    help=HELP,
)

Json = Annotated[bool, typer.Option("--json", help="Print the same facts as JSON.")]
Aggregate = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How rows of one key become one number: mean, sum, count, min, max, first or last.",
    ),
]
Measure = Annotated[str, typer.Option(metavar="NAME", help="pearson or spearman.")]
Hash = Annotated[str, typer.Option(metavar="NAME", help="xxhash64, or murmur3 for the paper's 32 bits.")]
Size = Annotated[int, typer.Option(metavar="N", help="Keys per sketch; more is surer and larger.")]
IndexFolder = Annotated[Path, typer.Argument(metavar="INDEX", show_default=False, help="The index's folder.")]


def main() -> None:
    """Run the command that the user typed."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal can't show stops nothing
    # What py4j logs it also raises; without a handler Python would print it a second time.
    logging.getLogger().addHandler(logging.NullHandler())
    app(prog_name="covary")


def complain(line: str) -> None:
    """Say on stderr, in one line, what went wrong."""
    from covary.answers import printable

    typer.echo(f"covary: {printable(line)}", err=True)


def _console(stderr: bool = False) -> "Console":
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def _show(view: "RenderableType") -> None:
    console = _console()
    if console.is_terminal:
        console.print(view)
        return
    with console.capture() as captured:
        console.print(view)
    print(*(line.rstrip() for line in captured.get().splitlines()), sep="\n")


def _print_json(facts: dict[str, Any]) -> None:
    from covary.answers import plain

    print(json.dumps(plain(facts), indent=2, allow_nan=False))


def _version(wanted: bool) -> None:
    if wanted:
        from covary import __version__

        print(f"covary {__version__}")
        raise typer.Exit


@app.callback()
def covary(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Carry the options that stand before a command."""


@app.command(rich_help_panel="Start here")
def demo(
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep the data and the index in this folder, to go on with."),
    ] = None,
) -> None:
    """Ask what moves with flight delays, on real data: New York's flights and weather in 2013."""
    from covary.demo import ASKED, INDEX_NAME, after_view, before_view, copied_to, find_data, next_commands
    from covary.query import open_index

    data = copied_to(keep, find_data()) if keep else find_data()
    _show(before_view(data))
    with TemporaryDirectory() as scratch:
        into = (keep or Path(scratch)) / INDEX_NAME
        _, build_ms = _build([str(data)], into, {})
        opened = open_index(into)
        table = data / ASKED.file
        hits = opened.query(table, ASKED.key, ASKED.value)
        _show_hits(hits, str(table), opened)
    _show(after_view(hits, build_ms, keep))
    for command in next_commands(keep):
        print(f"  {command}")  # left for the terminal to wrap, so that it can be copied


@app.command(rich_help_panel="Build")
def index(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...", show_default=False, help="Files, folders (with all below) and globs."
        ),
    ],
    into: Annotated[
        Path, typer.Option("--into", metavar="INDEX", show_default=False, help="The index's folder.")
    ],
    size: Size = 1024,
    aggregate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            show_default="mean",
            help="How rows of one key become one number: mean, sum, count, min, max, first or last. "
            "Several give a sketch each.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Only these columns are keys.")
    ] = None,
    value: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Only these columns are numbers.")
    ] = None,
    hash: Hash = "xxhash64",
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", show_default="local[*]", help="The Spark master to run on."),
    ] = None,
    remote: Annotated[
        str | None, typer.Option(metavar="URL", help="The Spark Connect server to run on, instead.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 2 if a table was skipped.")] = False,
    as_json: Json = False,
) -> None:
    """Sketch every table of a collection on Spark and write an index.

    covary index data/ --into my.covary

    covary index 'data/**/*.parquet' prices.csv --into my.covary --aggregate mean --aggregate max

    An index that is already there is replaced as the last step.
    """
    options = {
        "size": size,
        "aggregates": tuple(aggregate or ["mean"]),
        "keys": tuple(key or ()),
        "values": tuple(value or ()),
        "hash": hash,
        "master": master,
        "remote": remote,
    }
    facts, elapsed_ms = _build(sources, into, options)
    if as_json:
        _print_json(facts.to_dict() | {"elapsed_ms": elapsed_ms})
    else:
        from covary.answers import build_view

        _show(build_view(facts, elapsed_ms))
    if strict and facts.skipped:
        skipped = "1 table was" if len(facts.skipped) == 1 else f"{len(facts.skipped):,} tables were"
        raise CovaryError(f"{skipped} skipped, which --strict forbids; the rest is indexed in {into}")


def _build(sources: list[str], into: Path, options: dict[str, Any]) -> "tuple[IndexFacts, float]":
    """Build an index while showing how far it is."""
    started = time.perf_counter()
    with _showing_progress() as show:
        from covary.answers import describe
        from covary.build import build_index

        _check_spark(options.get("master"), options.get("remote"))
        with _naming_spark(options.get("master") or options.get("remote") or "local[*]"):
            build_index(sources, into, on_progress=show, **options)
        facts = describe(into)
    return facts, (time.perf_counter() - started) * 1e3


@contextmanager
def _showing_progress() -> "Iterator[Callable[[Progress], None]]":
    """Draw a bar on a terminal; elsewhere write a line every few seconds."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield _lines_now_and_then()
        return
    from rich.markup import escape
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("Looking for tables ...", total=None)

        def show(now: "Progress") -> None:
            if now.done or now.reading:
                bar.columns = (columns[0], BarColumn(20), *columns[1:])
            description = escape(_progress_line(now, room=max(console.width - 36, 20)))
            bar.update(task, description=description, total=now.total, completed=now.done)

        yield show


def _lines_now_and_then() -> "Callable[[Progress], None]":
    last_time, last_line = time.monotonic(), ""

    def show(now: "Progress") -> None:
        nonlocal last_time, last_line
        line = _progress_line(now, room=PIPE_WIDTH)
        if time.monotonic() - last_time >= SECONDS_BETWEEN_LINES and line != last_line:
            last_time, last_line = time.monotonic(), line
            typer.echo(line, err=True)

    return show


def _progress_line(now: "Progress", room: int) -> str:
    from covary.answers import printable

    if not (now.done or now.reading):
        return f"Starting Spark for {now.total:,} tables ..."
    reading = f", reading {', '.join(map(printable, now.reading))}" if now.reading else ""
    line = f"{now.done:,} of {now.total:,} tables{reading}"
    return line if len(line) <= room else f"{line[: room - 1]}…"


def _check_spark(master: str | None, remote: str | None) -> None:
    """Refuse an address that can't be one, or where nobody answers: Spark keeps knocking for minutes."""
    if master and remote:
        raise CovaryError("give --master or --remote, not both")
    if master and not MASTERS.fullmatch(master):
        raise CovaryError(f"there is no Spark master {master!r}; give local[*], spark://HOST:PORT or yarn")
    if remote and not REMOTES.fullmatch(remote):
        raise CovaryError(f"there is no Spark Connect server {remote!r}; give sc://HOST:PORT")
    url = master or remote or ""
    if urlsplit(url).scheme in SPARK_PORTS:
        _knock(url, urlsplit(url).scheme)


def _knock(url: str, scheme: str) -> None:
    problem: Exception | None = None
    for server in urlsplit(url).netloc.split(","):
        host, _, port = server.rpartition(":") if ":" in server else (server, "", SPARK_PORTS[scheme])
        try:
            socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_CONNECT).close()
            return
        except (OSError, ValueError) as refused:
            problem = refused
    reason = getattr(problem, "strerror", None) or problem
    raise CovaryError(f"can't reach Spark at {url}: {reason}; is it running there?")


@contextmanager
def _naming_spark(url: str) -> Iterator[None]:
    """Tell in one line what Spark tells in a hundred; an error in our own code on its workers stays a bug."""
    try:
        yield
    except Exception as problem:
        if _was_interrupted(problem):
            raise KeyboardInterrupt from None
        kind = type(problem)
        if kind.__module__.partition(".")[0] not in SPARK_MODULES or kind.__name__ == "PythonException":
            raise
        raise CovaryError(f"Spark at {url} failed: {_spark_reason(problem)}") from problem


def _was_interrupted(problem: BaseException | None) -> bool:
    """Whether Ctrl-C came first: stopping a Spark that was interrupted may fail in turn."""
    while problem is not None and not isinstance(problem, KeyboardInterrupt):
        problem = problem.__context__
    return problem is not None


def _spark_reason(problem: Exception) -> str:
    java = getattr(problem, "java_exception", None)
    lines = str(java.toString() if java is not None else problem).strip().splitlines()
    reason = lines[0] if lines else type(problem).__name__
    return reason.removeprefix("org.apache.spark.").removeprefix("SparkException: ")[:300]


@app.command(rich_help_panel="Build")
def info(
    index: IndexFolder,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show what each column of this table serves as.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell what an index holds, with which settings, and what was skipped and why.

    covary info my.covary

    covary info my.covary --table weather
    """
    from covary.answers import columns_view, describe, info_view, table_named

    facts = describe(index)
    chosen = table_named(facts, table) if table is not None else None
    if as_json and chosen:
        _print_json(asdict(chosen))
    elif as_json:
        _print_json(facts.to_dict() | {"contents": [asdict(each) for each in facts.contents]})
    else:
        _show(columns_view(chosen) if chosen else info_view(facts))


@app.command(rich_help_panel="Ask")
def query(
    table: Annotated[str, typer.Argument(metavar="TABLE", show_default=False, help="Your table: a file.")],
    key: Annotated[str, typer.Option(metavar="COLUMN", show_default=False, help="The column to join on.")],
    value: Annotated[
        str, typer.Option(metavar="COLUMN", show_default=False, help="The column of numbers to explain.")
    ],
    index: Annotated[
        Path, typer.Option("--index", metavar="INDEX", show_default=False, help="The index to ask.")
    ],
    aggregate: Aggregate = "mean",
    top: Annotated[int, typer.Option(metavar="N", help="How many columns to show.")] = 10,
    measure: Measure = "pearson",
    rank: Annotated[
        str, typer.Option(metavar="NAME", help="finite-population, or the paper's s1 or s2.")
    ] = "finite-population",
    min_sample: Annotated[
        int, typer.Option(metavar="N", help="Hide columns that share fewer sampled keys.")
    ] = 10,
    retrieve: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            show_default="all",
            help="Score only the N columns with the largest overlap (the paper's way: 100).",
        ),
    ] = None,
    include_own: Annotated[
        bool, typer.Option("--include-own", help="Show the columns of TABLE itself too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find the columns that join with yours and move together with it.

    covary query sales.csv --key date --value revenue --index my.covary

    covary query sales.csv --key date --value revenue --index my.covary --measure spearman --json
    """
    from covary.query import open_index

    opened = open_index(index)
    hits = opened.query(
        table,
        key,
        value,
        aggregate=aggregate,
        top=top,
        measure=measure,
        rank=rank,
        min_sample=min_sample,
        retrieve=retrieve,
        include_own=include_own,
    )
    if as_json:
        _print_json(hits.to_dict())
    else:
        _show_hits(hits, table, opened)


def _show_hits(hits: "Hits", table: str, index: "Index") -> None:
    from covary.answers import describe, hits_view, no_hits_view
    from covary.frames import open_table

    if hits:
        _show(hits_view(hits, _console().width))
        return
    mine = open_table(table, [hits.query.key])
    rows = next(mine.batches)
    keys = rows[hits.query.key].drop_nulls().unique(maintain_order=True).head(3)
    _show(no_hits_view(hits, describe(index.path), mine.path, mine.columns, [str(key) for key in keys]))


@app.command(rich_help_panel="Ask")
def estimate(
    left: Annotated[str, typer.Argument(metavar="LEFT", show_default=False, help="A table: a file.")],
    right: Annotated[str, typer.Argument(metavar="RIGHT", show_default=False, help="Another.")],
    left_key: Annotated[str, typer.Option(metavar="COLUMN", show_default=False, help="LEFT's key.")],
    left_value: Annotated[str, typer.Option(metavar="COLUMN", show_default=False, help="LEFT's numbers.")],
    right_key: Annotated[str, typer.Option(metavar="COLUMN", show_default=False, help="RIGHT's key.")],
    right_value: Annotated[str, typer.Option(metavar="COLUMN", show_default=False, help="RIGHT's numbers.")],
    aggregate: Aggregate = "mean",
    size: Size = 1024,
    measure: Measure = "pearson",
    hash: Hash = "xxhash64",
    as_json: Json = False,
) -> None:
    """Estimate how two columns of two tables move together, without an index.

    covary estimate a.csv b.csv --left-key date --left-value sales --right-key day --right-value rain
    """
    from covary.answers import estimate_view, side_of
    from covary.frames import sketch
    from covary.query import estimate as estimate_correlation

    started = time.perf_counter()
    mine = sketch(left, left_key, left_value, size, aggregate, hash)
    other = sketch(right, right_key, right_value, size, aggregate, hash)
    found = estimate_correlation(mine, other, measure)
    elapsed_ms = (time.perf_counter() - started) * 1e3
    sides = side_of(mine), side_of(other)
    if as_json:
        about = {"left": asdict(sides[0]), "right": asdict(sides[1])}
        _print_json(about | asdict(found) | {"elapsed_ms": elapsed_ms})
    else:
        _show(estimate_view(found, *sides))


if __name__ == "__main__":
    main()
