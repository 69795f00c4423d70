import bz2
import gzip
import os
import time
import warnings
import zipfile
from pathlib import Path

import pytest

from covary.errors import UnreadableTable
from covary.sketching.sketch_types import SketchConfig
from covary.tables.discover import find_table, find_tables
from covary.tables.read import read_layout

CSV = b"day,x\n1,2\n3,4\n"


def write(path, data=CSV):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def names(*sources):
    return [table.name for table in find_tables(sources)[0]]


def test_a_folder_is_walked_in_a_fixed_order_and_named_from_its_root(tmp_path):
    for name in ("b.csv", "2013/weather.csv.gz", "2013/a.tsv", "z.jsonl"):
        write(tmp_path / name, gzip.compress(CSV, mtime=0) if name.endswith(".gz") else CSV)
    assert names(tmp_path) == ["2013/a", "2013/weather", "b", "z"]


def test_what_is_hidden_or_no_table_is_passed_by_in_silence(tmp_path):
    for name in (".hidden.csv", "_SUCCESS", ".git/x.csv", "_temporary/0.json", "README.md", "a.py", "b.png"):
        write(tmp_path / name)
    write(tmp_path / "notes.txt", b"Some notes.\nNothing tabular at all.\n\nReally.\n")
    assert find_tables([tmp_path]) == ([], [], [])


def test_a_compressed_file_without_another_suffix_counts_if_it_is_delimited(tmp_path):
    write(tmp_path / "a.gz", gzip.compress(CSV, mtime=0))
    write(tmp_path / "b.2013.bz2", bz2.compress(CSV))
    write(tmp_path / "c.gz", gzip.compress(b'{"day": 1, "x": 2}\n', mtime=0))
    write(tmp_path / "notes.md.gz", gzip.compress(b"# of another kind\n", mtime=0))
    tables, skipped, _ = find_tables([tmp_path])
    assert [(table.name, table.format) for table in tables] == [
        ("a", "csv"),
        ("b.2013", "csv"),
        ("c", "jsonl"),
    ]
    assert not skipped
    assert find_table(write(tmp_path / "d.gz", gzip.compress(b"one column\nonly\n", mtime=0))).format == "csv"


def test_a_txt_file_counts_if_it_is_delimited(tmp_path):
    write(tmp_path / "t.txt")
    assert names(tmp_path) == ["t"]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.xlsx", b"PK\x03\x04", "Excel"),
        ("a.sqlite", b"SQLite", "SQLite"),
        ("a.csv", b"", "empty"),
        ("a.zip", b"PK\x03\x04broken", "broken zip"),
        ("a.json", b' [{"a": 1}]', "one JSON array, not JSON Lines"),
        ("a.json.gz", gzip.compress(b'[{"a": 1}]', mtime=0), "one JSON array, not JSON Lines"),
        ("a.parquet", b"not parquet", "no Parquet file"),
        ("a.csv.gz", b"\x1f\x8bbroken", "broken gzip"),
        ("a.gz", b"\x1f\x8bbroken", "broken gzip"),
        ("a.gz", gzip.compress(CSV, mtime=0)[:-9], "broken gzip"),
        ("a.gz", b"anything", "no compressed file"),
        ("a.gz", b"", "empty"),
        ("a.gz", gzip.compress(b"", mtime=0), "nothing in it"),
        ("a.gz", gzip.compress(b"\x00\x01\x02\x03" * 99, mtime=0), "no table"),
        ("a.gz", gzip.compress(b"Dear John, how\nare you?\nYours\n\nBob\n", mtime=0), "no table"),
        ("a.gz", gzip.compress(b'[{"a": 1}]', mtime=0), "one JSON array"),
        ("a.bz2", b"BZh9broken", "broken bzip2"),
        ("a.bz2", bz2.compress(CSV)[:20], "broken bzip2"),
        ("a.2013.bz2", bz2.compress(b"no table"), "no table"),
        ("a.zst", b"\x28\xb5\x2f\xfdbroken", "broken zstd"),
    ],
)
def test_what_cannot_be_read_is_skipped_with_a_reason(tmp_path, name, data, reason):
    path = write(tmp_path / name, data)
    write(tmp_path / "good.csv")
    tables, skipped, _ = find_tables([tmp_path])
    assert [table.name for table in tables] == ["good"]
    assert [skip.path for skip in skipped] == [str(path)]
    assert reason in skipped[0].reason.text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_skipped(tmp_path):
    write(tmp_path / "a.csv").chmod(0)
    assert "permission" in find_tables([tmp_path])[1][0].reason.text


def test_links_in_a_circle_do_not_hang(tmp_path):
    write(tmp_path / "a/t.csv")
    (tmp_path / "a/again").symlink_to(tmp_path, target_is_directory=True)
    assert names(tmp_path) == ["a/t"]


def test_a_dangling_link_is_skipped(tmp_path):
    (tmp_path / "a.csv").symlink_to(tmp_path / "nowhere.csv")
    assert find_tables([tmp_path])[1][0].reason.text == "no such file or directory"


