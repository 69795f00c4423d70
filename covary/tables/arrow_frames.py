"""Arrow batches to frames of bounded size, and which columns of an Arrow schema can serve."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import polars as pl
import pyarrow as pa

BLOCK_BYTES = 16 << 20  # of text, or about as much of anything else, that is worked on at once
BATCH_ROWS = 1 << 20
CELLS_AT_ONCE = (
    1 << 23
)  # of a batch: a column that was compressed to nothing takes as much, once unpacked, as any other
TEXT_TYPES = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view
PLAIN_TYPES = (
    *TEXT_TYPES, pa.types.is_boolean,
    pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal128,
    pa.types.is_date, pa.types.is_timestamp, pa.types.is_time,
)  # fmt: skip


def from_arrow(batch: pa.RecordBatch, columns: list[str]) -> pl.DataFrame:
    """Take a batch as a frame of some of its columns."""
    batch.validate(full=True)  # a damaged file would make the process crash later, not fail
    return pl.DataFrame([_series(name, batch.column(name)) for name in columns])


def _series(name: str, cells: pa.Array) -> pl.Series:
    """Take a column as it is; equal cells of a dictionary share their text in memory."""
    if not pa.types.is_dictionary(cells.type):
        return pl.Series(name, cells)
    return pl.Series(name, cells.dictionary).gather(pl.Series(cells.indices))


def gather_frames(frames: Iterable[pl.DataFrame], size: int) -> Iterator[pl.DataFrame]:
    """Put small frames together until they have `size` bytes, and cut large ones; a text counts each time."""
    waiting: list[pl.DataFrame] = []
    weight = height = 0.0
    for frame in chain.from_iterable(_cut(frame, size) for frame in frames):
        waiting.append(frame)
        weight += frame.estimated_size()
        height += frame.height
        if weight >= size or height * frame.width >= CELLS_AT_ONCE:
            yield pl.concat(waiting)
            waiting, weight, height = [], 0.0, 0.0
    if waiting:
        yield pl.concat(waiting)


def _cut(frame: pl.DataFrame, size: int) -> Iterable[pl.DataFrame]:
    weight = frame.estimated_size()
    if weight < 2 * size:
        return (frame,)
    return frame.iter_slices(max(1, int(frame.height * size / weight)))


def find_plain_columns(schema: pa.Schema) -> tuple[str, ...]:
    """The columns that can be a key or a number: not lists, bytes, intervals; each with a name of its own."""
    return tuple(
        f.name
        for f in schema
        if f.name and _is_plain(f.type) and len(schema.get_all_field_indices(f.name)) == 1
    )


def _is_plain(dtype: pa.DataType) -> bool:
    if pa.types.is_dictionary(dtype):
        return _is_plain(dtype.value_type)
    return any(is_kind(dtype) for is_kind in PLAIN_TYPES)


def group_ranges(sizes: Sequence[int], chunk_bytes: int) -> list[tuple[int, int]]:
    """Put neighbouring parts together until they have `chunk_bytes`."""
    ranges, start, weight = [], 0, 0
    for number, size in enumerate(sizes, start=1):
        weight += size
        if weight >= chunk_bytes or number == len(sizes):
            ranges.append((start, number))
            start, weight = number, 0
    return ranges


def is_text(dtype: pa.DataType) -> bool:
    """Whether a column holds text."""
    return any(is_kind(dtype) for is_kind in TEXT_TYPES)
