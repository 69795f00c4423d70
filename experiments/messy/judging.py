"""Whether joins that were found are true, and true ones were found."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from experiments.messy.domains import could_be_mistaken
from experiments.messy.keys import GRAINS
from experiments.messy.reading import Reading
from experiments.messy.truth import Columns, Identifier, Meeting, NumberColumn, Table, Truth, means, meeting

if TYPE_CHECKING:
    import covary

FEWEST, USUAL = 3, 10  # shared keys that a hit must rest on: the fewest that have a correlation, the default
DEPTHS = {
    grain: depth for depth, grain in enumerate(("moment", "hour", "day", "week", "month", "quarter", "year"))
}
EXPECTED, TRUE, MISTAKABLE, FALSE = "expected", "true", "same text, other meaning", "false"


@dataclass(frozen=True, slots=True)
class Join:
    """What was found, or should have been, from a key of one table to a key of another."""

    asked: str
    key: str
    table: str
    joined: str
    kind: str  # "key", whole keys; "part" of a composite; "code": with a column of codes beside the key
    label: str
    styles: str
    verdict: str
    shared: int  # true keys that have a number on both sides
    found: int  # shared keys that the hit says; 0 when none was reported
    correlation: float | None = None  # what the hit says, where it is exact
    truth: float | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A question that was not answered."""

    table: str
    key: str
    value: str
    said: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a collection."""

    tables: int
    questions: int
    reading: Reading
    joins: tuple[Join, ...]
    refusals: tuple[Refusal, ...]

    def expected(self, least: int, kind: str | None = None) -> list[Join]:
        return [
            join
            for join in self.joins
            if join.verdict == EXPECTED and join.shared >= least and kind in (None, join.kind)
        ]

    def reported(self, least: int, *verdicts: str) -> list[Join]:
        return [
            join for join in self.joins if join.found >= least and (not verdicts or join.verdict in verdicts)
        ]


def judge(
    table: Table, key: Columns, value: NumberColumn, hits: Iterable["covary.Hit"], truth: Truth
) -> list[Join]:
    """Set what a question found beside what it should have found."""
    reported: dict[tuple[str, Columns], list[covary.Hit]] = {}
    unknown: dict[tuple[str, str], covary.Hit] = {}
    known = {each.name: each for each in truth.tables}
    for hit in hits:
        columns = _columns_named(hit.key, known[hit.table])
        if columns:
            reported.setdefault((hit.table, columns), []).append(hit)
        else:
            unknown[hit.table, hit.key] = hit
    wanted = {
        (other.name, _ordered(target)): other
        for other in truth.tables
        if other is not table
        for target in _targets(other, len(key))
    }
    joins = []
    for name, target in dict.fromkeys((*wanted, *reported)):
        found = reported.get((name, target), [])
        join = _judged(table, key, value, known[name], target, found)
        if (name, target) not in wanted and join.verdict == EXPECTED:
            join = replace(join, verdict=TRUE)
        if found or join.verdict == EXPECTED:
            joins.append(join)
    for (name, said), hit in unknown.items():  # the key is a column of numbers
        asked = ",".join(each.name for each in key)
        joins.append(Join(table.name, asked, name, said, "number", "number", said, FALSE, 0, hit.sample_size))
    return joins


def _targets(table: Table, width: int) -> list[Columns]:
    if width > 1:
        return [table.key] if len(table.key) == width else []
    return [(each,) for each in table.identifiers.values()]


def _ordered(columns: Iterable[Identifier]) -> Columns:
    return tuple(sorted(columns, key=lambda column: column.name))


def _columns_named(key: str, table: Table) -> Columns:
    """The identifying columns that a hit's key is made of, however it words that; none if it names others."""
    known = table.identifiers
    parts = [part.strip() for part in key.split(",")]
    names = [part if part in known else _name_within(part, known) for part in parts]
    if key in known:
        names = [key]
    return _ordered(known[name] for name in names if name) if all(names) else ()


def _name_within(text: str, names: Iterable[str]) -> str:
    longest_first = sorted(names, key=len, reverse=True)
    return next((name for name in longest_first if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)), "")


def _judged(
    table: Table,
    key: Columns,
    value: NumberColumn,
    other: Table,
    target: Columns,
    hits: Sequence["covary.Hit"],
) -> Join:
    met = meeting(key, target)
    shared = {column.name: _shared(met, value, column) for column in other.numbers} if met else {}
    most = max(map(len, shared.values()), default=0)
    meets = all(each.meets for each in (*key, *target)) and not _both_moments(met)
    if met and meets and most >= FEWEST:
        verdict = EXPECTED
    elif met and any(_meeting_at(key, target, grain).shared for grain in GRAINS):
        verdict = TRUE
    else:
        verdict = MISTAKABLE if hits and could_be_mistaken(key, target) >= FEWEST else FALSE
    best = max(hits, key=lambda hit: (hit.sample_size, hit.value in shared), default=None)
    correlation, true = None, None
    comparable = met and best and best.value in shared and not _by_coarser(best, met)
    if comparable and best.exact and verdict == EXPECTED:
        correlation, true = best.correlation, _pearson(list(shared[best.value].values()))
        most = len(shared[best.value])
    return Join(
        asked=table.name,
        key=",".join(each.name for each in key),
        table=other.name,
        joined=",".join(each.name for each in target),
        kind=_kind(table, key, other, target),
        label=_label(key, target),
        styles=_styles(met, key, target),
        verdict=verdict,
        shared=most,
        found=best.sample_size if best else 0,
        correlation=correlation,
        truth=true,
    )


def _meeting_at(key: Columns, target: Columns, grain: str) -> Meeting:
    met = meeting(key, target, grain)
    if met is None:
        raise ValueError("keys of different meaning do not meet")
    return met


def _both_moments(met: Meeting | None) -> bool:
    """Moments hardly ever fall on the same second: that they meet by the hour need not be found."""
    return met is not None and "moment" in met.grains


def _by_coarser(hit: "covary.Hit", met: Meeting) -> bool:
    """Whether times were joined by a coarser granularity than they could be: that has another correlation."""
    return any(grain and DEPTHS.get(hit.granularity, 0) > DEPTHS[grain] for grain in met.grains)


def _shared(met: Meeting, value: NumberColumn, column: NumberColumn) -> dict[str, tuple[float, float]]:
    left, right = _means(met.left, met.grains, value), _means(met.right, met.grains, column)
    return {key: (left[key], right[key]) for key in left if key in right}


_means = lru_cache(maxsize=20_000)(means)


def _pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    x, y = np.array(pairs).T
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) and np.ptp(y) else None


def _kind(table: Table, key: Columns, other: Table, target: Columns) -> str:
    if set(target) & set(other.codes) or set(key) & set(table.codes):
        return "code"
    return "key" if len(key) == len(table.key) and len(target) == len(other.key) else "part"


def _label(key: Columns, target: Columns) -> str:
    labels = sorted("+".join(sorted(each.label for each in side)) for side in (key, target))
    return " × ".join(dict.fromkeys(labels))


def _styles(met: Meeting | None, key: Columns, target: Columns) -> str:
    sides = (met.left, met.right) if met else (key, target)
    return " × ".join(
        sorted(" + ".join(f"`{each.style}`" if each.style else "as it is" for each in side) for side in sides)
    )
