"""Tables that write the same facts in dozens of ways, and the truth about every column and join of them.

Every table draws its keys from one domain or two, writes them in a style of its own, and measures a hidden
number of each key, more or less well; beside that it has columns of codes, which look like numbers and are
none.
"""

import csv
import io
import zlib
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from experiments.messy.domains import BESIDE_KEYS, DOMAINS, KEYS
from experiments.messy.keys import GRAINS, Domain, coarsened
from experiments.messy.numbers import EUROPEAN, MARKS, NUMBER_NAMES, STYLES
from experiments.messy.times import HOURS, HOURS_FROM
from experiments.messy.truth import Identifier, NumberColumn, Table, Truth

TABLES_PER_DOMAIN = 9
LAYOUTS = {"csv": 0.55, "csv, BOM": 0.12, "csv, cp1252": 0.12, "csv, semicolons": 0.12, "parquet": 0.09}
COMPOSITE_PARTS, COMPOSITE_KEYS = 40, 700


def latent(seed: int, key: Sequence[Domain], cells: Sequence[str]) -> float:
    """The hidden number of a key; that of a time is made of those of its year, its month and so on."""
    if len(key) > 1 or not key[0].grain:
        return _normal(seed, "+".join(domain.label for domain in key), "|".join(cells))
    grains = GRAINS[max(1, GRAINS.index(key[0].grain)) :]
    return sum(_normal(seed, grain, coarsened(cells[0], grain)) for grain in grains) / len(grains) ** 0.5


@lru_cache(maxsize=100_000)
def _normal(seed: int, name: str, key: str) -> float:
    share = (zlib.crc32(f"{seed}/{name}/{key}/{name}".encode()) + 0.5) / 2**32
    return NormalDist().inv_cdf(share)


