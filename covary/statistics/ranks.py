"""Ranks and normal scores of a sample, compiled."""

import math

import numpy as np

from covary.arrays import Floats, Integers
from covary.compiled import compiled, unsigned


@compiled
def ranks_of(values: Floats, as_normal: bool | None, scores: Floats) -> Floats:
    """Return the ranks, or their normal scores, centred and of length 1; NaN if all values are equal."""
    ascending = _order(values)
    n = values.size
    ranks = np.empty(n)
    start = 0
    while start < n:
        end = start + 1
        while end < n and values[ascending[end]] == values[ascending[start]]:
            end += 1
        rank = (start + end + 1) / 2  # ties share their average rank
        if as_normal is not None:
            rank = scores[start] if end == start + 1 else _normal_quantile((rank - 0.5) / n)
        for i in range(start, end):
            ranks[ascending[i]] = rank if end - start < n else np.nan
        start = end
    to_unit_length(ranks)
    return ranks


@compiled
def _order(values: Floats) -> Integers:
    """Return the rows of values in ascending order: radix sort, a byte of their bits at a time."""
    n = values.size
    bits, rows = np.empty(n, np.uint64), np.empty(n, np.int64)
    other_bits, other_rows = np.empty(n, np.uint64), np.empty(n, np.int64)
    pattern = (values + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    counts = np.zeros((8, 256), np.int64)
    for i in range(n):
        negative = pattern[i] >> unsigned(63)
        flipped = pattern[i] ^ ((unsigned(0) - negative) | unsigned(1 << 63))
        bits[i], rows[i] = flipped, i
        for byte in range(8):
            counts[byte, (flipped >> unsigned(8 * byte)) & unsigned(255)] += 1
    for byte in range(8):
        shift = unsigned(8 * byte)
        if n and counts[byte, (bits[0] >> shift) & unsigned(255)] == n:
            continue  # all alike
        total = 0
        for value in range(256):
            total += counts[byte, value]
            counts[byte, value] = total - counts[byte, value]
        for i in range(n):
            value = (bits[i] >> shift) & unsigned(255)
            at = counts[byte, value]
            other_bits[at], other_rows[at] = bits[i], rows[i]
            counts[byte, value] += 1
        bits, other_bits = other_bits, bits
        rows, other_rows = other_rows, rows
    return rows


@compiled
def normal_scores(n: int) -> Floats:
    """Return the normal quantiles at (rank - 1/2)/n (rankit)."""
    scores = np.empty(n)
    for i in range(n):
        scores[i] = _normal_quantile((i + 0.5) / n)
    return scores


@compiled
def _normal_quantile(share: float) -> float:
    """Abramowitz and Stegun 26.2.23, four digits, and two of Halley's steps, which leave full precision."""
    tail: float = min(share, 1.0 - share)
    t = np.sqrt(-2.0 * np.log(tail))
    top = 2.515517 + t * (0.802853 + t * 0.010328)
    z: float = t - top / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    for _ in range(2):
        off = (0.5 * math.erfc(z / math.sqrt(2.0)) - tail) * math.sqrt(2.0 * math.pi) * np.exp(0.5 * z * z)
        z += off / (1.0 - 0.5 * z * off)
    return z if share > 0.5 else -z


@compiled
def to_unit_length(values: Floats) -> tuple[float, float]:
    """Centre and scale in place; return the mean and the length that there was."""
    mean = _centre(values)
    mean += _centre(values)  # what the first mean rounded off, which a large offset magnifies
    squares = 0.0
    for value in values:
        squares += value * value
    length = np.sqrt(squares)
    for i in range(values.size):
        values[i] /= length
    return mean, length


@compiled
def _centre(values: Floats) -> float:
    middle = 0.0
    for value in values:
        middle += value / values.size
    for i in range(values.size):
        values[i] -= middle
    return middle
