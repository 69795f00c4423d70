"""`./run bench --scale`: the tables of indexes at scale, and the ratios of keeping one up to date."""

import shutil
from pathlib import Path

from benchmarks.growth import exponent
from benchmarks.living import adding_against_building, pairs_against_full_joins
from benchmarks.measure import Result
from benchmarks.scale import COUNTS, SIZES, Scaled, scale
from experiments.writing import between_marks, table

OPENED_WITHIN, RESIDENT_WITHIN = 1.0, 200.0
HEADING = (
    "column pairs", "keys per sketch", "entries", "index, GB", "opened in, s", "resident then, MB",
    "columns that join", "keys that meet", "median ms", "p99 ms",
)  # fmt: skip


def measure(scratch: Path, page: Path | None) -> None:
    """Measure everything at scale, print it, and put it into the page."""
    scratch.mkdir(parents=True, exist_ok=True)
    grown: list[Scaled] = []
    for size in SIZES:
        for pairs in COUNTS:
            folder = scratch / f"{pairs}-{size}"
            grown.append(scale(pairs, size, folder))
            print(grown[-1], flush=True)
            shutil.rmtree(folder)
    results = [adding_against_building(), pairs_against_full_joins()]
    text = f"{scale_table(grown)}\n\n{fitted(grown)}\n\n{as_list(results)}"
    print(text)
    if page:
        between_marks(page, "scale", text)


def scale_table(grown: list[Scaled]) -> str:
    rows = [
        (
            f"{each.pairs:,}",
            f"{each.size:,}",
            f"{each.entries:,}",
            f"{each.bytes / 1e9:.2f}",
            f"{each.open_seconds:.3f}",
            f"{each.resident_mb:.0f} ({each.imported_mb:.0f} before)",
            f"{each.joinable:,.0f}",
            f"{each.postings:,.0f}",
            f"{each.median_ms:.1f}",
            f"{each.p99_ms:.0f}",
        )
        for each in grown
    ]
    return table(HEADING, rows)


def fitted(grown: list[Scaled]) -> str:
    """Say how times grow from the smallest index to the largest, beside what a query touches."""
    lines = []
    for size in SIZES:
        some = [each for each in grown if each.size == size]
        pairs = [float(each.pairs) for each in some]
        powers = [
            exponent(pairs, [getattr(each, name) for each in some])
            for name in ("median_ms", "p99_ms", "postings")
        ]
        lines.append(
            f"n = {size:,}: with the number of pairs, the median grows to the power of {powers[0]:.2f}, "
            f"p99 of {powers[1]:.2f}, the keys that meet of {powers[2]:.2f}."
        )
    largest = [each for each in grown if each.pairs == max(COUNTS)]
    opened = max(each.open_seconds for each in largest)
    resident = max(each.resident_mb for each in largest)
    lines.append(
        f"The largest indexes were opened in at most {opened:.3f} s (wanted: under {OPENED_WITHIN:g}) with "
        f"{resident:.0f} MB resident before the first query (wanted: under {RESIDENT_WITHIN:g})."
    )
    return " ".join(lines)


def as_list(results: list[Result]) -> str:
    rows = [(r.name, f"**{r.ratio:.3g}**", r.wanted, r.detail) for r in results]
    return table(("measured", "ratio", "wanted", "in this run"), rows)
