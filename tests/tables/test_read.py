import bz2
import csv
import gzip
import io
import json
import zipfile

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covary.errors import NoSuchColumn, UnreadableTable
from covary.tables import read as tables
from covary.tables.discover import find_table, find_tables
from covary.tables.formats import csv_records, text_bytes
from covary.tables.formats.csv_dialect import Dialect
from covary.tables.read import Chunk, plan_chunks, read_chunk, read_layout, sample_rows
from covary.tables.reader import WHOLE, Layout

FRAME = pl.DataFrame({"zip": ["07030", "10001", None], "x": ["1", "2.50", "3"]})
TEXT = b"zip,x\n07030,1\n10001,2.50\n,3\n"


def write(path, data):
    path.write_bytes(data)
    return find_table(path)


def read_whole(source):
    layout = read_layout(source)
    empty = pl.DataFrame(schema=dict.fromkeys(layout.columns, pl.String))
    return pl.concat([*read_chunk(Chunk(source, 0, *WHOLE), layout)] or [empty])


def read_in_chunks(source, chunk_bytes, columns=None):
    layout = read_layout(source)
    chunks = plan_chunks(source, layout, chunk_bytes)
    return pl.concat([frame for chunk in chunks for frame in read_chunk(chunk, layout, columns)]), chunks


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2"])
def test_reads_csv_as_text_whatever_its_compression(tmp_path, suffix):
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[suffix]
    assert read_whole(write(tmp_path / f"t.csv{suffix}", pack(TEXT))).equals(FRAME)


def test_reads_zstd(tmp_path):
    with pa.CompressedOutputStream(str(tmp_path / "t.csv.zst"), "zstd") as stream:
        stream.write(TEXT)
    assert read_whole(find_table(tmp_path / "t.csv.zst")).equals(FRAME)


def test_reads_each_table_of_a_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("a.csv", TEXT)
        archive.writestr("b.jsonl", b'{"x": 1}\n')
    listed, *_ = find_tables([tmp_path])
    assert read_whole(listed[0]).equals(FRAME)
    assert read_whole(listed[1]).rows() == [("1",)]


def test_a_zip_is_listed_once_for_all_of_its_members(tmp_path):
    def pack(number):
        with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
            for name in ("a.csv", "b.csv", "c.csv"):
                archive.writestr(name, f"zip,x\n{name},{number}\n")
        return find_tables([tmp_path])[0]

    text_bytes._open_archive.cache_clear()
    assert [read_whole(member).rows() for member in pack(1)] == [
        [("a.csv", "1")],
        [("b.csv", "1")],
        [("c.csv", "1")],
    ]
    assert text_bytes._open_archive.cache_info().misses == 1
    assert read_whole(pack(22)[2]).rows() == [("c.csv", "22")]  # the file has changed: it is opened anew
    assert text_bytes._open_archive.cache_info().misses == 2


def test_members_of_a_zip_that_cannot_be_read_are_tables_with_a_problem(tmp_path):
    file = tmp_path / "some.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("locked.csv", TEXT)
        archive.writestr("empty.csv", b"")
        archive.writestr("good.csv", TEXT)
    content = bytearray(file.read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[directory + 8] |= 1  # the bit that says encrypted, in the directory and at the member itself
    content[6] |= 1
    file.write_bytes(content)
    members, *_ = find_tables([file])
    assert [table.member for table in members] == ["empty.csv", "good.csv", "locked.csv"]
    empty, good, locked = members
    assert read_layout(good).columns == ("zip", "x")
    for table, reason in ((empty, "empty"), (locked, "encrypted")):
        with pytest.raises(UnreadableTable, match=reason):
            read_layout(table)


def test_a_parquet_column_without_a_name_does_not_cost_the_others(tmp_path):
    pq.write_table(pa.table({"": ["a", "b"], "k": ["c", "d"], "v": [1.5, 2.5]}), tmp_path / "t.parquet")
    assert read_whole(find_table(tmp_path / "t.parquet")).columns == ["k", "v"]


def test_json_lines_may_hold_what_json_does_not_have(tmp_path):
    lines = b'{"k": "a", "v": 1.5}\n{"k": "b", "v": NaN}\n{"k": "c", "v": -Infinity}\n'
    (tmp_path / "t.jsonl").write_bytes(lines)
    assert read_whole(find_table(tmp_path / "t.jsonl"))["v"].to_list() == ["1.5", "NaN", "-Infinity"]


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 39, "9" * 400, "9" * 5000])
def test_a_number_beyond_all_bounds_costs_only_itself(tmp_path, number):
    lines = [f'{{"k": "k{n}", "v": {n}.5, "deep": [{number}]}}' for n in range(100)]
    lines.append(f'{{"k": "huge", "v": {number}}}')
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    rows = read_whole(find_table(tmp_path / "t.jsonl"))
    assert rows["k"].to_list() == [*(f"k{n}" for n in range(100)), "huge"]
    assert rows["v"].to_list() == [*(f"{n}.5" for n in range(100)), number]


