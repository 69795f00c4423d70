import pickle
import random

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from covary.columns.number_forms import ABSENT
from covary.columns.numbers import NUMBER_SHARE, PLAIN, decide_number_reading, may_be_numbers, read_numbers
from covary.columns.unused_cells import Tally


def text(cells):
    return pl.Series("x", cells, dtype=pl.String)


def reading_of(*cells):
    return decide_number_reading(text(cells))


def values(*cells):
    """What a column's cells are read as, the reading being decided from them."""
    reading = reading_of(*cells)
    assert reading is not None
    assert may_be_numbers([cell.strip() for cell in cells if cell is not None])
    return read_numbers(text(cells), reading).values.to_list()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["$6,600,521 ", "$7,974,650 ", "$515 "], [6600521, 7974650, 515]),
        (["63.90%", "7%", "5 percent", "5 pct", "3‰"], [63.9, 7, 5, 5, 3]),
        (["(1,200)", "($1,200.50)", "-$5", "$-5", "$ (5)", "(5%)"], [-1200, -1200.5, -5, -5, -5, -5]),
        (["1,200-", "+3", "−7", "– 2", "$1.5"], [-1200, 3, -7, -2, 1.5]),
        (["1.234,50 €", "7,5 €", "1.234 €"], [1234.5, 7.5, 1234]),
        (["1 234,5", "1\u202f234\u202f567", "12\u00a0000"], [1234.5, 1234567, 12000]),
        (["1'234.50", "12’000"], [1234.5, 12000]),
        (["12,34,567", "1,234", "Rs. 500", "Rs 5"], [1234567, 1234, 500, 5]),
        (["1.5E+06", "1e-3", "$5"], [1.5e6, 1e-3, 5]),
        (["1,5e3", "0,5"], [1500, 0.5]),
        (["USD 5", "US$ 6.50", "7 EUR", "8kr", "kr. 9", "$.50"], [5, 6.5, 7, 8, 9, 0.5]),
        (["\u00a05\u2009", " 7\t"], [5, 7]),
        (["$\u00a05\u2009", "7\u2003€", "Rs.  8", "Rs. -9", "5."], [5, 7, 8, -9, 5]),
    ],
)
def test_numbers_are_read_with_signs_currencies_and_separators(cells, expected):
    assert values(*cells) == expected


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,234", "5,678"], [1234, 5678]),
        (["1.234", "5.678"], [1.234, 5.678]),
        (["1.234", "5,6"], [1234, 5.6]),
        (["1.234", "0,678"], [1234, 0.678]),
        (["1.234", "1.234.567"], [1234, 1234567]),
        (["1,234", "1,234,567"], [1234, 1234567]),
        (["1,234", "5.6"], [1234, 5.6]),
        (["1234,567", "1,234"], [1234.567, 1.234]),
    ],
)
def test_the_column_decides_what_a_separator_means(cells, expected):
    assert values(*cells) == expected


NO_NUMBERS = (
    "8, 9|1,2,3|13-21|1/2|0:05|2013-01-05|1/5/2013|5 May|555-123-4567|1.2.3|1st|2 nd|0x1F|--5|(5|5)|$|"
    "Infinity|1e999|1e|1,,234|Rs.500|12C|+1-555|CHF 5.-|1 23|½"
)


@pytest.mark.parametrize("cell", NO_NUMBERS.split("|"))
def test_what_is_no_number_is_not_read_as_one(cell):
    assert reading_of(*[cell] * 9) is None
    assert values(*["1.5", "2,345.5", "$3"] * 100, cell)[-1] is None


def test_a_comma_before_two_digits_is_no_thousands_comma():
    for cell in ("12,34", "01,234"):
        assert values("1,234.5", "1.5", *["2.5"] * 30, cell)[-1] is None


@pytest.mark.parametrize(
    ("cells", "expected", "units"),
    [
        (["5.3 km", "7km", "9"], [5.3, 7, 9], ("km",)),
        (["1 acre", "2.5 acres", "3 Acres."], [1, 2.5, 3], ("acre",)),
        (["500 sq ft", "1,200 sq. ft."], [500, 1200], ("sq ft",)),
        (["52 m2", "62.2m2", "7 M²", "(2 m2)"], [52, 62.2, 7, -2], ("m²",)),
        (["3 widgets", "1 widget"], [3, 1], ("widget",)),
        (["3 años", "10 Años"], [3, 10], ("año",)),
        (["1 inch", "3 inches"], [1, 3], ("inch",)),
        (["5 m", "7"], [5, 7], ("m",)),
        (["20°C", "21.5 °C"], [20, 21.5], ("°c",)),
        (["1.5k", "2k"], [1.5, 2], ("k",)),
    ],
)
def test_one_unit_is_dropped(cells, expected, units):
    assert values(*cells) == expected
    assert reading_of(*cells).units == units


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1.5k", "200"], [1500, 200]),
        (["$1.5M", "$2B", "$300"], [1.5e6, 2e9, 300]),
        (["2 million", "1.5 billion", "3 thousand"], [2e6, 1.5e9, 3e3]),
        (["$5m", "$7"], [5e6, 7]),
        (["5 mkr", "1,234 kr", "2.5 kr"], [5e6, 1234, 2.5]),
    ],
)
def test_magnitudes_that_differ_multiply(cells, expected):
    assert values(*cells) == pytest.approx(expected)
    assert reading_of(*cells).multiplies


