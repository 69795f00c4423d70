"""How things are measured: best of several, taken in turns, so that a noisy moment hits both sides."""

import time
from collections.abc import Callable
from dataclasses import dataclass

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Result:
    """One row of the table: a ratio, what it must be, and what was measured on either side."""

    name: str
    ratio: float
    target: float
    at_least: bool
    detail: str

    @property
    def reached(self) -> bool:
        return self.ratio >= self.target if self.at_least else self.ratio <= self.target

    @property
    def wanted(self) -> str:
        return f"{'at least' if self.at_least else 'at most'} {self.target:g}"


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def best_in_turns(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int = ROUNDS
) -> tuple[float, float]:
    """Best time of each, measured alternately after one unmeasured round."""
    ours(), theirs()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
