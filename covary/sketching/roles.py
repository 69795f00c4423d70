"""What the columns of a table serve as: decided once, from a sample of its rows, for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from covary.columns.key_text import NORMALISERS
from covary.columns.numbers import NumberReading
from covary.columns.profile import ColumnProfile, choose_columns, profile_columns, take_runs
from covary.sketching.key_budget import MOST_BYTES, Budget
from covary.sketching.key_choice import decide_keys, find_joint_keys, split_key
from covary.sketching.key_columns import (
    EXAMPLES_KEPT,
    Examples,
    Key,
    ReadColumn,
    collect_readings,
    read_columns,
)
from covary.sketching.sketch_types import SketchConfig

# To find joint keys and examples of keys. In runs: joint keys repeat among neighbours.
SAMPLED_ROWS, SAMPLED_RUNS = 16_384, 16


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many keys or numbers of a table were not sketched, to keep the index in proportion."""

    what: str  # "key columns", "keys of several columns" or "number columns"
    count: int
    offered: int
    are_named: bool  # by a person


@dataclass(frozen=True, slots=True)
class Roles:
    """What the columns of a table serve as, decided once for all of its rows."""

    profiles: tuple[ColumnProfile, ...]
    keys: tuple[Key, ...]
    numbers: dict[str, NumberReading]
    examples: dict[str, Examples]  # of key columns whose text is made canonical
    left_out: tuple[LeftOut, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        return list(dict.fromkeys((*collect_readings(self.keys), *self.numbers)))


def decide_roles(
    rows: pl.DataFrame,
    table: str,
    config: SketchConfig,
    wanted_keys: Sequence[str] = (),
    wanted_values: Sequence[str] = (),
    size: int | None = None,
) -> tuple[Roles, dict[str, ReadColumn] | None]:
    """Decide from a sample of a table which keys and numbers it is sketched on, and how they are read.

    `wanted_keys` and `wanted_values` are those that a person named; `size` are the bytes of the table where
    it lies, if the sample is not all of it. If the key columns of all of the sample were read, they are
    returned too.
    """
    whole = size is None
    profiles = profile_columns(rows, whole)
    named = [columns for key in wanted_keys if (columns := split_key(key, rows.columns))]
    own = [column for columns in named for column in columns] if wanted_keys else None
    names, numbers = choose_columns(profiles, table, own, wanted_values)
    if not wanted_keys:
        named = [(name,) for name in names]
    offered = decide_keys(named, rows, profiles, config.normaliser, whole)
    budget = Budget(rows, profiles, config, size)
    room = MOST_BYTES if wanted_keys else budget.room
    keys = budget.choose_keys(offered, numbers, room, named=bool(wanted_keys))
    kept = budget.choose_numbers(keys, numbers, MOST_BYTES if wanted_values else room)
    sample = take_runs(rows, SAMPLED_ROWS, SAMPLED_RUNS)
    read = read_columns(sample, collect_readings(keys), config.scheme)
    canonical = config.normaliser != NORMALISERS["exact"]
    if canonical and not wanted_keys:
        joint = find_joint_keys(keys, read, profiles, config.scheme)
        offered = [*offered, *joint]
        keys = [*keys, *budget.choose_joint_keys(joint, keys, kept)]
    wanted = {*kept}
    left_out = {key.name for key in offered} - {key.name for key in keys} | {*numbers} - wanted
    examples: dict[str, Examples] = {}
    if canonical:
        for name, column in read.items():
            examples[name] = column.examples(sample[name], config.scheme, EXAMPLES_KEPT)
    offered_joint, kept_joint = (sum(key.is_joint for key in some) for some in (offered, keys))
    counts = (
        ("key columns", len(offered) - offered_joint, len(keys) - kept_joint, wanted_keys),
        ("keys of several columns", offered_joint, kept_joint, wanted_keys),
        ("number columns", len(numbers), len(kept), wanted_values),
    )
    roles = Roles(
        profiles=tuple(replace(each, is_left_out=each.name in left_out) for each in profiles),
        keys=tuple(keys),
        numbers={each.name: each.number for each in profiles if each.name in wanted},
        examples=examples,
        left_out=tuple(
            LeftOut(what, before - after, before, bool(by_person))
            for what, before, after, by_person in counts
            if after < before
        ),
    )
    return roles, read if sample.height == rows.height else None
