"""Ask indexes whose files lie though their checksums are right; run apart, for a lie may end the process.

python lying_index.py FOLDER prints a line for each lie: the array, the lie, and what became of each command.
With --some only some of them, which takes seconds.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl

from covary.build.upkeep import compact_index
from covary.errors import CovaryError, DamagedIndex
from covary.index.check import check_index
from covary.index.commit import commit, open_draft
from covary.index.manifest import Manifest
from covary.index.segment_files import Segment, write_segment
from covary.index.segment_layout import build_segment
from covary.index.table_records import TableRecord
from covary.query.ask import open_index
from covary.query.describe import describe_index
from covary.sketching.kernel import finish, sketch_rows
from covary.sketching.key_columns import exact_key
from covary.sketching.sketch_types import SketchConfig

CONFIG = SketchConfig(64)
ROWS = pl.DataFrame({"k": [f"k{n}" for n in range(300)]})


def sketches_of(table, seed):
    rng = np.random.default_rng(seed)
    kept = np.sort(rng.choice(300, 200, replace=False))
    numbers = {name: pl.Series(name, rng.normal(size=200)) for name in ("u", "v")}
    return finish(sketch_rows(ROWS[kept], [exact_key("k")], numbers, CONFIG, table), CONFIG)


def honest_segment():
    return build_segment(
        [(TableRecord(f"t{n}", f"/t{n}.csv", 200), sketches_of(f"t{n}", n)) for n in range(9)]
    )


def write_index(folder, segment, config=CONFIG):
    with open_draft(folder) as draft:
        commit(draft, Manifest(config, (write_segment(segment, draft.folder),)))


def lies_about(array):
    """Give each lie a name: numbers out of range, out of order, too many and too few of them."""
    most = np.inf if array.dtype.kind == "f" else np.iinfo(array.dtype).max
    least = -np.inf if array.dtype.kind == "f" else np.iinfo(array.dtype).min
    for name, number in (("most", most), ("least", least), ("large", 100_000), ("0", 0), ("nan", np.nan)):
        if name == "nan" and array.dtype.kind != "f":
            continue
        for which, where in (("all", slice(None)), ("first", slice(1)), ("last", slice(-1, None))):
            lie = array.copy()
            lie[where] = np.array(number).astype(array.dtype)
            yield f"{which} {name}", lie
    yield "reversed", array[::-1].copy()
    yield "shuffled", np.random.default_rng(1).permutation(array)
    yield "longer", np.concatenate([array, array])
    yield "shorter", array[: array.size // 2]
    yield "none", array[:0]
    yield "other type", array.astype(np.int16)
    if array.dtype.kind in "iu":
        yield "one more", array + array.dtype.type(1)
        yield "half", array // array.dtype.type(2)


def of_one_length(name, altered, arrays):
    """Bring the other columns of a file to the length of the one that lies."""
    beside = [each for each in arrays if each.partition(".")[0] == name.partition(".")[0]]
    return {each: np.resize(arrays[each], altered.size) for each in beside} | {name: altered}


def outcome_of(command):
    try:
        return f"answered {command()}"
    except DamagedIndex:
        return "refused"
    except CovaryError as problem:
        return f"refused otherwise: {problem}"
    except Exception as problem:
        return f"CRASHED {type(problem).__name__}: {problem}"


def ask(folder, measure):
    index = open_index(folder)
    candidates = index.score(sketches_of("q", 99)[0], measure)
    if candidates.sketches.size:
        index.moments([sketches_of("q", 99)[0]], measure, candidates)
    return candidates.sketches.size


def look_at_every_sketch(folder):
    index = open_index(folder)
    return sum(index.sketch_at(number).size for number in range(index.sketch_count))


def ask_for_hits(folder):
    rows = ROWS.with_columns(x=pl.Series(np.random.default_rng(3).normal(size=300)))
    return len(open_index(folder).query(rows, "k", "x", min_sample=3).hits)


COMMANDS = {
    "pearson": lambda folder: ask(folder, "pearson"),
    "spearman": lambda folder: ask(folder, "spearman"),
    "sketches": look_at_every_sketch,
    "query": ask_for_hits,
    "info": lambda folder: describe_index(folder).entries,
    "check": lambda folder: len(check_index(folder).damaged),
    "compact": lambda folder: compact_index(folder).kept,
}


SOME_LIES = {
    "all most",
    "last most",
    "all least",
    "last large",
    "shuffled",
    "longer",
    "none",
    "other type",
    "one more",
}
SOME_COMMANDS = ("pearson", "sketches", "query", "check")


def main(folder, some):
    warnings.simplefilter("ignore")  # of what numbers make no sense, as long as nothing else happens
    honest = honest_segment()
    arrays = {name: honest.arrays[name] for name in honest.arrays}
    names = honest.names.to_frame("name")
    for name, array in arrays.items():
        for lie, altered in lies_about(array):
            if some and lie not in SOME_LIES:
                continue
            index = folder / f"{name}-{lie}".replace(" ", "-")
            lying = {**arrays, **of_one_length(name, altered, arrays)}
            write_index(index, Segment.in_memory(lying, honest.tables, names))
            for command in SOME_COMMANDS if some else COMMANDS:
                run = COMMANDS[command]
                print(name, lie, command, outcome_of(lambda: run(index)), sep="\t", flush=True)  # noqa: B023


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--some" in sys.argv)
