"""Cells, names and messages made to keep a pattern busy: deciding takes as long as they are, no longer."""

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from time import process_time

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import covary
from covary.columns import identifiers, places
from covary.columns import number_forms as numberforms
from covary.columns import numbers as reading_of_numbers
from covary.columns import profile as columns
from covary.columns.column_counts import count_text
from covary.columns.key_reading import decide_key_reading
from covary.columns.key_text import make_canonical
from covary.columns.number_forms import LONGEST_CELL
from covary.columns.numbers import NumberReading, decide_number_reading, read_numbers
from covary.columns.places import recognise_places, write_places
from covary.columns.time_forms import UNIT_OF_FORM, choose_pattern
from covary.columns.times import TimeReading, decide_time_reading, read_times
from covary.columns.unused_cells import LONGEST_EXAMPLE
from covary.errors import NoSuchColumn
from covary.pipeline import spark_errors as sparkerrors
from covary.pipeline.session import PYTHON_SETTING
from covary.query import small_numbers as namesakes
from covary.secrets import Secrets
from covary.sketching.key_columns import read_columns
from covary.sketching.sketch_types import SketchConfig
from covary.tables.formats import csv_header as csvheader
from covary.tables.formats import iceberg as icebergtables
from covary.tables.formats.csv_dialect import sniff
from covary.tables.formats.csv_header import Record, find_header

# Each square took seconds at the second size; what is linear takes milliseconds at the last.
DOUBLED = (2_000, 4_000, 8_000, 16_000, 32_000)
SECONDS = 0.25
MEGABYTE = 1_000_000
REPEATED = {
    "dots": ".", "commas": ",", "quotes": "'", "brackets": "(", "spaces": " ", "line ends": "\n",
    "no-break spaces": "\u00a0", "digits": "9", "zeros": "0", "minuses": "-", "dollars": "$", "letters": "a",
    "thousands": ",234", "spaced thousands": " 234", "a list": ", 9", "currencies": "usd ", "NULs": "\0",
    "camels": "aB1", "NFKC's longest": "\ufdfa", "accents": "\u0301\u0327", "a mixture": "$ 1,234.50 km)",
}  # fmt: skip
AROUND = ("{}", "{}!", "5{}!", "-{}!", "<5{}!", "1 Jan{}!")
PATTERNS: dict[str, Callable[[str], object]] = {
    "likely numbers": numberforms._STARTS_LIKELY.match,
    "marks of absence": numberforms._MISSING.fullmatch,
    "numbers": re.compile(numberforms._write_pattern(".", numberforms._ANY_UNIT, True)).match,
    "numbers with a comma": re.compile(numberforms._write_pattern(",", numberforms._ANY_UNIT, True)).match,
    "digits": numberforms._DIGITS.search,
    "codes": numberforms.is_code,
    "plain decimals": numberforms.PLAIN_DECIMAL.fullmatch,
    "times": choose_pattern(compact=True).fullmatch,
    "cells of a header": csvheader._KIND.fullmatch,
    "shapes of places": places._SHAPE.fullmatch,
    "names of places": places.may_be_numbered,
    "words of a name": identifiers._WORD.findall,
    "words in common": lambda name: namesakes.names_agree(name, name[::-1]),
    "Spark's settings": PYTHON_SETTING.search,
    "versions of metadata": icebergtables.METADATA_FILE.fullmatch,
}
READINGS = (
    NumberReading(dressed=True, units=("km",), spaced=True),
    NumberReading(dressed=True, decimal=","),
    NumberReading(dressed=True, units=("k", "million"), multiplies=True),
)


def hostile_cells(length: int) -> list[str]:
    bodies = [(unit * length)[:length] for unit in REPEATED.values()]
    return [around.format(body) for body, around in product(bodies, AROUND)]


