import gzip
import io
import json
import time
import tracemalloc

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

from covary import build_index, open_index, sketch
from covary.cli import app as cli
from covary.cli.answer_view import hits_view
from covary.errors import DamagedTable, UnreadableTable
from covary.index.segment_files import open_segment
from covary.pipeline import plan as plans
from covary.pipeline.plan import PARTS, TaskSettings, group_name, plan, table_name
from covary.pipeline.tasks import merge_chunks, sketch_chunk, sketch_group
from covary.query.describe import describe_index
from covary.sketching.sketch_types import SketchConfig
from covary.tables.discover import find_table, find_tables
from covary.tables.faults import Faults
from covary.tables.read import Chunk, plan_chunks, read_chunk, read_layout
from covary.tables.reader import WHOLE

HEADER = "day,x,n,town\n"
ROWS = [f"2013-{1 + i // 28:02}-{1 + i % 28:02},{i % 17}.{i % 7},{i % 90},town{i % 7}" for i in range(300)]


def read(path, text, chunk_bytes=1 << 30):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    source = find_table(path)
    layout, faults = read_layout(source), Faults()
    chunks = plan_chunks(source, layout, chunk_bytes)
    frames = [frame for chunk in chunks for frame in read_chunk(chunk, layout, faults=faults)]
    return pl.concat(frames), faults.sentences()


def shown_text(view):
    console = Console(file=io.StringIO(), width=200)
    console.print(view)
    return console.file.getvalue()


def text_of(rows, header=HEADER):
    return header + "\n".join(rows) + "\n"


def changed(changes):
    rows = list(ROWS)
    for number, change in changes.items():
        rows[number] = change(rows[number])
    return text_of(rows)


def before_day(row):
    return '"' + row


def before_x(row):
    return row.replace(",", ',"', 1)


def after_x(row):
    day, x, rest = row.split(",", 2)
    return f'{day},{x}",{rest}'


@pytest.mark.parametrize(
    "changes",
    [
        {150: before_day},
        {150: before_x},
        {0: before_x},
        {299: before_day},
        {150: before_day, 230: before_day},
        {150: before_x, 230: after_x},
        {150: before_x, 151: after_x},
        {150: lambda row: row + '"', 20: before_day},
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1 << 30, 3000, 500])
def test_a_stray_quote_costs_no_row_but_is_told(tmp_path, changes, chunk_bytes):
    clean, _ = read(tmp_path / "clean.csv", text_of(ROWS))
    frame, sentences = read(tmp_path / "t.csv", changed(changes), chunk_bytes)
    assert frame.height == 300
    others = [number for number in range(300) if number not in changes]
    assert frame[others].equals(clean[others])
    opened = frame[sorted(changes)].select(pl.all().str.strip_chars('"'))
    assert opened.equals(clean[sorted(changes)])
    (sentence,) = sentences
    assert "stray quote" in sentence
    assert "of 300 rows" in sentence


@pytest.mark.parametrize("header", ['"day,x,n,town\n', 'day,"x,n,town\n', 'day,x,n,"town\n'])
def test_a_stray_quote_in_the_header_does_not_swallow_the_rows(tmp_path, header):
    frame, _ = read(tmp_path / "t.csv", text_of(ROWS, header))
    assert frame.columns == ["day", "x", "n", "town"]
    assert frame.height == 300


def test_a_quote_left_open_among_quoted_cells_merges_two_rows_at_most(tmp_path):
    rows = [",".join(f'"{cell}"' for cell in row.split(",")) for row in ROWS]
    rows[150] = rows[150][:-1]
    frame, sentences = read(tmp_path / "t.csv", text_of(rows))
    assert frame.height == 300
    assert frame.row(150) == tuple(ROWS[150].split(","))
    assert "1 of 300 rows opens a stray quote" in sentences[0]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("id,x,note\n", '{i},{i}.5,"a note, of\nseveral lines, with 1,2\n and ""quotes"", 3\n"'),
        ("id,payload,x\n", '{i},"1,2,3\n4,5,6\n7,8,9",{i}'),
        ("payload,id,x\n", '"1,2,3\n4,5,6\n7,8,9",{i},{i}'),
        ("id,payload,x\n", '{i},"{{""a"": 1,\n""b"": [1, 2],\n""c"": 3}}",{i}'),
        ("id,address,x\n", '{i},"12 High Street\nFlat 3\nLondon, UK",{i}'),
        ("address,id,x\n", '"12 High Street, 5\n7, 8 Low Street\n\nLondon",{i},{i}'),
        ("id,note\n", '{i},"Dear John,\nhow are you, now\nYours, Bob"'),
        ("id,note,more,x\n", '{i},"one\ntwo","three\nfour",{i}'),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1 << 30, 600])