def write_collection(folder: Path, seed: int, tables_per_domain: int = TABLES_PER_DOMAIN) -> Truth:
    """Write tables on every domain, each in the next of its styles, and say what is true of them."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Table] = []
    for labels in KEYS:
        for number in range(tables_per_domain):
            rng = np.random.default_rng([seed, zlib.crc32("+".join(labels).encode()), number])
            table = _table(f"{len(made):03}_{'_'.join(labels)}", labels, number, seed, rng)
            _write(table, folder, rng)
            made.append(table)
    return Truth(seed, tuple(made))


def _table(name: str, labels: Sequence[str], number: int, seed: int, rng: np.random.Generator) -> Table:
    layout = str(rng.choice(list(LAYOUTS), p=list(LAYOUTS.values())))
    domains = [DOMAINS[label] for label in labels]
    rows = _rows_of(domains, seed, rng)
    taken: set[str] = set()
    key = [
        _identifier(domain, tuple(row[place] for row in rows), number + place, layout, taken, rng)
        for place, domain in enumerate(domains)
    ]
    others = [label for label in BESIDE_KEYS if label not in labels]
    codes = [
        _identifier(
            DOMAINS[label], tuple(rng.choice(DOMAINS[label].keys, len(rows)).tolist()), -1, layout, taken, rng
        )
        for label in rng.choice(others, rng.integers(1, 4), replace=False).tolist()
    ]
    hidden = np.array([latent(seed, domains, row) for row in rows])
    columns = [_numbers(hidden, layout, taken, rng) for _ in range(rng.integers(1, 5))]
    file = f"{name}.{'parquet' if layout == 'parquet' else 'csv'}"
    return Table(name, file, layout, tuple(key), tuple(codes), tuple(columns))


def _rows_of(domains: Sequence[Domain], seed: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Draw most keys of the domain, or of the combinations that there are, in any order; some come twice."""
    pool = _pool(tuple(domain.label for domain in domains), seed)
    if domains[0].grain == "moment":
        seconds = rng.integers(0, HOURS * 3600, 600).tolist()
        pool = [((HOURS_FROM + timedelta(seconds=second)).isoformat(),) for second in seconds]
    share = rng.uniform(0.6, 0.95) if len(pool) > 2 else 1.0
    chosen = rng.permutation(len(pool))[: max(1, int(share * len(pool)))]
    times = max(1 + int(rng.random() < 0.25), 40 // len(chosen))
    return [pool[place] for place in rng.permutation(np.repeat(chosen, times)).tolist()]


@lru_cache(maxsize=64)
def _pool(labels: tuple[str, ...], seed: int) -> list[tuple[str, ...]]:
    if len(labels) == 1:
        keys = DOMAINS[labels[0]].keys
        return [(key,) for key in keys]
    rng = np.random.default_rng([seed, zlib.crc32("|".join(labels).encode())])
    parts = [DOMAINS[label].keys for label in labels]
    few = [rng.permutation(keys)[:COMPOSITE_PARTS].tolist() for keys in parts]
    pairs = [(a, b) for a in few[0] for b in few[1]]
    return [pairs[place] for place in rng.permutation(len(pairs))[:COMPOSITE_KEYS].tolist()]


def _identifier(
    domain: Domain, keys: tuple[str, ...], number: int, layout: str, taken: set[str], rng: np.random.Generator
) -> Identifier:
    """Make a column of a domain; a number takes its turn at a style, -1 any."""
    styles = list(domain.styles)
    style = styles[(number if number >= 0 else int(rng.integers(len(styles)))) % len(styles)]
    if layout == "parquet" and domain.typed:
        style = "typed"
    return Identifier(_name(domain.columns, taken, rng), domain.name, domain.grain, style, domain.meets, keys)


def _name(names: Sequence[str], taken: set[str], rng: np.random.Generator) -> str:
    free = [name for name in names if name.casefold() not in taken]
    name = str(rng.choice(free))
    taken.add(name.casefold())
    return name


def _numbers(hidden: np.ndarray, layout: str, taken: set[str], rng: np.random.Generator) -> NumberColumn:
    names = list(EUROPEAN) if layout == "csv, semicolons" else list(STYLES)
    name = "typed" if layout == "parquet" else str(rng.choice(names))
    style = STYLES.get(name, STYLES["1234.56"])
    r = float(rng.choice([0.95, -0.8, 0.5, 0.0], p=[0.3, 0.25, 0.2, 0.25]))
    measured = r * hidden + (1 - r * r) ** 0.5 * rng.normal(size=hidden.size)
    values = np.array(
        [style.rounded(style.level + style.spread * z) for z in measured.clip(-4.5, 4.5).tolist()]
    )
    mark = str(rng.choice(MARKS)) if rng.random() < 0.6 else None
    if mark is not None:
        values[rng.random(values.size) < rng.uniform(0.05, 0.2)] = np.nan
    return NumberColumn(_name(NUMBER_NAMES, taken, rng), name, mark, r, values)


def _write(table: Table, folder: Path, rng: np.random.Generator) -> None:
    """Write the file, its columns in any order."""
    cells: dict[str, list[Any]] = {name: _keys_written(each) for name, each in table.identifiers.items()}
    cells |= {column.name: _numbers_written(column) for column in table.numbers}
    ordered = {name: cells[name] for name in rng.permutation(list(cells)).tolist()}
    if table.layout == "parquet":
        pl.DataFrame(ordered).write_parquet(folder / table.file)
        return
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";" if table.layout == "csv, semicolons" else ",")
    writer.writerows([list(ordered), *zip(*ordered.values(), strict=True)])
    (folder / table.file).write_bytes(_encoded(text.getvalue(), table.layout))


def _encoded(text: str, layout: str) -> bytes:
    """Encode as the layout says, or as UTF-8 where cp1252 has no such letters."""
    if layout == "csv, cp1252":
        try:
            return text.encode("cp1252")
        except UnicodeEncodeError:
            pass
    return text.encode("utf-8-sig" if layout == "csv, BOM" else "utf-8")


def _keys_written(column: Identifier) -> list[Any]:
    domain = DOMAINS[column.label]
    write = domain.typed if column.style == "typed" else domain.styles[column.style]
    return [write(key) for key in column.keys]


def _numbers_written(column: NumberColumn) -> list[Any]:
    if column.style == "typed":
        return [None if np.isnan(value) else value for value in column.values.tolist()]
    write = STYLES[column.style].write
    return [column.mark if np.isnan(value) else write(value) for value in column.values.tolist()]
