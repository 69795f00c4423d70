from torture.report import write_page
from torture.trials import CRASH, Breach, Outcome, Suite


def suite(name):
    return Suite(name, 2, 1.0, lambda workplace, numbers: iter(()), f"what {name} tries")


def outcomes(name, *messages, skipped=""):
    breaches = tuple(Breach(CRASH, message) for message in messages)
    return [Outcome(name, 0, "it", 1.0, 1 << 20, breaches), Outcome(name, 1, "it", 2.0, 1 << 20, (), skipped)]


def test_a_suite_that_is_run_again_takes_its_old_row_and_breaches_away():
    one, two = suite("one"), suite("two")
    whole = {one: outcomes("one", "it fell"), two: outcomes("two", "it broke", skipped="no disk")}
    page = write_page(whole, "./run torture --write", 1, 3.0, [one, two], "")
    assert ("- one 0, crashes (it): it fell" in page, "- two 0, crashes (it): it broke" in page) == (
        True,
        True,
    )
    again = {one: outcomes("one")}
    page = write_page(again, "./run torture --only one --write", 2, 1.0, [one, two], page)
    assert "it fell" not in page
    assert "- two 0, crashes (it): it broke" in page
    assert "- two: 1 (no disk)" in page
    assert "| one | 2 | 0 |" in page
    assert "| two | 1 | 1 |" in page
    assert page.count("`./run torture --write`, seed 1") == 1
    assert page.count("Then again one: `./run torture --only one --write`, seed 2") == 1
    page = write_page(again, "./run torture --only one --write", 3, 1.0, [one, two], page)
    assert page.count("Then again one: ") == 1
    assert "seed 3" in page