def test_utf_32_is_named_not_guessed(tmp_path):
    (tmp_path / "t.csv").write_bytes("k,v\na,1\n".encode("utf-32"))
    with pytest.raises(UnreadableTable, match="UTF-32"):
        read_layout(find_table(tmp_path / "t.csv"))


@pytest.mark.parametrize("name", ["t.arrow", "t.parquet"])
def test_text_that_is_no_text_is_refused_before_it_can_crash(tmp_path, name):
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0\4\0\0\0"), pa.py_buffer(b"\xff\xfeab")]
    )
    table = pa.table({"k": broken, "v": [1.0, 2.0]})
    if name == "t.arrow":
        pa.feather.write_feather(table, tmp_path / name, compression="uncompressed")
    else:
        pq.write_table(table, tmp_path / name)
    with pytest.raises(UnreadableTable, match=r"(?i)utf"):
        read_whole(find_table(tmp_path / name))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow"])
def test_a_file_that_changes_while_it_is_read_is_told(tmp_path, name):
    file = tmp_path / name
    rows = pl.DataFrame({"k": [f"k{n}" for n in range(5000)], "v": [float(n) for n in range(5000)]})
    write = {"t.csv": rows.write_csv, "t.parquet": rows.write_parquet, "t.arrow": rows.write_ipc}[name]
    write(file)
    source = find_table(file)
    batches = read_chunk(Chunk(source, 0, *WHOLE), read_layout(source))
    next(batches)
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size // 2)
    with pytest.raises(UnreadableTable, match="changed while it was read"):
        list(batches)


def test_gzip_of_several_members_is_read_to_its_end(tmp_path):
    source = write(tmp_path / "t.csv.gz", gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"))
    assert read_whole(source).rows() == [("1", "2"), ("3", "4")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_reads_text_in_any_encoding(tmp_path, encoding):
    source = write(tmp_path / "t.csv", "straße,größe\nä,1\nß,2\n".encode(encoding))
    frame, _ = read_in_chunks(source, 10)
    assert frame.columns == ["straße", "größe"]
    assert frame.rows() == [("ä", "1"), ("ß", "2")]


def test_a_stray_byte_after_the_sample_is_read_as_western_text(tmp_path):
    rows = b"\xc3\xa9t\xc3\xa9,1\n" * 20_000
    source = write(tmp_path / "t.csv", b"name,x\n" + rows + b"caf\xe9,2\n" + rows)
    frame = read_whole(source)
    assert frame.height == 40_001
    assert frame["name"][20_000] == "café"


def test_ragged_and_blank_lines_are_tolerated(tmp_path):
    source = write(tmp_path / "t.csv", b"a,b,c\n1,2,3\n4,5\n6,7,8,9\n\n1,2,3\n1,2,3\n")
    assert read_whole(source).rows() == [
        ("1", "2", "3"),
        ("4", "5", None),
        ("6", "7", "8"),
        (None, None, None),
        ("1", "2", "3"),
        ("1", "2", "3"),
    ]


def test_short_lines_below_a_very_wide_header_are_refused_not_filled_up(tmp_path):
    header = ",".join(f"c{number}" for number in range(20_000)).encode()
    rows = (b",".join([b"1"] * 20_000) + b"\n") * 5
    source = write(tmp_path / "t.csv", header + b"\n" + rows + b"1\n" * 100_000)
    with pytest.raises(UnreadableTable, match="20,000 columns, but most of its 100,005 lines have few cells"):
        read_whole(source)


def test_an_empty_cell_is_null_quoted_or_not(tmp_path):
    source = write(tmp_path / "t.csv", b'a,b\n"",1\n,2\n"x",3\n')
    assert read_whole(source)["a"].to_list() == [None, None, "x"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b'part,x\npipe 5" wide,1\n"a,b",3\n"c",5\n', [('pipe 5" wide', "1"), ("a,b", "3"), ("c", "5")]),
        (b'a,b\n"x"y,1\n"z",2\n"w",3\n', [("xy", "1"), ("z", "2"), ("w", "3")]),
        (b"a,b\nx\0y,1\nz,2\n", [("x\0y", "1"), ("z", "2")]),
        (b"a,b\r1,2\r3,4\r", [("1", "2"), ("3", "4")]),
        (b"a;b\n'x;1';2\n'y';3\n", [("x;1", "2"), ("y", "3")]),
        (b"day,x\n", []),
        (b"name\nAnn\nBob", [("Ann",), ("Bob",)]),
    ],
)  # fmt: skip
def test_reads_what_is_untidy(tmp_path, text, rows):
    assert read_whole(write(tmp_path / "t.csv", text)).rows() == rows


