"""Numbers as people write them: `$6,600,521 `, `63.90%`, `(1,200)`, `1.234,50 €`, `5.3 km`; `s` for missing.

How a column's text is read is decided once, from its cells; then any part of it is read the same way.
To decide, cells are counted by shape, digits being alike but for a leading 0: there are few shapes, so plain
Python weighs them, by the same grammar that Polars then reads the numbers with.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_letters

import polars as pl

NUMBER_SHARE = 0.95
SLIPS = 0.05  # of cells
CODE_SHARE = 0.005  # of numbers written like codes; fewer are slips
MOST_SHAPES, MOST_MARKS, LONGEST_MARK = 2_000, 3, 15

ABSENT = frozenset(re.split(r"[|]",
    "|n/a|na|n.a.|n.a|n/d|nd|n.d.|null|(null)|<null>|none|nil|nan|-nan|inf|+inf|-inf|infinity|+infinity|"
    "-infinity|\\n|missing|unknown|not available|not applicable|not reported|no data|suppressed|redacted|tbd|"
    "tba|pending|blank|(blank)|undefined|#n/a|#ref!|#value!|#div/0!|#num!|#name?|#null!|-|--|.|..|...|*|**|?"
))  # fmt: skip
_NO_WORD = r"[-‐‒–—−_.…*#$€£%?!/()†‡:;,+=~\s]*"  # `--`, `***`, and `$ -` as spreadsheets write it
_CENSORED = (
    r"(?:[<>≤≥]=?|(?:less|fewer|more|greater) than|at (?:least|most)|up to|under|over|below|above)\s*"
    r"[$€£]?[0-9][0-9,.]*\s*%?(?:\s*[^\W\d_]+)?"
    r"|[0-9][0-9,.]*\s*%?\s*(?:\+|(?:or|and) (?:less|fewer|more|over|under|above|below|older))"
)
_MISSING = re.compile(f"^(?:{_NO_WORD}|{_CENSORED})$")
_STARTS_LIKELY = re.compile(r"[^\w]*[a-z]{0,4}[^\w]*[0-9]|[^\w]*[a-z]?[^\w]*$|<|>|less|more|under|over")
_LETTER = re.compile(r"\(?[sxcdzpr]\)?")  # usual where a number is suppressed
_MINUS = "[-‒–—−﹣－]"
_SIGN = _MINUS.replace("-", "-+")
_CODES = (
    r"(?:us|au|ca|nz|hk|mx|[acrs])\$|usd|eur|euros?|dollars?|gbp|chf|jpy|yen|cny|rmb|inr|rs|aud|cad|nzd|hkd|sgd|"
    "sek|nok|dkk|isk|kr|czk|kč|pln|zł|huf|ron|rub|try|brl|mxn|zar|krw|ils|thb|php|idr|myr|aed|sar"
)
_SYMBOLS = "$€£¥¢¤֏؋৲৳৻૱௹฿៛꠸﷼﹩＄￠￡￥￦" + "".join(map(chr, range(0x20A0, 0x20D0)))
_SYMBOL = f"[{_SYMBOLS}]"
_CURRENCY = rf"(?:{_SYMBOL}|{_CODES})"
_PERCENT = r"[%‰]|pct\.?|percent|per cent"
MAGNITUDES = dict.fromkeys(("m", "mn", "mm", "mln", "mio", "million"), 1e6)
MAGNITUDES |= dict.fromkeys(("b", "bn", "bln", "mrd", "billion"), 1e9)
MAGNITUDES |= {"k": 1e3, "thousand": 1e3, "lakh": 1e5, "crore": 1e7, "t": 1e12, "tn": 1e12, "trillion": 1e12}
_LENGTHS_TOO, _HOUSE_NUMBERS_TOO = {"m", "mm", "t"}, {"b", "t"}  # 5 mm; 12B
# Only these are understood without a space before; after one, any word is.
_UNITS = (
    "kg|g|mg|µg|μg|ug|lbs?|oz|km|m|cm|mm|µm|nm|mi|ft|in|yds?|mph|km/h|kmh|kph|m/s|kwh|mwh|gwh|mw|kw|gw|w|v|hz|"
    "khz|mhz|ghz|kb|mb|gb|tb|ha|acres?|sqft|k?m[2²]|m[3³]|ft[23²³]|mi[2²]|°c|°f|°|s|secs?|mins?|h|hrs?|hours?|d|"
    "days?|yrs?|years?|l|ml|dl|cl|gal|ms|[kmg]?bps|x|kcal|cal|kj|[kh]pa|psi|ppm|ppb|db|px|pts?|k|thousand|mn|"
    "mln|mio|million|b|bn|bln|mrd|billion|t|tn|trillion|lakhs?|crores?"
    r"|(?:sq|cu|square|cubic)\.?\s+(?:ft|in|mi|k?m|yd|foot|feet|inch|mile|yard|(?:kilo)?met(?:re|er))s?\.?"
)
_NO_UNIT = (
    rf"{_CODES}|pct|percent|per|st|nd|rd|th|[ap]m|to|or|and|of|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|"
    "apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_ANY_UNIT = rf"(\s*(?:{_UNITS})|\s+(?!(?:{_NO_UNIT})(?!\w))[^\W\d_]+\.?)?"
_DIGITS = re.compile(r"[.,]?[0-9][0-9.,'’\s]*(?:e[-+]?[0-9]+)?")
_SPACES = " \t\n\r\u00a0\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_AROUND = f"{_SYMBOLS}%‰()+{_MINUS[1:-1]}{ascii_letters}čČłŁµμ°²³{_SPACES}"
_PLAIN = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?")
_PADDED = re.compile("0[0-9]+")  # 007, and 00 too: who means the number nought writes 0
_LISTED = re.compile(r"[0-9]+(?:(?:,\s|\s*[;&])\s*[0-9]+)+")  # 8, 9: numbers that are names

# Made once, because building an expression costs more than running it on a small table.
_CELL = pl.col("cell")
_STRIPPED = _CELL.str.strip_chars()
_ODD = (_CELL.is_not_null() & ~pl.col("value").is_finite().fill_null(False)).arg_true()
_FINITE = pl.when(pl.all().is_finite()).then(pl.all())
_LOWERED = _STRIPPED.str.to_lowercase()
_SQUARED = _LOWERED.str.replace(r"(m|ft|mi)2\b", "${1}²").str.replace(r"(m|ft)3\b", "${1}³")
_SHAPE = _SQUARED.str.replace_all(r"[1-9]|\B0", "9")


@dataclass(frozen=True, slots=True)
class NumberReading:
    """How a column's text is read as numbers."""

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
        units = _and(self.units)
        parts = [*self.signs, f"{units} multiplied out" if self.multiplies else units and f"the unit {units}"]
        said = [f"numbers with {_and(filter(None, parts))}"] if any(parts) else []
        if self.marks:
            said.append(f"{_and(self.marks)} {'means' if len(self.marks) == 1 else 'mean'} missing")
        return "; ".join(said)