def test_cells_of_several_lines_are_read_as_written(tmp_path, header, row, chunk_bytes):
    rows = [row.format(i=i) for i in range(200)]
    frame, sentences = read(tmp_path / "t.csv", text_of(rows, header), chunk_bytes)
    assert not sentences
    assert frame.height == 200
    assert frame["x" if "x" in frame.columns else "id"].null_count() == 0
    assert any("\n" in cell for cell in frame.row(77))


@pytest.mark.parametrize(
    "text",
    [
        text_of(ROWS) + "Total rows: 300\n",
        text_of(ROWS) + "\nTotal,300\n\n",
        text_of([row + "," for row in ROWS]),
        text_of([row + ",,," for row in ROWS]),
        text_of(ROWS, "day,x,n,town,\n"),
        "\n\n".join([HEADER.strip(), *ROWS]),
        "Report of 2013\nmade by hand\n\n" + text_of(ROWS),
        text_of([row + '"' for row in ROWS]),
        text_of([*ROWS[:150], ",,,", *ROWS[150:]]),
    ],
)
def test_what_is_merely_untidy_is_no_damage(tmp_path, text):
    frame, sentences = read(tmp_path / "t.csv", text)
    assert not sentences
    assert frame.columns[:4] == ["day", "x", "n", "town"]
    assert frame.filter(pl.col("x").is_not_null() & pl.col("n").is_not_null()).height == 300


def test_delimiters_at_the_end_of_every_row_do_not_shift_the_names(tmp_path):
    frame, _ = read(tmp_path / "t.csv", text_of([row + "," for row in ROWS]))
    assert frame.row(0, named=True)["day"] == "2013-01-01"


@pytest.mark.parametrize("chunk_bytes", [1 << 30, 2000])
def test_rows_of_another_length_are_counted(tmp_path, chunk_bytes):
    rows = [
        row.rpartition(",")[0] if i % 25 == 0 else row + ",more" if i % 100 == 1 else row
        for i, row in enumerate(ROWS)
    ]
    _, sentences = read(tmp_path / "t.csv", text_of(rows), chunk_bytes)
    assert sentences == [
        "12 of 300 rows have fewer cells than the header, the rest taken as missing",
        "3 of 300 rows have more cells than the header, those beyond it not read",
    ]


def test_a_last_row_that_breaks_off_is_counted(tmp_path):
    _, sentences = read(tmp_path / "t.csv", text_of(ROWS) + "2013-12-01,5")
    assert sentences == ["1 of 301 rows has fewer cells than the header, the rest taken as missing"]


def test_a_cell_that_breaks_off_within_quotes_is_counted(tmp_path):
    frame, sentences = read(
        tmp_path / "t.csv", "id,x,note\n" + '1,2,"a\nb"\n' * 99 + '1,2,"and then\nnothing'
    )
    assert frame.height == 100
    assert sentences == ["2 of 100 lines follow a quote that is never closed, read as one cell"]


def test_many_lines_of_one_cell_are_counted_as_short(tmp_path):
    rows = [row if i % 10 else "remark" for i, row in enumerate(ROWS)]
    _, sentences = read(tmp_path / "t.csv", text_of(rows))
    assert sentences == ["30 of 300 rows have fewer cells than the header, the rest taken as missing"]


def test_bad_json_lines_are_counted_and_cost_only_themselves(tmp_path):
    good = [json.dumps({"a": i, "b": "x"}) for i in range(300)]
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    good[150:150] = [deep, "nope", "[1]", "5"]
    for chunk_bytes in (1 << 30, 3000):
        frame, sentences = read(tmp_path / "t.jsonl", "\n".join(good) + "\n", chunk_bytes)
        assert frame["a"].to_list() == [str(i) for i in range(300)]
        assert sentences == ["4 of 304 lines are no JSON objects, passed over"]


