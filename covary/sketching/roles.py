"""What the columns of a table serve as: decided once, from a sample of its rows, for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from covary.columns.key_text import NORMALISERS
from covary.columns.numbers import NumberReading
from covary.columns.profile import ColumnProfile, choose_columns, profile_columns, take_runs
from covary.columns.unused_cells import Tallies
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

    what: Literal["key columns", "keys of several columns", "number columns"]
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


@dataclass(frozen=True, slots=True, eq=False)
class FirstRows:
    """The key columns of a table's first rows, read while their roles were decided."""

    columns: dict[str, ReadColumn]
    tallies: Tallies


def decide_roles(
    rows: pl.DataFrame,
    table: str,
    config: SketchConfig,
    wanted_keys: Sequence[str] = (),
    wanted_values: Sequence[str] = (),
    size: int | None = None,
) -> tuple[Roles, FirstRows | None]:
    """Decide from a sample of a table which keys and numbers it is sketched on, and how they are read.

    If the key columns of all of the sample were read for that, they are returned too.

    Args:
        rows: the sample.
        table: its name.
        config: the settings of the sketches.
        wanted_keys: the keys that a person named.
        wanted_values: the numbers that a person named.
        size: bytes of the table where it lies, if the sample is not all of it.
    """
    scheme, whole = config.scheme, size is None
    profiles = profile_columns(rows, whole)
    named = [columns for key in wanted_keys if (columns := split_key(key, rows.columns))]
    own = [column for columns in named for column in columns] if wanted_keys else None
    names, numbers = choose_columns(profiles, table, own, wanted_values)
    alone = decide_keys([(name,) for name in names], rows, profiles, config.normaliser, whole)
    budget = Budget(rows, profiles, config, size)
    if wanted_keys:
        offered = decide_keys(named, rows, profiles, config.normaliser, whole)
        keys = budget.choose_keys(offered, numbers, MOST_BYTES, named=True)
        alone = [key for key in alone if key.name in collect_readings(keys)]
    else:
        offered = alone
        keys = alone = budget.choose_keys(alone, numbers, budget.room, named=False)
    kept = budget.choose_numbers(keys, numbers, MOST_BYTES if wanted_keys or wanted_values else budget.room)
    some, tallies = take_runs(rows, SAMPLED_ROWS, SAMPLED_RUNS), Tallies()
    read = read_columns(some, collect_readings(alone), scheme, tallies)
    canonical = config.normaliser != NORMALISERS["exact"]
    if canonical and not wanted_keys:
        joint = find_joint_keys(alone, read, profiles, scheme)
        offered = [*offered, *joint]
        keys = [*keys, *budget.choose_joint_keys(joint, keys, kept)]
    examples = {
        name: column.examples(some[name], scheme, EXAMPLES_KEPT) for name, column in read.items() if canonical
    }
    wanted = set(kept)
    chosen = {profile.name: profile.number for profile in profiles if profile.name in wanted}
    dropped = {key.name for key in offered} - {key.name for key in keys} | set(numbers) - wanted
    profiles = [
        replace(profile, is_left_out=True) if profile.name in dropped else profile for profile in profiles
    ]
    left_out = _left_out(offered, keys, bool(wanted_keys), numbers, kept, bool(wanted_values))
    roles = Roles(tuple(profiles), tuple(keys), chosen, examples, left_out)
    return roles, FirstRows(read, tallies) if some.height == rows.height else None


def _left_out(
    offered: Sequence[Key],
    keys: Sequence[Key],
    keys_are_named: bool,
    numbers: Sequence[str],
    kept: Sequence[str],
    numbers_are_named: bool,
) -> tuple[LeftOut, ...]:
    """Count what is not sketched: keys of one column, keys of several, and numbers."""
    one, several = (
        [sum((len(key.columns) > 1) == is_several for key in some) for some in (offered, keys)]
        for is_several in (False, True)
    )
    counts = (
        LeftOut("key columns", one[0] - one[1], one[0], keys_are_named),
        LeftOut("keys of several columns", several[0] - several[1], several[0], keys_are_named),
        LeftOut("number columns", len(numbers) - len(kept), len(numbers), numbers_are_named),
    )
    return tuple(each for each in counts if each.count)
