"""What a build writes down about a table: its record, its columns, or why it could not be read."""

from collections.abc import Sequence

import polars as pl

from covary.columns import ColumnProfile
from covary.errors import CovaryError, UnreadableTable
from covary.masking import without_secrets
from covary.records import ColumnNote, TableRecord
from covary.roles import Roles
from covary.tablesource import TableSource, shown
from covary.tallies import Tallies

# One bad file must never stop a build; Polars panics on a few, which is no Exception.
BAD_TABLE = (Exception, pl.exceptions.PanicException)


def reason_of(problem: BaseException) -> str:
    """Say in a line why a table could not be read."""
    if isinstance(problem, UnreadableTable):
        return problem.reason
    text = str(problem).strip().split("\n")[0][:200]
    return without_secrets(text if isinstance(problem, CovaryError) else f"{type(problem).__name__}: {text}")


def record_of(
    table: TableSource, rows: int = 0, problem: str | None = None, columns: tuple[ColumnNote, ...] = ()
) -> TableRecord:
    """Write down a table that was read, or why it was not."""
    return TableRecord(
        shown(table.name),
        table.place,
        rows,
        table.size,
        table.version,
        problem,
        columns,
        table.member,
        table.source,
        table.checksum,
    )


def notes_of(roles: Roles, tallies: Tallies) -> tuple[ColumnNote, ...]:
    """Write down what was decided about each column, and what of it could not be used."""
    in_pairs: dict[str, list[str]] = {}
    for key in roles.keys:
        for column in key.columns:
            in_pairs.setdefault(column, []).append(key.name)
    return tuple(_note(profile, roles, in_pairs.get(profile.name, []), tallies) for profile in roles.profiles)


def _note(profile: ColumnProfile, roles: Roles, keys: Sequence[str], tallies: Tallies) -> ColumnNote:
    name = profile.name
    served = (("key", bool(keys)), ("number", name in roles.numbers))
    tally = tallies.get(name)
    return ColumnNote(
        name,
        profile.kind,
        " and ".join(role for role, serves in served if serves),
        profile.reason,
        tuple(keys),
        tally.missing if tally else None,
        tally.not_understood if tally else None,
        tally.examples if tally else (),
        roles.examples.get(name, ()),
    )
