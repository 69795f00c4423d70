import io
import json
import re
import resource
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from polars.testing import assert_frame_equal
from pyiceberg.catalog.sql import SqlCatalog

from covary.columns.profile import profile_columns
from covary.columns.reasons import Cause
from covary.errors import UnreadableTable
from covary.tables.discover import find_tables
from covary.tables.formats import arrow, csv_records, csv_rows, json_lines, sql_rows
from covary.tables.formats.arrow import measure_batches
from covary.tables.formats.csv_dialect import LINES
from covary.tables.read import Chunk, read_chunk, read_layout
from covary.tables.reader import WHOLE

SKETCHED_ALONE = """
import resource, sys
from pathlib import Path
from covary.pipeline.plan import PARTS, TaskSettings, group_name
from covary.index.table_records import read_records
from covary.index.segment_files import open_segment
from covary.sketching.sketch_types import SketchConfig
from covary.tables.discover import find_tables
from covary.pipeline.tasks import sketch_group

source, scratch = sys.argv[1:]
sketch_group(0, find_tables([source])[0], TaskSettings(SketchConfig(), (), (), scratch))
(record,) = read_records(open_segment(Path(scratch, PARTS, group_name(0))).tables)
roles = {column.name: column.role for column in record.columns}
megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print([record.rows, record.problem, roles, megabytes])
"""


def sketched_alone(source, scratch):
    """Sketch a table in a process of its own: rows, problem, roles of columns, and megabytes it took."""
    scratch.mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", SKETCHED_ALONE, str(source), str(scratch)],
        capture_output=True,
        text=True,
        timeout=100,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30)),
        check=True,
    )
    return eval(ran.stdout)


def rows_of(path, columns=None):
    (table,) = find_tables([path])[0]
    return pl.concat(list(read_chunk(Chunk(table, 0, *WHOLE), read_layout(table), columns)))


def long_texts(rows, words=10, length=3000):
    codes = pa.array((np.arange(rows) % words).astype("int32"))
    return pa.table(
        {
            "code": pa.DictionaryArray.from_arrays(codes, pa.array([f"a{n}" for n in range(words)])),
            "told": pa.DictionaryArray.from_arrays(codes, pa.array([f"x{n}" * length for n in range(words)])),
            "cost": np.arange(rows) // 500.0,
        }
    )


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_few_kilobytes_of_text_that_stand_for_gigabytes_stay_small(tmp_path, suffix):
    table, path = long_texts(800_000), tmp_path / f"packed.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, path, compression="zstd", store_schema=False)
    else:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(path, table.schema, options=options) as file:
            file.write_table(table)
    assert path.stat().st_size < 400_000
    rows, problem, roles, megabytes = sketched_alone(path, tmp_path / "scratch")
    assert (rows, problem) == (800_000, None)
    assert roles == {"code": "key", "told": "", "cost": "number"}
    assert megabytes < 1000


PLAIN = pa.schema([("code", pa.string()), ("told", pa.string()), ("cost", pa.float64())])


def delta_of(data, folder):
    """A Delta table of one data file."""
    write_deltalake(folder, pa.table({field.name: pa.nulls(1, field.type) for field in PLAIN}))
    (listed,) = DeltaTable(folder).file_uris()
    data.rename(listed.removeprefix("file://"))
    (log,) = (folder / "_delta_log").glob("*.json")
    log.write_text(
        re.sub(r'"(size|stats)":("(\\.|[^"\\])*"|\d+),?', "", log.read_text()).replace(
            '"add":{', f'"add":{{"size":{100_000},'
        )
    )
    return folder


def iceberg_of(data, folder):
    """An Iceberg table of one data file."""
    own = folder / "t" / "data" / data.name
    own.parent.mkdir(parents=True)
    shutil.copy(data, own)
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    catalog.create_table("n.t", schema=PLAIN, location=f"file://{folder}/t").add_files([str(own)])
    return folder / "t"


@pytest.mark.parametrize("lakehouse", [delta_of, iceberg_of])
def test_packed_text_in_a_lakehouse_stays_small(tmp_path, lakehouse):
    pq.write_table(
        long_texts(600_000),
        tmp_path / "data.parquet",
        compression="zstd",
        store_schema=False,
        write_statistics=False,
    )
    table = lakehouse(tmp_path / "data.parquet", tmp_path / "lake")
    rows, problem, roles, megabytes = sketched_alone(table, tmp_path / "scratch")
    assert (rows, problem) == (600_000, None)
    assert roles == {"code": "key", "told": "", "cost": "number"}
    assert megabytes < 1000


def test_text_stored_once_is_read_as_any_other(tmp_path):
    texts = pa.array([None if n % 7 == 0 else f"place {n % 5}" for n in range(20_000)])
    table = pa.table(
        {"place": texts, "a.b": texts, "n": np.arange(20_000), "plain": [str(n) for n in range(20_000)]}
    )
    for row_group_size in (20_000, 3000):
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=row_group_size)
        assert_frame_equal(rows_of(tmp_path / "t.parquet"), pl.from_arrow(table))
        some = ["n", "a.b"]
        assert_frame_equal(rows_of(tmp_path / "t.parquet", some), pl.from_arrow(table)[some])


