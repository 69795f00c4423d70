import json
import os
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from covary.errors import (
    CannotWrite,
    DamagedIndex,
    IncompatibleSketches,
    IndexBusy,
    NotAnIndex,
    UnsupportedFormat,
)
from covary.index.check import check_index, require_sound
from covary.index.commit import commit, open_draft
from covary.index.history import read_history
from covary.index.manifest import Manifest, read_manifest
from covary.index.segment_files import FILES, write_segment
from covary.index.segment_layout import LONG_PIECE, build_segment, pieces, starts_of
from covary.index.table_records import TableRecord
from covary.query.ask import open_index
from covary.sketching.kernel import finish, sketch_rows
from covary.sketching.key_columns import exact_key
from covary.sketching.sketch_types import SketchConfig

CONFIG = SketchConfig(16)
ENTRIES = ["covary-index", "history.jsonl", "lock", "manifest.json", "segments"]


def segment_of(table, rows=30):
    frame = pl.DataFrame({"k": [f"k{n}" for n in range(rows)]})
    values = pl.Series("v", np.arange(rows, dtype=float))
    made = finish(sketch_rows(frame, [exact_key("k")], {"v": values}, CONFIG, table), CONFIG)
    return build_segment([(TableRecord(table, f"/{table}.csv", rows), made)])


def write_index(folder, table="t", fail=None):
    with open_draft(folder) as draft:
        stored = write_segment(segment_of(table), draft.folder)
        if fail:
            raise fail
        commit(draft, Manifest(CONFIG, (stored,)))


def segment_in(index):
    """Return the folder of the only segment."""
    [folder] = (index / "segments").iterdir()
    return folder


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def index(tmp_path):
    folder = tmp_path / "index"
    write_index(folder)
    return folder


SEGMENT_FILES = sorted(FILES)


def test_a_manifest_is_read_as_it_was_written(index):
    manifest = read_manifest(index)
    assert manifest.config == CONFIG
    assert sorted(manifest.segments[0].files) == SEGMENT_FILES


@pytest.mark.parametrize("name", SEGMENT_FILES)
def test_an_altered_file_is_named(index, name):
    file = segment_in(index) / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert any(damaged.endswith(name) for damaged in check_index(index).damaged)
    with open_draft(index) as draft, pytest.raises(DamagedIndex, match=f"{name} is damaged: "):
        require_sound(draft.index, read_manifest(index).segments[0], CONFIG.scheme)


@pytest.mark.parametrize("name", SEGMENT_FILES)
def test_a_truncated_or_missing_file_is_named(index, name):
    file = segment_in(index) / name
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DamagedIndex, match=f"{name} is damaged: .* bytes instead of"):
        open_index(index)
    file.unlink()
    with pytest.raises(DamagedIndex, match=f"{name} is damaged: it is missing"):
        open_index(index)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", "{}", '{"format": 8}', '{"format": 8, "config": 3}']
)
def test_a_damaged_manifest_is_named(index, content):
    (index / "manifest.json").write_text(content)
    with pytest.raises(DamagedIndex, match=r"manifest\.json is damaged"):
        open_index(index)


@pytest.mark.parametrize("part", ["size", "checksum", "aggregates"])
def test_a_manifest_with_entries_of_another_kind_is_named(index, part):
    content = json.loads((index / "manifest.json").read_text())
    if part == "aggregates":
        content["config"]["aggregates"] = []
    else:
        next(iter(content["segments"][0]["files"].values()))[part] = None
    (index / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(DamagedIndex, match=r"manifest\.json is damaged"):
        open_index(index)


def test_a_manifest_that_was_altered_is_damage_whatever_it_says(index):
    text = (index / "manifest.json").read_text()
    (index / "manifest.json").write_text(text.replace('"size": 16', '"size": 15'))
    assert (index / "manifest.json").read_text() != text
    with pytest.raises(DamagedIndex, match=r"manifest\.json is damaged: it was altered"):
        open_index(index)


def test_a_history_that_can_not_be_read_is_damage(index):
    (index / "history.jsonl").unlink()
    (index / "history.jsonl").mkdir()
    with pytest.raises(DamagedIndex, match=r"history\.jsonl is damaged; remove it"):
        read_history(index)


def test_a_segment_that_is_a_file_is_damage(index):
    folder = segment_in(index)
    shutil.rmtree(folder)
    folder.write_text("no folder")
    with pytest.raises(DamagedIndex, match="is damaged: Not a directory"):
        open_index(index)


def test_a_second_writer_is_refused_and_told_who_writes(index):
    before = files_of(index / "segments")
    with open_draft(index) as draft:
        with pytest.raises(IndexBusy, match=rf"being written by process {os.getpid()} on .*; try again"):
            write_index(index, "other")
        commit(draft, Manifest(CONFIG, (write_segment(segment_of("mine"), draft.folder),)))
    assert open_index(index).tables["name"].to_list() == ["mine"]
    write_index(index, "t")
    assert files_of(index / "segments") == before


def test_a_second_writer_of_a_first_build_leaves_it_alone(tmp_path):
    with open_draft(tmp_path / "index") as draft:
        with pytest.raises(IndexBusy):
            write_index(tmp_path / "index")
        assert draft.folder.exists()
        commit(draft, Manifest(CONFIG, (write_segment(segment_of("mine"), draft.folder),)))
    assert open_index(tmp_path / "index").tables["name"].to_list() == ["mine"]


def test_a_writer_without_the_lock_is_noticed_at_the_end(index):
    with pytest.raises(IndexBusy, match="in the meantime"), open_draft(index) as draft:
        stored = write_segment(segment_of("late"), draft.folder)
        (index / "manifest.json").write_text((index / "manifest.json").read_text() + " ")
        commit(draft, Manifest(CONFIG, (stored,)))
    assert open_index(index).tables["name"].to_list() == ["t"]


def test_another_format_version_is_refused(index):
    content = json.loads((index / "manifest.json").read_text())
    (index / "manifest.json").write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(UnsupportedFormat, match="format version 99"):
        open_index(index)


def test_what_is_no_index_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotAnIndex, match="does not exist"):
        open_index(tmp_path / "nowhere")
    with pytest.raises(NotAnIndex, match="is not a covary index"):
        open_index(tmp_path)
    with pytest.raises(NotAnIndex, match="is a file"):
        open_index(tmp_path / "file")


