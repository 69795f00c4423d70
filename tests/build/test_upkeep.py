import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import covary
import covary.build.upkeep
import covary.index.merge
import covary.pipeline.tasks
from covary.build.upkeep import compact_index, remove_tables
from covary.errors import CannotWrite, CovaryError, DamagedIndex, NotAnIndex, TableError, UnreadableTable
from covary.index.check import check_index
from covary.index.history import read_history
from covary.index.manifest import read_manifest
from covary.pipeline.process_runner import ProcessRunner

build_index = partial(covary.build_index, runner="process")


def write(file, seed):
    file.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    keys = [f"place {n}" for n in range(60)]
    pl.DataFrame({"place": keys, "x": rng.normal(size=60)}).write_csv(file)
    return file


@pytest.fixture
def tables(tmp_path):
    for number in range(4):
        write(tmp_path / "tables" / f"t{number}.csv", number)
    return tmp_path / "tables"


@pytest.fixture
def index(tables, tmp_path):
    build_index(tables, tmp_path / "index", size=32)
    return tmp_path / "index"


def names(index):
    return covary.open_index(index).tables["name"].to_list()


def read_names(opened):
    """The names of the tables that could be read."""
    return sorted(opened.tables.filter(pl.col("problem").is_null())["name"])


def problems_of(opened, by="path"):
    """What can't be read, each with why."""
    return opened.tables.filter(pl.col("problem").is_not_null()).select(by, "problem").rows()


def last(index):
    change = read_history(index)[-1]
    return change.command, change.new, change.changed, change.removed, change.kept


def test_only_what_changed_is_read(index, tables):
    write(tables / "t9.csv", 9)
    write(tables / "t1.csv", 11)
    (tables / "t3.csv").unlink()
    build_index(None, index)
    assert last(index) == ("index", 1, 1, 1, 2)
    assert sorted(names(index)) == ["t0", "t1", "t2", "t9"]
    assert len(covary.open_index(index).segments) == 2


def test_nothing_is_committed_when_nothing_changed(index, tables):
    before = (index / "manifest.json").read_bytes()
    build_index(None, index)
    build_index(tables, index)
    assert (index / "manifest.json").read_bytes() == before
    assert len(read_history(index)) == 1


def test_what_is_gone_is_kept_on_request(index, tables):
    (tables / "t3.csv").unlink()
    build_index(None, index, keep_missing=True)
    assert len(names(index)) == 4
    build_index(None, index)
    assert len(names(index)) == 3


def test_a_source_that_can_not_be_looked_into_keeps_its_tables_and_is_named(index, tables, tmp_path):
    other = write(tmp_path / "other" / "o.csv", 5)
    build_index(other.parent, index)
    (tmp_path / "other").rename(tmp_path / "unmounted")
    write(tables / "t4.csv", 4)
    for _ in range(2):  # told once, not once more each time
        opened = build_index(None, index)
        problems = problems_of(opened)
        assert problems == [(str(tmp_path / "other"), "no such file or folder")]
        assert read_names(opened) == [
            "o", "t0", "t1", "t2", "t3", "t4",
        ]  # fmt: skip
    (tmp_path / "unmounted").rename(tmp_path / "other")
    opened = build_index(None, index)
    assert opened.tables["problem"].null_count() == opened.tables.height == 6


def test_a_file_that_was_named_and_deleted_is_gone(tables, tmp_path):
    files = sorted(tables.iterdir())
    build_index(files, tmp_path / "index", size=32)
    content = files[0].read_bytes()
    files[0].unlink()
    build_index(files[1:], tmp_path / "index")
    assert names(tmp_path / "index") == ["t1", "t2", "t3"]
    build_index(None, tmp_path / "index")
    assert names(tmp_path / "index") == ["t1", "t2", "t3"]
    files[0].write_bytes(content)  # back again, as after a night in which another job wrote it anew
    build_index(None, tmp_path / "index")
    assert sorted(names(tmp_path / "index")) == ["t0", "t1", "t2", "t3"]


