"""The size of the index as the collection grows."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from covary.query.ask import open_index
from experiments.artefact import Artefact, Measured, panels
from experiments.indexes import bytes_of, write_sketches
from experiments.paper.workplace import Workplace, write
from experiments.writing import table

SHARES = (0.125, 0.25, 0.5, 1.0)
INDEX_SIZES = {"columns": pl.Int64, "entries": pl.Int64, "bytes": pl.Int64}


def index_sizes(workplace: Workplace) -> pl.DataFrame:
    """Write indexes of growing random parts of the collection, and weigh them."""
    index = open_index(workplace.index)
    order = np.random.default_rng([workplace.scale.seed, 3]).permutation(index.sketch_count)

    def make(place: Path) -> None:
        rows = []
        for share in SHARES:
            chosen = np.sort(order[: max(1, round(share * order.size))])
            sketches = [index.sketch_at(int(number)) for number in chosen]
            with TemporaryDirectory() as folder:
                write_sketches(sketches, Path(folder, "index"))
                weight = bytes_of(Path(folder))
            rows.append((len(sketches), sum(sketch.size for sketch in sketches), weight))
        write(pl.DataFrame(rows, schema=INDEX_SIZES, orient="row"), place)

    return workplace.stage("index-sizes", make)


def index_size(collections: list[Measured]) -> Artefact:
    picture, (panel,) = panels(1, 1, 4.5)
    rows = []
    for collection in collections:
        sizes = collection.index_sizes
        panel.plot(sizes["columns"], sizes["bytes"] / 2**20, marker=".", label=collection.name)
        for columns, entries, weight in sizes.iter_rows():
            size = f"{weight / 2**20:.2f}"
            rows.append((collection.name, f"{columns:,}", f"{entries:,}", size, f"{weight / entries:.1f}"))
    panel.set(xscale="log", yscale="log", xlabel="⟨key, number⟩ columns", ylabel="MiB")
    panel.legend(fontsize=7)
    heading = ("collection", "columns", "entries", "MiB", "bytes an entry")
    return Artefact("Index size", table(heading, rows), "The paper reports no sizes.", picture)
