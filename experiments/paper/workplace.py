"""Where the paper's experiments keep what they find: one folder for a collection, one Parquet for a stage.

A stage whose result is there is not repeated, so each can be run alone: remove a folder, and those of stages
that build on it, to have it made again.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_TYPES = {
    pl.Int64: "long",
    pl.Float64: "double",
    pl.String: "string",
    pl.Boolean: "boolean",
    pl.Binary: "binary",
}
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything is done; what the paper fixes stands in `FULL`."""

    seed: int
    sbn_pairs: int  # of synthetic tables
    sbn_rows: int  # most rows of one
    combinations: int  # most of a real collection's pairs of columns; a sample of them if there are more
    ranked_queries: int
    timed: int  # combinations whose joins are timed
    timed_queries: int


FULL = Scale(1, 3_000, 500_000, 200_000, 300, 2_000, 1_000)
SMOKE = Scale(1, 12, 2_000, 2_000, 20, 20, 20)


@dataclass(frozen=True, slots=True)
class Workplace:
    """The folder of one collection."""

    name: str
    folder: Path
    scale: Scale
    tables: Path | None  # the folder of a real collection; None for a synthetic one

    def open(self) -> "Workplace":
        """Make the folder; refuse one that was made for other settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self.folder / "settings.json"
        mine = json.dumps(asdict(self.scale) | {"tables": self._fingerprint()}, indent=1)
        if all(each == settings for each in self.folder.iterdir()):  # nothing was measured yet
            settings.write_text(mine, encoding="utf-8")
        if settings.read_text(encoding="utf-8") != mine:
            raise SystemExit(
                f"{self.folder} was made with other settings or tables: choose another --into, or remove it"
            )
        return self

    def _fingerprint(self) -> str | None:
        """Tell whether the tables are still those that were measured: by their names, sizes and times."""
        if self.tables is None:
            return None
        files = sorted(file for file in self.tables.rglob("*") if file.is_file())
        known = [
            (str(file.relative_to(self.tables)), file.stat().st_size, file.stat().st_mtime_ns)
            for file in files
        ]
        return sha256(repr(known).encode()).hexdigest()[:16]

    @property
    def index(self) -> Path:
        """The index of all its columns, n = 1024."""
        return self.folder / "index"

    def stage(self, name: str, make: Callable[[Path], None]) -> pl.DataFrame:
        """Return what a stage found, making it if it is not there yet."""
        return pl.read_parquet(self.made(name, make) / "*.parquet")

    def made(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return the folder of what a stage found, making it if it is not there yet."""
        place = self.folder / name
        if not place.exists():
            print(f"{self.name}: {name}", flush=True)
            unfinished = place.with_name(f"{name}.unfinished")
            make(unfinished)
            unfinished.rename(place)
        return place


def write(rows: pl.DataFrame, place: Path) -> None:
    """Write rows as a stage's only file."""
    place.mkdir(exist_ok=True)
    rows.write_parquet(place / "rows.parquet")


def on_spark(
    spark: "SparkSession",
    items: pl.DataFrame,
    work: Callable[[pl.DataFrame], pl.DataFrame],
    schema: Schema,
    place: Path,
    tasks: int,
) -> None:
    """Run work on shares of the items, as tasks of one Spark job that write what they find."""

    def run(batches: Any) -> Any:
        for batch in batches:
            done = work(pl.DataFrame(pa.Table.from_batches([batch]))).select(*schema).cast(schema)
            yield from done.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()

    sql = ", ".join(f"`{name}` {SPARK_TYPES[kind]}" for name, kind in schema.items())
    shares = spark.createDataFrame(items.to_arrow(compat_level=pl.CompatLevel.oldest()))
    found = shares.repartition(max(1, min(tasks, items.height))).mapInArrow(run, sql)
    found.write.mode("overwrite").parquet(str(place))
