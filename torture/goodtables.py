"""Good tables: those that must be answered for beside whatever is hostile, and those that are damaged."""

import bz2
import gzip
import json
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet

Rng = np.random.Generator
GOOD = ("good/strong", "good/weak", "good/days")
PLACES = [f"place {number}" for number in range(200)]


def write_good(folder: Path) -> Path:
    """Write three tables into folder/good, and one to ask with beside the folder; return the latter."""
    rng = np.random.default_rng(15)
    good = folder / "good"
    good.mkdir(parents=True)
    x = rng.normal(size=200)
    days = pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 7, 18), "1d", eager=True)
    noise = rng.normal(size=200)
    pl.DataFrame({"place": PLACES, "y": 3 * x + 0.3 * noise}).write_csv(good / "strong.csv")
    pl.DataFrame({"place": PLACES[::-1], "y": (noise + 0.2 * x)[::-1]}).write_parquet(good / "weak.parquet")
    pl.DataFrame({"day": days, "place": PLACES, "z": -x}).write_ndjson(good / "days.jsonl")
    asked = folder.parent / "asked.csv"
    pl.DataFrame({"place": PLACES, "x": x}).write_csv(asked)
    return asked


def frame(rng: Rng, rows: int = 0) -> pl.DataFrame:
    """Make a table as they are found: keys, dates, numbers in several dresses, words."""
    rows = rows or int(rng.integers(20, 400))
    values = rng.normal(100, 25, rows)
    start = np.datetime64("2019-01-01") + rng.integers(0, 900)
    words = np.array(["north", "south side", "east, upper", "West", "", "N/A", "Côte d’Ivoire", "Zürich"])
    return pl.DataFrame(
        {
            "place": [f"place {number}" for number in rng.integers(0, 300, rows)],
            "day": (start + np.arange(rows)).astype("datetime64[D]"),
            "amount": values,
            "count": rng.integers(0, 1000, rows),
            "price": [f"${value:,.2f}" for value in values * 100],
            "area": words[rng.integers(0, words.size, rows)],
        }
    )


def csv(rng: Rng) -> tuple[str, bytes]:
    """Write a delimited text in one of many dialects; return its suffix and its bytes."""
    delimiter, suffix = [(",", ".csv"), (",", ".csv"), (";", ".csv"), ("\t", ".tsv"), ("|", ".csv")][
        rng.integers(5)
    ]
    style = ["necessary", "necessary", "always"][rng.integers(3)]
    ends = ["\n", "\n", "\r\n"][rng.integers(3)]
    made = frame(rng) if rng.random() < 0.6 else frame(rng).drop("price", "area")  # the latter need no quotes
    text = made.write_csv(separator=delimiter, quote_style=style, line_terminator=ends)  # type: ignore[arg-type]
    return suffix, text.encode(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"][rng.integers(5)])


def jsonl(rng: Rng) -> tuple[str, bytes]:
    """Write JSON Lines, some with lists and objects within."""
    made = frame(rng)
    if rng.random() < 0.3:
        made = made.with_columns(more=pl.struct("amount", "area"), list=pl.concat_list("count", "count"))
    return [".jsonl", ".ndjson", ".json"][rng.integers(3)], made.write_ndjson().encode()


def parquet(rng: Rng) -> tuple[str, bytes]:
    """Write Parquet, packed and cut up in one of many ways."""
    made = frame(rng)
    if rng.random() < 0.3:
        made = made.with_columns(more=pl.struct("amount", "area"), list=pl.concat_list("count", "count"))
    packed = BytesIO()
    pyarrow.parquet.write_table(
        made.to_arrow(),
        packed,
        compression=["none", "snappy", "zstd", "gzip", "lz4"][rng.integers(5)],
        row_group_size=int(rng.integers(10, 500)),
        use_dictionary=bool(rng.random() < 0.6),
        write_statistics=bool(rng.random() < 0.7),
        data_page_version=["1.0", "2.0"][rng.integers(2)],
    )
    return [".parquet", ".pq"][rng.integers(2)], packed.getvalue()


def arrow(rng: Rng) -> tuple[str, bytes]:
    """Write an Arrow file or stream."""
    table = frame(rng).to_arrow()
    packed = BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=[None, "lz4", "zstd"][rng.integers(3)])
    writer = pa.ipc.new_file if rng.random() < 0.6 else pa.ipc.new_stream
    with writer(packed, table.schema, options=options) as stream:
        stream.write_table(table, max_chunksize=int(rng.integers(10, 500)))
    return [".arrow", ".feather", ".ipc"][rng.integers(3)], packed.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