def test_a_pipe_does_not_hang_the_listing(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    assert find_tables([tmp_path])[1][0].reason.text == "not a regular file"


def test_globs_find_files_at_any_depth(tmp_path):
    for name in ("a.csv", "deep/b.csv", "deep/er/c.csv", "deep/d.md"):
        write(tmp_path / name)
    assert names(f"{tmp_path}/*.csv") == ["a"]
    assert names(f"{tmp_path}/**/*.csv") == ["a", "deep/b", "deep/er/c"]
    assert names(f"{tmp_path}/d*") == ["deep/b", "deep/er/c"]
    assert names(f"{tmp_path}/**") == ["a", "deep/b", "deep/er/c"]


@pytest.mark.parametrize("source", ["nowhere.csv", "nowhere/*.csv"])
def test_a_source_that_is_not_there_is_an_error(tmp_path, source):
    with pytest.raises(UnreadableTable):
        find_tables([tmp_path / source])


def test_a_table_given_twice_counts_once(tmp_path):
    path = write(tmp_path / "a.csv")
    assert names(tmp_path, path, f"{tmp_path}/*") == ["a"]


def test_names_that_clash_keep_what_tells_them_apart(tmp_path):
    for name in ("one/a.csv", "one/a.tsv", "two/a.csv", "two/b.csv"):
        write(tmp_path / name)
    assert names(tmp_path / "one") == ["a.csv", "a.tsv"]
    assert names(tmp_path / "one", tmp_path / "two") == ["one/a.csv", "a.tsv", "two/a.csv", "b"]


def test_the_first_bytes_outrank_the_suffix(tmp_path):
    table = find_table(write(tmp_path / "a.csv", gzip.compress(CSV, mtime=0)))
    assert (table.format, table.compression, table.name) == ("csv", "gzip", "a")
    assert find_table(write(tmp_path / "b.csv", b"PAR1....PAR1")).format == "parquet"
    assert find_table(write(tmp_path / "c.csv.gz")).compression is None


def test_a_file_named_by_the_person_is_looked_at_whatever_its_suffix(tmp_path):
    assert find_table(write(tmp_path / "a.data")).format == "csv"
    assert find_table(write(tmp_path / "b", b"PAR1....PAR1")).format == "parquet"
    assert find_table(write(tmp_path / "c.log", b'{"a": 1}\n')).format == "jsonl"
    assert find_table(write(tmp_path / "d.v2.csv")).name == "d.v2"


def test_a_table_is_described_in_full(tmp_path):
    path = write(tmp_path / "a.csv")
    table = find_table(path)
    assert (table.location.text, table.size, table.member) == (str(path), len(CSV), None)
    assert table.version == f"{len(CSV)} {path.stat().st_mtime_ns}"
    assert find_tables([tmp_path])[0][0].source == str(tmp_path)


def test_a_zip_gives_its_tables(tmp_path):
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for member in ("x/b.csv", "a.tsv", "readme.md", "__MACOSX/a.csv", "empty.csv", "p.parquet", "w.xlsx"):
            archive.writestr(member, b"" if member == "empty.csv" else CSV)
    with zipfile.ZipFile(tmp_path / "single.csv.zip", "w") as archive:
        archive.writestr("whatever.csv", CSV)
    tables, skipped, _ = find_tables([tmp_path])
    assert [Path(each.path).name for each in skipped] == ["p.parquet", "w.xlsx"]
    assert [(t.name, t.member) for t in tables] == [
        ("many/a", "a.tsv"),
        ("many/empty", "empty.csv"),
        ("many/x/b", "x/b.csv"),
        ("single", "whatever.csv"),
    ]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.bin", b"\x00\x01\x02\x00\xff", "unknown kind"),
        ("a.xlsx", b"PK\x03\x04", "Excel"),
        ("a.csv", b"", "empty"),
        ("a.parquet.gz", gzip.compress(b"PAR1", mtime=0), "unpack"),
    ],
)
def test_one_table_that_cannot_be_read_is_an_error(tmp_path, name, data, reason):
    with pytest.raises(UnreadableTable, match=reason):
        find_table(write(tmp_path / name, data))


def test_one_table_means_one(tmp_path):
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)
    for path, reason in (
        (tmp_path / "two.zip", "2 tables"),
        (tmp_path, "folder"),
        (tmp_path / "no", "no such"),
    ):
        with pytest.raises(UnreadableTable, match=reason):
            find_table(path)


def test_a_thousand_files_are_listed_quickly(tmp_path):
    for number in range(1000):
        (tmp_path / f"{number}.csv").write_bytes(CSV)
    started = time.perf_counter()
    assert len(names(tmp_path)) == 1000
    assert time.perf_counter() - started < 1  # about 0.05 s on a quiet machine


