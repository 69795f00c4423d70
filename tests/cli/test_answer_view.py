import io
import json
import math
import time
from dataclasses import asdict

import numpy as np
import pytest
from rich.console import Console

from covary.cli.answer_view import (
    chance_lines,
    closing_line,
    estimate_sentence,
    estimate_view,
    hits_view,
    how_it_joins,
)
from covary.cli.terminal import as_json_value
from covary.cli.words import chance_of, count_of, duration, format_r, printable, size_of
from covary.query.hits import Hit, Hits, QueryNote
from covary.statistics.estimate import Estimate
from covary.statistics.key_sets import KeySets, SetEstimate

QUERY = QueryNote("flights", "time_hour", "dep_delay", "mean", "", 336_776, 6805.14, 8255)


def estimate(r=0.5, low=0.4, high=0.6, n=800, total=6714.9, exact=False, **more):
    given = {
        "correlation": r,
        "low": low,
        "high": high,
        "measure": "pearson",
        "interval": "influence",
        "confidence": 0.95,
        "p_value": 0.013,
        "sample_size": n,
        "overlap": total,
        "overlap_error": 0.0 if exact else 80.0,
        "containment": 0.98,
        "containment_error": 0.01,
        "join_size": total,
        "exact": exact,
        "reason": None,
    }
    return Estimate(**given | more)


def hit(
    table="weather",
    value="temp",
    estimated=None,
    rows=300,
    keys=100.0,
    dropped=0,
    aggregate="mean",
    score=0.4,
    key="hour",
    query_key="time_hour",
    granularity="",
    hosts=None,
):
    fields = asdict(estimated or estimate())
    return Hit(
        **fields,
        table=table,
        key=key,
        value=value,
        aggregate=aggregate,
        score=score,
        q_value=0.004,
        q_value_by=0.3,
        rows=rows,
        distinct_keys=keys,
        dropped_rows=dropped,
        rows_per_key=(rows - dropped) / keys,
        granularity=granularity,
        query_key=query_key,
        met=((query_key, key),),
        query_distinct_keys=QUERY.distinct_keys,
        query_rows_per_key=49.5,
        hosts=hosts,
    )


def hits(*listed, **more):
    given = {
        "query": QUERY,
        "candidates": 9,
        "hidden": 0,
        "own": 0,
        "unrelated": 0,
        "common": 0,
        "hosts": 0,
        "constant": 0,
        "tested": 9,
        "survivors": 7,
        "level": 0.05,
        "correction": "bh",
        "max_q": None,
        "retrieve": None,
        "shortlist": None,
        "undefined": 0,
        "scored_by": "pearson",
        "tested_by": "pearson",
        "hits": listed,
        "by_chance": None,
        "measure": "pearson",
        "interval": "influence",
        "confidence": 0.95,
        "rank": "finite-population",
        "min_sample": 10,
        "seed": 0,
        "ambiguous": (),
        "damage": (),
        "elapsed_ms": 281.4,
    }
    return Hits(**given | more)


def text_of(view, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(view)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("number", "written"),
    [(0.514, "+0.51"), (-0.2539, "-0.25"), (-0.001, "+0.00"), (0.0, "+0.00"), (1, "+1.00")],
)
def test_a_correlation_has_a_sign_and_two_decimals(number, written):
    assert format_r(number) == written


def test_an_estimated_count_is_marked_as_one():
    assert count_of(1, "table") == "1 table"
    assert count_of(1458, "sketch") == "1,458 sketches"
    assert count_of(6805.14, "key") == "~6,805 keys"


def test_times_and_sizes_have_a_unit_that_suits_them():
    assert [duration(0.4), duration(281.4), duration(12_340)] == ["0 ms", "281 ms", "12.3 s"]
    assert [size_of(999), size_of(660_500), size_of(3.2e9)] == ["999 bytes", "660.5 kB", "3.2 GB"]


