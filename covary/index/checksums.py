"""What tells whether arrays on disk are as they were written: a checksum for every 4 KiB of each.

A query touches a small part of a large index. Only that part is held against its checksums, when it is first
touched, so that nothing is answered from what a disk or a cable has altered.
"""

from typing import NamedTuple

import numpy as np

from covary.arrays import Array, Bytes, Integers, Words

PIECE_BYTES = 4096
PIECE_WORDS = PIECE_BYTES // 8
# Odd, so that no change of a single word is lost in the product; each word has its own, so that words which
# change places are noticed.
FACTORS: Words = np.arange(PIECE_WORDS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
HALF = np.uint64(32)
PIECES_AT_ONCE = 64  # what a core keeps near while it adds up


class CheckedArray(NamedTuple):
    """An array, and what tells which of its pieces are known to be as they were written."""

    array: Array  # as it lies on disk or in memory
    content: Bytes  # the same as bytes
    sums: Words  # the checksum of each piece
    seen: Bytes  # for each piece 1 once it was held against its checksum; all 1 in memory


def piece_count(length: int) -> int:
    """Return how many pieces so many bytes are."""
    return -(-length // PIECE_BYTES)


def checksums_of(array: Array) -> Words:
    """Return the checksum of each piece of an array."""
    content = content_of(array)
    whole = content.size // PIECE_BYTES
    sums = np.empty(piece_count(content.size), dtype=np.uint64)
    words = content[: whole * PIECE_BYTES].view(np.uint64).reshape(whole, PIECE_WORDS)
    for first in range(0, whole, PIECES_AT_ONCE):
        batch = words[first : first + PIECES_AT_ONCE]
        sums[first : first + len(batch)] = _sums(batch, PIECE_BYTES)
    rest = content[whole * PIECE_BYTES :]
    if rest.size:
        last = np.zeros(PIECE_BYTES, dtype=np.uint8)
        last[: rest.size] = rest
        sums[whole] = _sums(last.view(np.uint64).reshape(1, PIECE_WORDS), rest.size)[0]
    return sums


def _sums(words: Words, length: int) -> Words:
    # The upper half is folded into the lower: multiplied alone, two changes of uppermost bits would cancel.
    sums: Words = ((words ^ (words >> HALF)) * FACTORS).sum(axis=1, dtype=np.uint64)
    return sums + np.uint64(length)


def content_of(array: Array) -> Bytes:
    """Return the bytes of an array."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def in_memory(array: Array) -> CheckedArray:
    """Take an array that was not read from anywhere."""
    seen = np.ones(piece_count(array.nbytes), dtype=np.uint8)
    return _read_only(array, np.empty(0, dtype=np.uint64), seen)


def on_disk(array: Array, sums: Words) -> CheckedArray:
    """Take an array of a file, none of which was looked at so far."""
    return _read_only(array, sums, np.zeros(sums.size, dtype=np.uint8))


def _read_only(array: Array, sums: Words, seen: Bytes) -> CheckedArray:
    # One kind of array, wherever it is from, so that compiled loops are compiled once.
    own = np.ascontiguousarray(array).view()
    own.setflags(write=False)
    sums = sums.view()
    sums.setflags(write=False)
    return CheckedArray(own, content_of(own), sums, seen)


def is_sound_at(checked: CheckedArray, pieces: Integers) -> bool:
    """Whether some pieces of an array are as they were written."""
    seen = checked.seen[pieces]
    if np.count_nonzero(seen) == seen.size:
        return True
    for piece in np.unique(pieces[seen == 0]).tolist():
        part = checked.content[piece * PIECE_BYTES : (piece + 1) * PIECE_BYTES]
        if checksums_of(part)[0] != checked.sums[piece]:
            return False
        checked.seen[piece] = 1
    return True