PLAIN = NumberReading()


@dataclass(frozen=True, slots=True, eq=False)
class NumbersRead:
    """The numbers of a column, and a count of the cells that hold none."""

    values: pl.Series
    missing: int
    not_understood: int
    examples: tuple[str, ...]  # of what was not understood: at most 3, the first as text


@dataclass(frozen=True, slots=True)
class _Number:
    """A shape of cell that can be a number, taken apart."""

    count: int
    digits: str  # with separators
    unit: str
    sign: str  # of currency, or percent

    @property
    def is_measure(self) -> bool:
        return bool(self.sign) or not self.digits.isdecimal()


def may_be_numbers(cells: Iterable[str]) -> bool:
    """Whether a few cells, stripped, leave it open that their column holds numbers."""
    lowered = [cell.lower() for cell in cells]
    # The whole grammar takes 30 times as long to find that a word is no number.
    if 3 * sum(_STARTS_LIKELY.match(cell) is not None for cell in lowered) < len(lowered):
        return False
    telling = [cell for cell in lowered if not (_is_missing(cell) or _LETTER.fullmatch(cell))]
    numbers = sum(any(_number(cell, 1, decimal) for decimal in ".,") for cell in telling)
    return bool(lowered) and 3 * numbers >= len(telling)


def number_reading(cells: pl.Series) -> NumberReading | None:
    """Decide from cells of text how their column is read; None if it's no column of numbers."""
    cells = cells.alias("cell").drop_nulls()  # a name like ^x$ would be taken for a pattern
    values = cells.cast(pl.Float64, strict=False)
    if not values.null_count() and values.is_finite().all():
        # In the order of text, 00, 01, ..., 09 and what begins with them lie in between.
        padded = int(((cells >= "00") & (cells < "0:")).sum())
        return PLAIN if len(cells) and padded <= CODE_SHARE * len(cells) else None
    # 1,050 and 2,070 both have the shape 9,099.
    shapes = cells.to_frame("cell").select_seq(_SHAPE).to_series().value_counts()
    if shapes.height > MOST_SHAPES:
        shapes = shapes.sort("count", "cell", descending=[True, False]).head(MOST_SHAPES)
    missing = {shape: count for shape, count in shapes.rows() if _is_missing(shape)}
    present = {shape: count for shape, count in shapes.rows() if shape not in missing}
    return _decide(present, len(cells) - sum(missing.values()))


