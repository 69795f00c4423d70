"""The commands that compare columns: two of two tables, and all of an index."""

import time
from dataclasses import asdict

from covary.cli import options


def pairs(
    index: options.IndexFolder,
    top: options.TopPairs = 1000,
    rank: options.Rank = "finite-population",
    max_q: options.MaxQ = None,
    correction: options.Correction = "bh",
    min_sample: options.MinSample = 10,
    small_numbers: options.SmallNumbers = False,
    master: options.Master = None,
    remote: options.Remote = None,
    as_json: options.Json = False,
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
    from covary.query.options import Settings

    opened = open_index(index)
    Settings(top=top, rank=rank, max_q=max_q, correction=correction, min_sample=min_sample)  # before Spark
    with showing_work("{done:,} of {total:,} columns compared", STARTING_SPARK) as tell:
        from covary import spark
        from covary.pipeline.session import session

        check_address(master, remote)
        with naming_spark(master or remote or "local[*]"), session(None, master, remote) as running:
            found = spark.pairs(
                opened,
                top,
                running,
                on_progress=tell,
                rank=rank,
                max_q=max_q,
                correction=correction,
                min_sample=min_sample,
                small_numbers=small_numbers,
            )
    if as_json:
        print_json(found.to_dict())
    else:
        show(pairs_view(found, console().width))


def estimate(
    left: options.LeftTable,
    right: options.RightTable,
    left_key: options.LeftKey,
    left_value: options.LeftValue,
    right_key: options.RightKey,
    right_value: options.RightValue,
    by: options.By = None,
    aggregate: options.Aggregate = "mean",
    size: options.Size = 1024,
    measure: options.Measure = "pearson",
    interval: options.Interval = None,
    confidence: options.Confidence = 0.95,
    seed: options.ResamplingSeed = 0,
    hash: options.Hash = "xxhash64",
    keys: options.KeyText = None,
    as_json: options.Json = False,
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
    from covary.statistics.estimate import HowToMeasure, estimate_sample
    from covary.statistics.join import join, sketch_both

    started = time.perf_counter()
    how = HowToMeasure(measure, interval, confidence, seed)
    with showing_work():
        config = SketchConfig(size, (aggregate,), hash, choose_normaliser(keys, hash))
        mine, other = sketch_both((left, left_key, left_value), (right, right_key, right_value), config, by)
        sample = join(mine, other)
        found = estimate_sample(sample, how)
    elapsed_ms = (time.perf_counter() - started) * 1e3
    sides = QueryNote.of(mine), QueryNote.of(other)
    if as_json:
        about = {"left": asdict(sides[0]), "right": asdict(sides[1])}
        print_json(about | asdict(found) | {"keys": asdict(sample.keys), "elapsed_ms": elapsed_ms})
    else:
        show(estimate_view(found, sample.keys, *sides))