@pytest.mark.parametrize("seed", range(3))
def test_random_bytes_are_no_table(tmp_path, seed):
    (tmp_path / "t.csv").write_bytes(np.random.default_rng(seed).bytes(3000))
    with pytest.raises(UnreadableTable, match="no text"):
        read_layout(find_table(tmp_path / "t.csv"))


def test_the_damage_of_chunks_is_that_of_the_whole(tmp_path, monkeypatch):
    rows = [row.rpartition(",")[0] if i % 40 == 0 else row for i, row in enumerate(ROWS * 10)]
    rows[1500], rows[2500] = before_x(rows[1500]), before_day(rows[2500])
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.csv").write_text(text_of(rows))
    tables = find_tables([tmp_path / "tables"])[0]
    settings = TaskSettings(SketchConfig(64), (), (), str(tmp_path))
    sketch_group(0, tables, settings)
    monkeypatch.setattr(plans, "CHUNK_BYTES", 10_000)
    (large,) = plan(tables, settings).large
    assert len(large.chunks) > 3
    partials = pa.Table.from_batches([sketch_chunk(0, large, chunk, settings) for chunk in large.chunks])
    merge_chunks(0, large, partials, settings)
    whole, merged = (open_segment(tmp_path / PARTS / name) for name in (group_name(0), table_name(0)))
    (sentences,) = whole.tables["damage"].to_list()
    assert len(sentences) == 2
    assert "2 of 3,000 rows open a stray quote" in sentences[0]
    assert merged.tables["damage"].to_list() == [sentences]
    assert merged.tables["rows"].to_list() == whole.tables["rows"].to_list() == [3000]
    assert merged.sketches.equals(whole.sketches)


@pytest.mark.parametrize("line", ['1,"2', '"",""', '"', '1,"a"b"', '""""', '1,"""', '",a,"', 'a",b,"c'])
def test_no_pattern_of_quotes_takes_more_than_linear_time(tmp_path, line):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 20 + f"{line}\n" * 30_000)
    source = find_table(tmp_path / "t.csv")
    layout, faults = read_layout(source), Faults()
    started = time.monotonic()
    rows = sum(frame.height for frame in read_chunk(Chunk(source, 0, *WHOLE), layout, faults=faults))
    assert time.monotonic() - started < 20  # a scan to the end from every line would take hours
    assert faults.rows == rows


def test_a_compressed_file_tells_its_damage(tmp_path):
    packed = gzip.compress(changed({150: before_x}).encode())
    frame, sentences = read(tmp_path / "t.csv.gz", packed)
    assert frame.height == 300
    assert "stray quote" in sentences[0]


@pytest.mark.parametrize("line", [b"x" * (8 << 20), b"a," * (4 << 20), b"a," * (3 << 19), b"1" * (5 << 20)])
def test_a_file_that_begins_with_an_endless_line_is_named_at_once(tmp_path, line):
    (tmp_path / "t.csv").write_bytes(line)
    started = time.monotonic()
    with pytest.raises(UnreadableTable, match=r"its first line is longer than 4 MB|at most 250,000 are read"):
        read_layout(find_table(tmp_path / "t.csv"))
    assert time.monotonic() - started < 5


