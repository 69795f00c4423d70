"""What the columns of a table serve as: decided once, from a sample of its rows, for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from covary.columns import ColumnProfile, choose, in_runs, profile_columns
from covary.keychoice import keys_named, pairs_found, split_key
from covary.keyrows import EXAMPLES_KEPT, Examples, Key, ReadColumn, read_columns, readings_of
from covary.keys import NORMALISERS
from covary.numbers import NumberReading
from covary.sketches import SketchConfig
from covary.tallies import Tallies

# To find pairs of columns that identify rows, and examples of keys. In runs: pairs repeat among neighbours.
SAMPLED_ROWS, SAMPLED_RUNS = 16_384, 16


@dataclass(frozen=True, slots=True)
class Roles:
    """What the columns of a table serve as, decided once for all of its rows."""

    profiles: tuple[ColumnProfile, ...]
    keys: tuple[Key, ...]
    numbers: dict[str, NumberReading]
    examples: dict[str, Examples]  # of key columns whose text is made canonical

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        return list(dict.fromkeys((*readings_of(self.keys), *self.numbers)))


@dataclass(frozen=True, slots=True, eq=False)
class FirstRows:
    """The key columns of a table's first rows, read while their roles were decided."""

    columns: dict[str, ReadColumn]
    tallies: Tallies


def roles_of(
    rows: pl.DataFrame,
    table: str,
    config: SketchConfig,
    wanted_keys: Sequence[str] = (),
    wanted_values: Sequence[str] = (),
    whole: bool = True,
) -> tuple[Roles, FirstRows | None]:
    """Decide from a sample of a table which keys and numbers it is sketched on, and how they are read.

    If the key columns of all of the sample were read for that, they are returned too. `whole` says whether
    the sample is all of the table.
    """
    scheme = config.scheme
    profiles = profile_columns(rows, whole)
    named = [columns for key in wanted_keys if (columns := split_key(key, rows.columns))]
    own = [column for columns in named for column in columns] if wanted_keys else None
    names, numbers = choose(profiles, table, own, wanted_values)
    alone = keys_named([(name,) for name in names], rows, profiles, config.normaliser, whole)
    some, tallies = in_runs(rows, SAMPLED_ROWS, SAMPLED_RUNS), Tallies()
    read = read_columns(some, readings_of(alone), scheme, tallies)
    canonical = config.normaliser != NORMALISERS["exact"]
    if wanted_keys:
        keys = keys_named(named, rows, profiles, config.normaliser, whole)
    else:
        keys = alone + (pairs_found(alone, read, profiles, scheme) if canonical else [])
    examples = {
        name: column.examples(some[name], scheme, EXAMPLES_KEPT) for name, column in read.items() if canonical
    }
    chosen = {profile.name: profile.number for profile in profiles if profile.name in numbers}
    roles = Roles(tuple(profiles), tuple(keys), chosen, examples)
    return roles, FirstRows(read, tallies) if some.height == rows.height else None
