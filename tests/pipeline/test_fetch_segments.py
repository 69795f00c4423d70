import errno

import pyarrow as pa
import pytest

from covary.errors import CannotWrite
from covary.pipeline import fetch_segments as delivery
from covary.pipeline.fetch_segments import DONE, finish_task
from covary.pipeline.plan import PARTS, TaskSettings
from covary.sketching.sketch_types import SketchConfig

FILES = {"empty": b"", "small": b"abc", "even": b"0123456789", "long": bytes(range(256)) * 10}


def segment_made_in(settings):
    folder = delivery.Path(settings.scratch, PARTS, "group-000000")
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)


def settings_in(scratch):
    return TaskSettings(SketchConfig(), (), (), str(scratch))


def answers_of(work, scratch):
    batches = finish_task("group-000000", work, settings_in(scratch))
    return pa.Table.from_batches(batches, schema=DONE).to_pylist()


@pytest.fixture
def pieces(monkeypatch, tmp_path):
    monkeypatch.setattr(delivery, "PIECE_BYTES", 10)
    rows = answers_of(segment_made_in, tmp_path / "not here")
    return [row for row in rows if row["file"]]


def test_a_task_that_sees_the_folder_writes_there_and_sends_nothing(tmp_path):
    (tmp_path / PARTS).mkdir()
    assert [row["file"] for row in answers_of(segment_made_in, tmp_path)] == [None]
    assert (tmp_path / PARTS / "group-000000" / "small").read_bytes() == b"abc"


def test_a_segment_sent_in_pieces_arrives_whole_in_any_order(pieces, tmp_path):
    assert max(piece["size"] for piece in pieces) == 10
    (tmp_path / PARTS).mkdir()
    delivery._write(pieces[::-1], tmp_path)
    delivery._put_in_place("group-000000", sum(piece["size"] for piece in pieces), tmp_path)
    arrived = {file.name: file.read_bytes() for file in (tmp_path / PARTS / "group-000000").iterdir()}
    assert arrived == FILES


def test_a_segment_that_lacks_a_piece_is_not_put_in_place(pieces, tmp_path):
    (tmp_path / PARTS).mkdir()
    delivery._write(pieces[:-1], tmp_path)
    delivery._put_in_place("group-000000", sum(piece["size"] for piece in pieces), tmp_path)
    assert not list((tmp_path / PARTS).iterdir())


def test_a_full_disk_is_told_wherever_it_is(tmp_path):
    def fails(settings):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / PARTS).mkdir()
    for scratch in (tmp_path, tmp_path / "not here"):
        (row,) = answers_of(fails, scratch)
        with pytest.raises(CannotWrite, match=f"can't write the index {tmp_path}: the disk is full"):
            delivery.require_done([row], settings_in(tmp_path / "scratch"))


def test_segments_come_in_rounds_that_are_not_too_large(monkeypatch):
    monkeypatch.setattr(delivery, "ROUND_BYTES", 10)
    assert delivery._share_out({"a": 4, "b": 6, "c": 1, "d": 30, "e": 2}) == [["a", "b"], ["c"], ["d"], ["e"]]
    assert delivery._share_out({}) == []
