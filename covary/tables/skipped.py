"""Why a file or a source was passed by: a code with its details, put into words here alone."""

from dataclasses import dataclass, replace
from enum import Enum

from covary.secrets import Secrets


class Why(Enum):
    """Why something that might have been a table, or a source of tables, is passed by."""

    UNREADABLE = "{}"  # in the words of the system, or of the package that read it
    EMPTY = "the file is empty"
    UNKNOWN_KIND = "unknown kind of file"
    UNREAD_KIND = "{} files aren't read; export it as CSV or Parquet"
    OF_ANOTHER_KIND = "no {} file, whatever its name says"
    JSON_ARRAY = "one JSON array, not JSON Lines"
    COMPRESSED = "a compressed {} file isn't read; unpack it"
    NOT_COMPRESSED = "no compressed file, whatever its name says"
    BROKEN = "a broken {} file"
    NOTHING_PACKED = "a {} file with nothing in it"
    NO_TABLE_PACKED = "a {} file of no table; if it is one, name it as in table.csv.gz"
    BROKEN_ZIP = "a broken zip: {}"
    NEWER_ZIP = "a zip that can't be read ({}); pack it anew"
    NOTHING_IN_ZIP = "a zip without CSV or JSON Lines files that can be read"
    NO_TEXT_IN_ZIP = "only CSV and JSON Lines are read in a zip; unpack it"
    SAME_NAME_IN_ZIP = "the zip holds {} files of this name; only the last is read"
    NOT_ON_THIS_MACHINE = "a {} file is read only where it lies on this machine; copy it here"
    NO_TABLES = "a {} file without tables"
    AN_INDEX = "it is a covary index"
    IN_AN_INDEX = "it lies in {}, and that is a covary index"
    HELD_TABLES = "it held tables before and holds none now"


@dataclass(frozen=True, slots=True)
class Reason:
    """A code, and what is particular to one case of it."""

    code: Why
    details: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The reason as the index stores it and a person reads it."""
        return self.code.value.format(*self.details)

    def hide(self, secrets: Secrets) -> "Reason":
        """Return it without some secrets."""
        return replace(self, details=tuple(map(secrets.hide, self.details)))


class NotATable(Exception):
    """A file that might have been a table isn't one; it never leaves covary.tables.discover."""

    def __init__(self, code: Why, *details: str) -> None:
        super().__init__(code, *details)  # what it is made of again in another process
        self.reason = Reason(code, details)

    def __str__(self) -> str:
        return self.reason.text


class NotToBeSeen(NotATable):
    """A file can't be looked into now: what it held may still be there."""


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """What might have been a table or a source of tables, and why it isn't one."""

    path: str  # as it may be shown
    reason: Reason
    source: str = ""  # that it was found in; "" if it is one itself
    may_hold: bool = False  # what it held, or what lies below it, may still be there
