"""A column of numbers: by which forms it is read, decided from its cells, and the reading of it."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from covary.columns.number_forms import (
    LETTER_MARK,
    MAGNITUDES,
    PLAIN_DECIMAL,
    SHAPE,
    SHORT,
    WrittenNumber,
    is_code,
    is_missing,
    mark_leading_zeros,
    mark_missing,
    parse_number,
    read_dressed_cell,
    starts_likely,
)
from covary.columns.unused_cells import Tally, take_examples

NUMBER_SHARE = 0.95
SLIPS = 0.05  # of cells
CODE_SHARE = 0.005  # of numbers written like codes; fewer are slips
_MOST_SHAPES, _MOST_MARKS, _LONGEST_MARK = 2_000, 3, 15
_LENGTHS_TOO, _HOUSE_NUMBERS_TOO = {"m", "mm", "t"}, {"b", "t"}  # among magnitudes: 5 mm; 12B

# Made once, because building an expression costs more than running it on a small table.
_ODD = (pl.col("cell").is_not_null() & ~pl.col("value").is_finite().fill_null(False)).arg_true()
_FINITE = pl.when(pl.all().is_finite()).then(pl.all())
_PLAIN_VALUE = pl.col("cell").cast(pl.Float64, strict=False)


@dataclass(frozen=True, slots=True)
class NumberReading:
    """How a column's text is read as numbers: decided once, so that every part of it is read the same way."""

    decimal: str = "."
    marks: tuple[str, ...] = ()  # stripped, lower case: mean missing here, besides those that do anywhere
    units: tuple[str, ...] = ()  # lower case, in the singular
    multiplies: bool = False  # the units are k, million, ...
    dressed: bool = False  # a number may be more than a plain decimal
    spaced: bool = False  # spaces or apostrophes may part the thousands
    signs: tuple[str, ...] = ()  # what numbers were seen with, in words: says how, doesn't decide it

    @property
    def description(self) -> str:
        """The reading in a short phrase, "" if there's nothing to say."""
        units = _list_words(self.units)
        parts = [*self.signs, f"{units} multiplied out" if self.multiplies else units and f"the unit {units}"]
        phrases = [f"numbers with {_list_words(filter(None, parts))}"] if any(parts) else []
        if self.marks:
            phrases.append(f"{_list_words(self.marks)} {'means' if len(self.marks) == 1 else 'mean'} missing")
        return "; ".join(phrases)


PLAIN = NumberReading()


@dataclass(frozen=True, slots=True, eq=False)
class NumbersRead:
    """The numbers of a column, null where a cell holds none, and a count of such cells."""

    values: pl.Series
    unused: Tally


def may_be_numbers(cells: Iterable[str]) -> bool:
    """Whether a few cells, stripped, leave it open that their column holds numbers."""
    lowered = [cell.lower() for cell in cells]
    # The whole grammar takes 30 times as long to find that a word is no number.
    if 3 * sum(map(starts_likely, lowered)) < len(lowered):
        return False
    telling = [cell for cell in lowered if not (is_missing(cell) or LETTER_MARK.fullmatch(cell))]
    numbers = sum(any(parse_number(cell, 1, decimal) for decimal in ".,") for cell in telling)
    return bool(lowered) and 3 * numbers >= len(telling)


def decide_number_reading(cells: pl.Series) -> NumberReading | None:
    """Decide from cells of text how their column is read; None if it's no column of numbers."""
    cells = cells.alias("cell").drop_nulls()  # a name like ^x$ would be taken for a pattern
    values = cells.cast(pl.Float64, strict=False)
    if not values.null_count() and values.is_finite().all():
        codes = int(mark_leading_zeros(cells).sum())
        return PLAIN if len(cells) and codes <= CODE_SHARE * len(cells) else None
    # Digits are alike but for a leading 0 (1,050 and 2,070 both have the shape 9,099): shapes are few, so
    # plain Python weighs them, by the same grammar that Polars then reads the numbers with.
    shapes = cells.to_frame("cell").select_seq(SHAPE).to_series().value_counts()
    if shapes.height > _MOST_SHAPES:
        shapes = shapes.sort("count", "cell", descending=[True, False]).head(_MOST_SHAPES)
    present = {shape: count for shape, count in shapes.rows() if not is_missing(shape)}
    missing = shapes["count"].sum() - sum(present.values())
    return _decide_from_shapes(present, len(cells) - missing)


