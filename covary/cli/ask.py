"""The commands that compare columns: two of two tables, and all of an index."""

import time
from dataclasses import asdict
from typing import Unpack

from covary.cli import options
from covary.query.options import GivenOptions, QueryOptions


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
    from covary.pipeline.spark_errors import check_address, naming_spark
    from covary.query.ask import open_index

    opened = open_index(index)
    QueryOptions(**chosen)  # which must be right before Spark starts
    with showing_work("{done:,} of {total:,} columns compared", STARTING_SPARK) as tell:
        from covary import spark
        from covary.pipeline.session import open_session

        check_address(master, remote)
        with naming_spark(master or remote or "local[*]"), open_session(None, master, remote) as running:
            found = spark.pairs(opened, spark=running, on_progress=tell, **chosen)
    if as_json:
        print_json(found.to_dict())
    else:
        show(pairs_view(found, console().width))


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
    as_json: options.Json = False,
    **chosen: Unpack[GivenOptions],
) -> None:
    """Estimate how two columns of two tables move together, without an index.

    covary estimate a.csv b.csv --left-key date --left-value sales --right-key day --right-value rain
    """
    from covary.cli.answer_view import estimate_view
    from covary.cli.progress import showing_work
    from covary.cli.terminal import print_json, show
    from covary.columns.key_text import choose_normaliser
    from covary.query.hits import QueryNote
    from covary.sketching.sketch_types import SketchConfig
    from covary.statistics.estimate import estimate_sample
    from covary.statistics.join import join, sketch_both

    started = time.perf_counter()
    asked = QueryOptions(**chosen)
    with showing_work():
        config = SketchConfig(size, (asked.aggregate,), hash, choose_normaliser(keys, hash))
        mine, other = sketch_both(
            (left, left_key, left_value), (right, right_key, right_value), config, asked.by
        )
        sample = join(mine, other)
        found = estimate_sample(sample, asked.how)
    elapsed_ms = (time.perf_counter() - started) * 1e3
    sides = QueryNote.of(mine), QueryNote.of(other)
    if as_json:
        about = {"left": asdict(sides[0]), "right": asdict(sides[1])}
        print_json(about | asdict(found) | {"keys": asdict(sample.keys), "elapsed_ms": elapsed_ms})
    else:
        show(estimate_view(found, sample.keys, *sides))
