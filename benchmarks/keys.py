"""What it costs to make keys canonical, and to sketch times at every granularity."""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import covary
from benchmarks.measure import Result, best_in_turns
from covary.pipeline.session import start_session

FILES, ROWS, NUMBERS = 500, 1_330, 6


def _write_files(folder: Path, keys: dict[str, pl.Series], seed: int = 1) -> Path:
    """Clean CSV: some key columns, drawn anew for each file, and six numbers."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for number in range(FILES):
        drawn = {name: key.gather(rng.integers(0, key.len(), ROWS)) for name, key in keys.items()}
        numbers = {f"number_{n}": rng.normal(100, 25, ROWS).round(4) for n in range(NUMBERS)}
        pl.DataFrame(drawn | numbers).write_csv(folder / f"table_{number:04}.csv")
    return folder


def _size(index: Path) -> int:
    return sum(file.stat().st_size for file in index.rglob("*.arrow"))


def canonical_against_exact() -> Result:
    """The share of a build that goes into canonical keys, where there is nothing to make canonical."""
    spark = start_session()
    places = pl.Series([f"place {number}" for number in range(5_000)])
    codes = pl.Series([f"c{number:x}" for number in range(40_000)])
    with tempfile.TemporaryDirectory() as scratch:
        tables = _write_files(Path(scratch, "tables"), {"place": places, "code": codes})

        def build(key_text: str) -> object:
            # The same keys on both sides: pairs of columns are not part of this.
            return covary.build_index(
                tables, Path(scratch, key_text), spark, keys=["place", "code"], key_text=key_text, fresh=True
            )

        ours, theirs = best_in_turns(lambda: build("canonical"), lambda: build("exact"))
    return Result(
        f"canonical keys on {FILES} clean CSV files (2 keys x 6 numbers): their share of the build's time",
        (ours - theirs) / ours,
        0.3,
        False,
        f"canonical {ours:.2f} s, exact {theirs:.2f} s",
    )


def granularities_against_one() -> list[Result]:
    """Ten years of days against the same days as mere text: day d2013-01-05 is no date."""
    spark = start_session()
    days = pl.date_range(pl.date(2010, 1, 1), pl.date(2019, 12, 31), eager=True).cast(pl.String)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        dates = _write_files(folder / "dates", {"day": days})
        texts = _write_files(folder / "texts", {"day": "d" + days})

        def build(tables: Path) -> object:
            return covary.build_index(tables, folder / f"{tables.name}.covary", spark, fresh=True)

        ours, theirs = best_in_turns(lambda: build(dates), lambda: build(texts))
        sizes = [_size(folder / f"{tables.name}.covary") for tables in (dates, texts)]
    return [
        Result(
            f"times at every granularity, {FILES} CSV files of days: time relative to days as mere text",
            ours / theirs,
            1.5,
            False,
            f"by day, week, month, quarter and year {ours:.2f} s, as text {theirs:.2f} s",
        ),
        Result(
            "times at every granularity: size of the index relative to days as mere text",
            sizes[0] / sizes[1],
            2.0,
            False,
            f"{sizes[0] / 1e6:.1f} MB, {sizes[1] / 1e6:.1f} MB",
        ),
    ]