def test_json_holds_null_for_what_is_not_finite():
    values = {"a": math.nan, "b": [math.inf, 1.5], "c": (np.float64(2.0), None, "x", 3, True)}
    assert json.loads(json.dumps(as_json_value(values), allow_nan=False)) == {
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
    exact = hit(estimated=estimate(0.5, 0.5, 0.5, 365, 365.0, exact=True))
    line = text_of(hits_view(hits(exact), 120), 120).splitlines()[2]
    assert line.split()[:7] == ["1", "weather", "temp", "+0.50", "exact", "all", "365"]


def test_a_wide_answer_has_one_line_for_each_hit():
    shown = text_of(hits_view(hits(hit(), hit(value="dewp", estimated=estimate(-0.3, -0.4, -0.2))), 120), 120)
    headline, headings, first, second, chance, closing = (line.rstrip() for line in shown.splitlines())
    assert headline == "What moves with flights.dep_delay (mean per time_hour, ~6,805 keys)"
    assert headings.split("  ")[0] == "#"
    assert first.endswith("time_hour = weather.hour; 3 rows per key averaged")
    assert "-0.30  [-0.40, -0.20]  800/~6,715  0.004" in second
    assert chance.startswith("7 of 9 columns survive 5 %")
    assert closing.startswith("9 columns join")


def test_a_narrow_answer_tells_once_how_neighbours_join():
    shown = text_of(hits_view(hits(hit(), hit(value="dewp"), hit(table="sun")), 80), 80)
    lines = [line.rstrip() for line in shown.splitlines()]
    assert all(len(line) <= 80 for line in lines)
    assert " 1-2  time_hour = weather.hour; 3 rows per key averaged" in lines
    assert "   3  time_hour = sun.hour; 3 rows per key averaged" in lines


def test_an_estimate_is_a_sentence():
    assert estimate_sentence(estimate()) == (
        "r = +0.50, 95 % between +0.40 and +0.60, from 800 of about 6,715 shared keys, p = 0.013"
    )
    assert estimate_sentence(estimate(0.97, 0.97, 0.97, 365, 365.0, exact=True, p_value=1e-9)) == (
        "r = +0.97, from 365 of 365 shared keys, p < 0.001 (exact)"
    )
    assert estimate_sentence(estimate(0.2, None, None, measure="qn", interval=None)) == (
        "qn = +0.20, from 800 of about 6,715 shared keys, p = 0.013"
    )
    undefined = estimate(
        None, None, None, 40, 40.0, measure="spearman", reason="there is nothing", p_value=None
    )
    assert estimate_sentence(undefined) == "ρ is undefined: there is nothing"


def test_an_estimate_tells_how_the_keys_meet():
    counted, about = SetEstimate(40.0, 0.0), SetEstimate(6714.9, 80.2)
    share, rough = SetEstimate(0.4, 0.0), SetEstimate(0.98, 0.014)
    keys = KeySets(about, about, about, counted, share, share, rough)
    shown = text_of(estimate_view(estimate(), keys, QUERY, QUERY), 200).splitlines()[2]
    assert shown.startswith(
        "They share 40 keys: 40 % of the ~6,715 keys of flights, 98 ± 1 % of the ~6,715 keys"
    )
    keys = KeySets(about, about, about, about, share, share, rough)
    shown = text_of(estimate_view(estimate(), keys, QUERY, QUERY), 200).splitlines()[2]
    assert shown.startswith("They share about 6,715 ± 80 keys")


def test_a_chance_is_written_with_two_digits():
    assert [chance_of(p) for p in (0.0, 0.0009, 0.0042, 0.05, 0.123, 1.0, None)] == [
        "<0.001", "<0.001", "0.0042", "0.05", "0.12", "1.00", "",
    ]  # fmt: skip


def test_the_screen_says_how_many_may_be_chance():
    assert chance_lines(hits(hit(), tested=41_200, survivors=37)) == [
        "37 of 41,200 columns survive 5 %: on average 5 % of survivors at most are chance "
        "(--max-q 0.05 shows them alone)."
    ]
    assert chance_lines(hits(tested=9, survivors=0, tested_by="spearman")) == [
        "0 of 9 columns survive 5 % by spearman."
    ]
    assert chance_lines(hits(tested=0, survivors=0)) == []


def test_hits_of_chance_stand_beside_the_real_ones():
    by_chance = (hit(value="noise", estimated=estimate(-0.11), score=0.35),)
    answer = hits(hit(), hit(value="dewp", score=0.3), by_chance=by_chance)
    lines = [line.rstrip() for line in text_of(hits_view(answer, 160), 160).splitlines()]
    assert "by chance" in lines[1]
    assert "0.004      -0.11" in lines[2]
    assert "0.004          –" in lines[3]
    assert lines[5] == (
        "With your numbers shuffled over their keys, the best hit is weather.noise: r = -0.11; "
        "1 of the 2 shown ranks above it."
    )
    assert "no column has a correlation" in chance_lines(hits(hit(), by_chance=()))[1]


def test_the_q_shown_is_that_of_the_correction_chosen():
    shown = text_of(hits_view(hits(hit(), correction="by"), 160), 160)
    assert "0.30" in shown
    assert "q (by)" in shown


def test_a_measure_without_an_interval_has_no_column_for_it():
    shown = text_of(hits_view(hits(hit(estimated=estimate(0.2, None, None)), measure="qn"), 160), 160)
    assert "95 %" not in shown


def test_another_confidence_is_in_the_heading():
    assert "90 %" in text_of(hits_view(hits(hit(estimated=estimate(confidence=0.9))), 160), 160)


def test_the_closing_line_tells_the_length_of_the_shortlist():
    line = closing_line(hits(hit(), shortlist=4, scored_by="spearman", measure="qn", max_q=0.01))
    assert "the best 4 by spearman and finite-population measured by qn (--shortlist)" in line
    assert "only q of at most 0.01 shown (--max-q)" in line
    assert "all 9 measured by qn" in closing_line(hits(hit(), shortlist=9, measure="qn"))
    assert "2 without a qn (too many equal values)" in closing_line(hits(hit(), undefined=2, measure="qn"))
    assert "of 9, those sharing the most sampled keys were looked at (--retrieve)" in closing_line(
        hits(hit(), retrieve=9)
    )


def test_names_of_millions_of_characters_are_laid_out_at_once():
    long = hit("t" * 3_000_000, "v" * 3_000_000, key="k," * 3_000_000)
    started = time.monotonic()
    for width in (80, 10**8):
        assert len(text_of(hits_view(hits(long), width), 128)) < 100_000
    assert time.monotonic() - started < 5
