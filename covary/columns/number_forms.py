"""How numbers are written: `$6,600,521 `, `63.90%`, `(1,200)`, `1.234,50 €`, `5.3 km`; what means none."""

import re
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_letters

import polars as pl

# A longer cell is text, but for a plain decimal: no number, time, place or mark of absence comes near. In
# characters, or bytes where Polars counts.
LONGEST_CELL = 200
ABSENT = frozenset(re.split(r"[|]",
    "|n/a|na|n.a.|n.a|n/d|nd|n.d.|null|(null)|<null>|none|nil|nan|-nan|inf|+inf|-inf|infinity|+infinity|"
    "-infinity|\\n|missing|unknown|not available|not applicable|not reported|no data|suppressed|redacted|tbd|"
    "tba|pending|blank|(blank)|undefined|#n/a|#ref!|#value!|#div/0!|#num!|#name?|#null!|-|--|.|..|...|*|**|?"
))  # fmt: skip
# In no pattern here is what repeats followed by what could take the same characters: Python would try each
# way to share them, which for some cells takes as long as their length squared.
_NO_WORD = r"[-‐‒–—−_.…*#$€£%?!/()†‡:;,+=~\s]*"  # `--`, `***`, and `$ -` as spreadsheets write it
_CENSORED = (
    r"(?:[<>≤≥]=?|(?:less|fewer|more|greater) than|at (?:least|most)|up to|under|over|below|above)\s*"
    r"[$€£]?[0-9][0-9,.]*(?:\s*%)?(?:\s*[^\W\d_]+)?"
    r"|[0-9][0-9,.]*(?:\s*%)?\s*(?:\+|(?:or|and) (?:less|fewer|more|over|under|above|below|older))"
)
_MISSING = re.compile(f"^(?:{_NO_WORD}|{_CENSORED})$")
_STARTS_LIKELY = re.compile(
    r"[^\w]*(?:[a-z]{1,4}[^\w]*)?[0-9]|[^\w]*(?:[a-z][^\w]*)?$|<|>|less|more|under|over"
)
LETTER_MARK = re.compile(r"\(?[sxcdzpr]\)?")  # usual where a number is suppressed
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
PLAIN_DECIMAL = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?")
_PADDED = re.compile("0[0-9]+")  # 007, and 00 too: who means the number nought writes 0
_LISTED = re.compile(r"[0-9]+(?:(?:,\s|\s*[;&])\s*[0-9]+)+")  # 8, 9: numbers that are names

# Made once, because building an expression costs more than running it on a small table.
_CELL = pl.col("cell")
_STRIPPED = _CELL.str.strip_chars()
SHORT = pl.when(_STRIPPED.str.len_bytes() <= LONGEST_CELL).then(_STRIPPED)  # null if it's text for its length
_LOWERED = _CELL.str.to_lowercase()
_SQUARED = SHORT.str.to_lowercase().str.replace(r"(m|ft|mi)2\b", "${1}²").str.replace(r"(m|ft)3\b", "${1}³")
SHAPE = _SQUARED.str.replace_all(r"[1-9]|\B0", "9").drop_nulls()


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A shape of cell that can be a number, taken apart."""

    count: int
    digits: str  # with separators
    unit: str
    sign: str  # of currency, or percent

    @property
    def is_measure(self) -> bool:
        """Whether it is written as codes are not: with a sign, a fraction or separators."""
        return bool(self.sign) or not self.digits.isdecimal()


def starts_likely(cell: str) -> bool:
    """Whether a cell, stripped and in lower case, may be a number or mean missing, by how it begins."""
    return len(cell) <= LONGEST_CELL and _STARTS_LIKELY.match(cell) is not None


def is_missing(cell: str) -> bool:
    """Whether a cell, stripped and in lower case, means missing in any column."""
    return cell in ABSENT or (len(cell) <= LONGEST_CELL and _MISSING.fullmatch(cell) is not None)


def mark_missing(marks: tuple[str, ...]) -> pl.Expr:
    """Whether a cell of `SHORT` means missing in any column, or is one of these marks; no null does."""
    missing = _LOWERED.is_in([*ABSENT, *marks]) | _LOWERED.str.contains(_MISSING.pattern)
    return missing.fill_null(value=False)


def parse_number(shape: str, count: int, decimal: str) -> WrittenNumber | None:
    """Parse a shape that so many cells have, by one convention; None if it's no number."""
    if len(shape) > LONGEST_CELL:
        return None
    match = re.match(_write_pattern(decimal, _ANY_UNIT, spaced=True), shape)  # compiled once, on first use
    digits = _DIGITS.search(shape)
    if not match or not digits:
        return None
    unit = match[match.lastindex] if match.lastindex else ""
    around = shape[: digits.start()] + shape[digits.end() :].removeprefix(unit.lstrip())
    sign = re.sub(rf"[().\s]|{_SIGN}", "", around)
    return WrittenNumber(count, digits[0].rstrip(), _make_singular(unit), sign)


