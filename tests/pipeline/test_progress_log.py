from covary.pipeline.plan import PROGRESS
from covary.pipeline.progress_log import note_progress, read_log, report_progress
from covary.progress import Progress

ODD_NAME = "a\u2028b\x85c\nd\udc80"


def test_a_log_is_read_as_it_was_written_whatever_tables_are_called(tmp_path):
    logs = tmp_path / PROGRESS
    logs.mkdir()
    reports = []
    with report_progress(logs, 2, reports.append):
        note_progress(str(tmp_path), "process", "without")
        for event, table in (("reading", "x"), ("done", "x"), ("reading", ODD_NAME)):
            note_progress(str(tmp_path), "group-0", event, table)
    written = "a\u2028b\x85c d\\udc80"
    assert list(read_log(logs / "group-0")) == [("reading", "x"), ("done", "x"), ("reading", written)]
    assert reports[-1] == Progress(1, 2, (written,), "without")


def test_a_log_that_can_not_be_written_stops_no_work(tmp_path):
    note_progress(str(tmp_path / "gone"), "group-0", "reading", "x")
    assert not (tmp_path / "gone").exists()
