import json
import os
import socket

import numpy as np
import polars as pl
import pytest

import covary.pipeline.plan
from covary import CovaryError, build_index, open_index
from covary.errors import CannotWrite, IncompatibleSketches
from covary.index.manifest import seal_of
from covary.index.segment_files import open_segment, write_part
from covary.index.segment_layout import build_segment
from covary.index.table_records import TableRecord
from covary.pipeline.process_runner import ProcessRunner


def test_the_running_session_is_used_and_left_running(spark, lake, tmp_path):
    index = build_index(lake.folder, tmp_path / "index")
    assert index.sketch_count == 8
    assert spark.range(3).count() == 3


def test_another_master_beside_a_running_session_is_refused(spark, lake, tmp_path):
    with pytest.raises(CovaryError, match="already running"):
        build_index(lake.folder, tmp_path / "index", master="local[1]")
    assert not (tmp_path / "index").exists()
    assert spark.range(3).count() == 3


class IdleRunner(ProcessRunner):
    def run(self, plan, settings):
        pass


def test_parts_that_did_not_arrive_are_told(lake, tmp_path):
    with pytest.raises(CannotWrite, match="did not arrive"):
        build_index(lake.folder, tmp_path / "index", runner=IdleRunner())
    assert not (tmp_path / "index").exists()


def test_a_task_tried_again_leaves_the_segment_as_it_was(tmp_path):
    segment = build_segment([(TableRecord("a", "/a.csv", 3), [])])
    for _ in range(2):
        write_part(segment, tmp_path / "group-000000")
    assert [path.name for path in tmp_path.iterdir()] == ["group-000000"]
    assert open_segment(tmp_path / "group-000000").tables.equals(segment.tables)


def test_the_index_does_not_depend_on_how_the_work_was_cut(monkeypatch, lake, tmp_path):
    whole = build_index(lake.folder, tmp_path / "whole", runner="process")
    monkeypatch.setattr(covary.pipeline.plan, "SMALLEST_GROUP_BYTES", 1)
    monkeypatch.setattr(covary.pipeline.plan, "GROUP_BYTES", 1)
    assert build_index(lake.folder, tmp_path / "cut", runner="process").manifest == whole.manifest


def test_a_large_collection_is_kept_in_several_segments_that_answer_alike(monkeypatch, lake, tmp_path):
    whole = build_index(lake.folder, tmp_path / "whole", runner="process")
    monkeypatch.setattr(covary.index.merge, "ENTRIES_PER_SEGMENT", 1)
    monkeypatch.setattr(covary.index.merge, "MOST_SEGMENTS", 3)
    apart = build_index(lake.folder, tmp_path / "apart", runner="process")
    assert (len(whole.segments), len(apart.segments)) == (1, 4)
    answers = [index.query(lake.query, "place", "x", top=20).hits for index in (whole, apart)]
    assert answers[0] == answers[1]
    assert len(answers[0]) == 8


def test_an_index_of_another_normaliser_or_seed_is_refused(lake, tmp_path):
    build_index(lake.folder, tmp_path / "index", runner="process")
    manifest = tmp_path / "index" / "manifest.json"
    content = json.loads(manifest.read_text())
    del content["checksum"]
    content["config"]["normaliser"] = "text-0"
    manifest.write_text(json.dumps(content | {"checksum": seal_of(content)}))
    with pytest.raises(IncompatibleSketches, match="text-0"):
        open_index(tmp_path / "index").query(lake.query, "place", "x")
    content["config"] |= {"normaliser": "text-1", "seed": 7}
    manifest.write_text(json.dumps(content | {"checksum": seal_of(content)}))
    with pytest.raises(CovaryError, match="seed"):
        open_index(tmp_path / "index")


def test_thousands_of_constant_columns_are_no_trouble(tmp_path):
    keys = [f"k{n}" for n in range(50)]
    constants = {f"c{n}": np.full(50, float(n)) for n in range(300)}
    varying = {"y": np.arange(50.0) * 1.5}
    pl.DataFrame({"key": keys, **constants, **varying}).write_parquet(tmp_path / "wide.parquet")
    index = build_index(tmp_path / "wide.parquet", tmp_path / "index", runner="process")
    hits = index.query(pl.DataFrame({"key": keys, "x": np.arange(50.0)}), "key", "x")
    assert [hit.value for hit in hits] == ["y"]
    assert hits.constant == 300


def test_a_mistyped_key_among_right_ones_is_told(lake, tmp_path):
    with pytest.raises(CovaryError, match=r"no column 'plaxe'.*did you mean place"):
        build_index(lake.folder, tmp_path / "index", runner="process", keys=["place", "plaxe"])


def test_a_name_that_is_no_text_is_indexed(lake, tmp_path):
    odd = os.fsencode(tmp_path) + b"/b\xff.csv"
    with open(odd, "wb") as file:
        file.write((lake.folder / "strong.csv").read_bytes())
    index = build_index(tmp_path, tmp_path / "index", runner="process")
    assert index.tables["name"].to_list() == ["b\\udcff"]


def test_what_a_killed_build_left_is_swept_by_the_next(lake, tmp_path):
    index = tmp_path / "index"
    build_index(lake.folder, index, runner="process")
    dead = index / f".building-{socket.gethostname()}-999999999-0123456789ab"
    dead.mkdir()
    build_index(lake.folder, index, runner="process")
    assert not dead.exists()
