"""The commands that ask: what moves with a column, which pairs of an index do, and how two columns do."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Unpack

from covary.cli import options
from covary.query.options import GivenOptions, QueryOptions

if TYPE_CHECKING:
    from covary.query.ask import Index
    from covary.query.hits import Hits

KEYS_SHOWN = 3


@options.query_options(*options.OPTIONS)
def query(
    table: options.Table,
    key: options.Key,
    value: options.Value,
    index: options.AskedIndex,
    *,
    memory: options.OwnMemory = None,
    as_json: options.Json = False,
    **chosen: Unpack[GivenOptions],
) -> None:
    """Find the columns that join with yours and move together with it.

    covary query sales.csv --key date --value revenue --index my.covary

    covary query sales.csv --key date --value revenue --index my.covary --measure spearman --json

    covary query sales.csv --key date,zip --value revenue --index my.covary --max-q 0.05 --explain
    """
    from covary.cli.guard import guarding
    from covary.cli.progress import showing_work
    from covary.cli.terminal import print_json
    from covary.query.ask import open_index

    opened = open_index(index)
    with guarding(memory, table):
        with showing_work() as show:
            hits = opened.query(table, key, value, on_progress=show, **chosen)
        if as_json:
            print_json(hits.to_dict())
        else:
            show_hits(hits, table, opened)


def show_hits(hits: "Hits", table: str, index: "Index") -> None:
    """Print the hits; or, where there are none, what the keys look like and what to try instead."""
    from covary.cli.answer_view import hits_view, no_hits_view
    from covary.cli.join_words import explanations_view
    from covary.cli.terminal import console, show
    from covary.query.describe import describe_index
    from covary.sketching.open_table import open_table

    if hits:
        show(hits_view(hits, console().width))
        if any(hit.explanation for hit in hits):
            show(explanations_view(hits))
        return
    mine = open_table(table, hits.query.key)
    rows = next(mine.batches).drop_nulls().unique(maintain_order=True).head(KEYS_SHOWN)
    keys = [", ".join(map(str, row)) for row in rows.rows()]
    show(no_hits_view(hits, describe_index(index.path), mine.path, mine.columns, keys))


@options.query_options(
    "top", "rank", "max_q", "correction", "min_sample", "small_numbers", top=(1000, "How many pairs to show.")
)
def pairs(
    index: options.IndexFolder,
    *,
    master: options.Master = None,
    remote: options.Remote = None,
    as_json: options.Json = False,
    **chosen: Unpack[GivenOptions],
) -> None:
    """List the most correlated pairs of columns of a whole index, found on Spark.

    covary pairs my.covary --top 100

    Every column is compared with every other that it joins with; columns of one table are not compared.
    """
    from covary.cli.pair_view import pairs_view
    from covary.cli.progress import STARTING_SPARK, showing_work
    from covary.cli.terminal import console, print_json, show
    from covary.pipeline.spark_errors import check_address, name_spark_errors
    from covary.query.ask import open_index

    opened = open_index(index)
    QueryOptions(**chosen)  # which must be right before Spark starts
    with showing_work("{done:,} of {total:,} columns compared", STARTING_SPARK) as report:
        from covary import spark
        from covary.pipeline.session import open_session

        check_address(master, remote)
        with name_spark_errors(master or remote or "local[*]"), open_session(None, master, remote) as running:
            best = spark.pairs(opened, spark=running, on_progress=report, **chosen)
    if as_json:
        print_json(best.to_dict())
    else:
        show(pairs_view(best, console().width))


@options.query_options(
    "by", "aggregate", "measure", "interval", "confidence", "seed", seed=(0, "Of resampling.")
)
def estimate(
    left: options.LeftTable,
    right: options.RightTable,
    left_key: options.LeftKey,
    left_value: options.LeftValue,
    right_key: options.RightKey,
    right_value: options.RightValue,
    *,
    size: options.Size = 1024,
    hash: options.Hash = "xxhash64",
    keys: options.KeyText = None,
    memory: options.OwnMemory = None,
    as_json: options.Json = False,
    **chosen: Unpack[GivenOptions],
) -> None:
    """Estimate how two columns of two tables move together, without an index.

    covary estimate a.csv b.csv --left-key date --left-value sales --right-key day --right-value rain
    """
    from covary.cli.answer_view import estimate_view
    from covary.cli.guard import guarding
    from covary.cli.progress import showing_work
    from covary.cli.terminal import print_json, show
    from covary.columns.key_text import choose_normaliser
    from covary.query.hits import QueryNote
    from covary.sketching.sketch_types import SketchConfig
    from covary.statistics.estimate import estimate_sample
    from covary.statistics.join import join, sketch_both

    started = time.perf_counter()
    asked = QueryOptions(**chosen)
    with guarding(memory, left, right), showing_work():
        config = SketchConfig(size, (asked.aggregate,), hash, choose_normaliser(keys, hash))
        mine, other = sketch_both(
            (left, left_key, left_value), (right, right_key, right_value), config, asked.by
        )
        sample = join(mine, other)
        estimated = estimate_sample(sample, asked.how)
    elapsed_ms = (time.perf_counter() - started) * 1e3
    sides = QueryNote.of(mine), QueryNote.of(other)
    if as_json:
        about = {"left": asdict(sides[0]), "right": asdict(sides[1])}
        print_json(about | asdict(estimated) | {"keys": asdict(sample.keys), "elapsed_ms": elapsed_ms})
    else:
        show(estimate_view(estimated, sample.keys, *sides))