def test_an_index_whose_first_build_is_not_done_says_so(tmp_path):
    index = tmp_path / "new"
    with open_draft(index), pytest.raises(NotAnIndex, match="not an index yet: its first build is not done"):
        open_index(index)
    with pytest.raises(NotAnIndex, match="does not exist; make one"):
        open_index(index)


def test_a_folder_of_other_files_is_never_written_to(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(CannotWrite, match="holds other files"):
        write_index(tmp_path)
    assert files_of(tmp_path) == {"thesis.txt": b"years of work"}
    with pytest.raises(CannotWrite, match="is a file"):
        write_index(tmp_path / "thesis.txt")


def test_a_new_build_replaces_the_index_and_removes_the_old_segments(index):
    before = segment_in(index)
    write_index(index, "other")
    assert open_index(index).tables["name"].to_list() == ["other"]
    assert segment_in(index) != before
    assert sorted(path.name for path in index.iterdir()) == ENTRIES


def test_an_index_that_is_open_answers_while_it_is_replaced(index):
    opened = open_index(index)
    before = opened.sketch("t", "k", "v").values.tobytes()
    write_index(index, "other")
    assert opened.sketch("t", "k", "v").values.tobytes() == before


@pytest.mark.parametrize(
    "problem", [OSError(28, "No space left on device"), ValueError("a bug"), KeyboardInterrupt()]
)
def test_a_failed_build_leaves_the_index_as_it_was(index, problem):
    before = files_of(index)
    expected = CannotWrite if isinstance(problem, OSError) else type(problem)
    with pytest.raises(expected):
        write_index(index, "other", fail=problem)
    assert files_of(index) == before
    assert sorted(path.name for path in index.iterdir()) == ENTRIES


def test_a_failed_first_build_leaves_no_folder(tmp_path):
    with pytest.raises(CannotWrite, match="the disk is full"):
        write_index(tmp_path / "index", fail=OSError(28, "No space left on device"))
    assert not (tmp_path / "index").exists()


def test_a_read_only_place_is_told(tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    if os.geteuid():
        folder.chmod(0o555)
        with pytest.raises(CannotWrite, match="no permission; nothing was changed"):
            write_index(folder / "index")
        return
    # Permissions don't bind root: a read-only file system does.
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("can't mount a read-only file system, and permissions don't bind root")
    try:
        with pytest.raises(CannotWrite, match="it is read-only; nothing was changed"):
            write_index(folder / "index")
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("length", [3, LONG_PIECE + 1])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 3, 1], [1, 2], []])
def test_pieces_of_an_array_are_its_slices(length, order):
    array = np.random.default_rng(5).normal(size=400)
    lengths = np.array([length, 0, 2 * length, length])
    starts = starts_of(lengths)[:-1] + 7
    slices = [array[starts[number] : starts[number] + lengths[number]] for number in order]
    chosen = np.array(order, dtype=np.int64)
    joined = pieces(array, starts[chosen], lengths[chosen])
    assert joined.tolist() == np.concatenate([*slices, np.empty(0)]).tolist()


def rewrite(index, **changed):
    """Write a manifest that says something else, under a seal that fits."""
    manifest = replace(read_manifest(index), **changed)
    (index / "manifest.json").write_text(manifest.to_json(), encoding="utf-8")


def test_a_manifest_that_removes_tables_which_are_not_there_is_refused(index):
    [stored] = read_manifest(index).segments
    rewrite(index, segments=(replace(stored, removed=(0, 1 << 20)),))
    with pytest.raises(DamagedIndex, match="removes tables that it has not"):
        open_index(index)
    assert check_index(index).damaged


def test_check_refuses_keys_of_a_kind_that_it_does_not_know(index):
    rewrite(index, config=replace(CONFIG, normaliser="nonsense"))
    with pytest.raises(IncompatibleSketches, match="keys were written by 'nonsense'"):
        check_index(index)
