"""How far long work is, as whoever called for it is told."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is: tables done, tables in all, the names of those being read, and what Spark does.

    The names of tables are known where the workers see the index's folder.
    """

    done: int
    total: int
    reading: tuple[str, ...]
    spark: str = "starting"  # or "waiting" for a worker, "working", or "without": it is not used


OnProgress = Callable[[Progress], None]  # of a build
OnCount = Callable[[int, int], None]  # of all else: how much is done, of how much
