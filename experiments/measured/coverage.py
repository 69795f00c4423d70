"""How often each interval holds the join's own correlation, and how long it is, over many populations."""

import json
import os
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from covary.statistics.influence import influence_ends
from covary.statistics.intervals import CONFIDENCE, Sampled, interval_named
from covary.statistics.measures import MEASURES
from covary.statistics.moments import Moments, moments_of
from experiments.measured.populations import GRID, HELD_OUT, SIZES, TIMES, Cell, Pairs, cells, population
from experiments.writing import between_marks, table

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "coverage.md"
SAMPLES, SEED = 2_000, 1
# Large populations of one kind differ little, and their rank correlations take time.
POPULATIONS, LARGE, FEWER_POPULATIONS = 100, 100_000, 20
WANTED, MOST = 0.92, 0.98
DEFAULT = ("pearson", "influence")
COMPARED = (
    DEFAULT,
    ("pearson", "fisher"),
    ("pearson", "pm1"),
    ("pearson", "hoeffding"),
    ("pearson", "hoeffding-small"),
    ("spearman", "influence"),
    ("spearman", "fisher"),
    ("rin", "influence"),
    ("rin", "fisher"),
    ("kendall", "influence"),
)
ON_HELD_OUT = tuple(choice for choice in COMPARED if choice[1] in ("influence", "fisher"))
Choice = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Measured:
    """How one interval did in one cell."""

    coverage: float
    length: float


def samples(
    cell: Cell, x: np.ndarray, y: np.ndarray, count: int, rng: np.random.Generator
) -> Iterator[Pairs]:
    """Draw samples without replacement; those without a correlation are left out."""
    for _ in range(count):
        chosen = rng.choice(x.size, cell.size, replace=False, shuffle=False)
        a, b = x[chosen], y[chosen]
        if a.min() < a.max() and b.min() < b.max():
            yield a, b