def read_numbers(column: pl.Series, reading: NumberReading) -> NumbersRead:
    """Read a column of text; null where a cell is missing or not understood."""
    name, column = column.name, column.alias("cell")
    decimals = column if reading.decimal == "." else column.clear(len(column))
    values = decimals.cast(pl.Float64, strict=False)
    absent = column.null_count()
    if values.null_count() == absent and values.is_finite().all():
        return NumbersRead(values.alias(name), absent, 0, ())
    odd = pl.DataFrame({"cell": column, "value": values}).select_seq(_ODD).to_series()
    stripped = column.gather(odd).to_frame("cell").select_seq(_STRIPPED)
    found = stripped.select_seq(_value(reading)).select_seq(_FINITE).to_series()
    values = values.scatter(odd, found)
    left = stripped.filter(found.is_null())
    is_missing = _LOWERED.is_in([*ABSENT, *reading.marks]) | _LOWERED.str.contains(_MISSING.pattern)
    unread = left.filter(~is_missing).to_series()
    examples = unread.unique().sort().head(3).to_list() if len(unread) else []
    return NumbersRead(values.alias(name), absent + left.height - len(unread), len(unread), tuple(examples))


def _is_missing(cell: str) -> bool:
    return cell in ABSENT or _MISSING.fullmatch(cell) is not None


def _and(words: Iterable[str]) -> str:
    *first, last = list(words) or [""]
    return f"{', '.join(first)} and {last}" if first else last


@lru_cache
def _pattern(decimal: str, unit: str, spaced: bool) -> str:
    """A number as it may be written, for Python and for Polars alike."""
    comma, fraction = (",", r"(?:\.[0-9]+)?") if decimal == "." else (r"\.", "(?:,[0-9]+)?")
    marks = (comma, "[ \u00a0\u2007\u2009\u202f]", "['’]") if spaced else (comma,)
    groups = [f"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+" for mark in marks]
    lakhs = ["[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}"] if decimal == "." else []
    whole = rf"(?:{'|'.join(['[0-9]+', *groups, *lakhs])}){fraction}"
    currency = rf"(?:{_SYMBOL}|(?:{_CODES})(?:\.? )?)"
    signed = rf"(?:{currency}\s*{_SIGN}?|{_SIGN}?\s*{currency}?)\s*"
    small = rf"{_SIGN}?{_SYMBOL}?[{decimal}][0-9]+"  # no code before it: is Rs.500 more than half a rupee?
    after = rf"(?:e(?:[+]?[0-9]{{1,2}}|-[0-9]{{1,3}}))?{unit}(?:\s*(?:{_CURRENCY}|{_PERCENT}))?"
    negative = rf"{currency}?\s*\({currency}?\s*{whole}{after}\)\s*(?:%|{_CURRENCY})?"
    return rf"(?i)^(?:(?:{signed}{whole}|{small})(?:{after}\s*{_MINUS}?|\.)|{negative})$"


def _number(shape: str, count: int, decimal: str) -> _Number | None:
    found = re.match(_pattern(decimal, _ANY_UNIT, spaced=True), shape)  # compiled once, on first use
    digits = _DIGITS.search(shape)
    if not found or not digits:
        return None
    unit = found[found.lastindex] if found.lastindex else ""
    around = shape[: digits.start()] + shape[digits.end() :].removeprefix(unit.lstrip())
    return _Number(count, digits[0].rstrip(), _singular(unit), re.sub(rf"[().\s]|{_SIGN}", "", around))


def _singular(unit: str) -> str:
    word = " ".join(unit.replace(".", "").split())
    return word[:-2] if word.endswith("ches") else word[:-1] if len(word) > 2 and word[-1] == "s" else word