def test_only_the_wanted_columns_come_in_the_wanted_order(tmp_path):
    source = write(tmp_path / "t.csv", b"a,b,^c.*$\n1,2,3\n4,5,6\n")
    frame, _ = read_in_chunks(source, 1 << 20, ["^c.*$", "a"])
    assert frame.rows(named=True) == [{"^c.*$": "3", "a": "1"}, {"^c.*$": "6", "a": "4"}]


def test_an_unknown_column_is_named_with_the_nearest(tmp_path):
    source = write(tmp_path / "t.csv", TEXT)
    layout = read_layout(source)
    with pytest.raises(NoSuchColumn, match="did you mean zip"):
        list(read_chunk(plan_chunks(source, layout)[0], layout, ["zipp"]))


def test_commas_in_the_text_of_a_single_column_do_not_cut_it(tmp_path):
    source = write(tmp_path / "t.csv", b"title\nHello, world\nBye\nOne, two, three\n")
    assert read_whole(source)["title"].to_list() == ["Hello, world", "Bye", "One, two, three"]


def test_columns_of_types_that_serve_as_nothing_are_left_out(tmp_path):
    odd = pa.table([[1], [2], [b"x"], [[1]], ["a"]], names=["twice", "twice", "bytes", "list", "key"])
    pq.write_table(odd, tmp_path / "t.parquet")
    assert read_whole(find_table(tmp_path / "t.parquet")).columns == ["key"]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("t.csv.gz", gzip.compress(TEXT * 1000)[:-20], "end-of-stream"),
        ("t.parquet", b"PAR1 and then nothing of the kind PAR1", "arquet"),
        ("t.arrow", b"ARROW1 and then nothing", ""),
        ("t.jsonl", b"no json\nat all\n", "JSON"),
        ("t.csv", b"\n\n\n", "no columns"),
        ("t.jsonl", '{"a": 1}\n'.encode("utf-16"), "UTF-16"),
    ],
)
def test_a_broken_file_is_unreadable_for_a_short_reason(tmp_path, name, data, reason):
    with pytest.raises(UnreadableTable) as caught:
        read_whole(write(tmp_path / name, data))
    assert reason in caught.value.reason
    assert "\n" not in caught.value.reason
    assert len(caught.value.reason) <= 120


def test_a_file_that_went_away_is_unreadable(tmp_path):
    source = write(tmp_path / "t.csv", TEXT)
    (tmp_path / "t.csv").unlink()
    with pytest.raises(UnreadableTable, match="No such file"):
        read_layout(source)


JSON_ROWS = [
    {"k": f"é{i}", "x": i / 2, "n": i, "deep": {"a": i}, "odd": i if i % 2 else "text"} for i in range(100)
]


@pytest.mark.parametrize("chunk_bytes", [10, 100, 1000, 1 << 20])
def test_json_lines_read_the_same_in_any_chunks(tmp_path, chunk_bytes):
    text = "".join(json.dumps(row) + "\n" for row in JSON_ROWS)
    frame, _ = read_in_chunks(write(tmp_path / "t.jsonl", text.encode()), chunk_bytes)
    assert frame.columns == ["k", "x", "n", "odd"]
    assert frame["odd"].to_list()[:4] == ["text", "1", "text", "3"]
    assert frame["k"].to_list() == [row["k"] for row in JSON_ROWS]


