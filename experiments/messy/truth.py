"""What is true of tables: what each column holds, and which keys denote the same."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np

from experiments.messy.keys import GRAINS, coarsened, coarser


@dataclass(frozen=True, slots=True, eq=False)
class Identifier:
    """A column that identifies: what each of its cells truly denotes."""

    name: str
    domain: str
    grain: str
    style: str
    meets: bool
    keys: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.grain or self.domain


@dataclass(frozen=True, slots=True, eq=False)
class NumberColumn:
    """A column that measures: its true numbers, NaN where a mark of absence stands."""

    name: str
    style: str
    mark: str | None
    correlation: float  # with the hidden number of its keys, but for rounding and chance
    values: np.ndarray


Columns = tuple[Identifier, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One table: how its file is written, and the truth about its columns."""

    name: str
    file: str
    layout: str
    key: Columns
    codes: Columns
    numbers: tuple[NumberColumn, ...]

    @property
    def identifiers(self) -> dict[str, Identifier]:
        return {each.name: each for each in (*self.key, *self.codes)}

    @property
    def label(self) -> str:
        return "+".join(sorted(each.label for each in self.key))

    @property
    def questions(self) -> list[Columns]:
        """The keys that a person would ask for: the table's own, and each column of a composite."""
        return [self.key] if len(self.key) == 1 else [self.key, *((each,) for each in self.key)]


@dataclass(frozen=True, slots=True)
class Truth:
    """The collection as it was made."""

    seed: int
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two keys that denote the same: their columns in one order, and the grain at which each pair meets."""

    left: Columns
    right: Columns
    grains: tuple[str, ...]

    @property
    def shared(self) -> int:
        """How many keys are on both sides."""
        return len(_present(self.left, self.grains) & _present(self.right, self.grains))


def meeting(left: Columns, right: Columns, at_least: str = GRAINS[0]) -> Meeting | None:
    """Say how two keys join, at the coarser of their grains; None if they denote different things."""
    if sorted(each.domain for each in left) != sorted(each.domain for each in right):
        return None
    alike = (
        order
        for order in permutations(right)
        if all(a.domain == b.domain for a, b in zip(left, order, strict=True))
    )
    ways = (
        Meeting(
            left,
            order,
            tuple(coarser(coarser(a.grain, b.grain), at_least) for a, b in zip(left, order, strict=True)),
        )
        for order in alike
    )
    return max(ways, key=lambda way: way.shared)


def means(columns: Columns, grains: tuple[str, ...], number: NumberColumn) -> dict[str, float]:
    """The mean of a column's numbers for each key that has one."""
    rows: dict[str, list[float]] = {}
    for key, value in zip(_rows(columns, grains), number.values.tolist(), strict=True):
        if key and not np.isnan(value):
            rows.setdefault(key, []).append(value)
    return {key: float(np.mean(values)) for key, values in rows.items()}


@lru_cache(maxsize=20_000)
def _rows(columns: Columns, grains: tuple[str, ...]) -> tuple[str, ...]:
    """Write keys row by row so that equal ones are equal text; "" where a part is absent."""
    written = [
        [coarsened(key, grain) for key in column.keys] for column, grain in zip(columns, grains, strict=True)
    ]
    return tuple("|".join(cells) if all(cells) else "" for cells in zip(*written, strict=True))


@lru_cache(maxsize=20_000)
def _present(columns: Columns, grains: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_rows(columns, grains)) - {""}
