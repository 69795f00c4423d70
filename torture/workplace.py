"""Where trials are run: a folder, a seed, and processes that run commands."""

import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from torture.law import ended
from torture.running import Desk, Ran, run_fresh
from torture.trials import Breach, Outcome

BATCH = 150


class Desks:
    """Processes in which the commands of all suites run, begun when they are first needed.

    Attributes:
        folder: of their own.
        kept: what is made once for several suites.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: dict[str, Any] = {}

    @cached_property
    def plain(self) -> Desk:
        """Run a command without Spark."""
        return self._made("desk", spark=False)

    @cached_property
    def spark(self) -> Desk:
        """Run a command with Spark up."""
        return self._made("spark-desk", spark=True)

    def _made(self, name: str, *, spark: bool) -> Desk:
        folder = self.folder / name
        folder.mkdir(parents=True)
        return Desk(folder, spark=spark)

    def close(self) -> None:
        """End what was begun."""
        for name in ("plain", "spark"):
            if name in self.__dict__:
                self.__dict__[name].close()


class Workplace:
    """A folder in which the trials of one suite are run, and all that they need.

    Attributes:
        suite: the name of the suite.
        folder: of its own.
        seed: of the whole run; with the number of a trial it says all that the trial does.
        batch: how many files are indexed together.
        quick: whether to do without processes of a command's own, which take seconds to begin.
        kept: what a suite makes once.
    """

    def __init__(
        self, suite: str, folder: Path, seed: int, desks: Desks, *, batch: int = BATCH, quick: bool = False
    ) -> None:
        self.suite, self.folder, self.seed, self.batch, self.quick = suite, folder, seed, batch, quick
        self.desks = desks
        self.kept: dict[str, Any] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def rng(self, trial: int) -> np.random.Generator:
        """Return the chance of one trial."""
        return np.random.default_rng([self.seed, xxhash.xxh32_intdigest(self.suite.encode()), trial])

    @property
    def desk(self) -> Desk:
        """Run a command without Spark."""
        return self.desks.plain

    @property
    def spark_desk(self) -> Desk:
        """Run a command with Spark up."""
        return self.desks.spark

    def fresh(self, *arguments: str, deadline: float = 180.0, **more: Any) -> Ran:
        """Run a command in processes of its own, unless it is to be quick."""
        if self.quick:
            return self.spark_desk(*arguments, deadline=deadline)
        folder = self.folder / "fresh"
        folder.mkdir(exist_ok=True)
        return run_fresh(arguments, folder, deadline, **more)

    def empty(self, name: str) -> Path:
        """Return a folder of this name that is there and empty."""
        return emptied(self.folder / name)


def emptied(folder: Path) -> Path:
    """Return a folder that is there and empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


class Record:
    """What happens in one trial, as it happens."""

    def __init__(self, workplace: Workplace, trial: int, name: str) -> None:
        self.workplace, self.trial, self.name = workplace, trial, name
        self.breaches: list[Breach] = []
        self.ran: list[Ran] = []

    def run(self, command: Callable[..., Ran], *arguments: str, **how: object) -> Ran:
        """Run a command and judge how it ended."""
        ran = command(*arguments, **how)
        self.ran.append(ran)
        self.breaches += ended(ran)
        return ran

    def outcome(self, *, skipped: str = "") -> Outcome:
        """Tell how the trial came out."""
        return Outcome(
            self.workplace.suite,
            self.trial,
            self.name,
            max((ran.seconds for ran in self.ran), default=0.0),
            max((ran.memory for ran in self.ran), default=0),
            tuple(dict.fromkeys(self.breaches)),
            skipped,
        )
