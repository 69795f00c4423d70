import io
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console

from covary.cli.index_view import columns_view
from covary.columns.key_text import NORMALISERS
from covary.index.segment_files import open_segment
from covary.pipeline import plan as plans
from covary.pipeline.plan import PARTS, PROGRESS, TaskSettings, group_name, plan, table_name
from covary.pipeline.reading_process import DIED, TOO_LARGE, TOO_LONG, Ended, Watch
from covary.pipeline.tasks import WRITING, merge_chunks, sketch_chunk, sketch_group
from covary.query.open_segment import OpenSegment
from covary.sketching.sketch_types import SketchConfig
from covary.tables.discover import find_tables


def test_a_key_of_numbers_keeps_the_text_it_was_written_in(tmp_path):
    (tmp_path / "t.csv").write_text("code,v\n1.50,1\n2.25,2.5\n3.00,4\n")
    exact = SketchConfig(normaliser=NORMALISERS["exact"])
    settings = TaskSettings(exact, ("code",), (), str(tmp_path))
    sketch_group(0, find_tables([tmp_path])[0], settings)
    segment = OpenSegment(open_segment(tmp_path / PARTS / group_name(0)), settings.config)
    written = settings.config.scheme.identify([pl.Series(["1.50", "2.25", "3.00"])])[0].hashes
    sketch = segment.sketch(0)
    by_hash = dict(zip(sketch.key_hashes.tolist(), sketch.values.tolist(), strict=True))
    assert by_hash == dict(zip(written.tolist(), [1.0, 2.5, 4.0], strict=True))