def mark_leading_zeros(cells: pl.Series) -> pl.Series:
    """Mark the cells of text like 07030; one like 0, 0.5 or -07 doesn't count."""
    # In the order of text, 00, 01, ..., 09 and what begins with them lie in between; a pattern costs more.
    return (cells >= "00") & (cells < "0:")


def is_code(shape: str) -> bool:
    """Whether whole numbers of this shape are written as codes are."""
    return bool(_PADDED.fullmatch(shape) or _LISTED.fullmatch(shape))


@lru_cache
def read_dressed_cell(decimal: str, units: tuple[str, ...], multiplies: bool, spaced: bool) -> pl.Expr:
    """The number in a cell of `SHORT` that may be more than a plain decimal, null if there's none."""
    names = sorted(MAGNITUDES if multiplies else units, key=len, reverse=True)
    words = "|".join(map(re.escape, names)).replace(r"\ ", r"\.?\s+")
    words = words.replace("²", "[2²]").replace("³", "[3³]")
    unit = rf"(?:\s*(?:{words})(?:e?s)?\.?)?" if words else ""
    is_number = _CELL.str.contains(_write_pattern(decimal, unit, spaced))
    # Of what is known to be a number, the digits are what is left: faster than to have a pattern find them.
    digits = _CELL.str.replace(rf"(?i)(?:{words})", "") if re.search("[0-9]", words) else _CELL
    digits = digits.str.strip_chars_start(_AROUND)
    digits = digits.str.strip_prefix(". ").str.strip_chars_start(_AROUND)  # Rs. 5
    digits = digits.str.strip_chars_end("".join([_AROUND, ".,", *names, *map(str.upper, names)]))
    digits = digits.str.replace_all("," if decimal == "." else ".", "", literal=True)
    digits = digits.str.replace_all(r"[\s'’]", "") if spaced else digits
    digits = digits.str.replace(",", ".", literal=True)  # the decimal comma, if any is left
    value: pl.Expr = pl.when(is_number).then(digits.cast(pl.Float64, strict=False))
    if multiplies:
        ending = rf"(?:e?s)?\.?\s*(?:{_CURRENCY}|{_PERCENT}|\)|{_MINUS})*$"
        magnitude = _CELL.str.extract(rf"(?i)[0-9.]\s*({words}){ending}", 1).str.to_lowercase()
        value *= magnitude.replace_strict(MAGNITUDES, default=1.0, return_dtype=pl.Float64).fill_null(1.0)
    is_negative = _CELL.str.contains(rf"^[^0-9]*[(\{_MINUS[1:]}|{_MINUS}$")
    return value * pl.when(is_negative).then(-1.0).otherwise(1.0)


@lru_cache
def _write_pattern(decimal: str, unit: str, spaced: bool) -> str:
    """A number as it may be written, for Python and for Polars alike."""
    comma, fraction = (",", r"(?:\.[0-9]+)?") if decimal == "." else (r"\.", "(?:,[0-9]+)?")
    marks = (comma, "[ \u00a0\u2007\u2009\u202f]", "['’]") if spaced else (comma,)
    groups = [f"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+" for mark in marks]
    lakhs = ["[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}"] if decimal == "." else []
    whole = rf"(?:{'|'.join(['[0-9]+', *groups, *lakhs])}){fraction}"
    currency = rf"(?:{_SYMBOL}|(?:{_CODES})(?:\.? )?)"
    signed = rf"(?:{currency}\s*(?:{_SIGN}\s*)?|{_SIGN}\s*(?:{currency}\s*)?)?"
    small = rf"{_SIGN}?{_SYMBOL}?[{decimal}][0-9]+"  # no code before it: is Rs.500 more than half a rupee?
    after = rf"(?:e(?:[+]?[0-9]{{1,2}}|-[0-9]{{1,3}}))?{unit}(?:\s*(?:{_CURRENCY}|{_PERCENT}))?"
    negative = rf"{currency}?\s*\({currency}?\s*{whole}{after}\)\s*(?:%|{_CURRENCY})?"
    return rf"(?i)^(?:(?:{signed}{whole}|{small})(?:{after}\s*{_MINUS}?|\.)|{negative})$"


def _make_singular(unit: str) -> str:
    word = " ".join(unit.replace(".", "").split())
    return word[:-2] if word.endswith("ches") else word[:-1] if len(word) > 2 and word[-1] == "s" else word
