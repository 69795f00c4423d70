"""The facts of an index, gathered from its files, and how they are told to a person."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from covary.cli.change_view import done, touched
from covary.cli.words import count_of, duration, lines_of, names_of, printable, size_of, table_of
from covary.errors import TableError, near_names
from covary.index.history import Change
from covary.index.reason_words import leaves_day_open
from covary.index.table_records import TableRecord, records_of
from covary.own_files import MANIFEST
from covary.query.stored_sketches import StoredSketches

SKIPPED_SHOWN = 20
TABLES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What can be told of an index without asking it anything.

    Attributes:
        entries: ⟨key, number⟩ entries of all sketches together.
        bytes: what the index takes on disk.
        unsketched: names of tables without a key column or without a number column.
        removed: where the tables are that were removed by hand, and stay away until they are named.
        contents: every table that was found.
    """

    index: str
    format: int
    size: int
    aggregates: tuple[str, ...]
    hash: str
    keys: str
    sources: tuple[str, ...]
    segments: int
    sketches: int
    entries: int
    bytes: int
    unsketched: tuple[str, ...]
    removed: tuple[str, ...]
    contents: tuple[TableRecord, ...]

    @property
    def read(self) -> list[TableRecord]:
        """The tables that were read."""
        return [table for table in self.contents if table.problem is None]

    @property
    def skipped(self) -> list[TableRecord]:
        """The tables that were not."""
        return [table for table in self.contents if table.problem is not None]

    @property
    def out_of_reach(self) -> list[TableRecord]:
        """The sources that could not be looked into, which are of no source themselves."""
        return [table for table in self.skipped if self.is_source(table)]

    def is_source(self, skipped: TableRecord) -> bool:
        """Whether what was skipped is a source, and not a table of one."""
        return not skipped.source and skipped.place in self.sources

    @property
    def damaged(self) -> list[TableRecord]:
        """The tables that were read though something is wrong with them."""
        return [table for table in self.read if table.damage]

    @property
    def rows(self) -> int:
        """The rows of all tables that were read."""
        return sum(table.rows for table in self.read)

    @property
    def bytes_per_entry(self) -> float | None:
        """What an entry takes on disk, all else shared out among the entries."""
        return self.bytes / self.entries if self.entries else None

    @property
    def ambiguous(self) -> list[str]:
        """The columns of dates whose cells leave open which number is the day."""
        return [
            f"{table.name}.{column.name}"
            for table in self.read
            for column in table.columns
            if column.role and leaves_day_open(column.reason)
        ]

    @property
    def not_understood(self) -> tuple[int, int]:
        """How many cells that were there could not be read, and in how many columns."""
        counts = [column.not_understood or 0 for table in self.read for column in table.columns]
        return sum(counts), sum(count > 0 for count in counts)

    def to_dict(self) -> dict[str, Any]:
        """Return the totals as they stand in JSON, and the skipped tables."""
        totals = {name: getattr(self, name) for name in self.__slots__ if name != "contents"}
        return totals | {
            "bytes_per_entry": self.bytes_per_entry,
            "nothing_to_sketch": len(self.unsketched),
            "tables": len(self.read),
            "rows": self.rows,
            "ambiguous": self.ambiguous,
            "not_understood": self.not_understood[0],
            "skipped": [{"table": t.name, "path": t.place, "reason": t.problem} for t in self.skipped],
            "damaged": [{"table": t.name, "path": t.place, "damage": t.damage} for t in self.damaged],
            "left_out": [{"table": t.name, "what": t.left_out} for t in self.read if t.left_out],
            "remarks": [{"table": t.name, "remarks": t.remarks} for t in self.read if t.remarks],
        }


