"""A synthetic lake of Parquet tables with realistic keys, for what can only be compared on whole tables.

Tables belong to key domains: a few are popular and most are rare (Zipf), their sizes spread evenly on a
logarithmic scale from 50 to 1,000,000 keys. A table holds a part of its domain, and its numbers mix what the
domain's tables have in common with noise.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

DOMAINS, SMALLEST, LARGEST = 40, 50, 1_000_000
FACTORS = 3  # that move a domain's numbers
REPEATED_SHARE = 0.2  # of tables, with two rows for a key
LEAST_TO_ASK = 1_000  # keys of a table that asks


@dataclass(frozen=True, slots=True)
class Lake:
    """Where the tables are, and which of them ask."""

    folder: Path
    names: tuple[str, ...]
    queries: tuple[str, ...]

    @property
    def truth(self) -> Path:
        """Where the exact correlations with the queries are kept."""
        return self.folder.with_suffix(".truth")

    def path(self, name: str) -> str:
        return str(self.folder / f"{name}.parquet")


def domain_sizes(rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST), DOMAINS)).astype(int)


def domains_of(count: int, rng: np.random.Generator) -> np.ndarray:
    popularity = 1 / np.arange(1, DOMAINS + 1)
    return rng.choice(DOMAINS, size=count, p=popularity / popularity.sum())


def make_lake(into: Path, tables: int, queries: int, seed: int = 1) -> Lake:
    """Write a lake; one that was made before with the same settings is taken as it is."""
    folder = into / f"lake-{tables}-{queries}-{seed}"
    rng = np.random.default_rng(seed)
    sizes, chosen = domain_sizes(rng), domains_of(tables, rng)
    names = [f"t{number:06}" for number in range(tables)]
    rows: dict[str, int] = {}
    made = folder.exists()
    unfinished = folder.with_suffix(".unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    for name, domain in zip(names, chosen, strict=True):
        own = np.random.default_rng([seed, int(name[1:])])
        held = own.permutation(sizes[domain])[: max(10, int(sizes[domain] * own.uniform(0.3, 1.0)))]
        rows[name] = held.size
        if not made:
            _table(int(domain), int(sizes[domain]), held, own, seed).write_parquet(
                unfinished / f"{name}.parquet"
            )
    if not made:
        unfinished.rename(folder)
    large = [name for name in names if rows[name] >= LEAST_TO_ASK]
    asking = rng.choice(large, min(queries, len(large)), replace=False).tolist()
    return Lake(folder, tuple(names), tuple(asking))


def _table(domain: int, size: int, held: np.ndarray, own: np.random.Generator, seed: int) -> pl.DataFrame:
    common = np.random.default_rng([seed, 10**6 + domain])
    factors = common.normal(size=(FACTORS, size))[:, held]
    weights = own.normal(size=FACTORS) * (own.random(FACTORS) < 0.5)
    number = weights @ factors + own.normal(size=held.size)
    if own.random() < REPEATED_SHARE:
        held, number = np.repeat(held, 2), np.repeat(number, 2) + own.normal(size=2 * held.size)
    rows = pl.DataFrame({"place": held, "number": number})
    return rows.select(pl.format(f"d{domain}-{{}}", "place").alias("key"), "number")
