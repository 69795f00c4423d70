"""What an index from somebody else may unpack to in memory is known before it is unpacked."""

import os
import resource

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pytest

from covary.errors import DamagedIndex, StoreError
from covary.index.check import check_index
from covary.index.plain_arrow import NotPlainArrow, pack_table, read_batch, unpack_table
from covary.index.segment_files import (
    Segment,
    frame_schema,
    open_description,
    open_segment,
    stored_segment,
    write_segment,
)
from covary.own_files import NotPlain
from covary.query.ask import open_index
from tests.index import lying_index

NAMES = pa.table({"name": pa.array([f"column {n}" for n in range(5_000)], pa.large_string())})
V4 = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
ZSTD = pa.ipc.IpcWriteOptions(compression="zstd")


def stream_of(table, *batches, **how):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, **how) as writer:
        for each in batches or table.to_batches():
            writer.write_batch(each)
    return sink.getvalue()


@pytest.fixture
def segment(tmp_path):
    stored = write_segment(lying_index.honest_segment(), tmp_path)
    [folder] = tmp_path.glob(f"**/{stored.name}")
    return folder


def test_a_table_is_unpacked_as_it_was_packed():
    assert unpack_table(pa.py_buffer(pack_table(NAMES)), NAMES.schema).equals(NAMES)
    none = NAMES.slice(0, 0)
    assert unpack_table(pa.py_buffer(pack_table(none)), NAMES.schema).equals(none)


def test_numbers_are_read_where_they_lie():
    numbers = pa.table({"x": np.arange(5_000.0)})
    content = stream_of(numbers)
    buffer = read_batch(content).column("x").buffers()[1]
    assert content.address <= buffer.address < content.address + content.size
    assert np.array_equal(np.frombuffer(buffer), np.arange(5_000.0))


def views_of_one_text(count):
    view = np.array([200_000, int.from_bytes(b"xxxx", "little"), 0, 0], np.int32)
    views = pa.py_buffer(np.tile(view, count))
    return pa.table(
        {"name": pa.Array.from_buffers(pa.string_view(), count, [None, views, pa.py_buffer(b"x" * 200_000)])}
    )


def dictionary(count):
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array(["x"]))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (stream_of(NAMES, options=ZSTD), "compressed"),
        (stream_of(NAMES, options=V4), "no batch of today's format"),
        (stream_of(views_of_one_text(9)), "columns are not those"),
        (stream_of(pa.table({"name": dictionary(9)}), options=ZSTD), "columns are not those"),
        (stream_of(pa.table({"name": pa.nulls(10**9)})), "columns are not those"),
        (stream_of(NAMES, *NAMES.to_batches() * 2), "more follows"),
        (pa.py_buffer(bytes(stream_of(NAMES)) + b"\0" * (1 << 17)), "more follows"),
        (stream_of(NAMES, NAMES.to_batches()[0]).slice(0, 9_000), None),
        (pa.py_buffer(b"random bytes"), None),
        (pa.py_buffer(b""), None),
    ],
)
def test_whatever_a_file_of_ours_never_is_is_refused(content, reason):
    with pytest.raises(NotPlainArrow, match=reason):
        read_batch(content, NAMES.schema)


@pytest.mark.parametrize(
    ("column", "how"),
    [
        (np.zeros(1_000), {"options": ZSTD}),
        (np.zeros(1_000), {"options": V4}),
        (dictionary(1_000), {}),
        (dictionary(1_000), {"options": ZSTD}),
        (pa.array(["text"]), {}),
    ],
)
def test_numbers_are_nothing_but_numbers(column, how):
    with pytest.raises(NotPlainArrow):
        read_batch(stream_of(pa.table({"x": column}), **how))


def test_no_bit_that_flips_is_more_than_a_refusal_or_another_text():
    content, rng, refused = bytes(stream_of(NAMES)), np.random.default_rng(1), 0
    for _ in range(1_000):
        altered = bytearray(content)
        altered[rng.integers(600)] ^= 1 << int(rng.integers(8))  # where its messages are described
        try:
            assert read_batch(pa.py_buffer(altered), NAMES.schema).nbytes < 2 * NAMES.nbytes
        except NotPlainArrow:
            refused += 1
    assert refused > 100


