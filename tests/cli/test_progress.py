import io
import sys
import time

from rich.console import Console

from covary.cli import progress


def test_a_long_query_shows_that_it_is_at_work_and_how_far(monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(progress, "console", lambda stderr: screen)
    monkeypatch.setattr(progress, "SECONDS_BEFORE_A_BAR", 0.01)
    with progress.showing_work() as show:
        time.sleep(0.3)
        assert "Working" in screen.file.getvalue()
        show(3, 1200)
        time.sleep(0.3)
    assert "3 of 1,200 columns measured" in screen.file.getvalue()


def test_a_short_query_shows_nothing(monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(progress, "console", lambda stderr: screen)
    with progress.showing_work() as show:
        show(3, 1200)
    assert screen.file.getvalue().strip() == ""


def test_what_comes_first_is_shown_until_it_can_be_told_how_far(monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(progress, "console", lambda stderr: screen)
    monkeypatch.setattr(progress, "SECONDS_BEFORE_A_BAR", 0.01)
    with progress.showing_work(first=progress.STARTING_SPARK):
        time.sleep(0.3)
    assert "Starting Spark ..." in screen.file.getvalue()


class Terminal(io.StringIO):
    is_one = True

    def isatty(self):
        return self.is_one


def test_a_bar_goes_on_while_stderr_is_led_elsewhere(monkeypatch):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "SECONDS_BEFORE_A_BAR", 0.01)
    with progress.showing_work(first=progress.STARTING_SPARK):
        terminal.is_one = False  # as when a JVM starts, whose greeting is left out
        time.sleep(0.3)
    assert "Starting Spark ..." in terminal.getvalue()


def test_a_pipe_is_told_what_comes_first_once_it_takes_long(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.1)
    with progress.showing_work(first=progress.STARTING_SPARK) as show:
        time.sleep(0.3)
        show(0, 20)
    assert capsys.readouterr().err.splitlines() == ["Starting Spark ...", "0 of 20 columns measured"]
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.3)
    with progress.showing_work(first=progress.STARTING_SPARK) as show:
        show(0, 20)  # before it took long
        time.sleep(0.6)
    assert capsys.readouterr().err == ""


def test_a_pipe_gets_a_line_now_and_then(capsys):
    now = [0.0]
    with progress._lines_of_work(progress.COLUMNS, "", lambda: now[0]) as show:
        for second in (1.0, 4.0, 6.0, 7.0, 12.0):
            now[0] = second
            show(int(second), 20)
    assert capsys.readouterr().err.splitlines() == ["6 of 20 columns measured", "12 of 20 columns measured"]
