"""Key text to identity h(k), identity to order h_u (paper, section 3.4). The only place that hashes keys."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import polars_hash  # noqa: F401  (registers the `nchash` namespace)

from covary.arrays import Array, Floats, Truths

Hashes = Array  # h(k): uint64 or int32, by the scheme
Orders = Array  # what h_u is made from, and keys are sorted by: uint64 or float64

XXHASH64_SEED = 42  # Spark SQL's own, so that its xxhash64(text) is our identity
GOLDEN_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, made odd: a bijection on 64 bits
MIXERS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
GOLDEN_RATIO = 1.618033988749895
FEW_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class HashedColumn:
    """The identity of the key of each row, and which rows have one (None: all)."""

    hashes: Hashes
    present: Truths | None


@dataclass(frozen=True, slots=True)
class HashScheme:
    """How key text becomes an identity, and how an identity becomes a position in the sampling order."""

    name: str
    seed: int
    ties: bool  # whether two identities may share a position in the order
    identity_type: type[np.uint64] | type[np.int32]
    expression: Callable[[pl.Expr], pl.Expr]
    order: Callable[[Hashes], Orders]
    order_to_unit: Callable[[Orders], Floats]

    def identify(self, keys: Sequence[pl.Series]) -> list[HashedColumn]:
        """Hash columns of key text; null and empty text is no key."""
        texts = pl.DataFrame([text.alias(str(number)) for number, text in enumerate(keys)])
        hashes = [self.expression(pl.col(name)) for name in texts.columns]
        # Handing columns to other threads costs more than hashing few rows.
        hashed = texts.select(hashes) if texts.height > FEW_ROWS else texts.select_seq(hashes)
        columns: list[HashedColumn] = []
        for text, identities in zip(keys, hashed.get_columns(), strict=True):
            present = None
            if text.null_count() or (text == "").any():
                present = (text != "").fill_null(value=False).to_numpy()
            filled = identities.fill_null(0) if present is not None else identities
            columns.append(HashedColumn(filled.to_numpy().view(self.identity_type), present))
        return columns

    def combine(self, columns: Sequence[HashedColumn]) -> HashedColumn:
        """Hash several columns as one key: their order counts, and a row lacks a key if it lacks any."""
        if len(columns) == 1:
            return columns[0]
        mixed = np.zeros(columns[0].hashes.size, dtype=np.uint64)
        for column in columns:
            mixed = _mix(mixed + _widen_to_64_bits(column.hashes) + GOLDEN_MULTIPLIER)
        known = [column.present for column in columns if column.present is not None]
        width = 8 * np.dtype(self.identity_type).itemsize
        hashes = (mixed >> np.uint64(64 - width)).astype(f"u{width // 8}").view(self.identity_type)
        return HashedColumn(hashes, np.logical_and.reduce(known) if known else None)

    def are_in_order(self, hashes: Hashes, begins: Truths | None = None) -> bool:
        """Whether each identity is there once and the one of the smallest h_u comes first, as in a sketch.

        The identities may be those of several sketches one after the other: `begins` marks where each begins.
        """
        orders = self.order(hashes)
        after, before = orders[1:], orders[:-1]
        in_order = after > before
        if self.ties:
            in_order |= (after == before) & (hashes[1:] > hashes[:-1])
        if begins is not None:
            in_order |= begins[1:]
        return bool(in_order.all())

    def unit(self, hashes: Hashes) -> Floats:
        """Map each identity into [0, 1): the paper's h_u."""
        return self.order_to_unit(self.order(hashes))


def _widen_to_64_bits(hashes: Hashes) -> npt.NDArray[np.uint64]:
    return hashes.view(f"u{hashes.itemsize}").astype(np.uint64)


def _mix(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread every bit over all 64: the finaliser of MurmurHash3."""
    for multiplier in MIXERS:
        numbers = (numbers ^ (numbers >> np.uint64(33))) * multiplier
    return numbers ^ (numbers >> np.uint64(33))


def _order_murmur3(hashes: Hashes) -> Orders:
    scaled = (hashes.astype(np.float64) + 1.0) * GOLDEN_RATIO
    return scaled - np.floor(scaled)


SCHEMES = {
    "xxhash64": HashScheme(
        name="xxhash64",
        seed=XXHASH64_SEED,
        ties=False,
        identity_type=np.uint64,
        expression=lambda key: key.nchash.xxhash64(seed=XXHASH64_SEED),  # type: ignore[attr-defined]
        order=lambda hashes: hashes * GOLDEN_MULTIPLIER,
        # Dropping the low 11 bits keeps the conversion exact and the result below 1.
        order_to_unit=lambda orders: (orders >> np.uint64(11)).astype(np.float64) * 2.0**-53,
    ),
    "murmur3": HashScheme(
        name="murmur3",
        seed=0,
        ties=True,
        identity_type=np.int32,
        expression=lambda key: key.nchash.murmur32(seed=0),  # type: ignore[attr-defined]
        order=_order_murmur3,
        order_to_unit=lambda orders: orders,
    ),
}


def sort_by_order(hashes: Hashes, orders: Orders) -> npt.NDArray[np.intp]:
    """Return the positions of hashes sorted by h_u; equal h_u go by h (they happen in 32-bit mode alone)."""
    if orders.dtype == np.float64:
        return np.lexsort((hashes, orders))
    return np.argsort(orders)