def test_what_would_unpack_far_is_refused(monkeypatch):
    monkeypatch.setattr("covary.index.plain_arrow.UNPACKED_AT_MOST", 1 << 20)
    packed = pa.py_buffer(pa.compress(bytes(30 << 20), codec="zstd", asbytes=True))
    assert packed.size < 10_000
    with pytest.raises(NotPlainArrow, match=r"its [\d,]+ bytes would take more than [\d,]+ in memory"):
        unpack_table(packed, NAMES.schema)


@pytest.mark.parametrize(("file", "column"), [("tables", "rows"), ("tables", "name"), ("notes", "damage")])
def test_a_cell_that_is_missing_where_covary_writes_one_is_damage(segment, file, column):
    frame = open_description(segment).read_frame(file)
    empty = frame.with_columns(pl.lit(None, frame.schema[column]).alias(column))
    table = empty.to_arrow(compat_level=pl.CompatLevel.oldest())
    (segment / f"{file}.arrow.zst").write_bytes(pack_table(table))
    with pytest.raises(DamagedIndex, match=f"{file}.arrow.zst is damaged: cells of {column} are missing"):
        open_description(segment).read_frame(file)


def test_a_note_that_is_missing_is_damage():
    schema = frame_schema("notes")
    row = {"columns": [None], "damage": [], "left_out": [], "remarks": []}
    table = pa.Table.from_pylist([row], schema=schema)
    with pytest.raises(NotPlainArrow, match="are missing"):
        unpack_table(pa.py_buffer(pack_table(table)), schema)


def test_arrays_that_are_packed_are_refused_unopened(segment):
    file = str(segment / "values.arrow")
    table = pa.ipc.open_file(file).read_all()
    with pa.OSFile(file, "wb") as sink, pa.ipc.new_file(sink, table.schema, options=ZSTD) as writer:
        writer.write_table(table)
    with pytest.raises(DamagedIndex, match=r"values\.arrow is damaged: it is compressed"):
        open_segment(segment)


@pytest.mark.parametrize("begins", [True, False])
def test_a_file_of_holes_is_refused_before_it_is_read(segment, begins):
    if os.statvfs(segment).f_blocks == 0:
        pytest.skip("this file system does not say what it holds")
    with open(segment / "values.arrow", "r+b" if begins else "wb") as file:
        file.truncate(10 << 40)
    with pytest.raises(DamagedIndex, match=r"values\.arrow is damaged: it is all holes"):
        open_segment(segment)
    with pytest.raises(NotPlain, match="it is all holes"):
        stored_segment(segment)


def test_too_many_open_files_are_no_damage(segment):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 4, limits[1]))
    try:
        with pytest.raises(StoreError, match="Too many open files; allow more open files") as caught:
            open_segment(segment)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not isinstance(caught.value, DamagedIndex)


def write_lying(folder, **altered):
    honest = lying_index.honest_segment()
    arrays = {name: honest.arrays[name] for name in honest.arrays} | altered
    lying_index.write_index(folder, Segment.in_memory(arrays, honest.tables, honest.names.to_frame("name")))


def test_key_sets_that_share_their_keys_are_refused(tmp_path):
    starts = lying_index.honest_segment().arrays["key_sets.member_start"]
    write_lying(tmp_path / "i", **{"key_sets.member_start": np.zeros_like(starts)})
    with pytest.raises(DamagedIndex, match="key_sets"):
        lying_index.ask(tmp_path / "i", "pearson")
    assert check_index(tmp_path / "i").damaged


def test_a_granularity_that_covary_does_not_know_is_refused(tmp_path):
    honest = lying_index.honest_segment()
    value = honest.arrays["sketches.value"]
    write_lying(tmp_path / "i", **{"sketches.granularity": value})
    assert check_index(tmp_path / "i").damaged
    with pytest.raises(DamagedIndex, match="covary can't have written"):
        open_index(tmp_path / "i").columns_at(np.arange(3))