def describe(path: Path) -> IndexFacts:
    """Gather the facts of an index from its files."""
    index = StoredSketches.open(path)
    manifest, segments = index.manifest, index.segments
    files = [file for stored in manifest.segments for file in stored.files.values()]
    contents = records_of(index.tables)
    left = Counter(table.name for table in contents if table.problem is None) - Counter(
        name for segment in segments for name in segment.sketched_tables()
    )
    return IndexFacts(
        index=str(path),
        format=manifest.format,
        size=manifest.config.size,
        aggregates=manifest.config.aggregates,
        hash=manifest.config.hash,
        keys=manifest.config.normaliser,
        sources=manifest.sources,
        segments=len(segments),
        sketches=index.sketch_count,
        entries=sum(segment.entries for segment in segments),
        bytes=(path / MANIFEST).stat().st_size + sum(file.size for file in files),
        unsketched=tuple(left.elements()),
        removed=manifest.excluded,
        contents=tuple(contents),
    )


def columns_of(table: TableRecord, role: str) -> list[str]:
    """Return the columns of a table that serve as "key" or as "number"."""
    return [column.name for column in table.columns if role in column.role.split(" and ")]


def table_named(index: IndexFacts, name: str) -> TableRecord:
    """Look a table up by name, offering near ones."""
    by_name = {table.name: table for table in index.contents}
    if name in by_name:
        return by_name[name]
    near = near_names(name, by_name)
    hint = f"did you mean {' or '.join(near)}?" if near else f"covary info {index.index} lists them"
    raise TableError(f"{index.index} holds no table {name!r}; {hint}")


def build_view(index: IndexFacts, change: Change, elapsed_ms: float) -> RenderableType:
    """Report a build: what was indexed, what was not and why, and what to do next."""
    if change.kept or change.removed or change.changed or change.lost:
        lines = [
            f"{done(change)} This took {duration(elapsed_ms)}.",
            *touched(change),
            f"{index.index} now holds {_tables(index)} {_sketches(index)}.",
        ]
    else:
        lines = [
            f"Indexed {_tables(index)} into {index.index} in {duration(elapsed_ms)}: {_sketches(index)}."
        ]
    lines += _left_out(index)
    if index.sketches:
        lines.append(f"Ask it: covary query TABLE --key COLUMN --value COLUMN --index {index.index}")
    return lines_of(lines)


def skipped_words(index: IndexFacts) -> str:
    """Count what was skipped: "1 source and 2 tables"."""
    sources = len(index.out_of_reach)
    counts = ((sources, "source"), (len(index.skipped) - sources, "table"))
    return " and ".join(count_of(count, noun) for count, noun in counts if count)


def info_view(index: IndexFacts, most: int | None = TABLES_SHOWN) -> RenderableType:
    """Describe an index: its settings, its size, its tables, and what it left out."""
    per_entry = f", {index.bytes_per_entry:.1f} bytes per entry" if index.bytes_per_entry else ""
    head = [
        f"{index.index}: {_tables(index)} {_sketches(index)}{per_entry}.",
        f"Made with size {index.size:,}, aggregate {', '.join(index.aggregates)}, hash {index.hash}, "
        f"keys {index.keys}, format {index.format}; {count_of(index.segments, 'segment')}.",
        f"Made from {names_of(index.sources)}.",
    ]
    if index.removed:
        removed = count_of(len(index.removed), "table")
        head.append(f"Removed by hand, until named to covary index: {removed}, {names_of(index.removed)}.")
    if not index.read:
        return lines_of([*head, *_left_out(index), add_tables(index)])
    head.append("")
    table = table_of("table", "rows>", "keys", "numbers")
    for each in index.read[:most]:
        keys, numbers = (Text(names_of(columns_of(each, role))) for role in ("key", "number"))
        table.add_row(Text(printable(each.name), "bold"), f"{each.rows:,}", keys, numbers)
    more = len(index.read) - len(index.read[:most])
    tail = [f"and {more:,} more tables: covary info {index.index} --json"] if more > 0 else []
    tail += ["", *_left_out(index), f"One table's columns: covary info {index.index} --table NAME"]
    return Group(lines_of(head), table, lines_of(tail))


def add_tables(index: IndexFacts) -> str:
    """Say how an index without tables gets some."""
    return f"It holds no tables; add some: covary index SOURCE --into {index.index}"


