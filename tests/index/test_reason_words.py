import datetime as dt

import polars as pl
import pytest

from covary.columns.profile import profile_columns
from covary.columns.reasons import Cause
from covary.index.reason_words import IDENTIFIERS, OTHERS, explain_column, explain_left_out, leaves_day_open
from covary.sketching.roles import LeftOut


def reason_of(values, name="x"):
    (profile,) = profile_columns(pl.DataFrame({name: values}, strict=False))
    return explain_column(profile)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("x", ["", "NA"], "no values"),
        ("x", ["a", "a"], "one value only"),
        ("x", [["list"], ["list2"]], "List(String) can't be a key or a number"),
        ("x", ["word " * 60, "other " * 60], "long text"),
        ("x", ["a", "b"], "text"),
        ("x", ["yes", "no"], "booleans as text"),
        ("x", [dt.date(2013, 1, 1), dt.date(2013, 1, 2)], "dates"),
        ("x", ["1.5", "2"], "numbers with a fraction"),
        ("x", ["3", "9", "4"], "whole numbers"),
        ("x", ["$3", "$9", "$4"], "numbers with $"),
        ("zip_code", [10001, 7030], 'named like an identifier: "code"'),
        ("zip_code", [7030, 7030], 'named like an identifier: "code", but one value only'),
        ("year", [2011, 2013], 'named like an identifier: "year"; years'),
        ("x", ["07030", "10001"], "looks like a code: leading zeros"),
        ("x", ["20130105", "20131231"], "dates as YYYYMMDD; dates written yyyymmdd"),
        ("x", [2125550000 + 7 * n for n in range(30)], "ten digits, as phone numbers have"),
        ("x", list(range(5000, 5050)), "unique row number"),
    ],
)
def test_each_reason_is_worded(name, values, reason):
    assert reason_of(values, name) == reason


def test_each_cause_has_words():
    own_words = {Cause.TEXT, Cause.DECLARED_TYPE, Cause.FRACTIONS, Cause.WHOLE_NUMBERS}
    assert {*IDENTIFIERS, *OTHERS} | own_words == {*Cause}


def test_dates_of_which_nothing_shows_the_day_are_known_by_their_reason():
    assert leaves_day_open(reason_of(["1/5/2013", "2/6/2013"]))
    assert not leaves_day_open(reason_of(["1/5/2013", "1/26/2013"]))


def test_what_was_left_out_is_worded_with_a_remedy():
    assert explain_left_out(LeftOut("number columns", 3, 1200, are_named=False)) == (
        "3 of 1,200 number columns were left out to keep the index in proportion: "
        "name those you ask about with --value"
    )
