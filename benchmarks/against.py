"""Covary against what people use today, and how each grows: the tables of docs/measured/benchmarks.md."""

import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.growth import COUNTS, SIZE, Grown, exponent, grow
from benchmarks.lake import Lake, make_lake
from benchmarks.peers import FULL_JOINS, PEERS, Asked, Built, ask, build, write_truth
from experiments.artefact import panels, save
from experiments.indexes import bytes_of
from experiments.writing import between_marks, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLES, QUERIES = 400, 10
PARTS = (0.25, 0.5, 1.0)  # of the lake, to see how the time of full joins grows


def compare(folder: Path, page: Path | None, counts: tuple[int, ...] = COUNTS, tables: int = TABLES) -> None:
    """Measure all peers on one lake, and indexes of growing size; put the tables into a page, if given."""
    lake = _alone(make_lake, folder, tables, QUERIES)
    _alone(write_truth, lake)
    peers = {name: _measure(name, lake, folder / "peer") for name in PEERS}
    growing = [_measure(FULL_JOINS, part, folder / "peer")[1] for part in _parts(lake)]
    grown = [_alone(grow, count, _empty(folder / "grown") / "index") for count in counts]
    parts = {"peers": peers_table(peers, lake), "growth": growth_table(grown, growing, lake)}
    save(growth_picture(grown), folder / "growth.png")
    for name, text in parts.items():
        print(f"\n{text}", flush=True)
        if page:
            between_marks(page, name, text)
            shutil.copy(folder / "growth.png", page.parent / "figures" / "growth.png")


def _measure(name: str, lake: Lake, scratch: Path) -> tuple[Built, Asked]:
    return _alone(build, name, lake, _empty(scratch)), _alone(ask, name, lake, scratch)


def _alone(work: Any, *arguments: Any) -> Any:
    """Run in a process of its own, so that memory is its own: a child starts with the peak of its parent."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        found = process.submit(work, *arguments).result()
    if isinstance(found, Built | Asked | Grown):
        print(found, flush=True)
    return found


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _parts(lake: Lake) -> list[Lake]:
    return [replace(lake, names=lake.names[: round(share * len(lake.names))]) for share in PARTS]


def peers_table(peers: dict[str, tuple[Built, Asked]], lake: Lake) -> str:
    ours_built, ours = peers["covary"]
    rows = [
        (
            name,
            f"{asked.median_ms:,.0f} ({asked.median_ms / ours.median_ms:,.1f})",
            f"{asked.worst_ms:,.0f} ({asked.worst_ms / ours.worst_ms:,.1f})",
            f"{asked.quality:.3f}",
            f"{built.seconds:,.1f} ({built.seconds / ours_built.seconds:,.2f})",
            f"{asked.open_seconds:,.2f}",
            f"{built.index_bytes / 2**20:,.1f} ({built.index_bytes / ours_built.index_bytes:,.2f})",
            f"{asked.peak_mib:,.0f} ({asked.peak_mib / ours.peak_mib:,.2f})",
        )
        for name, (built, asked) in peers.items()
    ]
    weight = bytes_of(lake.folder) / 2**20
    heading = (
        "in brackets: times covary's", "median ms", "slowest ms", "nDCG@10", "built in, s", "opened in, s",
        "index, MiB", "peak memory of asking, MiB",
    )  # fmt: skip
    said = f"{len(lake.names)} Parquet tables ({weight:,.0f} MiB), {len(lake.queries)} queries, one run:"
    return f"{said}\n\n{table(heading, rows)}"


def growth_picture(grown: list[Grown]) -> "Figure":
    figure, (time, size) = panels(1, 2, 4.0, 3.0)
    columns = [each.columns for each in grown]
    time.plot(columns, [each.median_ms for each in grown], marker=".", label="median")
    time.plot(columns, [each.p99_ms for each in grown], marker=".", label="p99")
    time.set(xscale="log", yscale="log", xlabel="columns", ylabel="ms to answer")
    time.legend()
    size.plot(columns, [each.index_bytes / 2**20 for each in grown], marker=".")
    size.set(xscale="log", yscale="log", xlabel="columns", ylabel="index, MiB")
    return figure


def growth_table(grown: list[Grown], growing: list[Asked], lake: Lake) -> str:
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