def test_a_table_in_chunks_gives_the_sketches_and_notes_of_the_whole(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    days = [date(2011, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 1000, 4000)]
    costs = [f"${1000 + cost:,}" for cost in rng.integers(0, 10**6, 4000)]
    costs[17], costs[3999], costs[2000] = "13-21", "s", "N/A"
    (tmp_path / "tables").mkdir()
    rows = {"day": [f"{d.month}/{d.day}/{d.year}" for d in days], "zip": rng.integers(501, 600, 4000)}
    frame = pl.DataFrame(rows | {"cost": costs}).with_columns(pl.format("00{}", pl.col("zip")).alias("zip"))
    frame.write_csv(tmp_path / "tables" / "t.csv")
    tables = find_tables([tmp_path / "tables"])[0]
    settings = TaskSettings(SketchConfig(64, ("mean", "first")), ("day", "zip", "zip,day"), (), str(tmp_path))
    sketch_group(0, tables, settings)
    monkeypatch.setattr(plans, "CHUNK_BYTES", 20_000)
    (large,) = plan(tables, settings).large
    assert len(large.chunks) > 3
    partials = pa.Table.from_batches(
        [sketch_chunk(0, large, chunk, settings) for chunk in large.chunks[::-1]]
    )
    merge_chunks(0, large, partials, settings)
    whole, merged = (open_segment(tmp_path / PARTS / name) for name in (group_name(0), table_name(0)))
    assert merged.sketches.equals(whole.sketches)
    assert set(merged.sketches["granularity"]) == {"", "day", "week", "month", "quarter", "year"}
    for name in ("values.value", "keys.hash", "members.entry"):
        assert merged.arrays[name].tolist() == whole.arrays[name].tolist()
    notes = [
        {column["name"]: column for column in segment.tables["columns"][0]} for segment in (whole, merged)
    ]
    assert notes[0]["cost"] == notes[1]["cost"]
    cost = notes[0]["cost"]
    assert (cost["missing"], cost["not_understood"], cost["not_understood_examples"]) == (2, 1, ["13-21"])
    assert notes[0]["day"]["keys"] == ["day", "zip,day"]


def test_a_large_table_without_a_pair_says_that_it_was_not_read_to_its_end(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,b\n" + "some words,more words\n" * 1000)
    monkeypatch.setattr(plans, "CHUNK_BYTES", 5_000)
    (record,) = plan(find_tables([tmp_path])[0], TaskSettings(SketchConfig(), (), (), str(tmp_path))).settled
    console = Console(file=io.StringIO(), width=200)
    console.print(columns_view(record))
    assert "not read to its end, its rows not counted" in console.file.getvalue()


@pytest.fixture
def two_tables(tmp_path):
    """Two tables, and the settings of a build of them."""
    folder = tmp_path / "tables"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.csv").write_text("code,v\nx,1\ny,2.5\nx,4\n")
    (tmp_path / PARTS).mkdir()
    (tmp_path / PROGRESS).mkdir()
    return find_tables([folder])[0], TaskSettings(SketchConfig(), ("code",), (), str(tmp_path))


def problems(settings, name):
    tables = open_segment(Path(settings.scratch, PARTS, name)).tables
    return dict(tables.select("name", "problem").iter_rows())


def test_what_was_read_before_a_process_died_is_not_read_again(two_tables, tmp_path):
    tables, settings = two_tables
    sketch_group(0, tables, settings)
    watch = Watch(None, [Ended("b", DIED, 11)], tmp_path / "kept")
    sketch_group(1, tables, settings, watch)
    for table in tables:
        Path(table.location.text).unlink()
    sketch_group(2, tables, settings, watch)
    first, *others = (open_segment(tmp_path / PARTS / group_name(number)) for number in range(3))
    for segment in others:
        assert segment.tables.equals(first.tables)
        assert segment.sketches.equals(first.sketches)


def test_a_table_at_which_processes_died_is_named_and_the_rest_is_read(two_tables, tmp_path):
    tables, settings = two_tables
    sketch_group(0, tables, settings, Watch(None, [Ended("a", DIED, 11)] * 2, tmp_path / "kept"))
    assert problems(settings, group_name(0)) == {
        "a": "the process that read it died twice (signal 11)", "b": None
    }  # fmt: skip


def test_tables_that_can_not_be_written_together_are_named(two_tables, tmp_path):
    tables, settings = two_tables
    sketch_group(0, tables, settings, Watch(None, [Ended(WRITING, DIED, 9)] * 2, tmp_path / "kept"))
    assert all("killed twice" in problem for problem in problems(settings, group_name(0)).values())


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_worker_that_died_is_known_by_the_log_that_it_left(two_tables, tmp_path, deaths):
    tables, settings = two_tables
    lines = "reading\ta\ndone\ta\nreading\tb\n" * deaths
    (tmp_path / PROGRESS / "group-0").write_text(lines)
    for _ in range(2):  # what is named once stays so
        sketch_group(0, tables, settings)
    reason = "the process that read it died twice"
    assert problems(settings, group_name(0)) == {"a": None, "b": reason if deaths == 2 else None}


def test_a_chunk_or_a_merge_at_which_processes_died_costs_its_table(two_tables, tmp_path, monkeypatch):
    tables, settings = two_tables
    monkeypatch.setattr(plans, "CHUNK_BYTES", 8)
    large, _ = plan(tables, settings).large
    too_long, too_large = Ended("a", TOO_LONG, 2), [Ended("a", TOO_LARGE, 6e8)] * 2
    partials = [
        sketch_chunk(0, large, chunk, settings, Watch(None, [too_long] if chunk.number == 1 else []))
        for chunk in large.chunks
    ]
    merge_chunks(0, large, pa.Table.from_batches(partials), settings)
    assert problems(settings, table_name(0)) == {
        "a": "it took longer than 2 s; --table-timeout sets another limit"
    }
    partials = [sketch_chunk(1, large, chunk, settings) for chunk in large.chunks]
    merge_chunks(1, large, pa.Table.from_batches(partials), settings, Watch(None, too_large))
    assert problems(settings, table_name(1)) == {
        "a": "it needs more than 0.6 GB of memory; --memory sets another limit"
    }
