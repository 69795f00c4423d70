"""Key text to identity h(k), identity to order h_u (paper, section 3.4). The only place that hashes keys."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import polars_hash  # noqa: F401  (registers the `nchash` namespace)

Hashes = npt.NDArray[Any]
Orders = npt.NDArray[Any]

XXHASH64_SEED = 42  # Spark SQL's own, so that its xxhash64(text) is our identity
GOLDEN_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, made odd: a bijection on 64 bits
GOLDEN_RATIO = 1.618033988749895


@dataclass(frozen=True, slots=True)
class HashScheme:
    """How key text becomes an identity, and how an identity becomes a place in the sampling order."""

    name: str
    identity_type: Any
    expression: Callable[[pl.Expr], pl.Expr]
    order: Callable[[Hashes], Orders]
    order_to_unit: Callable[[Orders], npt.NDArray[np.float64]]

    def identify(self, text: pl.Series) -> tuple[Hashes, npt.NDArray[np.intp] | None]:
        """Hash the rows that have a key, and say which rows they are (None: all of them)."""
        key = pl.col("key")
        # One query for both columns: on small tables the number of Polars calls is the cost.
        hashed = text.alias("key").to_frame().select(self.expression(key).alias("hash"), key.str.len_bytes())
        lengths = hashed["key"].fill_null(0).to_numpy() if text.null_count() else hashed["key"].to_numpy()
        if lengths.size and lengths.min() > 0:
            return hashed["hash"].to_numpy().view(self.identity_type), None
        rows = np.flatnonzero(lengths)
        hashes = hashed["hash"].fill_null(0).to_numpy()[rows]
        return hashes.view(self.identity_type), rows

    def unit(self, hashes: Hashes) -> npt.NDArray[np.float64]:
        """Place each identity in [0, 1): the paper's h_u."""
        return self.order_to_unit(self.order(hashes))


def _xxhash64(key: pl.Expr) -> pl.Expr:
    hashed: pl.Expr = key.nchash.xxhash64(seed=XXHASH64_SEED)  # type: ignore[attr-defined]
    return hashed


def _order_xxhash64(hashes: Hashes) -> Orders:
    ordered: Orders = hashes * GOLDEN_MULTIPLIER
    return ordered


def _unit_of_64_bits(orders: Orders) -> npt.NDArray[np.float64]:
    # Dropping the low 11 bits keeps the conversion exact and the result below 1.
    return (orders >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _murmur3(key: pl.Expr) -> pl.Expr:
    hashed: pl.Expr = key.nchash.murmur32(seed=0)  # type: ignore[attr-defined]
    return hashed


def _order_murmur3(hashes: Hashes) -> Orders:
    scaled = (hashes.astype(np.float64) + 1.0) * GOLDEN_RATIO
    return scaled - np.floor(scaled)


SCHEMES = {
    "xxhash64": HashScheme("xxhash64", np.uint64, _xxhash64, _order_xxhash64, _unit_of_64_bits),
    "murmur3": HashScheme("murmur3", np.int32, _murmur3, _order_murmur3, lambda orders: orders),
}


def smallest_first(scheme: HashScheme, hashes: Hashes) -> npt.NDArray[np.intp]:
    """Sort positions by h_u; equal h_u (32-bit mode only) are ordered by h."""
    return np.lexsort((hashes, scheme.order(hashes)))