def test_an_endless_line_in_a_compressed_file_is_passed_over_and_never_held(tmp_path):
    with gzip.open(tmp_path / "t.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"a,b\n1,2\n")
        for _ in range(32):
            file.write(b"0" * (8 << 20))
        file.write(b"\n3,4\n")
    source = find_table(tmp_path / "t.csv.gz")
    layout, faults = read_layout(source), Faults()
    pl.concat(list(read_chunk(Chunk(source, 0, *WHOLE), layout)))  # what is loaded once does not count
    tracemalloc.start()
    frame = pl.concat(list(read_chunk(Chunk(source, 0, *WHOLE), layout, faults=faults)))
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert frame.rows() == [("1", "2"), ("3", "4")]
    assert faults.sentences() == ["1 of 3 rows is longer than 16 MB, passed over"]
    assert held < 160 << 20


def test_wide_tables_are_read(tmp_path):
    names = [f"a name; of|column{i:04}" for i in range(50_000)]
    text = ",".join(names) + "\n" + (",".join("1" * 50_000) + "\n") * 3
    frame, sentences = read(tmp_path / "t.csv", text)
    assert frame.columns == names
    assert frame.height == 3
    assert not sentences


def sketched(folder, settings):
    sketch_group(0, find_tables([folder])[0], settings)
    return open_segment(folder / PARTS / group_name(0)).tables.to_dicts()


@pytest.mark.parametrize("encoding", ["cp1251", "gb18030", "cp932", "utf-16-le"])
def test_names_in_other_encodings_are_read_and_it_is_said_how(tmp_path, encoding):
    towns = (
        ["Москва", "Казань", "Самара"] if encoding in ("cp1251", "utf-16-le") else ["東京", "大阪", "北海道"]
    )
    text = "town,x\n" + "".join(f"{town} {n},{n}.5\n" for n, town in enumerate(towns * 50))
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    source = find_table(tmp_path / "t.csv")
    layout = read_layout(source)
    for chunk_bytes in (1 << 30, 500):
        chunks = plan_chunks(source, layout, chunk_bytes)
        rows = pl.concat([frame for chunk in chunks for frame in read_chunk(chunk, layout)])
        assert rows["town"].to_list() == [f"{town} {n}" for n, town in enumerate(towns * 50)]
    (record,) = sketched(tmp_path, TaskSettings(SketchConfig(64), (), (), str(tmp_path)))
    assert not record["damage"]
    assert "not in UTF-8: read as" in record["remarks"][0]


def test_an_encoding_that_shows_only_further_down_is_found(tmp_path):
    text = "town,x\n" + "London,1.5\n" * 20_000 + "".join(f"Москва {n},{n}.5\n" for n in range(20_000))
    (tmp_path / "t.csv").write_bytes(text.encode("cp1251"))
    source = find_table(tmp_path / "t.csv")
    layout = read_layout(source)
    assert layout.dialect.encoding == "cp1251"
    assert read(tmp_path / "t.csv", text.encode("cp1251"), 50_000)[0]["town"][-1] == "Москва 19999"


def test_characters_that_are_not_utf_8_as_the_rest_is_are_counted(tmp_path):
    rows = "caf\u00e9,1\n".encode() * 20_000
    for chunk_bytes in (1 << 30, 50_000):
        frame, sentences = read(tmp_path / "t.csv", b"town,x\n" + rows + b"caf\xe9,2\n" + rows, chunk_bytes)
        assert frame["town"].n_unique() == 1
        assert sentences == [
            "1 character is not UTF-8 as the rest is, read as windows-1252 (western European)"
        ]


@pytest.fixture
def own_table(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(changed({150: before_x}))
    return path


def test_damage_of_a_queried_table_is_warned_of(own_table):
    with pytest.warns(DamagedTable, match="mine is damaged: 1 of 300 rows opens a stray quote"):
        sketch(own_table, "day", "n")


def test_damage_of_queried_tables_stands_on_stderr_and_leaves_the_answer_alone(own_table):
    sides = [f"--{side}-{part}" for side in ("left", "right") for part in ("key=day", "value=n")]
    arguments = ["estimate", str(own_table), str(own_table), *sides, "--json"]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["exact"] is True
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("covary: mine is damaged: 1 of 300 rows opens a stray quote")


def test_an_index_tells_damage_and_so_does_an_answer(tmp_path, own_table):
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "theirs.csv").write_text(changed({100: before_day}))
    (tmp_path / "lake" / "clean.csv").write_text(text_of(ROWS))
    build_index([tmp_path / "lake"], tmp_path / "index", size=512, runner="process")
    description = describe_index(tmp_path / "index")
    assert [table.name for table in description.damaged] == ["theirs"]
    assert {table.name: table.rows for table in description.read} == {"clean": 300, "theirs": 300}
    with pytest.warns(DamagedTable):
        hits = open_index(tmp_path / "index").query(own_table, "day", "n")
    assert hits.to_dict()["damage"] == hits.damage
    assert "1 of 300 rows opens a stray quote" in hits.damage[0]
    assert all(hit.sample_size == 300 for hit in hits if hit.value == "n")
    assert {(hit.table, hit.damaged) for hit in hits} == {("clean", False), ("theirs", True)}
    assert {hit["damaged"] for hit in hits.to_dict()["hits"]} == {True, False}
    assert "Read though damaged: theirs. covary info INDEX --table NAME" in shown_text(hits_view(hits, 80))