def pack(rng: Rng, suffix: str, content: bytes) -> tuple[str, bytes]:
    """Pack a text by gzip, bzip2, zstd or zip, with or without its own suffix in the name."""
    way = [".gz", ".bz2", ".zst", ".zip"][rng.integers(4)]
    name = f"{suffix}{way}" if rng.random() < 0.7 else way
    if way != ".zip":
        return name, PACKERS[way](content)
    packed = BytesIO()
    how = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA][rng.integers(4)]
    with zipfile.ZipFile(packed, "w", how) as archive:
        for number in range(int(rng.integers(1, 4))):
            archive.writestr(f"member{number}{suffix}", content)
    return name, packed.getvalue()


def packed(rng: Rng) -> tuple[str, bytes]:
    """Write a packed text."""
    return pack(rng, *(csv, jsonl)[rng.integers(2)](rng))


@cache
def _databases(kind: str) -> tuple[bytes, ...]:
    made = []
    with tempfile.TemporaryDirectory(prefix="covary-torture-") as folder:
        for number in range(3):
            file = Path(folder, f"{number}.{kind}")
            _MAKERS[kind](file, np.random.default_rng(number))
            made.append(file.read_bytes())
    return tuple(made)


def _make_sqlite(file: Path, rng: Rng) -> None:
    connection = sqlite3.connect(file)
    columns = '"place" TEXT, "day" TEXT, "amount" REAL, "count" INT, "price" TEXT, "area" TEXT'
    for name in ("orders", "visits"):
        connection.execute(f"CREATE TABLE {name} ({columns})")
        rows = frame(rng).with_columns(pl.col("day").cast(pl.String)).rows()
        connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.execute("CREATE INDEX by_place ON orders (place)")
    connection.execute("CREATE VIEW busy AS SELECT place, sum(count) AS total FROM visits GROUP BY place")
    connection.commit()
    connection.close()


def _make_duckdb(file: Path, rng: Rng) -> None:
    import duckdb

    connection = duckdb.connect(str(file))
    orders = frame(rng).to_arrow()  # named in the query
    connection.execute("CREATE TABLE orders AS SELECT * FROM orders")
    connection.execute(
        "CREATE VIEW busy AS SELECT place, sum(count) AS total FROM main.orders GROUP BY place"
    )
    connection.close()
    del orders


_MAKERS = {"sqlite": _make_sqlite, "duckdb": _make_duckdb}


def sqlite(rng: Rng) -> tuple[str, bytes]:
    """Give a SQLite database of two tables and a view."""
    return [".sqlite", ".db", ".sqlite3"][rng.integers(3)], _databases("sqlite")[rng.integers(3)]


def duckdb_file(rng: Rng) -> tuple[str, bytes]:
    """Give a DuckDB database of a table and a view."""
    return ".duckdb", _databases("duckdb")[rng.integers(3)]


def delta_table(folder: Path, rng: Rng) -> None:
    """Write a Delta table of several versions, with a checkpoint."""
    from deltalake import DeltaTable, write_deltalake

    made = frame(rng, 200).to_arrow()
    for _ in range(3):
        write_deltalake(str(folder), made, mode="append")
    table = DeltaTable(str(folder))
    table.delete("count < 300")
    if rng.random() < 0.5:
        table.create_checkpoint()
        write_deltalake(str(folder), made, mode="append")


def iceberg_table(folder: Path, rng: Rng) -> None:
    """Write an Iceberg table of several snapshots."""
    from pyiceberg.catalog.sql import SqlCatalog

    warehouse = folder.with_name(f"{folder.name}-warehouse")
    warehouse.mkdir()
    catalog = SqlCatalog("c", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("n")
    made = frame(rng, 200).drop("day").to_arrow()
    made = made.cast(
        pa.schema([(f.name, pa.string() if "str" in str(f.type) else f.type) for f in made.schema])
    )
    table = catalog.create_table("n.t", made.schema, location=f"file://{folder}")
    table.append(made)
    table.append(made)
    catalog.engine.dispose()
    shutil.rmtree(warehouse)


def deep_json(levels: int) -> bytes:
    """Return one line that is nested so deeply."""
    return b'{"place": ' + b"[" * levels + b"]" * levels + b"}\n"


def json_line(**cells: Any) -> bytes:
    """Return one line of JSON."""
    return json.dumps(cells).encode() + b"\n"
