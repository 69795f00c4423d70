"""Covary against what people use today, and how each grows: the tables of docs/benchmarks.md."""

import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.growth import COUNTS, SIZE, Grown, exponent, grow
from benchmarks.lake import Lake, make_lake
from benchmarks.peers import PEERS, Peer, measure, write_truth
from experiments.writing import between_marks, table

TABLES, QUERIES = 400, 10
PARTS = (0.25, 0.5, 1.0)  # of the lake, to see how the time of full joins grows


def compare(folder: Path, page: Path | None, counts: tuple[int, ...] = COUNTS, tables: int = TABLES) -> None:
    """Measure all peers on one lake, and indexes of growing size; put the tables into a page, if given."""
    lake = _alone(make_lake, folder / "lake", tables, QUERIES)
    _alone(write_truth, lake)
    peers = [_alone(measure, name, lake, _empty(folder / "peer")) for name in PEERS]
    growing = [_alone(measure, "Polars, full joins", part, _empty(folder / "peer")) for part in _parts(lake)]
    grown = [_alone(grow, count, _empty(folder / "grown") / "index") for count in counts]
    parts = {"peers": peers_table(peers, lake), "growth": growth_table(grown, growing, lake)}
    for name, text in parts.items():
        print(f"\n{text}", flush=True)
        if page:
            between_marks(page, name, text)


def _alone(work: Any, *arguments: Any) -> Any:
    """Run in a process of its own, so that memory is its own: a child starts with the peak of its parent."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        found = process.submit(work, *arguments).result()
    if isinstance(found, Peer | Grown):
        print(found, flush=True)
    return found


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _parts(lake: Lake) -> list[Lake]:
    return [replace(lake, names=lake.names[: round(share * len(lake.names))]) for share in PARTS]


def peers_table(peers: list[Peer], lake: Lake) -> str:
    ours = peers[0]
    rows = [
        (
            peer.name,
            f"{peer.median_ms:,.0f} ({peer.median_ms / ours.median_ms:,.1f} x)",
            f"{peer.worst_ms:,.0f}",
            f"{peer.quality:.3f}",
            f"{peer.build_seconds:,.1f} s",
            f"{peer.index_bytes / 2**20:,.1f}",
            f"{peer.peak_mib:,.0f}",
        )
        for peer in peers
    ]
    weight = sum(Path(lake.path(name)).stat().st_size for name in lake.names) / 2**20
    heading = ("", "median ms", "slowest ms", "nDCG@10", "built in", "index, MiB", "peak memory, MiB")
    said = f"{len(lake.names)} Parquet tables ({weight:,.0f} MiB), {len(lake.queries)} queries, one run:"
    return f"{said}\n\n{table(heading, rows)}"


def growth_table(grown: list[Grown], growing: list[Peer], lake: Lake) -> str:
    rows = [
        (
            f"{each.columns:,}",
            f"{each.entries:,}",
            f"{each.joinable:,.0f}",
            f"{each.median_ms:.2f}",
            f"{each.p99_ms:.2f}",
            f"{each.index_bytes / 2**20:,.1f}",
            f"{each.build_seconds:,.1f} s",
        )
        for each in grown
    ]
    columns = [float(each.columns) for each in grown]
    joinable = [each.joinable for each in grown]
    sizes_on_disk = [float(each.index_bytes) for each in grown]
    medians, slow = [each.median_ms for each in grown], [each.p99_ms for each in grown]
    fitted = (
        f"Median time grows as the number of columns to the power of {exponent(columns, medians):.2f}, p99 as"
        f" {exponent(columns, slow):.2f}; the columns that join, all of which are scored, as"
        f" {exponent(columns, joinable):.2f}. Bytes as {exponent(columns, sizes_on_disk):.2f}."
    )
    sizes = [share * len(lake.names) for share in PARTS]
    times = [peer.median_ms for peer in growing]
    shown = ", ".join(f"{time:,.0f} ms for {size:.0f}" for size, time in zip(sizes, times, strict=True))
    full = f"Full joins in Polars: {shown} tables, a power of {exponent(sizes, times):.2f}."
    heading = ("columns", "entries", "join with a query", "median ms", "p99 ms", "index, MiB", "written in")
    return f"Sketches of {SIZE} keys, all candidates scored:\n\n{table(heading, rows)}\n\n{fitted} {full}"