def read_numbers(column: pl.Series, reading: NumberReading) -> NumbersRead:
    """Read a column of text; null where a cell is missing or not understood."""
    name, column = column.name, column.alias("cell")
    decimals = column if reading.decimal == "." else column.clear(len(column))
    values = decimals.cast(pl.Float64, strict=False)
    absent = column.null_count()
    if values.null_count() == absent and values.is_finite().all():
        return NumbersRead(values.alias(name), Tally(absent))
    value_in_cell = _PLAIN_VALUE
    if reading.dressed:
        value_in_cell = read_dressed_cell(reading.decimal, reading.units, reading.multiplies, reading.spaced)
    odd = pl.DataFrame({"cell": column, "value": values}).select_seq(_ODD).to_series()
    short = column.gather(odd).to_frame("cell").select_seq(SHORT)
    numbers = short.select_seq(value_in_cell).select_seq(_FINITE).to_series()
    is_no_number = numbers.is_null()
    is_unread = ~short.filter(is_no_number).select_seq(mark_missing(reading.marks)).to_series()
    unread = column.gather(odd.filter(is_no_number).filter(is_unread))
    missing = absent + len(is_unread) - len(unread)
    examples = take_examples(unread.str.strip_chars()) if len(unread) else ()
    return NumbersRead(values.scatter(odd, numbers).alias(name), Tally(missing, len(unread), examples))


def _decide_from_shapes(present: dict[str, int], cells: int) -> NumberReading | None:
    """Weigh the shapes of the cells that are there."""
    point, comma = (
        {shape: number for shape, count in present.items() if (number := parse_number(shape, count, decimal))}
        for decimal in ".,"
    )
    # A shape that is a number by one convention only decides: 1.234,5 or 0,5 or 1,234,567; 1,234 doesn't.
    only_point = sum(present[shape] for shape in point.keys() - comma)
    only_comma = sum(present[shape] for shape in comma.keys() - point)
    # Where commas could separate thousands, a few slips such as 1,23 must not make all of them decimal.
    undecided = sum(present[shape] for shape in point.keys() & comma.keys() if "," in shape)
    decimal, numbers = (".", point)
    if only_comma > max(only_point, SLIPS * undecided):
        decimal, numbers = (",", comma)
    units, multiplies = _find_units(list(numbers.values()))
    numbers = {shape: number for shape, number in numbers.items() if number.unit in {"", *units}}
    read = sum(number.count for number in numbers.values())
    codes = sum(count for shape, count in present.items() if is_code(shape))
    others = {shape: count for shape, count in present.items() if shape not in numbers}
    marks = _find_marks(others, read, bool(units) or any(number.is_measure for number in numbers.values()))
    known = cells - sum(others[mark] for mark in marks)
    if not read or read < NUMBER_SHARE * known or codes > CODE_SHARE * read:
        return None
    dressed = decimal == "," or not all(map(PLAIN_DECIMAL.fullmatch, numbers))
    spaced = any(re.search(r"[\s'’]", number.digits) for number in numbers.values())
    signs = _describe_signs(numbers, decimal)
    return NumberReading(decimal, marks, units, multiplies, dressed, spaced, signs)


def _find_units(numbers: list[WrittenNumber]) -> tuple[tuple[str, ...], bool]:
    """The units that are understood, and whether they multiply: magnitudes, or else the commonest."""
    measures = any(number.is_measure for number in numbers)
    counts: Counter[str] = Counter()
    for number in numbers:
        if measures or number.unit not in _HOUSE_NUMBERS_TOO:
            counts[number.unit] += number.count
    bare = counts.pop("", 0)
    common = min(counts, key=lambda unit: (-counts[unit], unit), default="")
    magnitudes = sorted(counts.keys() & MAGNITUDES.keys())
    is_clear = any(n.sign not in {"", "%"} for n in numbers) or not _LENGTHS_TOO.issuperset(magnitudes)
    if common in MAGNITUDES and is_clear and (bare or len(magnitudes) > 1):
        return tuple(magnitudes), True
    return ((common,) if common else ()), False


def _find_marks(others: dict[str, int], read: int, measures: bool) -> tuple[str, ...]:
    """Which of the texts that are no numbers mean missing."""
    letters = [text for text in others if LETTER_MARK.fullmatch(text)]
    if not measures:  # whole numbers beside several letters are codes: grades, classes
        return tuple(letters) if len(letters) == 1 else ()
    recurring = [
        text
        for text, count in others.items()
        if count > 1 and len(text) <= _LONGEST_MARK and text not in letters and not re.search("[0-9]", text)
    ]
    is_few = len(recurring) <= _MOST_MARKS and read > sum(others[text] for text in recurring)
    return tuple(sorted(letters + recurring if is_few else letters))


def _describe_signs(numbers: dict[str, WrittenNumber], decimal: str) -> tuple[str, ...]:
    """What the numbers are written with, in words."""
    signs = sorted({number.sign for number in numbers.values()} - {""})
    marks = {mark for number in numbers.values() for mark in re.sub("[0-9e.+-]", "", number.digits)}
    comma = "thousands commas" if decimal == "." else "a decimal comma"
    words = {"'": "apostrophes", "’": "apostrophes", ",": comma}
    seen = sorted({words.get(mark, "spaces between digits") for mark in marks})
    return (*signs, *seen, *(["parentheses"] if any("(" in shape for shape in numbers) else []))


def _list_words(words: Iterable[str]) -> str:
    *first, last = list(words) or [""]
    return f"{', '.join(first)} and {last}" if first else last