def _decide(present: dict[str, int], cells: int) -> NumberReading | None:
    """Weigh the shapes of the cells that are there."""
    point, comma = (
        {shape: number for shape, count in present.items() if (number := _number(shape, count, decimal))}
        for decimal in ".,"
    )
    # A shape that is a number by one convention only tells: 1.234,5 or 0,5 or 1,234,567; 1,234 doesn't.
    votes = [sum(present[shape] for shape in told) for told in (point.keys() - comma, comma.keys() - point)]
    # Where commas could separate thousands, a few slips such as 1,23 must not make all of them decimal.
    undecided = sum(present[shape] for shape in point.keys() & comma.keys() if "," in shape)
    decimal, numbers = (".", point)
    if votes[1] > max(votes[0], SLIPS * undecided):
        decimal, numbers = (",", comma)
    units, multiplies = _units(list(numbers.values()))
    numbers = {shape: number for shape, number in numbers.items() if number.unit in {"", *units}}
    read = sum(number.count for number in numbers.values())
    codes = sum(n for shape, n in present.items() if _PADDED.fullmatch(shape) or _LISTED.fullmatch(shape))
    others = {shape: count for shape, count in present.items() if shape not in numbers}
    marks = _marks(others, read, bool(units) or any(number.is_measure for number in numbers.values()))
    there = cells - sum(others[mark] for mark in marks)
    if not read or read < NUMBER_SHARE * there or codes > CODE_SHARE * read:
        return None
    dressed = decimal == "," or not all(map(_PLAIN.fullmatch, numbers))
    spaced = any(re.search(r"[\s'’]", number.digits) for number in numbers.values())
    return NumberReading(decimal, marks, units, multiplies, dressed, spaced, _signs(numbers, decimal))


def _units(numbers: list[_Number]) -> tuple[tuple[str, ...], bool]:
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


def _marks(others: dict[str, int], read: int, measures: bool) -> tuple[str, ...]:
    """Which of the texts that are no numbers mean missing."""
    letters = [text for text in others if _LETTER.fullmatch(text)]
    if not measures:  # whole numbers beside several letters are codes: grades, classes
        return tuple(letters) if len(letters) == 1 else ()
    recurring = [
        text
        for text, count in others.items()
        if count > 1 and len(text) <= LONGEST_MARK and text not in letters and not re.search("[0-9]", text)
    ]
    is_few = len(recurring) <= MOST_MARKS and read > sum(others[text] for text in recurring)
    return tuple(sorted(letters + recurring if is_few else letters))


def _signs(numbers: dict[str, _Number], decimal: str) -> tuple[str, ...]:
    """What the numbers are written with, in words."""
    signs = sorted({number.sign for number in numbers.values()} - {""})
    marks = {mark for number in numbers.values() for mark in re.sub("[0-9e.+-]", "", number.digits)}
    comma = "thousands commas" if decimal == "." else "a decimal comma"
    words = {"'": "apostrophes", "’": "apostrophes", ",": comma}
    seen = sorted({words.get(mark, "spaces between digits") for mark in marks})
    return (*signs, *seen, *(["parentheses"] if any("(" in shape for shape in numbers) else []))


@lru_cache
def _value(reading: NumberReading) -> pl.Expr:
    """The number in a stripped cell, null if there's none."""
    if not reading.dressed:
        return _CELL.cast(pl.Float64, strict=False)
    units = sorted(MAGNITUDES if reading.multiplies else reading.units, key=len, reverse=True)
    words = (
        "|".join(map(re.escape, units)).replace(r"\ ", r"\.?\s+").replace("²", "[2²]").replace("³", "[3³]")
    )
    unit = rf"(?:\s*(?:{words})(?:e?s)?\.?)?" if words else ""
    is_number = _CELL.str.contains(_pattern(reading.decimal, unit, reading.spaced))
    # Of what is known to be a number, the digits are what is left: faster than to have a pattern find them.
    digits = _CELL.str.replace(rf"(?i)(?:{words})", "") if re.search("[0-9]", words) else _CELL
    digits = (
        digits.str.strip_chars_start(_AROUND).str.strip_prefix(". ").str.strip_chars_start(_AROUND)
    )  # Rs. 5
    digits = digits.str.strip_chars_end("".join([_AROUND, ".,", *units, *map(str.upper, units)]))
    digits = digits.str.replace_all("," if reading.decimal == "." else ".", "", literal=True)
    digits = digits.str.replace_all(r"[\s'’]", "") if reading.spaced else digits
    digits = digits.str.replace(",", ".", literal=True)  # the decimal comma, if any is left
    value: pl.Expr = pl.when(is_number).then(digits.cast(pl.Float64, strict=False))
    if reading.multiplies:
        ending = rf"(?:e?s)?\.?\s*(?:{_CURRENCY}|{_PERCENT}|\)|{_MINUS})*$"
        magnitude = _CELL.str.extract(rf"(?i)[0-9.]\s*({words}){ending}", 1).str.to_lowercase()
        value *= magnitude.replace_strict(MAGNITUDES, default=1.0, return_dtype=pl.Float64).fill_null(1.0)
    is_negative = _CELL.str.contains(rf"^[^0-9]*[(\{_MINUS[1:]}|{_MINUS}$")
    return value * pl.when(is_negative).then(-1.0).otherwise(1.0)
