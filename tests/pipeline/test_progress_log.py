from covary.pipeline.plan import PROGRESS
from covary.pipeline.progress_log import open_log, read_log, report_progress
from covary.progress import Progress

ODD_NAME = "a\u2028b\x85c\nd\udc80"


def test_a_log_is_read_as_it_was_written_whatever_tables_are_called(tmp_path):
    logs = tmp_path / PROGRESS
    logs.mkdir()
    reports = []
    with report_progress(logs, 2, reports.append):
        with open_log(str(tmp_path), "process") as note:
            note("without")
        with open_log(str(tmp_path), "group-0") as note:
            for event, table in (("reading", "x"), ("done", "x"), ("reading", ODD_NAME)):
                note(event, table)
    written = "a\u2028b\x85c d\\udc80"
    assert list(read_log(logs / "group-0")) == [("reading", "x"), ("done", "x"), ("reading", written)]
    assert reports[-1] == Progress(1, 2, (written,), "without")


def test_a_log_that_can_not_be_written_stops_no_work(tmp_path):
    with open_log(str(tmp_path / "gone"), "group-0") as note:
        note("reading", "x")
    assert not (tmp_path / "gone").exists()
