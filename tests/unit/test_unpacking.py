"""What an index from somebody else may unpack to in memory is known before it is unpacked."""

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from covary import parquetpages, segmentfiles
from covary.errors import DamagedIndex
from covary.parquetpages import NotPages, unpacked_size
from covary.segmentfiles import open_description, open_segment, write_segment
from tests.unit import lying_index

NAMES = pa.table({"name": [f"column {n}" for n in range(5_000)]})


def write(path, table, **how):
    pq.write_table(table, path, **how)
    return memoryview(path.read_bytes())


@pytest.fixture
def segment(tmp_path):
    stored = write_segment(lying_index.honest_segment(), tmp_path)
    [folder] = tmp_path.glob(f"**/{stored.name}")
    return folder


@pytest.mark.parametrize(
    "how",
    [
        {"compression": "zstd"},
        {"compression": "none", "use_dictionary": False},
        {"compression": "gzip", "data_page_version": "2.0"},
        {"compression": "snappy", "row_group_size": 999, "data_page_size": 500},
    ],
)
def test_the_size_in_memory_is_that_of_the_cells(tmp_path, how):
    size = unpacked_size(write(tmp_path / "names.parquet", NAMES, **how))
    assert NAMES.nbytes / 3 < size < 3 * NAMES.nbytes + 16 * len(NAMES)


def test_zeros_that_are_packed_small_count_whole(tmp_path):
    zeros = pa.table({"rows": np.zeros(1_000_000, dtype=np.int64)})
    content = write(tmp_path / "zeros.parquet", zeros, compression="zstd", use_dictionary=False)
    assert len(content) < 20_000
    assert unpacked_size(content) >= zeros.nbytes


def test_texts_that_repeat_what_was_before_are_refused(tmp_path):
    packed = {"use_dictionary": False, "column_encoding": {"name": "DELTA_BYTE_ARRAY"}}
    with pytest.raises(NotPages, match="packed as no index packs them"):
        unpacked_size(write(tmp_path / "names.parquet", NAMES, **packed))


def test_no_damage_to_a_file_is_more_than_a_refusal(tmp_path):
    content = bytes(write(tmp_path / "names.parquet", NAMES, compression="zstd"))
    rng, refused = np.random.default_rng(1), 0
    for _ in range(500):
        altered = bytearray(content)
        # Its end says where its pages are: most of the damage is done there.
        for place in rng.integers(len(content) - 400, len(content), 3).tolist():
            altered[place] ^= 1 << int(rng.integers(8))
        try:
            unpacked_size(memoryview(bytes(altered)))
        except NotPages:
            refused += 1
    assert refused > 100


def test_columns_that_share_their_pages_are_refused(tmp_path, monkeypatch):
    content = write(tmp_path / "names.parquet", NAMES)
    columns = list(parquetpages._columns(content))
    monkeypatch.setattr(parquetpages, "_columns", lambda _: iter(columns * 1000))
    with pytest.raises(NotPages, match="in one another"):
        unpacked_size(content)


def test_a_description_that_unpacks_far_is_refused_by_name(segment, monkeypatch):
    pl.DataFrame({"name": ["x"] * 500_000}).write_parquet(segment / "names.parquet", compression="zstd")
    monkeypatch.setattr(segmentfiles, "UNPACKED_AT_MOST", 1 << 20)
    with pytest.raises(DamagedIndex, match=r"names\.parquet is damaged: its [\d,]+ bytes would take"):
        open_description(segment).read_frame("names", None)


def test_a_text_that_stands_for_a_million_cells_is_refused(segment):
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), pa.array(["x" * 200_000]))
    table = pa.table({"name": text})
    pq.write_table(table, segment / "names.parquet", compression="zstd", store_schema=False)
    with pytest.raises(DamagedIndex, match="would take 4,"):
        open_description(segment).read_frame("names", None)


def test_arrays_that_are_packed_are_refused_unopened(segment):
    file = str(segment / "values.arrow")
    table = pa.ipc.open_file(file).read_all()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(file, "wb") as sink, pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    with pytest.raises(DamagedIndex, match=r"values\.arrow is damaged: it is compressed"):
        open_segment(segment)
