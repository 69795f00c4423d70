"""Which whole numbers identify rather than measure: codes, periods, dates, row numbers."""

import re
from itertools import pairwise

import numpy as np
import polars as pl

from covary.arrays import Floats
from covary.columns.column_counts import ColumnCounts
from covary.columns.reasons import Cause, Reason

FEWEST_ROW_NUMBERS = 20
FIRST_ROWS = 12


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# An integer column whose name has one of these words identifies rather than measures ...
IDENTIFIERS = _split_words(
    "id ids uid uuid guid pk fk code codes cd zip zipcode postcode postal zcta modzcta fips geoid gid oid "
    "cusip isin isbn issn ean upc sku ssn ein vin npi phone fax tel telephone mobile contact "
    "naics serial timestamp datetime"
)
# ... or ends in "id" without a space, after one of these ...
IDENTIFIED = _split_words(
    "account booking building case city client county customer device employee event game item location "
    "match member object order parcel patient person place player product record respondent route row school "
    "session site source state station store student team transaction trip unit user vehicle year zone"
)
# ... or ends in one of these ...
LAST_WORDS = _split_words(
    "number num no nr key index idx ref district ward precinct tract county circuit zone store shop branch "
    "customer client product account employee department station route vendor supplier warehouse patient "
    "student user school"
)
# ... or ends in, or begins with, a period that its values fit (202301 and 20230105 fit all of them) ...
PERIODS = {
    "year": (1000, 2200), "yr": (0, 2200), "season": (1000, 2200), "decade": (0, 2200), "date": (1000, 2200),
    "period": (1000, 2200), "yyyymm": (1000, 2200), "yyyymmdd": (1000, 2200),
    "month": (1, 12), "day": (1, 366), "week": (0, 53), "quarter": (1, 4), "qtr": (1, 4), "hour": (0, 24),
}  # fmt: skip
FULL_PERIODS = (180_000, 21_001_231)
GRADES = (0, 13)  # of schools
PHONES = (2_000_000_000, 9_999_999_999)  # in North America, without signs in between
DAYS = (18_000_101, 21_001_231)
AFTER_PERIOD = _split_words(
    "of built start end ending started ended founded established published num number no id"
)
# ... unless another word says that something is measured, or the name begins by counting: num_days.
MEASURES = _split_words(
    "count counts total totals sum avg average mean median std var pct percent percentage share rate ratio "
    "per amount population change difference score"
)
COUNTED = _split_words("by in")  # votes_by_precinct
COUNTING = _split_words("n no nr num number")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")


def find_identifier_reason(name: str, counts: ColumnCounts) -> Reason | None:
    """Return why a column of whole numbers identifies rather than measures; None if it measures."""
    if word := _find_identifier_word(name, counts):
        return Reason(Cause.NAME, word)
    if counts.leading_zeros:
        return Reason(Cause.LEADING_ZEROS)
    if counts.fits(DAYS) and _all_dates(counts.finite):
        return Reason(Cause.CALENDAR_DATES)
    if counts.fits(PHONES) and _all_phones(counts.finite):
        return Reason(Cause.PHONE_NUMBERS)
    if counts.numbers >= FEWEST_ROW_NUMBERS and _count_up(counts):
        return Reason(Cause.ROW_NUMBER)
    return None


def _find_identifier_word(name: str, counts: ColumnCounts) -> str:  # noqa: PLR0911
    """The word that says that a column identifies: zip_code, GEOID, birthYear, but not codes_per_day."""
    if name == "Unnamed: 0" or name.rstrip().endswith("#"):  # pandas wrote its index, and read it back
        return "unnamed" if name == "Unnamed: 0" else "#"
    words: list[str] = [word.lower() for word in _WORD.findall(name)]
    words = [word for word in words if not word.isdigit()] or [""]
    first, last = words[0], words[-1]
    if last in IDENTIFIERS or last.endswith("code") or (last.endswith("id") and last[:-2] in IDENTIFIED):
        return last
    period = last if last in PERIODS else first if words[1:2] and words[1] in AFTER_PERIOD else ""
    if MEASURES & set(words) or (first in COUNTING and len(words) > 1):
        return ""
    if period in PERIODS and (counts.fits(PERIODS[period]) or counts.fits(FULL_PERIODS)):
        return period
    if "grade" in words and counts.fits(GRADES):
        return "grade"
    if last in LAST_WORDS and COUNTED.isdisjoint(words[:-1]):
        return last
    return next((word for word in words if word in IDENTIFIERS), "")


def _all_dates(numbers: Floats) -> bool:
    """Whether every number reads as YYYYMMDD."""
    days = pl.Series(np.unique(numbers)).cast(pl.Int64).cast(pl.String)
    return days.str.to_date("%Y%m%d", strict=False).null_count() == 0


def _all_phones(numbers: Floats) -> bool:
    """Whether exchanges never begin with 0 or 1, and hardly a number repeats."""
    if numbers.size < FEWEST_ROW_NUMBERS or (np.floor(numbers / 1_000_000) % 10 < 2).any():
        return False
    return bool(np.unique(numbers).size >= 0.9 * numbers.size)


def _count_up(counts: ColumnCounts) -> bool:
    """Whether no value repeats and sorted neighbours differ by one, but for the gaps that sampling leaves."""
    # A cheap test first: dense in their range, or one more in each of the first rows (of a sample).
    dense = counts.numbers - 1 <= counts.high - counts.low <= 1.02 * counts.numbers
    first = counts.values[:FIRST_ROWS].tolist()
    if not dense and any(after - before != 1 for before, after in pairwise(first)):
        return False
    steps = np.diff(np.sort(counts.finite))
    return not (steps == 0).any() and int((steps > 1).sum()) <= len(steps) // 50
