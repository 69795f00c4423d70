"""Why a column is a key, a number or neither: codes with details, worded in `covary.index.reason_words`."""

from dataclasses import dataclass
from enum import Enum, auto


class Cause(Enum):
    """What decided about a column."""

    NO_VALUES = auto()
    ONE_VALUE = auto()
    UNUSABLE_TYPE = auto()  # with the type: lists, bytes and the like
    LONG_TEXT = auto()
    TEXT = auto()
    DECLARED_TYPE = auto()  # a boolean, a date or a time by its type
    FRACTIONS = auto()
    WHOLE_NUMBERS = auto()
    # Whole numbers that identify rather than measure:
    NAME = auto()  # with the word of the column's name that says so
    LEADING_ZEROS = auto()
    CALENDAR_DATES = auto()
    PHONE_NUMBERS = auto()
    ROW_NUMBER = auto()


@dataclass(frozen=True, slots=True)
class Reason:
    """What decided about a column, and which word or type."""

    cause: Cause
    detail: str = ""