def test_units_that_differ_are_no_column_of_numbers():
    assert reading_of("5 kg", "7 lb", "8 kg", "9 lb") is None


def test_a_mark_found_in_the_column_means_missing():
    counted = ["7", "s", "12", "S", "(s)"]
    assert reading_of("7", "s", "12", "S").marks == ("s",)
    assert reading_of(*counted) is None  # two marks beside whole numbers could be codes
    assert values("7.5", "s", "12", "(s)", "x") == [7.5, None, 12, None, None]
    assert values("5%", "withheld", "7%", "withheld", "8%") == [5, None, 7, None, 8]


@pytest.mark.parametrize(
    "cells",
    [
        ["K", "1", "2", "3"],
        ["0K", "01", "02", "03"],
        ["A", "B", "1", "2"],
        ["S", "X", "1", "2"],
        ["withheld", "withheld", *"12345"],
        ["007", "123", "456"],
        ["07030", "$10001"],
        ["01M292", "02M411"],
        ["8", "8, 9", *["10"] * 30],
        ["2.5", *["one", "two", "three", "four"] * 2, *["5.5"] * 9],
        ["2.5", *["see note"] * 9],
        ["12B", "14B", "15"],
        ["-", "N/A", None],
        ["s", "s"],
        [],
        [None],
        ["", " "],
    ],
)
def test_codes_words_and_nothing_are_no_numbers(cells):
    assert reading_of(*cells) is None


def test_a_few_leading_zeros_do_not_turn_numbers_into_codes():
    assert decide_number_reading(text([str(number) for number in range(1, 1000)] + ["007"])) == PLAIN
    assert decide_number_reading(text([f"{number}%" for number in range(1, 1000)] + ["007"])).dressed
    assert reading_of("0", "0.5", "10") == PLAIN


@pytest.mark.parametrize(
    "cell", ["<15", ">95%", "≤5", "less than 5", "< $1,000", "10+", "5 or more", ">= 3 km"]
)
def test_a_censored_cell_is_missing(cell):
    read = read_numbers(text(["16", cell, "17"]), reading_of("16", cell, "17"))
    assert (read.values.to_list(), read.unused) == ([16, None, 17], Tally(1))


@pytest.mark.parametrize("mark", [*sorted(ABSENT), "\\N", "#N/A", " NaN ", "INF", " $-   ", "***", "—", "…"])
def test_a_mark_of_absence_is_missing_and_never_nought(mark):
    for number in ("1", "$1"):
        read = read_numbers(text([mark, number, None]), reading_of(mark, number, None))
        assert (read.values.to_list(), read.unused) == ([None, 1, None], Tally(2))


def test_plain_decimals_need_no_more_than_a_cast():
    column = text(["1", "-2.5", "+3", ".5", "1e3", None])
    assert decide_number_reading(column) == PLAIN
    read = read_numbers(column, PLAIN)
    assert read.values.equals(pl.Series("x", [1.0, -2.5, 3.0, 0.5, 1000.0, None]), check_names=True)
    assert read.unused == Tally(1)


def test_what_is_not_understood_is_counted_and_shown():
    read = read_numbers(text(["1", "zebra", " Ant", "bee", "bee", "cow", "1,5", "inf", "1e999"]), PLAIN)
    assert read.values.to_list() == [1] + [None] * 8
    assert read.unused == Tally(1, 7, ("1,5", "1e999", "Ant"))


def test_a_reading_made_of_a_sample_reads_what_the_sample_lacked():
    reading = reading_of("$5", "$7.50")
    read = read_numbers(text(["($1,234)", "€5", "7%", "x"]), reading)
    assert (read.values.to_list(), read.unused.examples) == ([-1234, 5, 7, None], ("x",))
    assert (read.values.name, read.values.dtype) == ("x", pl.Float64)


def test_nearly_all_cells_must_be_numbers():
    assert reading_of(*["1.5"] * 95, *[f"word {place}" for place in range(5)]) is not None
    assert reading_of(*["1.5"] * 94, *[f"word {place}" for place in range(6)]) is None