def assert_quick(decide: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Not by the clock: other processes may have the machine."""
    start = process_time()
    decide()
    assert process_time() - start < seconds, what


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_takes_as_long_as_a_cell_is(pattern):
    for length in DOUBLED:
        for cell in hostile_cells(length):
            assert_quick(lambda cell=cell: PATTERNS[pattern](cell), f"{length} characters: {cell[:12]!r}...")


def test_columns_of_hostile_cells_are_judged_quickly():
    for length, (kind, unit) in product((16_000, MEGABYTE), REPEATED.items()):
        body = (unit * length)[:length]
        for cell in (f"-{body}!", f"5{body}!"):
            rows = pl.DataFrame({"amount": [cell, "1,000", "2,500"], "country": [cell, "France", "Peru"]})
            assert_quick(lambda rows=rows: columns.profile_columns(rows), f"{length} {kind}", 2 * SECONDS)


@pytest.mark.parametrize("reading", READINGS)
def test_numbers_are_read_past_a_hostile_cell(reading):
    for kind, unit in REPEATED.items():
        cells = pl.Series([f"5{(unit * MEGABYTE)[:MEGABYTE]}!", "12", "n/a"])
        assert_quick(lambda cells=cells: read_numbers(cells, reading), kind, 8 * SECONDS)
        read = read_numbers(cells, reading)
        assert read.values.to_list() == [None, 12.0, None]
        assert (read.unused.missing, read.unused.not_understood) == (1, 1)
        assert all(len(text) <= LONGEST_EXAMPLE for text in read.unused.examples)


def test_many_hostile_shapes_are_weighed_at_once():
    cells = pl.Series([f"-{' ' * 3_000}{'x' * number}" for number in range(1, 60)])
    assert_quick(lambda: decide_number_reading(cells), "shapes")


def test_the_longest_cells_of_a_column_of_numbers_are_not_understood():
    spaces, dashes = f"$ {' ' * LONGEST_CELL}5", "-" * (LONGEST_CELL + 1)
    cells = pl.Series(["$1,000", "$2,500"] * 50 + [spaces, dashes])
    reading = decide_number_reading(cells)
    assert reading is not None
    read = read_numbers(cells, reading)
    assert (read.values.null_count(), read.unused.missing, read.unused.not_understood) == (2, 0, 2)
    assert read.unused.examples == (spaces[:LONGEST_EXAMPLE], dashes[:LONGEST_EXAMPLE])


def test_padding_around_a_number_does_not_make_it_long():
    cells = pl.Series([f"$1,000{' ' * 300}", f"{' ' * 300}$2,500"] * 10)
    reading = decide_number_reading(cells)
    assert reading is not None
    assert read_numbers(cells, reading).values.unique().sort().to_list() == [1000.0, 2500.0]


def test_a_long_plain_decimal_is_a_number_still():
    cells = pl.Series(["0." + "3" * 300, "2"])
    assert decide_number_reading(cells) == reading_of_numbers.PLAIN
    assert read_numbers(cells, reading_of_numbers.PLAIN).values.to_list() == [pytest.approx(1 / 3), 2.0]


def test_long_cells_that_differ_at_their_end_only_are_two_values():
    cells = pl.Series("note", ["x" * 1_000 + end for end in "ab"])
    assert count_text([cells])["note"].varies
    assert not count_text([cells[[0, 0]]])["note"].varies


def test_examples_are_cut_before_the_smallest_are_chosen():
    cells = pl.Series(["1,000"] * 100 + ["a" * LONGEST_EXAMPLE + str(number) for number in range(5)] + ["b"])
    assert read_numbers(cells, READINGS[0]).unused.examples == ("a" * LONGEST_EXAMPLE, "b")


@pytest.mark.parametrize(
    "cell", ["1/2/2013" + " " * MEGABYTE + "!", "5 Jan" + "-" * MEGABYTE, "9" * MEGABYTE]
)
def test_times_are_read_past_a_hostile_cell(cell):
    cells = pl.Series(["13/2/2013"] * 30 + [cell])
    reading = decide_time_reading(cells)
    assert reading is not None
    every_form = TimeReading(tuple(UNIT_OF_FORM))
    assert_quick(lambda: read_times(cells, every_form), "all forms", 8 * SECONDS)
    assert read_times(cells, reading).null_count() == 1


def test_very_many_accents_are_no_place_and_take_no_time():
    cells = pl.Series(["France", "Peru", "a" + "\u0301\u0327" * 20_000])
    assert_quick(lambda: write_places(cells.str.to_lowercase(), "country"), "reading")
    assert_quick(lambda: recognise_places(cells.str.to_lowercase(), "country"), "deciding")
    assert write_places(pl.Series(["peru"]), "country").to_list() == ["country:per"]


def test_key_text_takes_as_long_as_it_is():
    for kind, unit in REPEATED.items():
        cells = pl.Series([(unit * 100_000)[:100_000] + "’"])
        assert_quick(lambda cells=cells: make_canonical(cells), kind, 12 * SECONDS)


@pytest.mark.parametrize(
    "cell", ["9" * 6_000 + "x", "$" + "9," * 3_000 + "x", "1/1 12:30" + " " * 6_000 + "x"]
)
def test_a_header_of_long_cells_is_found_at_once(cell):
    records = [Record([cell, cell], 10), *[Record([cell, "1"], 20)] * 3]
    assert_quick(lambda: find_header(records, 0), "header")
    assert_quick(lambda: sniff(f"{cell};b\n{cell};1\n{cell};2\n".encode()), "file", 4 * SECONDS)


def test_names_with_no_end_of_words_are_compared_at_once():
    one, other = (
        " ".join(map("".join, product(letters, repeat=4))) for letters in ("abcdefghi", "jklmnopqr")
    )
    assert_quick(lambda: namesakes.names_agree(one, other), "names")


def test_the_nearest_of_very_many_names_are_found_in_time():
    names = ["a" * 59 + chr(0x4E00 + number) for number in range(20_000)]
    assert_quick(lambda: NoSuchColumn("a" * 59 + "!", "t", names), "names", 5.0)
    assert "did you mean population?" in str(NoSuchColumn("popluation", "t", [*names, "population"]))
    assert len(str(NoSuchColumn("x" * MEGABYTE, "t", ["a"]))) < 200


@pytest.mark.parametrize(
    "told",
    [
        "PYTHON_VERSION_MISMATCH" + "." * 20_000,
        "PYTHON_VERSION_MISMATCH " * 6_000,
        'Cannot run program "' * 6_000,
        'RPC that terminated with: details = "' * 400 + "x",
    ],
)
def test_messages_of_spark_are_read_quickly(told):
    assert_quick(
        lambda: (sparkerrors._what_workers_lack(told), sparkerrors._reason(Exception(told), Secrets.of())),
        "told",
        2 * SECONDS,
    )


@pytest.mark.parametrize("name", ["a\0b", "\0"])
def test_a_nul_character_in_a_column_name_is_accepted(name):
    rows = pl.DataFrame({name: ["2013-01-05", "2014-01-06"] * 20_000})
    scheme = SketchConfig().scheme
    for text in (rows, rows.select(pl.col(name) + "x")):
        read = read_columns(text, {name: decide_key_reading(name, text[name])}, scheme)
        assert len(set(next(iter(read[name].levels.values())).hashes.tolist())) == 2
    assert decide_time_reading(rows[name]) == TimeReading(("year-month-day",), "day")


TOKENS = [
    *".,'\"()[]{} \t\n\r\0-+−$€£%‰0123456789aekmx²³٣½Ⅳ߀\u0301\u0327\ufdfaΣßİıﬁ",
    *"\u00a0\u200b\u2028\x1c\x85_/:;#<≤*?😀",
    "1,234", "12:30", "2013-01-05", "Jan", "5 km", "usd", "less than", "or more", "million", "sq ft",
    "per cent", "1e5", "France", "NY", "n/a", "Q1",
]  # fmt: skip
RUNS = st.tuples(st.sampled_from(TOKENS), st.one_of(st.just(1), st.integers(1, 3_000)))
CELLS = st.lists(RUNS, max_size=12).map(lambda runs: "".join(text * times for text, times in runs)[:5_000])
USUAL = st.sampled_from(["1,000", "$2", "5 km", "2013-01-05", "5/1/2013", "France", "NY", "12", "n/a", "8%"])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(CELLS, USUAL), min_size=1, max_size=12), CELLS, st.integers(1, 30))
def test_any_cells_are_decided_on_and_read(cells, name, times):
    rows = pl.DataFrame({name: cells * times})
    assert_quick(lambda: _decide_and_read(rows), repr(cells)[:80], 4.0)


def _decide_and_read(rows: pl.DataFrame) -> None:
    column = rows.to_series()
    for profile in columns.profile_columns(rows):
        if profile.is_number:
            read_numbers(column, profile.number)
        if profile.key:
            read_columns(rows, {profile.name: profile.key}, SketchConfig().scheme)
    for reading in READINGS:
        assert len(read_numbers(column, reading).values) == len(column)
    assert len(read_times(column, TimeReading(tuple(UNIT_OF_FORM)))) == len(column)
    write_places(column, "country")
    recognise_places(column.unique(), column.name)
    find_header([Record(column.to_list(), 1)] * 5, 0)
    sniff("\n".join(column.to_list()).encode())


def test_no_group_is_repeated_possessively():
    """Python before 3.11.5 then finds no match where there is one, so that secrets were shown."""
    package = Path(covary.__file__).parent
    found = [
        f"{path.name}: {line}"
        for path in package.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\)(?:[*+?]|\{[\d,]+\})\+", line)
    ]
    assert not found
