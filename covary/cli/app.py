"""The command line: arguments in; an answer, or one clear line, out.

A command imports what it needs when it runs, so that --help and --version answer at once.
"""

import logging
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from covary.cli import ask, options, upkeep
from covary.cli.commands import Command, Commands, complain
from covary.errors import CovaryError

if TYPE_CHECKING:
    from covary.build.options import BuildOptions
    from covary.index.history import Change
    from covary.progress import OnProgress
    from covary.query.describe import IndexSummary

app = typer.Typer(
    name="covary",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog="Every command explains itself: covary query --help",
    help=options.HELP,
)


def main() -> None:
    """Run the command that the user typed."""
    if sys.stdout is None:  # closed by the caller, who wants no answer
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal can't show stops nothing
    # What py4j logs it also raises; without a handler Python would print it a second time.
    logging.getLogger().addHandler(logging.NullHandler())
    app(prog_name="covary")


@app.callback()
def covary(version: options.Version = False) -> None:
    """Carry the options that stand before a command."""


@app.command(cls=Command, rich_help_panel="Start here")
def demo(keep: options.Keep = None) -> None:
    """Ask what moves with flight delays, on real data: New York's flights and weather in 2013."""
    from covary.cli import demo as shown
    from covary.cli.progress import showing_progress
    from covary.cli.terminal import show
    from covary.query.ask import open_index

    with TemporaryDirectory() as scratch:
        folder = keep or Path(scratch)
        data = shown.copy_data(folder, shown.find_data())
        show(shown.before_view(data))
        with showing_progress() as show_progress:
            from covary.build.options import BuildOptions

            _, _, build_ms = _build([str(data)], folder / shown.INDEX_NAME, BuildOptions(), show_progress)
        opened = open_index(folder / shown.INDEX_NAME)
        answers, flights = [], str(data / shown.FLIGHTS)
        for words, key, top in (
            ("By airport and hour together", shown.BY_AIRPORT_AND_HOUR, 10),
            ("By time alone, as fine as each table allows", shown.BY_TIME, 20),
        ):
            show(shown.asking_view(key, words))
            answers.append(opened.query(flights, key, shown.DELAY, top=top))
            ask.show_hits(answers[-1], flights, opened)
        show(shown.difference_view(*answers))
    show(shown.after_view(answers, build_ms, keep))
    for command in shown.next_commands(keep):
        print(f"  {command}")  # left for the terminal to wrap, so that it can be copied


@app.command(cls=Command, rich_help_panel="Build")
def index(
    into: options.Into,
    sources: options.Sources = None,
    fresh: options.Fresh = False,
    keep_missing: options.KeepMissing = False,
    checksum: options.Checksum = False,
    repair: options.Repair = False,
    trust_sources: options.TrustSources = False,
    size: options.IndexSize = None,
    aggregate: options.Aggregates = None,
    key: options.Keys = None,
    value: options.Values = None,
    hash: options.IndexHash = None,
    keys: options.KeyText = None,
    runner: options.Runner = None,
    master: options.Master = None,
    remote: options.Remote = None,
    table_timeout: options.TableTimeout = None,
    memory: options.Memory = None,
    strict: options.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Sketch the tables of a collection into an index, or bring an index up to date.

    covary index data/ --into my.covary

    covary index s3://bucket/lake 'more/**/*.parquet' --into my.covary

    covary index postgresql://host/db shop.sqlite#orders --into my.covary

    covary index --into my.covary

    The last one looks again at all that the index was made from, and reads only what is new or changed.

    Tables that are gone are forgotten. The index changes as the last step, all at once.
    """
    from covary.cli.progress import showing_progress

    with showing_progress() as show_progress:
        # Loaded once the user sees that something happens.
        from covary.build.options import BuildOptions
        from covary.pipeline.limits import parse_limits

        asked = BuildOptions(
            size=size,
            aggregates=aggregate,
            keys=key,
            values=value,
            hash=hash,
            key_text=keys,
            fresh=fresh,
            keep_missing=keep_missing,
            checksum=checksum,
            repair=repair,
            trust_sources=trust_sources,
            runner=runner,
            master=master,
            remote=remote,
            limits=parse_limits(table_timeout, memory),
        )
        summary, change, elapsed_ms = _build(sources or [], into, asked, show_progress)
    from covary.cli.index_view import build_view, count_skipped
    from covary.cli.terminal import print_json, show
    from covary.cli.words import names_of

    if as_json:
        print_json(summary.to_dict() | {"change": change.to_dict(), "elapsed_ms": elapsed_ms})
    else:
        show(build_view(summary, change, elapsed_ms))
    complaints = []
    if summary.skipped:
        complaints.append(
            f"{count_skipped(summary)} {'was' if len(summary.skipped) == 1 else 'were'} skipped"
        )
    if summary.damaged:
        complaints.append(f"read though damaged: {names_of([table.name for table in summary.damaged])}")
    if strict and complaints:
        done = f"The index is made all the same: {into}"
        raise CovaryError(f"{'; '.join(complaints)}; --strict forbids that. {done}")


def _build(
    sources: list[str], into: Path, asked: "BuildOptions", show_progress: "OnProgress"
) -> "tuple[IndexSummary, Change, float]":
    """Build an index; return what it holds, what was done, and the milliseconds."""
    from covary.build.trust import quoted
    from covary.build.update import update_index
    from covary.pipeline.lost_cluster import give_up_on_lost_cluster
    from covary.pipeline.spark_errors import check_address, name_spark_errors
    from covary.query.describe import describe_index

    started = time.perf_counter()
    check_address(asked.master, asked.remote)
    spark = asked.master or asked.remote or "local[*]"
    with give_up_on_lost_cluster(asked.master, show_progress) as watch, name_spark_errors(spark):
        update = update_index(sources, into, asked, watch)
    summary = describe_index(into)
    if update.confirmed:
        complain(f"from now on {into} may read: {', '.join(map(quoted, update.confirmed))}")
    if update.forgotten:
        complain(update.forgotten)
    return summary, update.change, (time.perf_counter() - started) * 1e3


for command, panel in (
    (upkeep.info, "Build"),
    (ask.query, "Ask"),
    (ask.pairs, "Ask"),
    (ask.estimate, "Ask"),
    (upkeep.remove, "Keep in order"),
    (upkeep.compact, "Keep in order"),
    (upkeep.history, "Keep in order"),
    (upkeep.check, "Keep in order"),
):
    app.command(cls=Command, rich_help_panel=panel)(command)


if __name__ == "__main__":
    main()