def test_an_odd_json_cell_costs_no_column(tmp_path):
    lines = [{"a": f"p{row}", "x": row if row else [row], "l": [row] if row else 1} for row in range(50)]
    source = write(tmp_path / "t.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())
    rows = read_whole(source)
    assert rows.columns == ["a", "x"]
    assert rows["x"].to_list()[1:] == [str(row) for row in range(1, 50)]


@pytest.mark.parametrize("name", ["", "\\ud800", "x\\udfff"])
def test_an_odd_json_name_costs_no_table(tmp_path, name):
    source = write(tmp_path / "t.jsonl", f'{{"a": "p", "{name}": 1, "x": 2}}\n'.encode() * 9)
    assert read_whole(source).to_dict(as_series=False) == {"a": ["p"] * 9, "x": ["2"] * 9}


def test_a_bad_json_line_costs_only_itself(tmp_path):
    source = write(tmp_path / "t.jsonl", b'{"a": 1, "b": "x"}\nnot json\n\n{"a": 2}\n{"a": 3, "b')
    assert read_whole(source).rows() == [("1", "x"), ("2", None)]


def arrow_table(rows=1000):
    return pa.table(
        {
            "key": pa.array([f"k{i}" for i in range(rows)]).dictionary_encode(),
            "x": pa.array(range(rows), pa.int32()),
            "nested": pa.array([[i] for i in range(rows)]),
            "day": pa.array([0] * rows, pa.date32()),
        }
    )


@pytest.mark.parametrize("chunk_bytes", [1, 2000, 1 << 30])
def test_parquet_is_read_by_row_groups(tmp_path, chunk_bytes):
    pq.write_table(arrow_table(), tmp_path / "t.parquet", row_group_size=100)
    frame, chunks = read_in_chunks(find_table(tmp_path / "t.parquet"), chunk_bytes)
    assert frame.columns == ["key", "x", "day"]
    assert frame["x"].to_list() == list(range(1000))
    assert len(chunks) == {1: 10, 1 << 30: 1}.get(chunk_bytes, len(chunks))


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 30])
@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_feather_is_read_by_record_batches(tmp_path, chunk_bytes, compression):
    path = str(tmp_path / "t.feather")
    pyarrow.feather.write_feather(arrow_table(), path, compression=compression, chunksize=100)
    frame, chunks = read_in_chunks(find_table(path), chunk_bytes, ["x", "key"])
    assert frame.columns == ["x", "key"]
    assert frame["x"].to_list() == list(range(1000))
    assert len(chunks) == (10 if chunk_bytes == 1 else 1)


def test_an_arrow_stream_is_one_chunk(tmp_path):
    path = tmp_path / "t.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, arrow_table().schema) as writer:
        writer.write_table(arrow_table(), max_chunksize=100)
    frame, chunks = read_in_chunks(find_table(path), 1)
    assert len(chunks) == 1
    assert frame["x"].to_list() == list(range(1000))


def test_a_large_frame_comes_in_bounded_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 10)
    source = write(tmp_path / "t.csv", b"a,b\n" + b"1,2\n" * 25)
    layout = read_layout(source)
    assert [frame.height for frame in read_chunk(plan_chunks(source, layout)[0], layout)] == [10, 10, 5]


def test_a_sample_of_many_chunks_has_rows_from_start_middle_and_end(tmp_path):
    source = write(tmp_path / "t.csv", b"a,b\n" + b"".join(b"%d,x\n" % i for i in range(10_000)))
    layout = read_layout(source)
    chunks = plan_chunks(source, layout, 1000)
    numbers = sample_rows(source, layout, chunks)["a"].cast(pl.Int64)
    assert len(chunks) > 3
    assert (numbers < 1000).any()
    assert numbers.is_between(4000, 6000).any()
    assert (numbers > 9000).any()


def test_a_header_longer_than_a_chunk_leaves_one_chunk_without_rows(tmp_path):
    source = write(tmp_path / "t.csv", b"day,a_long_name,another_long_name\n")
    layout = read_layout(source)
    chunks = plan_chunks(source, layout, 10)
    assert len(chunks) == 1
    assert sample_rows(source, layout, chunks).shape == (0, 3)


def test_a_wide_header_longer_than_the_sample_is_still_found(tmp_path):
    names = [f"a_rather_long_name_{i}" for i in range(10_000)]
    source = write(tmp_path / "t.csv", (",".join(names) + "\n" + ",".join("1" * 10_000) + "\n").encode())
    assert read_layout(source).columns == tuple(names)
    assert read_whole(source).shape == (1, 10_000)


cells = st.text(alphabet='ab1,"\n\r;é', max_size=8)


@st.composite
def csv_files(draw):
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=60))
    buffer = io.StringIO(newline="")
    # Under "\n" Python leaves a bare "\r" unquoted, which nobody can tell from half a line end.
    end, quoting = draw(st.sampled_from([("\n", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_MINIMAL)]))
    writer = csv.writer(buffer, lineterminator=end, quoting=quoting)
    writer.writerow([f"name{i}" for i in range(width)])
    writer.writerows(rows)
    return rows, buffer.getvalue().encode()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(csv_files(), st.integers(1, 300))
def test_any_csv_split_anywhere_gives_the_same_rows(tmp_path, file, chunk_bytes):
    rows, text = file
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    names = tuple(f"name{i}" for i in range(len(rows[0])))
    dialect = Dialect(",", '"', "utf-8", "\n", True, names, text.index(b"\n") + 1)
    layout, source = Layout(dialect.columns, dialect), find_table(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "WINDOW_BYTES", 64)
        chunks = plan_chunks(source, layout, chunk_bytes)
        frames = [frame for chunk in chunks for frame in read_chunk(chunk, layout)]
    got = [row for frame in frames for row in frame.rows()]
    assert got == [tuple(cell or None for cell in row) for row in rows]
