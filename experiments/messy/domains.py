"""Everything that keys denote: which of it tables are about, and which can be mistaken for other things."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

from experiments.messy.codes import CODES, GROUPS
from experiments.messy.keys import coarsened
from experiments.messy.places import PLACES
from experiments.messy.times import TIMES
from experiments.messy.truth import Identifier

DOMAINS = {domain.label: domain for domain in (*CODES, *PLACES, *TIMES, *GROUPS)}
KEYS = (
    *((label,) for label in DOMAINS if label not in ("order", "account", "ages", "districts", "grade")),
    ("country", "year"),
    ("zip", "day"),
    ("airport", "hour"),
    ("state", "flag"),
)
BESIDE_KEYS = (
    "zip", "fips", "phone", "year", "order", "school", "account", "day", "ages", "districts", "grade",
    "customer", "flag",
)  # fmt: skip


def could_be_mistaken(left: Sequence[Identifier], right: Sequence[Identifier]) -> int:
    """Count keys of different meaning that no reader could tell apart by their text alone."""
    if len(left) != len(right):
        return 0
    if len(left) == 1:  # a number may be the year of a time
        return len(_bare_or_year(left[0]) & _bare_or_year(right[0]))
    ours = set(zip(*map(_bare, left), strict=True))
    return max(len(ours & set(zip(*map(_bare, order), strict=True))) for order in permutations(right))


@lru_cache(maxsize=5_000)
def _bare_or_year(column: Identifier) -> frozenset[str]:
    years = (coarsened(key, "year") for key in column.keys) if column.grain else ()
    return frozenset(_bare(column)).union(years)


@lru_cache(maxsize=5_000)
def _bare(column: Identifier) -> tuple[str, ...]:
    """The text of keys in their column's style, without case, spaces, leading zeros or a fraction of zero."""
    domain = DOMAINS.get(column.label)
    write = domain.styles.get(column.style, str) if domain else str
    bare = {
        key: write(key).strip().casefold().removesuffix(".0").lstrip("0") or "0" for key in set(column.keys)
    }
    return tuple(bare[key] for key in column.keys)