def columns_view(table: TableRecord) -> RenderableType:
    """List a table's columns: what each holds, what it serves as, and why."""
    columns = table_of("column", "kind", "role", "missing>", "not understood>", "why")
    for column in table.columns:
        name = Text(printable(column.name), "bold")
        counts = (column.missing, column.not_understood)
        lost = ["" if count is None else f"{count:,}" for count in counts]
        columns.add_row(name, column.kind, column.role or "-", *lost, Text(printable(column.reason)))
    head = f"{table.name}: {count_of(table.rows, 'row')}, {size_of(table.bytes)}, {table.place}"
    said = [*table.damage, *table.left_out, *table.remarks, *_lost(table), *_joint_keys(table)]
    return Group(lines_of([head]), columns, lines_of(said))


def _lost(table: TableRecord) -> list[str]:
    """Show some of what was not understood, column by column."""
    return [
        f"{column.name}: not understood, for example {', '.join(map(repr, column.not_understood_examples))}"
        for column in table.columns
        if column.not_understood_examples
    ]


def _joint_keys(table: TableRecord) -> list[str]:
    """Name the keys of several columns."""
    joint = dict.fromkeys(key for column in table.columns for key in column.keys if key != column.name)
    return [f"keys of several columns: {'; '.join(joint)}"] if joint else []


def _tables(index: IndexFacts) -> str:
    return f"{count_of(len(index.read), 'table')}, {count_of(index.rows, 'row')},"


def _sketches(index: IndexFacts) -> str:
    return f"{count_of(index.sketches, 'sketch')} of column pairs, {size_of(index.bytes)} on disk"


def _left_out(index: IndexFacts) -> list[str]:
    lines = []
    if index.unsketched:
        has = "has" if len(index.unsketched) == 1 else "have"
        tables = count_of(len(index.unsketched), "table")
        why = "no rows, no key column or no number column"
        lines.append(f"{tables} {has} nothing to sketch ({why}): {names_of(index.unsketched)}.")
    if index.ambiguous:
        columns = count_of(len(index.ambiguous), "column of dates")
        read = f"read as month first: {names_of(index.ambiguous)}"
        lines.append(f"Day or month first can't be told in {columns}, {read}.")
    cells, of_columns = index.not_understood
    if cells:
        where = f"covary info {index.index} --table NAME shows them"
        lines.append(
            f"{count_of(cells, 'cell')} of {count_of(of_columns, 'column')} not understood: {where}."
        )
    lines += _told_of_tables(
        "read though damaged", [(table.place, table.damage) for table in index.damaged], index
    )
    lines += _told_of_tables(
        "sketched in part", [(table.name, table.left_out) for table in index.read if table.left_out], index
    )
    lines += _told_of_tables(
        "with a remark", [(table.name, table.remarks) for table in index.read if table.remarks], index
    )
    out_of_reach = index.out_of_reach
    if out_of_reach:
        sources = count_of(len(out_of_reach), "source")
        kept = f"what is known of {'it' if len(out_of_reach) == 1 else 'them'} is kept"
        forget = f"covary remove {index.index} SOURCE forgets one"
        lines.append(f"{sources} could not be looked into; {kept} ({forget}):")
        lines += [f"  {source.path}: {source.problem}" for source in out_of_reach[:SKIPPED_SHOWN]]
    skipped = [table for table in index.skipped if not index.is_source(table)]
    if skipped:
        lines.append(f"{count_of(len(skipped), 'table')} skipped:")
        lines += [f"  {table.place}: {table.problem}" for table in skipped[:SKIPPED_SHOWN]]
    if len(skipped) > SKIPPED_SHOWN:
        lines.append(f"  and {len(skipped) - SKIPPED_SHOWN:,} more: covary info {index.index} --json")
    return lines


def _told_of_tables(what: str, said: Sequence[tuple[str, Sequence[str]]], index: IndexFacts) -> list[str]:
    """Count tables, and repeat what was written down about the first of them."""
    if not said:
        return []
    lines = [f"{count_of(len(said), 'table')} {what}:"]
    lines += [f"  {name}: {'; '.join(sentences)}" for name, sentences in said[:SKIPPED_SHOWN]]
    if len(said) > SKIPPED_SHOWN:
        lines.append(f"  and {len(said) - SKIPPED_SHOWN:,} more: covary info {index.index} --json")
    return lines
