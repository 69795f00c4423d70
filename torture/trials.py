"""What a trial is, what it can break, and how it came out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torture.workplace import Workplace

CRASH = "crashes"
HANG = "hangs"
LARGE = "over limits"
UNNAMED = "files unnamed"
WRONG = "wrong answers"
CHANGED = "deleted or changed"
LEAK = "leaks"
LAWS = (CRASH, HANG, LARGE, UNNAMED, WRONG, CHANGED, LEAK)


@dataclass(frozen=True, slots=True)
class Breach:
    """One law that a trial broke, and how."""

    law: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one trial came out.

    Attributes:
        suite: that it is of.
        trial: its number; with the seed it says all that was done.
        name: what was tried.
        seconds: the longest that one command took.
        memory: the most bytes that one Python process held.
        breaches: of the law.
        skipped: why it could not be tried here.
    """

    suite: str
    trial: int
    name: str
    seconds: float = 0.0
    memory: int = 0
    breaches: tuple[Breach, ...] = ()
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """Trials of one kind.

    Attributes:
        name: as a person asks for it.
        trials: how many make a whole run.
        share: of the time, beside the other suites.
        run: tries those that are given by number, in order.
        what: it does, in a few words.
    """

    name: str
    trials: int
    share: float
    run: "Callable[[Workplace, Iterator[int]], Iterator[Outcome]]"
    what: str
