"""How long a table may take and how much memory, and the reason given for one that takes more."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from covary.errors import CovaryError
from covary.pipeline.reading_process import DIED, TOO_LARGE, TOO_LONG, Ended
from covary.tables.registry import get_reader
from covary.tables.source import TableSource

# A thousandth of the speed at which tables are usually read, and time for a slow server to answer.
LEAST_SECONDS, BYTES_PER_SECOND = 600, 65_536
QUERY_SECONDS = 1800  # how long a view computes has nothing to do with its size
DEFAULT_MEMORY = 1_500_000_000
# Text is read in blocks; of these a part comes as a whole, unpacked and perhaps as text beside its numbers.
MEMORY_PER_BYTE = 4
SHOWN_MEMORY = 10**8  # nobody wants to read of 1.53267 GB
LEAST_MEMORY = 300_000_000  # what a process takes that has read nothing yet, and a little table
MOST_DEATHS = 2  # at one table
UNITS = {
    "": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
    "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
}  # fmt: skip
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)
AMOUNT = r"(\d+(?:\.\d+)?(?:e[+-]\d+)?)"
KILLED = 9
EXCEEDED = {
    TOO_LONG: "it took longer than {} s; --table-timeout sets another limit",
    TOO_LARGE: "it needs more than {} GB of memory; --memory sets another limit",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What the tasks of one build may take for a table, or for each part of one that is read in parts.

    Attributes:
        seconds: None: many, and more for a larger table.
        memory: bytes; None: 1.5 GB, and more for a larger table that can't be read in smaller pieces.
    """

    seconds: float | None = None
    memory: int | None = None

    def seconds_for(self, table: TableSource, parts: int = 1) -> float:
        """How long one of the parts of a table may take."""
        if self.seconds is not None:
            return self.seconds
        least = LEAST_SECONDS if get_reader(table).is_file else QUERY_SECONDS
        return float(least + table.size // parts // BYTES_PER_SECOND)

    def memory_for(self, table: TableSource, parts: int = 1) -> int:
        """How many bytes of memory one of the parts of a table may take."""
        if self.memory is not None:
            return self.memory
        more = table.size // parts * MEMORY_PER_BYTE if get_reader(table).is_read_whole else 0
        return DEFAULT_MEMORY + more // SHOWN_MEMORY * SHOWN_MEMORY

    def allow_more(self, problem: str) -> bool:
        """Whether a table went beyond a limit in an earlier build, and may take more now."""
        exceeded = ExceededLimit.from_text(problem)
        if exceeded is None:
            return False
        # Nobody gave a limit, now or then: it was no less.
        if exceeded.limit == TOO_LONG:
            return (LEAST_SECONDS if self.seconds is None else self.seconds) > exceeded.amount
        return (DEFAULT_MEMORY if self.memory is None else self.memory) / 1e9 > exceeded.amount


@dataclass(frozen=True, slots=True)
class ExceededLimit:
    """Why a table was not read to its end: the limit that it went beyond, in seconds or gigabytes.

    An index keeps it as a sentence, as it keeps every problem; it is written and read here alone.
    """

    limit: str  # TOO_LONG or TOO_LARGE
    amount: float

    @property
    def text(self) -> str:
        """The sentence that an index keeps and a person reads."""
        return EXCEEDED[self.limit].format(f"{self.amount:.15g}")

    @classmethod
    def from_text(cls, problem: str) -> "ExceededLimit | None":
        """Read the sentence back; None: the problem is another."""
        for limit, sentence in EXCEEDED.items():
            pattern = re.escape(sentence).replace(re.escape("{}"), AMOUNT)
            if written := re.fullmatch(pattern, problem):
                return cls(limit, float(written[1]))
        return None


DEFAULT_LIMITS = Limits()


def parse_limits(table_timeout: float | None, memory: str | int | None) -> Limits:
    """Read the limits that a person gave."""
    if table_timeout is not None and not table_timeout > 0:
        raise CovaryError(f"--table-timeout must be more than 0 seconds, not {table_timeout:g}")
    return Limits(table_timeout, None if memory is None else bytes_of(memory))


def bytes_of(memory: str | int) -> int:
    """Read a size of memory, such as 1.5GB."""
    written = SIZE.fullmatch(str(memory))
    factor = UNITS.get(written[2].lower()) if written else None
    if written is None or factor is None:
        raise CovaryError(f"--memory must be a size such as 1.5GB or 800MB, not {str(memory)!r}")
    size = int(float(written[1]) * factor)
    if size < LEAST_MEMORY:
        raise CovaryError(
            f"--memory must be at least {LEAST_MEMORY // 10**6}MB, which a worker needs for itself"
        )
    return size


def why_give_up(ended: Sequence[Ended]) -> str | None:
    """Say why a table is not tried again, from how the processes ended that read it; None: it is.

    Time is the table's own, whatever was read before it. Memory may be that of others, and a death the
    machine's: so there is a second try, in a process that has read nothing else.
    """
    for each in ended:
        if each.cause == TOO_LONG:
            return ExceededLimit(TOO_LONG, each.amount).text
    if len(ended) < MOST_DEATHS:
        return None
    last = ended[-1]
    if last.cause == TOO_LARGE:
        return ExceededLimit(TOO_LARGE, last.amount / 1e9).text
    if last.amount == KILLED:
        return "the process that read it was killed twice; this machine may have too little memory for it"
    signal = f" (signal {last.amount:.0f})" if last.amount else ""
    return f"the process that read it died twice{signal}"


def is_of_the_table(ended: Sequence[Ended], table: TableSource) -> bool:
    """Whether a table goes beyond its limits as long as it is as it is: it lies here, and no process died."""
    return bool(table.version) and not table.location.is_url and all(each.cause != DIED for each in ended)