def test_a_source_that_holds_nothing_any_more_keeps_its_tables_and_is_named(tables, tmp_path):
    index, mounted = tmp_path / "index", tmp_path / "mounted"
    write(mounted / "t0.csv", 5)
    build_index([f"{tables}/t0*.csv", tables / "t1.csv", mounted], index, size=32)
    before = sorted(names(index))
    assert before == ["mounted/t0.csv", "t1", "tables/t0.csv"]
    (tables / "t0.csv").unlink()
    (mounted / "t0.csv").unlink()
    for _ in range(2):
        opened = build_index(None, index)
        assert read_names(opened) == before
        problems = dict(problems_of(opened))
        why = "it held tables before and holds none now"
        assert problems == {f"{tables}/t0*.csv": why, str(mounted): why}
        assert last(index)[1:4] == (0, 0, 0)
    remove_tables(index, [mounted, f"{tables}/t0*.csv"])
    assert names(index) == ["t1"]
    assert read_manifest(index).excluded == ()
    with pytest.raises(UnreadableTable, match="no file matches"):
        build_index(f"{tables}/zzz*.csv", tmp_path / "other", size=32)


def test_a_folder_below_a_source_that_can_not_be_listed_keeps_its_tables(index, tables, monkeypatch):
    write(tables / "sub" / "s.csv", 8)
    build_index(None, index)
    scandir = os.scandir

    def refusing(folder):
        if str(folder).endswith("sub"):
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr("covary.tables.local.os.scandir", refusing)
    (tables / "t3.csv").unlink()
    opened = build_index(None, index)
    assert read_names(opened) == ["sub/s", "t0", "t1", "t2"]
    assert opened.tables["problem"].drop_nulls().to_list() == ["permission denied"]


def test_a_table_that_failed_once_is_tried_again(index, tables, monkeypatch, runner_here):
    read, failing = covary.pipeline.tasks.read_chunk, [True]

    def unreliable(chunk, *more, **options):
        if chunk.source.name == "t1" and failing:
            raise ConnectionResetError(104, "connection reset by peer")
        return read(chunk, *more, **options)

    monkeypatch.setattr("covary.pipeline.tasks.read_chunk", unreliable)
    write(tables / "t1.csv", 77)
    opened = build_index(None, index, runner=runner_here)
    assert "connection reset" in opened.tables["problem"].drop_nulls()[0]
    assert last(index) == ("index", 0, 0, 0, 3)
    assert (read_history(index)[-1].lost, read_history(index)[-1].names) == (1, {"lost": ["t1"]})
    commits = len(read_history(index))
    build_index(None, index, runner=runner_here)  # tried again, and nothing is different
    assert len(read_history(index)) == commits
    failing.clear()
    opened = build_index(None, index, runner=runner_here)
    assert opened.tables["problem"].null_count() == 4


class CountingRunner(ProcessRunner):
    """Counts how often it had something to run."""

    runs = 0

    def run(self, plan, settings):
        self.runs += 1
        super().run(plan, settings)


