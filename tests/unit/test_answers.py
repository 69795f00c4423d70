import io
import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from rich.console import Console

from covary.answers import closing_line, estimate_sentence, hits_view, how_it_joins
from covary.query import Estimate, Hit, Hits, QueryNote
from covary.terminal import plain
from covary.wording import count_of, duration, printable, signed, size_of

QUERY = QueryNote("flights", "time_hour", "dep_delay", "mean", 336_776, 6805.14, 8255)


def estimate(r=0.5, low=0.4, high=0.6, n=800, total=6714.9, exact=False, measure="pearson"):
    return Estimate(r, low, high, measure, n, total, 0.98, total, exact)


def hit(table="weather", value="temp", found=None, rows=300, keys=100.0, dropped=0, aggregate="mean"):
    fields = asdict(found or estimate())
    return Hit(
        **fields,
        table=table,
        key="hour",
        value=value,
        aggregate=aggregate,
        score=0.4,
        rows=rows,
        distinct_keys=keys,
        dropped_rows=dropped,
    )


def hits(*found, candidates=9, hidden=0, own=0, elapsed_ms=281.4, measure="pearson"):
    return Hits(QUERY, candidates, hidden, own, 0, found, measure, "finite-population", 10, elapsed_ms)


def text_of(view, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(view)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("number", "written"),
    [(0.514, "+0.51"), (-0.2539, "-0.25"), (-0.001, "+0.00"), (0.0, "+0.00"), (1, "+1.00")],
)
def test_a_correlation_has_a_sign_and_two_decimals(number, written):
    assert signed(number) == written


def test_an_estimated_count_is_marked_as_one():
    assert count_of(1, "table") == "1 table"
    assert count_of(1458, "sketch") == "1,458 sketches"
    assert count_of(6805.14, "key") == "~6,805 keys"


def test_times_and_sizes_have_a_unit_that_suits_them():
    assert [duration(0.4), duration(281.4), duration(12_340)] == ["0 ms", "281 ms", "12.3 s"]
    assert [size_of(999), size_of(660_500), size_of(3.2e9)] == ["999 bytes", "660.5 kB", "3.2 GB"]


def test_json_holds_null_for_what_is_not_finite():
    facts = {"a": math.nan, "b": [math.inf, 1.5], "c": (np.float64(2.0), None, "x", 3, True)}
    assert json.loads(json.dumps(plain(facts), allow_nan=False)) == {
        "a": None,
        "b": [None, 1.5],
        "c": [2.0, None, "x", 3, True],
    }


def test_a_name_can_not_command_the_terminal():
    assert printable("a\x1b[31mb\nc\udc80é") == "a�[31mb c�é"
    named = hit(table="[red]x[/red]", value="\x1b]0;title\x07")
    shown = text_of(hits_view(hits(named), 120), 120)
    assert "[red]x[/red]" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("rows", "keys", "dropped", "aggregate", "words"),
    [
        (300, 100.0, 0, "mean", "; 3 rows per key averaged"),
        (240, 100.0, 0, "sum", "; 2.4 rows per key summed"),
        (5000, 10.0, 0, "count", "; 500 rows per key counted"),
        (300, 100.0, 200, "max", ""),
        (100, 100.0, 0, "mean", ""),
    ],
)
def test_how_it_joins_tells_how_rows_became_one_number(rows, keys, dropped, aggregate, words):
    joined = how_it_joins(hit(rows=rows, keys=keys, dropped=dropped, aggregate=aggregate), QUERY)
    assert joined == f"time_hour = weather.hour{words}"


def test_the_closing_line_says_what_was_left_out():
    line = closing_line(hits(hit(), candidates=12, hidden=3, own=10))
    assert line == (
        "9 columns join, the best 1 shown; "
        "3 more hidden (fewer than 10 sampled keys; --min-sample to see them); "
        "10 columns of flights itself left out (--include-own). 281 ms"
    )
    assert closing_line(hits(hit(), candidates=1)) == "1 column joins. 281 ms"


def test_an_exact_hit_is_shown_as_exact():
    exact = hit(found=estimate(0.5, 0.5, 0.5, 365, 365.0, exact=True))
    line = text_of(hits_view(hits(exact), 120), 120).splitlines()[2]
    assert line.split()[:7] == ["1", "weather", "temp", "+0.50", "exact", "all", "365"]


def test_a_wide_answer_has_one_line_for_each_hit():
    shown = text_of(hits_view(hits(hit(), hit(value="dewp", found=estimate(-0.3, -0.4, -0.2))), 120), 120)
    headline, headings, first, second, closing = (line.rstrip() for line in shown.splitlines())
    assert headline == "What moves with flights.dep_delay (mean per time_hour, ~6,805 keys)"
    assert headings.split("  ")[0] == "#"
    assert first.endswith("time_hour = weather.hour; 3 rows per key averaged")
    assert "-0.30  [-0.40, -0.20]  800/~6,715" in second
    assert closing.startswith("9 columns join")


def test_a_narrow_answer_tells_once_how_neighbours_join():
    shown = text_of(hits_view(hits(hit(), hit(value="dewp"), hit(table="sun")), 80), 80)
    lines = [line.rstrip() for line in shown.splitlines()]
    assert all(len(line) <= 80 for line in lines)
    assert " 1-2  time_hour = weather.hour; 3 rows per key averaged" in lines
    assert "   3  time_hour = sun.hour; 3 rows per key averaged" in lines


def test_an_estimate_is_a_sentence():
    assert estimate_sentence(estimate()) == (
        "r = +0.50, 95 % between +0.40 and +0.60, from 800 of about 6,715 shared keys"
    )
    assert estimate_sentence(estimate(0.97, 0.97, 0.97, 365, 365.0, exact=True)) == (
        "r = +0.97, from 365 of 365 shared keys (exact)"
    )
    assert estimate_sentence(estimate(None, None, None, 2, 2.0)) == (
        "r is undefined: it takes 3 shared keys and there are 2"
    )
    assert estimate_sentence(estimate(None, None, None, 40, 40.0, measure="spearman")) == (
        "ρ is undefined: a column has one value only on the 40 shared keys"
    )
