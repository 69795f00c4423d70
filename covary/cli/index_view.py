"""An index as a person sees it: after a build, by `covary info`, and one table of it."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from covary.cli.change_view import describe_change, name_tables
from covary.cli.words import count_of, duration, lines_of, names_of, printable, size_of, table_of
from covary.index.history import Change
from covary.index.table_records import TableRecord
from covary.query.describe import IndexSummary

SKIPPED_SHOWN = 20
TABLES_SHOWN = 50


def build_view(index: IndexSummary, change: Change, elapsed_ms: float) -> RenderableType:
    """Report a build: what was indexed, what was not and why, and what to do next."""
    if change.kept or change.removed or change.changed or change.lost:
        lines = [
            f"{describe_change(change)} This took {duration(elapsed_ms)}.",
            *name_tables(change),
            f"{index.index} now holds {_count_tables(index)} {_count_sketches(index)}.",
        ]
    else:
        took = duration(elapsed_ms)
        lines = [f"Indexed {_count_tables(index)} into {index.index} in {took}: {_count_sketches(index)}."]
    lines += _list_losses(index)
    if index.sketches:
        lines.append(f"Ask it: covary query TABLE --key COLUMN --value COLUMN --index {index.index}")
    return lines_of(lines)


def count_skipped(index: IndexSummary) -> str:
    """Count what was skipped: "1 source and 2 tables"."""
    counts = ((len(index.skipped_sources), "source"), (len(index.skipped_tables), "table"))
    return " and ".join(count_of(count, noun) for count, noun in counts if count)


def info_view(index: IndexSummary, most: int | None = TABLES_SHOWN) -> RenderableType:
    """Describe an index: its settings, its size, its tables, and what it left out."""
    per_entry = f", {index.bytes_per_entry:.1f} bytes per entry" if index.bytes_per_entry else ""
    head = [
        f"{index.index}: {_count_tables(index)} {_count_sketches(index)}{per_entry}.",
        f"Made with size {index.size:,}, aggregate {', '.join(index.aggregates)}, hash {index.hash}, "
        f"keys {index.keys}, format {index.format}; {count_of(index.segments, 'segment')}.",
        f"Made from {names_of(index.sources)}.",
    ]
    if index.removed:
        removed = count_of(len(index.removed), "table")
        head.append(f"Removed by hand, until named to covary index: {removed}, {names_of(index.removed)}.")
    if not index.read:
        return lines_of([*head, *_list_losses(index), add_tables(index)])
    head.append("")
    table = table_of("table", "rows>", "keys", "numbers")
    for each in index.read[:most]:
        keys, numbers = (Text(names_of(each.columns_as(role))) for role in ("key", "number"))
        table.add_row(Text(printable(each.name), "bold"), f"{each.rows:,}", keys, numbers)
    more = len(index.read) - len(index.read[:most])
    tail = [f"and {more:,} more tables: covary info {index.index} --json"] if more > 0 else []
    tail += ["", *_list_losses(index), f"One table's columns: covary info {index.index} --table NAME"]
    return Group(lines_of(head), table, lines_of(tail))


def add_tables(index: IndexSummary) -> str:
    """Say how an index without tables gets some."""
    return f"It holds no tables; add some: covary index SOURCE --into {index.index}"


def columns_view(table: TableRecord) -> RenderableType:
    """List a table's columns: what each holds, what it serves as, and why."""
    columns = table_of("column", "kind", "role", "missing>", "not understood>", "why")
    for column in table.columns:
        name = Text(printable(column.name), "bold")
        counts = ("" if n is None else f"{n:,}" for n in (column.missing, column.not_understood))
        columns.add_row(name, column.kind, column.role or "-", *counts, Text(printable(column.reason)))
    head = f"{table.name}: {count_of(table.rows, 'row')}, {size_of(table.bytes)}, {table.location}"
    lines = [*table.damage, *table.left_out, *table.remarks]
    lines += [
        f"{column.name}: not understood, for example {', '.join(map(repr, column.not_understood_examples))}"
        for column in table.columns
        if column.not_understood_examples
    ]
    joint = dict.fromkeys(key for column in table.columns for key in column.keys if key != column.name)
    if joint:
        lines.append(f"keys of several columns: {'; '.join(joint)}")
    return Group(lines_of([head]), columns, lines_of(lines))


def _count_tables(index: IndexSummary) -> str:
    return f"{count_of(len(index.read), 'table')}, {count_of(index.rows, 'row')},"


def _count_sketches(index: IndexSummary) -> str:
    return f"{count_of(index.sketches, 'sketch')} of column pairs, {size_of(index.bytes)} on disk"


def _list_losses(index: IndexSummary) -> list[str]:
    """Say what the index does not hold though its sources do, and what was read in an unusual way."""
    lines = []
    if index.unsketched:
        has = "has" if len(index.unsketched) == 1 else "have"
        tables = count_of(len(index.unsketched), "table")
        reason = "no rows, no key column or no number column"
        lines.append(f"{tables} {has} nothing to sketch ({reason}): {names_of(index.unsketched)}.")
    if index.ambiguous:
        columns = count_of(len(index.ambiguous), "column of dates")
        read = f"read as month first: {names_of(index.ambiguous)}"
        lines.append(f"Day or month first can't be told in {columns}, {read}.")
    cells, column_count = index.not_understood
    if cells:
        where = f"covary info {index.index} --table NAME shows them"
        lines.append(
            f"{count_of(cells, 'cell')} of {count_of(column_count, 'column')} not understood: {where}."
        )
    lines += _list_tables(index, "read though damaged", [(t.location, t.damage) for t in index.read])
    lines += _list_tables(index, "sketched in part", [(t.name, t.left_out) for t in index.read])
    lines += _list_tables(index, "with a remark", [(t.name, t.remarks) for t in index.read])
    sources = index.skipped_sources
    if sources:
        kept = f"what is known of {'it' if len(sources) == 1 else 'them'} is kept"
        forget = f"covary remove {index.index} SOURCE forgets one"
        lines.append(f"{count_of(len(sources), 'source')} could not be looked into; {kept} ({forget}):")
        lines += [f"  {source.path}: {source.problem}" for source in sources[:SKIPPED_SHOWN]]
    skipped = [(table.location, (str(table.problem),)) for table in index.skipped_tables]
    return lines + _list_tables(index, "skipped", skipped)


def _list_tables(index: IndexSummary, what: str, tables: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Count the tables about which the index keeps some sentences, and show those of the first."""
    tables = [(name, sentences) for name, sentences in tables if sentences]
    if not tables:
        return []
    lines = [f"{count_of(len(tables), 'table')} {what}:"]
    lines += [f"  {name}: {'; '.join(sentences)}" for name, sentences in tables[:SKIPPED_SHOWN]]
    if len(tables) > SKIPPED_SHOWN:
        lines.append(f"  and {len(tables) - SKIPPED_SHOWN:,} more: covary info {index.index} --json")
    return lines