def test_a_file_that_can_not_be_read_is_not_tried_again_until_it_changes(index, tables):
    packed = gzip.compress((tables / "t1.csv").read_bytes() * 50)
    (tables / "broken.csv.gz").write_bytes(packed[: len(packed) // 2])
    build_index(None, index)
    assert last(index) == ("index", 0, 0, 0, 4)
    assert read_history(index)[-1].skipped == 1
    before = (index / "manifest.json").read_bytes()
    runner = CountingRunner()
    build_index(None, index, runner=runner)
    assert runner.runs == 0
    assert (index / "manifest.json").read_bytes() == before
    build_index(None, index, repair=True, runner=runner)
    assert runner.runs == 1
    (tables / "broken.csv.gz").write_bytes(packed)
    opened = build_index(None, index)
    assert opened.tables["problem"].null_count() == 5
    assert last(index) == ("index", 1, 0, 0, 4)


def test_a_table_without_rows_is_no_trouble(index, tables):
    (tables / "bare.csv").write_text("place,x\n")
    opened = build_index(None, index)
    assert opened.tables["problem"].null_count() == 5
    assert repr(opened).endswith("5 tables, 4 sketches>")
    assert last(index) == ("index", 1, 0, 0, 4)
    assert read_history(index)[-1].names == {"new": ["bare"]}


def test_a_database_or_a_zip_that_was_named_and_deleted_is_gone(index, tables, tmp_path):
    database, packed = tmp_path / "shop.sqlite", tmp_path / "packed.zip"
    with closing(sqlite3.connect(database)) as file:
        for name in ("sold", "bought"):
            file.execute(f"CREATE TABLE {name} (place TEXT, x REAL)")
            file.executemany(
                f"INSERT INTO {name} VALUES (?, ?)", [(f"place {n}", n * n / 7) for n in range(60)]
            )
        file.commit()
    with zipfile.ZipFile(packed, "w") as file:
        file.write(tables / "t0.csv", "one.csv")
        file.write(tables / "t1.csv", "two.csv")
    build_index([database, packed], index)
    assert sorted(names(index))[:4] == ["packed/one", "packed/two", "shop/bought", "shop/sold"]
    remove_tables(index, ["shop/sold"])
    build_index([database, packed], index)  # as they are every night
    assert "shop/sold" not in names(index)
    build_index(f"{database}#sold", index)
    assert "shop/sold" in names(index)
    database.unlink()
    packed.unlink()
    build_index(None, index)
    assert names(index) == ["t0", "t1", "t2", "t3"]
    assert read_history(index)[-1].names["removed"] == [
        "packed/one",
        "packed/two",
        "shop/bought",
        "shop/sold",
    ]


def test_a_glob_of_names_is_none_of_paths(index, tables, monkeypatch):
    monkeypatch.chdir(tables.parent)
    with pytest.raises(TableError, match="no table and no source 'tab\\*'"):
        remove_tables(index, ["tab*"])
    remove_tables(index, ["tables/t[12]*"])
    assert names(index) == ["t0", "t3"]


def test_a_glob_brings_back_what_it_finds_and_nothing_else(index, tables):
    write(tables / "sub" / "s.csv", 5)
    build_index(None, index)
    remove_tables(index, ["t*", "sub/*"])
    build_index(f"{tables}/t*.csv", index)
    assert names(index) == ["t0", "t1", "t2", "t3"]
    build_index(f"{tables}/**/*.csv", index)
    assert sorted(names(index)) == ["sub/s", "t0", "t1", "t2", "t3"]


def test_names_stay_while_a_source_is_out_of_reach(index, tables, tmp_path):
    write(tmp_path / "other" / "t1.csv", 5)
    write(tmp_path / "other" / "o.csv", 6)
    build_index(tmp_path / "other", index)
    before = sorted(names(index))
    assert before == ["o", "other/t1.csv", "t0", "t2", "t3", "tables/t1.csv"]
    (tmp_path / "other").rename(tmp_path / "unmounted")
    write(tables / "o.csv", 7)
    opened = build_index(None, index)
    assert last(index) == ("index", 1, 0, 0, 6)
    present = read_names(opened)
    assert present == ["o", "o.csv", *before[1:]]
    (tmp_path / "unmounted").rename(tmp_path / "other")
    build_index(None, index)
    assert sorted(names(index)) == [
        "other/o.csv",
        "other/t1.csv",
        "t0",
        "t2",
        "t3",
        "tables/o.csv",
        "tables/t1.csv",
    ]


def test_kept_tables_keep_their_names_to_themselves(index, tables):
    (tables / "t3.csv").rename(tables / "t3.gone")
    pl.read_csv(tables / "t3.gone").write_parquet(tables / "t3.parquet")
    build_index(None, index, keep_missing=True)
    assert sorted(names(index)) == ["t0", "t1", "t2", "t3", "t3.parquet"]


def test_a_damaged_manifest_costs_no_segment(index):
    text = (index / "manifest.json").read_text()
    (index / "manifest.json").write_text("")
    with pytest.raises(DamagedIndex):
        build_index(None, index)
    (index / "manifest.json").write_text(text)
    assert not check_index(index).damaged


def test_damage_is_not_copied_under_a_new_checksum(index):
    file = next(index.rglob("values.arrow"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedIndex, match=r"values\.arrow is damaged"):
        compact_index(index)


def test_segments_of_a_large_index_are_not_merged_again_and_again(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(covary.index.merge, "ENTRIES_PER_SEGMENT", 64)
    monkeypatch.setattr(covary.index.merge, "MOST_SEGMENTS", 100)
    for number in range(4, 30):
        write(tables / f"t{number:02}.csv", number)
    opened = build_index(tables, tmp_path / "index", size=32)
    before = {stored.name for stored in opened.manifest.segments}
    assert len(before) == 15
    compact_index(tmp_path / "index")
    assert {stored.name for stored in covary.open_index(tmp_path / "index").manifest.segments} == before
    for number in range(30, 36):
        write(tables / f"t{number}.csv", number)
        opened = build_index(None, tmp_path / "index")
        assert before <= {stored.name for stored in opened.manifest.segments}


def test_a_touched_file_is_read_again_unless_its_content_is_asked(index, tables):
    build_index(None, index, checksum=True)
    (tables / "t0.csv").touch()
    build_index(None, index, checksum=True)
    assert last(index) == ("index", 0, 4, 0, 0)  # the checksums were not known before
    (tables / "t0.csv").write_text((tables / "t0.csv").read_text().replace("place 1,", "place x,"))
    build_index(None, index, checksum=True)
    assert last(index) == ("index", 0, 1, 0, 3)


def test_settings_of_an_index_can_not_be_changed(index, tables):
    build_index(None, index, size=32, aggregates="mean", hash="xxhash64", key_text="canonical")
    others = {"size": 64, "aggregates": ["max"], "hash": "murmur3", "keys": ["place"], "values": ["x"]}
    for setting in others.items():
        with pytest.raises(CovaryError, match="start over with --fresh"):
            build_index(None, index, **dict([setting]))
    assert build_index(tables, index, size=64, fresh=True).config.size == 64


def test_tables_are_removed_by_name_glob_and_source(index, tables, tmp_path):
    build_index(write(tmp_path / "other" / "o.csv", 5).parent, index)
    remove_tables(index, ["t0"])
    remove_tables(index, ["*2", str(tmp_path / "other")])
    assert names(index) == ["t1", "t3"]
    assert last(index)[3] == 2
    build_index(None, index)
    assert names(index) == ["t1", "t3"]
    build_index(tables, index)  # as it is every night
    assert names(index) == ["t1", "t3"]
    build_index(tables / "t0.csv", index)  # named again
    build_index(None, index)
    assert sorted(names(index)) == ["t0", "t1", "t3"]
    remove_tables(index, [tables / "t1.csv", f"{tables}/t3*"])
    assert names(index) == ["t0"]
    build_index(f"{tables}/t[13].csv", index)
    assert sorted(names(index)) == ["t0", "t1", "t3"]
    with pytest.raises(TableError, match="no table and no source 'zzz'"):
        remove_tables(index, ["t1", "zzz"])
    assert sorted(names(index)) == ["t0", "t1", "t3"]


def test_an_index_may_become_empty_and_be_filled_again(index, tables):
    remove_tables(index, ["*"])
    opened = covary.open_index(index)
    assert (opened.tables.height, opened.sketch_count) == (0, 0)
    query = pl.DataFrame({"place": [f"place {n}" for n in range(60)], "q": np.arange(60.0)})
    assert len(opened.query(query, "place", "q")) == 0
    build_index(tables / "t2.csv", index)
    assert names(index) == ["t2"]


def test_segments_do_not_become_too_many(index, tables, monkeypatch):
    monkeypatch.setattr(covary.build.upkeep, "MOST_SMALL", 4)
    for number in range(10, 22):
        write(tables / f"t{number}.csv", number)
        assert len(build_index(None, index).segments) <= 5
    assert len(names(index)) == 16


def test_a_segment_that_is_mostly_dead_is_written_anew(index, tables):
    remove_tables(index, ["t0"])
    assert covary.open_index(index).manifest.segments[0].removed == (0,)
    remove_tables(index, ["t1", "t2"])
    assert covary.open_index(index).manifest.segments[0].removed == ()
    assert names(index) == ["t3"]


def test_what_is_no_index_can_not_be_changed(tmp_path):
    for change in (lambda: compact_index(tmp_path / "no"), lambda: remove_tables(tmp_path / "no", ["a"])):
        with pytest.raises(NotAnIndex):
            change()
    assert not (tmp_path / "no").exists()


def test_a_reader_keeps_its_snapshot_through_removal_and_compaction(index, tables):
    opened = covary.open_index(index)
    query = pl.DataFrame({"place": [f"place {n}" for n in range(60)], "q": np.arange(60.0)})
    remove_tables(index, ["t0", "t1", "t2"])
    write(tables / "t7.csv", 7)
    build_index(None, index)
    compact_index(index)
    # Asked for the first time only now: nothing of the old files is left on disk.
    assert {hit.table for hit in opened.query(query, "place", "q")} == {"t0", "t1", "t2", "t3"}
    assert opened.tables["name"].to_list() == ["t0", "t1", "t2", "t3"]


def damage_segment_with(table, index, name):
    """Cut short a file of the segment that holds a table."""
    opened = covary.open_index(index)
    number = next(n for n, each in enumerate(opened.segments) if table in each.tables["name"].to_list())
    file = index / "segments" / opened.manifest.segments[number].name / name
    file.write_bytes(file.read_bytes()[:-1])


@pytest.mark.parametrize("change", ["index", "remove", "compact"])
def test_an_index_with_a_damaged_file_is_not_changed_unless_to_repair_it(index, tables, change):
    write(tables / "t4.csv", 4)
    build_index(None, index)
    before = (index / "manifest.json").read_text()
    damage_segment_with("t4", index, "keys.arrow")
    with pytest.raises(DamagedIndex, match=r"keys\.arrow is damaged: .* bytes instead of"):
        {
            "index": lambda: build_index(None, index),
            "remove": lambda: remove_tables(index, ["t0"]),
            "compact": lambda: compact_index(index),
        }[change]()
    assert (index / "manifest.json").read_text() == before
    build_index(None, index, repair=True)
    assert sorted(names(index)) == ["t0", "t1", "t2", "t3", "t4"]
    assert not check_index(index).damaged


def test_what_repair_can_not_read_again_is_named(index, tables, tmp_path):
    other = write(tmp_path / "other" / "o.csv", 5)
    build_index(other.parent, index)
    damage_segment_with("o", index, "values.arrow")
    other.parent.rename(tmp_path / "unmounted")
    opened = build_index(None, index, repair=True)
    problems = dict(problems_of(opened, "name"))
    assert problems == {
        "o": "it was damaged in the index and is not to be found in its source now",
        str(tmp_path / "other"): "no such file or folder",
    }
    (tmp_path / "unmounted").rename(tmp_path / "other")
    assert build_index(None, index).tables["problem"].null_count() == 5


def test_an_empty_file_is_damage(index):
    next(index.rglob("tables.arrow.zst")).write_bytes(b"")
    for change in (lambda: remove_tables(index, ["t1"]), lambda: compact_index(index)):
        with pytest.raises(DamagedIndex, match=r"tables\.arrow\.zst is damaged"):
            change()


def test_a_table_of_no_size_comes_first_and_does_no_harm(tables, tmp_path):
    with zipfile.ZipFile(tables / "a.zip", "w") as file:
        file.writestr("x.csv", "")
    opened = build_index(tables, tmp_path / "other", size=32)
    assert opened.tables.filter(pl.col("problem").is_null())["name"].to_list() == ["t0", "t1", "t2", "t3"]


@pytest.mark.parametrize("one", ["t1", Path("t1")])
def test_one_name_is_no_list_of_letters(index, one):
    remove_tables(index, one)
    assert names(index) == ["t0", "t2", "t3"]


def test_a_name_as_it_stands_goes_before_a_glob(index, tables):
    for name in ("a1.csv", "a[1].csv"):
        write(tables / name, 5)
    build_index(None, index)
    remove_tables(index, ["a[1]"])
    assert sorted(names(index)) == ["a1", "t0", "t1", "t2", "t3"]
    remove_tables(index, ["a[1]"])
    assert names(index) == ["t0", "t1", "t2", "t3"]


def test_a_table_goes_before_a_source_of_its_name(index, tables, tmp_path, monkeypatch):
    write(tmp_path / "t1" / "o.csv", 5)
    build_index(tmp_path / "t1", index)
    monkeypatch.chdir(tmp_path)
    remove_tables(index, "t1")
    assert sorted(names(index)) == ["o", "t0", "t2", "t3"]
    remove_tables(index, "t1/")
    assert names(index) == ["t0", "t2", "t3"]


def test_an_empty_name_is_refused(index, tmp_path):
    with pytest.raises(CovaryError, match="is empty"):
        remove_tables(index, [""])
    with pytest.raises(CovaryError, match="is empty"):
        build_index([""], tmp_path / "other")
    assert len(names(index)) == 4


def test_a_manifest_of_another_index_costs_no_segment(index, tables, tmp_path):
    other = tmp_path / "other"
    build_index(write(tmp_path / "more" / "m.csv", 8), other, size=32)
    own = (index / "manifest.json").read_bytes()
    (index / "manifest.json").write_bytes((other / "manifest.json").read_bytes())
    with pytest.raises(DamagedIndex):
        build_index(None, index, trust_sources=True)
    (index / "manifest.json").write_bytes(own)
    assert not check_index(index).damaged


HOLDS_A_LOCK = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_database_that_is_locked_keeps_its_tables_and_is_named(index, tables):
    with closing(sqlite3.connect(tables / "shop.db", isolation_level=None)) as file:
        file.execute("CREATE TABLE sold (place TEXT, x REAL)")
        file.executemany("INSERT INTO sold VALUES (?, ?)", [(f"place {n}", n * n / 7) for n in range(60)])
        build_index(None, index)
        assert "shop" in names(index)
    # By another process: SQLite's locks are of a process, and gone as soon as that closes the file anywhere.
    command = [sys.executable, "-c", HOLDS_A_LOCK, tables / "shop.db"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline()
        opened = build_index(None, index)
        holder.stdin.close()
    assert opened.tables["problem"].drop_nulls().to_list() == ["database is locked"]
    assert read_names(opened).count("shop") == 1
    opened = build_index(None, index)
    assert opened.tables["problem"].null_count() == opened.tables.height == 5


def test_a_source_away_while_damage_is_repaired_is_named_from_then_on(index, tables, tmp_path):
    other = write(tmp_path / "other" / "o.csv", 5).parent
    build_index(other, index)
    shutil.rmtree(index / "segments")
    other.rename(tmp_path / "away")
    for repair in (True, False):
        opened = build_index(None, index, repair=repair)
        problems = problems_of(opened)
        assert problems == [(str(other), "no such file or folder")]


def test_a_source_in_another_that_looks_empty_keeps_its_tables(index, tables):
    below = write(tables / "sub" / "s.csv", 5)
    build_index(below.parent, index)
    below.unlink()
    for _ in range(2):
        opened = build_index(None, index)
        problems = problems_of(opened)
        assert problems == [(str(below.parent), "it held tables before and holds none now")]
        assert "sub/s" in names(index)
    remove_tables(index, below.parent)
    build_index(None, index)
    assert names(index) == ["t0", "t1", "t2", "t3"]


def test_what_is_in_the_way_of_writing_is_named(index, tables):
    (index / "history.jsonl").unlink()
    (index / "history.jsonl").mkdir()
    write(tables / "t9.csv", 9)
    with pytest.raises(CannotWrite, match=r"history\.jsonl: Is a directory; nothing was changed"):
        build_index(None, index)


def test_a_bad_file_can_be_put_away(index, tables):
    (tables / "e.csv").touch()
    build_index(None, index)
    remove_tables(index, tables / "e.csv")
    opened = build_index(None, index)
    assert opened.tables["problem"].null_count() == opened.tables.height == 4


def test_an_index_emptied_by_hand_stays_so(index):
    remove_tables(index, "*")
    assert build_index(None, index).tables.height == 0


def test_a_table_that_is_no_table_any_more_is_lost(index, tables):
    (tables / "t1.csv").write_bytes(b"")
    build_index(None, index)
    change = read_history(index)[-1]
    assert (change.lost, change.removed, change.kept, change.skipped) == (1, 0, 3, 1)


@pytest.mark.parametrize(
    "wrong", [{"time": "x"}, {"time": 1e30}, {"new": None}, {"seconds": -1}, {"kept": True}]
)
def test_a_history_of_the_wrong_kind_is_damage(index, wrong):
    line = {"command": "index", "time": 1.0} | wrong
    (index / "history.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(DamagedIndex, match="remove it"):
        read_history(index)


def test_the_index_in_its_own_source_is_not_told_of_but_another_is(index, tables):
    shutil.copytree(index, tables / "other")
    for _ in range(2):
        opened = build_index(tables, tables / "my.covary", size=32)
        problems = problems_of(opened)
        assert problems == [(str(tables / "other"), "it is a covary index")]
        assert opened.tables.height == 5
    assert len(read_history(tables / "my.covary")) == 1