def measure_cell(cell: Cell, choices: tuple[Choice, ...], count: int = SAMPLES) -> dict[Choice, Measured]:
    """Draw samples from several populations and see how often the interval of each choice holds."""
    rng = np.random.default_rng([SEED, zlib.crc32(repr(cell).encode())])
    held: dict[Choice, list[bool]] = {choice: [] for choice in choices}
    lengths: dict[Choice, list[float]] = {choice: [] for choice in choices}
    populations = min(count, FEWER_POPULATIONS if cell.join_size > LARGE else POPULATIONS)
    for _ in range(populations):
        x, y = population(cell, rng)
        drawn = list(samples(cell, x, y, count // populations, rng))
        if not drawn:
            continue
        truths = {measure: MEASURES[measure].of(x, y, 0) for measure in {measure for measure, _ in choices}}
        for measure, name in choices:
            for low, high in _ends(cell, x, y, drawn, measure, name):
                held[measure, name].append(low <= truths[measure] <= high)
                lengths[measure, name].append(high - low)
    return {
        choice: Measured(float(np.mean(held[choice])), float(np.mean(lengths[choice]))) for choice in choices
    }


def _ends(
    cell: Cell, x: np.ndarray, y: np.ndarray, drawn: list[Pairs], measure: str, name: str
) -> Iterator[tuple[float, float]]:
    if (measure, name) == DEFAULT:
        moments = Moments(*np.concatenate([moments_of(a, b) for a, b in drawn], axis=1))
        ends = influence_ends(moments, np.full(len(drawn), float(cell.join_size)), CONFIDENCE)
        yield from zip(*ends, strict=True)
        return
    ranges = (float(x.min()), float(x.max())), (float(y.min()), float(y.max()))
    for seed, (a, b) in enumerate(drawn):
        value = MEASURES[measure].of(a, b, seed)
        if not np.isnan(value):
            given = Sampled(a, b, value, measure, cell.join_size, *ranges, seed=seed)
            interval = interval_named(name, given)
            yield interval.low, interval.high


Results = dict[Cell, dict[Choice, Measured]]


@cache
def _form() -> str:
    """Tell the present form of the intervals from others, by what they are on a few samples."""
    found = measure_cell(Cell("lognormal", 0.6, 32, 20), COMPARED, 20)
    return f"{zlib.crc32(repr((found, POPULATIONS, FEWER_POPULATIONS)).encode()):08x}"


def measure_all(wanted: list[Cell], choices: tuple[Choice, ...], count: int, kept: Path | None) -> Results:
    """Measure cells, as many at once as there are processors; those that were kept are not repeated."""
    results = _read(kept, choices, count)
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        tasks = {
            workers.submit(measure_cell, cell, choices, count): cell for cell in wanted if cell not in results
        }
        for task in as_completed(tasks):
            results[tasks[task]] = task.result()
            _keep(kept, tasks[task], task.result(), count)
            done = sum(cell in results for cell in wanted)
            print(f"\r{done} of {len(wanted)} cells", end="", flush=True)
        print()
    return {cell: results[cell] for cell in wanted}


def _keep(kept: Path | None, cell: Cell, found: dict[Choice, Measured], count: int) -> None:
    if kept:
        measured = [[*choice, m.coverage, m.length] for choice, m in found.items()]
        row = {"form": _form(), "count": count, "cell": asdict(cell), "measured": measured}
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _read(kept: Path | None, choices: tuple[Choice, ...], count: int) -> Results:
    results: Results = {}
    for line in kept.read_text(encoding="utf-8").splitlines() if kept and kept.exists() else []:
        row = json.loads(line)
        found = {(measure, name): Measured(*figures) for measure, name, *figures in row["measured"]}
        if (row["form"], row["count"]) == (_form(), count) and set(choices) <= set(found):
            results[Cell(**row["cell"])] = found
    return results


def counted(cell: Cell) -> bool:
    """Whether a cell counts: of contaminated data a small sample often holds none of what spoils it."""
    return not (cell.kind == "contaminated" and cell.size <= 64)


def summary(results: Results, choices: tuple[Choice, ...]) -> str:
    rows = []
    for choice in choices:
        of_cell = {cell: found[choice] for cell, found in results.items() if counted(cell)}
        under = {
            times: sum(m.coverage < WANTED for c, m in of_cell.items() if c.times == times) for times in TIMES
        }
        worst = min(m.coverage for m in of_cell.values())
        plain = [m.coverage for c, m in of_cell.items() if is_plain(c)]
        length = float(np.mean([m.length for m in of_cell.values()]))
        most = f"{max(plain):.1%}" if plain else "–"
        rows.append((*choice, *under.values(), f"{worst:.1%}", most, f"{length:.2f}"))
    cells_each = sum(counted(cell) and cell.times == TIMES[0] for cell in results)
    heads = [f"N = {times}n" for times in TIMES]
    heading = ("measure", "interval", *heads, "worst", "most, normal and uniform from n = 64", "mean length")
    return f"Cells under 92 %, of {cells_each} for each N:\n\n{table(heading, rows)}"


def by_cell(results: Results, choice: Choice) -> str:
    kinds = dict.fromkeys((cell.kind, cell.rho) for cell in results)
    rows = []
    for kind, rho in kinds:
        row = [kind, f"{rho:g}"]
        for size in SIZES:
            found = [results[Cell(kind, rho, size, times)][choice] for times in TIMES]
            lengths = " ".join(f"{m.length:.2f}".removeprefix("0") for m in found)
            row.append(" ".join(_percent(m.coverage) for m in found) + f" ({lengths})")
        rows.append(row)
    return table(("columns", "ρ", *(f"n = {size}" for size in SIZES)), rows)


def _percent(coverage: float) -> str:
    shown = f"{100 * coverage:.1f}"
    return f"**{shown}**" if coverage < WANTED else shown


def misses(results: Results, choice: Choice) -> str:
    """Name the cells that miss a target, and by how much."""
    of_cell = {cell: found[choice].coverage for cell, found in results.items() if counted(cell)}
    under = {cell: held for cell, held in of_cell.items() if held < WANTED}
    over = {cell: held for cell, held in of_cell.items() if is_plain(cell) and held > MOST}
    said = [f"{len(under) or 'None'} of {len(of_cell)} cells are under 92 %{_named(under)}."]
    if any(map(is_plain, of_cell)):
        plain = sum(map(is_plain, of_cell))
        said.append(
            f"{len(over) or 'None'} of {plain} normal and uniform ones, n ≥ 64, are over 98 %{_named(over)}."
        )
    return " ".join(said)


def _named(found: dict[Cell, float]) -> str:
    worst_first = sorted(found.items(), key=lambda each: each[1])
    named = "; ".join(
        f"{c.kind} ρ = {c.rho:g}, n = {c.size}, N = {c.times}n: {held:.1%}" for c, held in worst_first
    )
    return f": {named}" if named else ""


def is_plain(cell: Cell) -> bool:
    """Whether an interval that covers too often would be needlessly long here."""
    return cell.kind in ("normal", "uniform") and cell.size >= 64


def folded(heading: str, text: str) -> str:
    """Hide a long table behind its heading."""
    return f"<details><summary>{heading}</summary>\n\n{text}\n\n</details>"


def main(count: int = SAMPLES, kept: Path | None = None) -> None:
    """Measure, and write docs/measured/coverage.md; a file to keep results in lets a run go on later."""
    grid = measure_all(cells(GRID), COMPARED, count, kept)
    held_out = measure_all(cells(HELD_OUT), ON_HELD_OUT, count // 2, kept)
    others = (
        folded(f"{measure}, {interval}", by_cell(grid, (measure, interval)))
        for measure, interval in COMPARED[1:]
    )
    parts = {
        "summary": summary(grid, COMPARED),
        "default": f"{by_cell(grid, DEFAULT)}\n\n{misses(grid, DEFAULT)}",
        "others": "\n\n".join(others),
        "held-out": "\n\n".join(
            (summary(held_out, ON_HELD_OUT), by_cell(held_out, DEFAULT), misses(held_out, DEFAULT))
        ),
    }
    for name, text in parts.items():
        between_marks(PAGE, name, text)