def test_reading_an_empty_column_gives_an_empty_one():
    for reading in (PLAIN, reading_of("1,5")):
        read = read_numbers(text([]), reading)
        assert (len(read.values), read.values.dtype, read.unused.missing) == (0, pl.Float64, 0)


@pytest.mark.parametrize(
    ("cells", "description"),
    [
        (["1", "2.5"], ""),
        (["$1,234 ", "s", "$7 "], "numbers with $ and thousands commas; s means missing"),
        (["7", "s"], "s means missing"),
        (["1.234,5 €", "(7) €"], "numbers with €, a decimal comma and parentheses"),
        (["5 km", "(1 000.5)"], "numbers with spaces between digits, parentheses and the unit km"),
        (["1.5k", "2m"], "numbers with k and m multiplied out"),
    ],
)
def test_a_reading_describes_itself(cells, description):
    assert reading_of(*cells, *cells).description == description


def test_a_reading_can_be_pickled_and_hashed():
    reading = reading_of("$1,234", "s", "5.5")
    assert pickle.loads(pickle.dumps(reading)) == reading
    assert hash(reading) == hash(pickle.loads(pickle.dumps(reading)))


@pytest.mark.parametrize(
    "cells",
    [["Main Street", "Broadway"], ["01M292", "02M411"], ["1/5/2013", "2/5/2013"], ["K", "Q", "M"], []],
)
def test_a_few_cells_show_that_a_column_is_text(cells):
    assert not may_be_numbers(cells)


def anglo(number):
    return f"{number:,.2f}"


def continental(number):
    return anglo(number).translate(str.maketrans(",.", ".,"))


CONVENTIONS = {
    "plain": "{:.2f}".format,
    "dollars": lambda number: f"${anglo(number)} " if number >= 0 else f"-${anglo(-number)}",
    "accounts": lambda number: anglo(number) if number >= 0 else f"(${anglo(-number)})",
    "trailing minus": lambda number: anglo(number) if number >= 0 else f"{anglo(-number)}-",
    "percent": lambda number: f"{anglo(number)}%",
    "euros": lambda number: f"{continental(number)} €",
    "spaces": lambda number: anglo(number).replace(",", "\u202f").replace(".", ",").replace("-", "−"),
    "apostrophes": lambda number: anglo(number).replace(",", "'"),
    "unit": lambda number: f" {anglo(number)} km",
    "scientific": lambda number: f"EUR {number:.15E}",
}


@pytest.mark.parametrize("convention", CONVENTIONS)
@given(numbers=st.lists(st.integers(-(10**12), 10**12).map(lambda cents: cents / 100), min_size=1))
def test_what_is_written_by_a_convention_is_read_back(convention, numbers):
    assert values(*map(CONVENTIONS[convention], numbers)) == numbers


CELLS = st.one_of(
    st.none(),
    st.sampled_from(
        ["s", "x", "N/A", "-", "<15", "07", "8, 9", "1,234", "1.234", "0,5", "5 km", "5k", "7 lb"]
    ),
    st.floats(-1e6, 1e6).map(anglo),
    st.floats(-1e6, 1e6).map(continental),
    st.integers(0, 3000).map(str),
    st.text("0123456789.,-+()$€% ekms'<", max_size=9),
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=5),
)
COLUMNS = st.one_of(
    st.lists(CELLS), st.lists(st.integers(0, 10**9).map(lambda n: f"{n:,}") | CELLS, min_size=20)
)


@given(cells=COLUMNS, seed=st.integers(0, 99))
def test_the_order_of_cells_changes_no_reading(cells, seed):
    shuffled = random.Random(seed).sample(cells, len(cells))
    reading = reading_of(*cells)
    assert reading_of(*shuffled) == reading
    assume(reading is not None)
    one, other = (read_numbers(text(order), reading) for order in (cells, shuffled))
    assert one.values.sort().equals(other.values.sort())
    assert one.unused == other.unused


@given(sample=COLUMNS, cells=COLUMNS)
def test_every_cell_is_counted(sample, cells):
    read = read_numbers(text(cells), decide_number_reading(text(sample)) or PLAIN)
    read_count = len(cells) - read.values.null_count()
    assert read_count + read.unused.missing + read.unused.not_understood == len(cells) == len(read.values)
    assert read.values.is_finite().all()


@given(cells=COLUMNS)
def test_a_column_reads_as_it_was_judged(cells):
    reading = reading_of(*cells)
    assume(reading is not None)
    read = read_numbers(text(cells), reading)
    read_count = len(cells) - read.values.null_count()
    assert 0 < read_count >= NUMBER_SHARE * (len(cells) - read.unused.missing)
    assert may_be_numbers([cell.strip() for cell in cells if cell is not None])
