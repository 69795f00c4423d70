"""The sentences in which an index says why a column serves as what it does, and what was left out.

An index keeps these sentences and not the codes behind them. So they are made here alone, when the record of
a table is written; `covary info`, its JSON and the explanation of a hit show them as they are.
"""

from covary.columns.profile import ColumnProfile
from covary.columns.reasons import Cause
from covary.columns.times import AMBIGUOUS
from covary.sketching.roles import LeftOut

LEFT_OUT = "left out to keep the index in proportion"
IDENTIFIERS = {
    Cause.NAME: 'named like an identifier: "{}"',
    Cause.LEADING_ZEROS: "looks like a code: leading zeros",
    Cause.CALENDAR_DATES: "dates as YYYYMMDD",
    Cause.PHONE_NUMBERS: "ten digits, as phone numbers have",
    Cause.ROW_NUMBER: "unique row number",
}
OTHERS = {
    Cause.NO_VALUES: "no values",
    Cause.ONE_VALUE: "one value only",
    Cause.UNUSABLE_TYPE: "{} can't be a key or a number",
    Cause.LONG_TEXT: "long text",
}
REMEDIES = {
    "key columns": "name those you join on with --key",
    "keys of several columns": "name one that you join on with --key",
    "number columns": "name those you ask about with --value",
}


def explain_column(profile: ColumnProfile) -> str:
    """Say in a line why a column is a key, a number or neither."""
    words = _explain_role(profile)
    return f"{words}; {LEFT_OUT}" if profile.is_left_out else words


def _explain_role(profile: ColumnProfile) -> str:
    cause, detail = profile.reason.cause, profile.reason.detail
    reading = profile.key.description if profile.key else ""
    if cause in IDENTIFIERS:
        words = "; ".join(filter(None, (IDENTIFIERS[cause].format(detail), reading)))
        return words if profile.is_key else f"{words}, but one value only"
    if cause is Cause.FRACTIONS:
        return profile.number.description or "numbers with a fraction"
    if cause is Cause.WHOLE_NUMBERS:
        return profile.number.description or "whole numbers"
    if cause is Cause.TEXT:
        return reading or ("text" if profile.kind == "text" else f"{profile.kind}s as text")
    if cause is Cause.DECLARED_TYPE:
        return f"{profile.kind}s"
    return OTHERS[cause].format(detail)


def explain_left_out(left_out: LeftOut) -> str:
    """Say how many keys or numbers of a table were not sketched, and what brings back those that matter."""
    remedy = "name fewer keys or numbers" if left_out.are_named else REMEDIES[left_out.what]
    return f"{left_out.count:,} of {left_out.offered:,} {left_out.what} were {LEFT_OUT}: {remedy}"


def leaves_day_open(reason: str) -> bool:
    """Whether a column holds dates such as 3/4/2013, of which nothing tells which number is the day."""
    return AMBIGUOUS in reason
