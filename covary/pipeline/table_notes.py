"""What a build writes down about a table: its record, its columns, or why it could not be read."""

from collections.abc import Sequence

import polars as pl

from covary.columns.unused_cells import Tallies
from covary.errors import CovaryError, MissingPart, UnreadableTable
from covary.index.reason_words import explain_column, explain_left_out
from covary.index.table_records import ColumnNote, TableRecord
from covary.pipeline.limits import is_of_the_table
from covary.pipeline.reading_process import Ended
from covary.sketching.roles import LeftOut, Roles
from covary.tables.location import writable
from covary.tables.registry import get_reader
from covary.tables.source import TableSource

# One bad file must never stop a build; Polars panics on a few, which is no Exception.
BAD_TABLE = (Exception, pl.exceptions.PanicException)


def explain_failure(problem: BaseException, table: TableSource) -> str:
    """Say in a line why a table could not be read."""
    if isinstance(problem, UnreadableTable):
        return problem.reason
    text = table.location.secrets.hide(str(problem)).strip().split("\n")[0][:200]
    return text if isinstance(problem, CovaryError) else f"{type(problem).__name__}: {text}"


def is_lasting(problem: BaseException, table: TableSource) -> bool:
    """Whether a table can't be read as long as it is as it is: a file, and no fault of the machine's."""
    cause = problem.__cause__ or problem
    of_the_machine = isinstance(cause, MissingPart | MemoryError) or bool(getattr(cause, "errno", None))
    return get_reader(table).is_file and not table.location.is_url and not of_the_machine


def record_failure(table: TableSource, problem: BaseException) -> TableRecord:
    """Write down a table that could not be read."""
    return make_record(table, problem=explain_failure(problem, table), lasting=is_lasting(problem, table))


def record_early_end(table: TableSource, problem: str, ended: Sequence[Ended]) -> TableRecord:
    """Write down a table that the processes that read it ended at."""
    return make_record(table, problem=problem, lasting=is_of_the_table(ended, table))


def make_record(
    table: TableSource,
    rows: int = 0,
    problem: str | None = None,
    columns: tuple[ColumnNote, ...] = (),
    lasting: bool = False,
    damage: Sequence[str] = (),
    left_out: Sequence[LeftOut] = (),
    remarks: Sequence[str] = (),
) -> TableRecord:
    """Write down a table that was read, or why it was not.

    A table whose problem is not lasting is tried again each time. `damage` says what is wrong with one that
    was read all the same, `remarks` how it was read, where that is no matter of course.
    """
    return TableRecord(
        writable(table.name),
        table.location.shown,
        rows,
        table.size,
        "" if problem and not lasting else table.version,
        problem,
        columns,
        table.member,
        table.source,
        table.checksum,
        tuple(damage),
        tuple(map(explain_left_out, left_out)),
        tuple(remarks),
    )


def describe_columns(roles: Roles, tallies: Tallies) -> tuple[ColumnNote, ...]:
    """Write down what was decided about each column, and what of it could not be used."""
    keys_with: dict[str, list[str]] = {}
    for key in roles.keys:
        for column in key.columns:
            keys_with.setdefault(column, []).append(key.name)
    notes = []
    for profile in roles.profiles:
        name, tally = profile.name, tallies.get(profile.name)
        serves = {"key": name in keys_with, "number": name in roles.numbers}
        note = ColumnNote(
            name,
            profile.kind,
            " and ".join(role for role, is_so in serves.items() if is_so),
            explain_column(profile),
            tuple(keys_with.get(name, ())),
            tally.missing if tally else None,
            tally.not_understood if tally else None,
            tally.examples if tally else (),
            roles.examples.get(name, ()),
        )
        notes.append(note)
    return tuple(notes)
