"""Periods to hashed keys: few are ever needed, so each is named and hashed once in a process."""

from functools import lru_cache

import numpy as np
import polars as pl

from covary.arrays import Integers
from covary.columns.key_reading import YEAR
from covary.columns.periods import name_periods
from covary.sketching.hashing import SCHEMES, Hashes, HashScheme

BLOCK_BITS = 12  # 4,096 periods: eleven years of days
MOST_BLOCKS = 64  # of one column: beyond, the periods themselves are listed
KEPT_BLOCKS = 512


def hash_periods(numbers: Integers, granularity: str, scheme: HashScheme) -> Hashes:
    """Hash the names of periods, given by their numbers."""
    if not numbers.size:
        return np.empty(0, dtype=scheme.identity_type)
    first, last = int(numbers.min()) >> BLOCK_BITS, int(numbers.max()) >> BLOCK_BITS
    if granularity == "moment" or last - first >= MOST_BLOCKS:
        distinct, places = np.unique(numbers, return_inverse=True)
        return _hashed(distinct, granularity, scheme)[places]
    blocks = [_block(number, granularity, scheme.name) for number in range(first, last + 1)]
    every = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    hashes: Hashes = every[numbers - (first << BLOCK_BITS)]
    return hashes


@lru_cache(KEPT_BLOCKS)
def _block(number: int, granularity: str, scheme: str) -> Hashes:
    first = number << BLOCK_BITS
    hashes = _hashed(np.arange(first, first + (1 << BLOCK_BITS)), granularity, SCHEMES[scheme])
    hashes.setflags(write=False)
    return hashes


def _hashed(numbers: Integers, granularity: str, scheme: HashScheme) -> Hashes:
    names = pl.Series(name_periods(numbers, granularity), dtype=pl.String)
    return scheme.identify([YEAR + names if granularity == "year" else names])[0].hashes.copy()