def test_a_dictionary_of_any_kind_is_read(tmp_path):
    indices = pa.array([1, None, 0, 1], pa.uint8())
    table = pa.table(
        {
            "text": pa.DictionaryArray.from_arrays(indices, pa.array(["a", None], pa.large_string())),
            "number": pa.DictionaryArray.from_arrays(indices, pa.array([1.5, 2.5])),
            "none": pa.DictionaryArray.from_arrays(
                pa.array([None] * 4, pa.int32()), pa.array([], pa.string())
            ),
        }
    )
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
        file.write_table(table)
    assert rows_of(tmp_path / "t.arrow").rows() == [
        (None, 2.5, None),
        (None, None, None),
        ("a", 1.5, None),
        (None, 2.5, None),
    ]


@pytest.mark.parametrize("opener", [pa.ipc.new_file, pa.ipc.new_stream])
@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_what_a_record_batch_takes_is_known_before_it_is_unpacked(opener, compression):
    table = pa.table({"k": pa.array(["a", "b"] * 500).dictionary_encode(), "v": np.zeros(1000)})
    written = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with opener(written, table.schema, options=options) as file:
        file.write_table(table, max_chunksize=600)
    _, large, small = measure_batches(written)
    assert (large, small) == (pytest.approx(600 * 12, abs=100), pytest.approx(400 * 12, abs=100))


def test_a_record_batch_beyond_what_fits_is_refused_with_what_to_do(tmp_path, monkeypatch):
    table = pa.table({"k": ["a", "b"] * 50_000, "v": np.zeros(100_000)})
    with pa.ipc.new_file(
        tmp_path / "t.arrow", table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as file:
        file.write_table(table)
    assert rows_of(tmp_path / "t.arrow").height == 100_000
    monkeypatch.setattr(arrow, "LARGEST_BATCH", 1 << 20)
    with pytest.raises(
        UnreadableTable, match="a record batch of it takes 1 MB of memory; write it in smaller"
    ):
        rows_of(tmp_path / "t.arrow")


@pytest.mark.parametrize("length", [0, 5, 12, 60])
def test_sizes_of_a_damaged_arrow_file_are_left_to_its_reader(length):
    assert list(measure_batches(io.BytesIO(b"ARROW1\0\0" + b"\xff" * length))) == []


def test_batches_of_many_columns_have_few_rows(tmp_path):
    columns = {f"v{n}": np.zeros(40_000) for n in range(500)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    (table,) = find_tables([tmp_path / "t.parquet"])[0]
    heights = [frame.height for frame in read_chunk(Chunk(table, 0, *WHOLE), read_layout(table))]
    assert sum(heights) == 40_000
    assert max(heights) <= 2 * arrow.CELLS_AT_ONCE // 500


def test_short_lines_of_a_wide_table_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    for module in (csv_rows, json_lines):
        monkeypatch.setattr(module, "CELLS_AT_ONCE", 10_000)
    header = ",".join(f"c{n}" for n in range(1000))
    full = ",".join(map(str, range(1000)))
    lines = [*[full] * 40, *(f'"a\n{n}"' for n in range(50))]
    (tmp_path / "t.csv").write_text("\n".join([header, *lines, ""]))
    (table,) = find_tables([tmp_path / "t.csv"])[0]
    frames = list(read_chunk(Chunk(table, 0, *WHOLE), read_layout(table)))
    assert max(frame.height for frame in frames) <= 10
    assert pl.concat(frames)["c0"].to_list() == ["0"] * 40 + [f"a\n{n}" for n in range(50)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({f"f{n}": n}) + "\n" for n in range(200)))
    (table,) = find_tables([tmp_path / "t.jsonl"])[0]
    frames = list(read_chunk(Chunk(table, 0, *WHOLE), read_layout(table)))
    assert max(frame.height for frame in frames) <= 50
    assert pl.concat(frames)["f7"].drop_nulls().to_list() == ["7"]


@pytest.mark.parametrize("text", [b"", b"a\n", b"a\nb\nc\nd\ne\n", b"a\nb\nc\nd\ne", b"\n\n\n\n\n"])
def test_pieces_of_few_records_are_the_block(text):
    pieces = list(csv_records.split_records(text, LINES, 2))
    assert b"".join(pieces) == text
    assert all(piece.count(b"\n") <= 2 for piece in pieces)


def test_rows_of_a_driver_are_fetched_by_what_they_weigh():
    asked = []

    def fetch(most):
        asked.append(most)
        return [("x" * 10_000, 1)] * min(most, 2000 - sum(asked[:-1]))

    frames = list(sql_rows.fetch_text_frames(fetch, ["told", "n"], 1 << 20))
    assert sum(frame.height for frame in frames) == 2000
    assert max(asked) <= 105


def test_long_text_with_some_numbers_in_it_is_long_text():
    cells = [f"{n}" * 1000 for n in range(100, 110)] * 3 + ["1", "2,500", "3"]
    (profile,) = profile_columns(pl.DataFrame({"told": cells}))
    assert (profile.is_key, profile.reason.cause) == (False, Cause.LONG_TEXT)


def test_a_wide_table_is_profiled_as_its_columns_are_one_by_one(monkeypatch):
    rng = np.random.default_rng(5)
    rows = pl.DataFrame(
        {f"c{n}": [f"a{each}" if n % 3 else str(each) for each in rng.integers(0, 50, 40)] for n in range(30)}
    )
    together = profile_columns(rows)
    monkeypatch.setattr("covary.columns.profile.CELLS_AT_ONCE", 100)
    apart = profile_columns(rows)
    assert [replace(profile, values=None) for profile in apart] == [
        replace(profile, values=None) for profile in together
    ]