@pytest.fixture
def index_among_tables(tmp_path, write_index):
    """An index in a folder of one table; a file in the index looks like a table too."""
    (tmp_path / "a.csv").write_text("key,x\na,1\n")
    keys = [f"k{n}" for n in range(20)]
    write_index(tmp_path / "my.covary", {"t": (keys, range(20)), "u": (keys, range(20))}, SketchConfig(16))
    (tmp_path / "my.covary" / "segments" / "tables.csv").write_text("key,x\na,1\n")
    return tmp_path


@pytest.mark.parametrize("without", [None, "covary-index", "manifest.json"])
@pytest.mark.parametrize("source", ["", "/**/*.csv", "/*", "/**"])
def test_an_index_among_the_tables_is_passed_over_and_named_once(index_among_tables, source, without):
    if without:
        (index_among_tables / "my.covary" / without).unlink()
    tables, skipped, _ = find_tables([f"{index_among_tables}{source}"])
    assert [table.name for table in tables] == ["a"]
    index = str(index_among_tables / "my.covary")
    assert [(each.path, each.reason.text) for each in skipped] == [(index, "it is a covary index")]


def test_what_is_in_an_index_is_no_source(index_among_tables):
    index = index_among_tables / "my.covary"
    for source in (index, index / "segments"):
        tables, skipped, _ = find_tables([source])
        assert not tables
        assert "a covary index" in skipped[0].reason.text


@pytest.mark.parametrize("manifest", ["{}", '{"format": 7, "segments": [], "config": {}}', "[1]", None])
def test_a_folder_that_only_looks_like_an_index_is_read(tmp_path, manifest):
    (tmp_path / "segments").mkdir()
    for name in ("a.csv", "segments/customers.csv"):
        (tmp_path / name).write_text("key,x\na,1\n")
    if manifest:
        (tmp_path / "manifest.json").write_text(manifest)
    for source in (tmp_path, f"{tmp_path}/**/*.csv"):
        assert {"a", "segments/customers"} <= {table.name for table in find_tables([source])[0]}


def test_a_link_to_itself_is_skipped_and_named(tmp_path):
    (tmp_path / "a.csv").write_text("key,x\na,1\n")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    tables, skipped, _ = find_tables([tmp_path])
    assert [table.name for table in tables] == ["a"]
    assert [each.path for each in skipped] == [str(tmp_path / "loop.csv")]


def test_members_of_a_zip_that_lead_elsewhere_are_read_and_named_plainly(tmp_path):
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for name in ("../up.csv", "/etc/root.csv", "..\\..\\back.csv", "plain.csv"):
            archive.writestr(name, CSV)
    tables, skipped, _ = find_tables([tmp_path])
    assert {table.name for table in tables} == {"z/up", "z/etc/root", "z/back", "z/plain"}
    assert not skipped
    assert [read_layout(table).columns for table in tables] == [("day", "x")] * 4


def test_members_of_a_zip_that_bear_one_name_are_told(tmp_path):
    with warnings.catch_warnings(), zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        warnings.simplefilter("ignore")  # zipfile's own, about the name
        archive.writestr("a.csv", CSV)
        archive.writestr("a.csv", b"day,y\n5,6\n")
        archive.writestr("b.csv", CSV)
    tables, skipped, _ = find_tables([tmp_path])
    assert [table.name for table in tables] == ["z/a", "z/b"]
    assert read_layout(tables[0]).columns == ("day", "y")
    ((path, reason),) = [(each.path, each.reason.text) for each in skipped]
    assert path.endswith("z.zip/a.csv")
    assert reason == "the zip holds 2 files of this name; only the last is read"


@pytest.fixture
def deep(tmp_path):
    """A folder with files at its top and 1,200 folders below."""
    deepest = "/".join(["d"] * 1200)
    os.makedirs(tmp_path / "/".join(["d"] * 600))
    os.makedirs(tmp_path / deepest)
    write(tmp_path / deepest / "bottom.csv")
    write(tmp_path / "top.csv")
    yield tmp_path
    (tmp_path / deepest / "bottom.csv").unlink()
    while deepest:  # pytest can't remove it
        (tmp_path / deepest).rmdir()
        deepest = deepest.rpartition("/")[0]


def test_folders_may_lie_in_each_other_deeper_than_calls_can(deep):
    assert [Path(name).name for name in names(deep)] == ["bottom", "top"]


def test_a_zip_with_a_name_that_is_not_in_its_own_encoding_is_broken(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("é.csv", CSV)
    content = (tmp_path / "a.zip").read_bytes()
    write(tmp_path / "a.zip", content.replace("é".encode(), b"\xff\xff"))
    write(tmp_path / "b.csv")
    tables, (skipped,), _ = find_tables([tmp_path])
    assert [table.name for table in tables] == ["b"]
    assert skipped.reason.text.startswith("a broken zip: ")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_no_more_of_a_packed_file_is_unpacked_than_tells_what_it_holds(tmp_path, pack):
    path = write(tmp_path / "a.gz", pack(b""))
    with path.open("ab") as file:
        file.truncate(8 << 30)  # a hole, which takes no room on the disk
    started = time.monotonic()
    assert not find_tables([tmp_path]).tables
    assert time.monotonic() - started < 30
