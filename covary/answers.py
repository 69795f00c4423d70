"""Answers as a person reads them: tables and sentences for a terminal, and the same facts as plain JSON."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from covary.errors import TableError
from covary.query import Estimate, Hit, Hits, QueryNote
from covary.segment import ColumnNote, TableRecord
from covary.sketches import Sketch
from covary.store import MANIFEST, read_manifest, read_segment, segment_folder

WIDE = 100  # columns from which "how it joins" has room beside the numbers
SKIPPED_SHOWN = 20
TABLES_SHOWN = 50
NAMES_SHOWN = 8
SYMBOLS = {"pearson": "r", "spearman": "ρ"}
FOLDED = {
    "mean": "averaged", "sum": "summed", "count": "counted", "min": "smallest taken",
    "max": "largest taken", "first": "first taken", "last": "last taken",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What can be told of an index without asking it anything.

    Attributes:
        entries: ⟨key, number⟩ entries of all sketches together.
        bytes: what the index takes on disk.
        nothing_to_sketch: tables without a key column or without a number column.
        contents: every table that was found.
    """

    index: str
    format: int
    size: int
    aggregates: tuple[str, ...]
    hash: str
    sketches: int
    entries: int
    bytes: int
    nothing_to_sketch: int
    contents: tuple[TableRecord, ...]

    @property
    def read(self) -> list[TableRecord]:
        """The tables that were read."""
        return [table for table in self.contents if table.problem is None]

    @property
    def skipped(self) -> list[TableRecord]:
        """The tables that were not."""
        return [table for table in self.contents if table.problem is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return the totals as they stand in JSON, and the skipped tables."""
        totals = {name: getattr(self, name) for name in self.__slots__ if name != "contents"}
        return totals | {
            "bytes_per_entry": self.bytes / self.entries if self.entries else None,
            "tables": len(self.read),
            "rows": sum(table.rows for table in self.read),
            "skipped": [{"table": t.name, "path": t.path, "reason": t.problem} for t in self.skipped],
        }


def describe(path: Path) -> IndexFacts:
    """Gather the facts of an index from its files."""
    manifest = read_manifest(path)
    segments = [read_segment(segment_folder(path, stored), stored) for stored in manifest.segments]
    files = [file for stored in manifest.segments for file in stored.files.values()]
    rows = [row for segment in segments for row in segment.tables.iter_rows(named=True)]
    read = sum(row["problem"] is None for row in rows)
    sketched = sum(segment.sketches["table"].n_unique() for segment in segments)
    return IndexFacts(
        index=str(path),
        format=manifest.format,
        size=manifest.config.size,
        aggregates=manifest.config.aggregates,
        hash=manifest.config.hash,
        sketches=sum(segment.sketches.height for segment in segments),
        entries=sum(int(segment.arrays["postings.sketch"].size) for segment in segments),
        bytes=(path / MANIFEST).stat().st_size + sum(file.size for file in files),
        nothing_to_sketch=read - sketched,
        contents=tuple(
            TableRecord(**{**row, "columns": tuple(ColumnNote(**column) for column in row["columns"])})
            for row in rows
        ),
    )


def columns_of(table: TableRecord, role: str) -> list[str]:
    """Return the columns of a table that serve as "key" or as "number"."""
    return [column.name for column in table.columns if role in column.role.split(" and ")]


def plain(fact: Any) -> Any:
    """Return a fact as JSON can hold it: null for what is not finite, lists for tuples."""
    if isinstance(fact, Mapping):
        return {name: plain(part) for name, part in fact.items()}
    if isinstance(fact, list | tuple):
        return [plain(part) for part in fact]
    if isinstance(fact, float):
        return float(fact) if math.isfinite(fact) else None
    return fact


def printable(text: str) -> str:
    """Return text from a file on one line and without anything that a terminal would obey."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def signed(correlation: float) -> str:
    """Write a correlation with its sign and two decimals, never as -0.00."""
    return f"{round(correlation, 2) + 0.0:+.2f}"


def count_of(number: float, noun: str) -> str:
    """Write "1 table", "1,458 tables", or "~6,805 keys" for an estimate."""
    about = "" if float(number).is_integer() else "~"
    ending = "" if round(number) == 1 else "es" if noun.endswith("ch") else "s"
    return f"{about}{number:,.0f} {noun}{ending}"


def duration(milliseconds: float) -> str:
    """Write a time as people say it."""
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def size_of(count: float) -> str:
    """Write a number of bytes in a unit that suits it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} bytes" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def hits_view(hits: Hits, width: int) -> RenderableType:
    """Lay out the answer to a query: what was asked, the best hits, and what was left out."""
    query = hits.query
    asked = f"{query.aggregate} per {query.key}, {count_of(query.distinct_keys, 'key')}"
    headline = Text.assemble(
        "What moves with ", (printable(f"{query.table}.{query.value}"), "bold"), printable(f" ({asked})")
    )
    joins = [how_it_joins(hit, query) for hit in hits]
    wide = width >= WIDE
    table = _table("#>", "table", "column", f"{SYMBOLS[hits.measure]}>", "95 %", "sample>")
    if wide:
        table.add_column("how it joins", overflow="fold", ratio=1)
    for place, (hit, join) in enumerate(zip(hits, joins, strict=True), start=1):
        table.add_row(str(place), *_hit_cells(hit), *([join] if wide else []))
    below = [] if wide else [Text("\nHow they join, by #"), _runs(joins), Text()]
    return Group(headline, table, *below, Text(closing_line(hits)))


def _table(*headings: str) -> Table:
    """Make a table without lines; a heading that ends in ">" is of numbers."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for heading in headings:
        numeric = heading.endswith(">")
        table.add_column(
            heading.removesuffix(">"),
            justify="right" if numeric else "left",
            no_wrap=numeric or heading == "95 %",
            overflow="fold",
        )
    return table


def _hit_cells(hit: Hit) -> list[Text]:
    found = hit
    r = found.correlation or 0.0
    return [
        Text(printable(hit.table)),
        Text(printable(hit.value), "bold"),
        Text(signed(r), "green" if r >= 0 else "red"),
        Text(_interval(found)),
        Text(_sample(found)),
    ]


def _interval(found: Estimate) -> str:
    if found.exact:
        return "exact"
    low, high = found.low, found.high
    return "" if low is None or high is None else f"[{signed(low)}, {signed(high)}]"


def _sample(found: Estimate) -> str:
    return f"all {found.sample_size:,}" if found.exact else f"{found.sample_size:,}/~{found.join_size:,.0f}"


def how_it_joins(hit: Hit, query: QueryNote) -> str:
    """Say in words on what a hit joins, and how its rows of one key became one number."""
    join = printable(f"{query.key} = {hit.table}.{hit.key}")
    rows_per_key = (hit.rows - hit.dropped_rows) / hit.distinct_keys
    if rows_per_key < 1.05:
        return join
    rows = f"{rows_per_key:,.0f}" if rows_per_key >= 10 else f"{rows_per_key:.1f}".removesuffix(".0")
    return f"{join}; {rows} rows per key {FOLDED[hit.aggregate]}"


def _runs(joins: Sequence[str]) -> RenderableType:
    """List each way of joining once for neighbouring hits that share it."""
    table = _table("#>", "join")
    table.show_header = False
    for join, places in groupby(range(len(joins)), key=lambda place: joins[place]):
        numbers = [place + 1 for place in places]
        run = f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
        table.add_row(run, Text(join))
    return Padding(table, (0, 0, 0, 1))


def closing_line(hits: Hits) -> str:
    """Say how many columns join, and which were left out and why."""
    joined = hits.candidates - hits.hidden
    verb = "joins" if joined == 1 else "join"
    parts = [f"{count_of(joined, 'column')} {verb}"]
    if 0 < len(hits) < joined:
        parts[0] += f", the best {len(hits)} shown"
    if hits.hidden:
        reason = f"fewer than {hits.min_sample} shared keys; --min-sample to see them"
        parts.append(f"{hits.hidden:,} more hidden ({reason})")
    if hits.own:
        own = count_of(hits.own, "column")
        parts.append(f"{own} of {printable(hits.query.table)} itself left out (--include-own)")
    return f"{'; '.join(parts)}. {duration(hits.elapsed_ms)}"


def no_hits_view(
    hits: Hits, index: IndexFacts, path: str | None, columns: Sequence[str], examples: Sequence[str]
) -> RenderableType:
    """Say that nothing joins, what the keys look like, and what to try instead.

    Args:
        hits: the empty answer.
        index: what was asked.
        path: where the queried table is.
        columns: the columns of the queried table.
        examples: some of its keys.
    """
    query = hits.query
    if hits.candidates > hits.hidden:
        return _lines(["Columns join, but none of them varies: no correlation.", closing_line(hits)])
    if hits.hidden:
        nothing = f"Nothing in {index.index} shares {hits.min_sample} keys with {query.table} on {query.key}."
        return _lines([nothing, closing_line(hits)])
    lines = [f"Nothing in {index.index} joins with {query.table} on {query.key}."]
    if examples:
        lines.append(f"Its keys look like {', '.join(repr(key) for key in examples)}.")
    others = [table for table in index.read if table.path != path and columns_of(table, "number")]
    held = Counter(name for table in others for name in columns_of(table, "key"))
    if held:
        most = ", ".join(f"{name} ({count_of(n, 'table')})" for name, n in held.most_common(5))
        lines.append(f"The index joins on, most frequent first: {most}.")
    shared = [name for name in columns if name in held and name != query.key]
    if shared:
        lines.append(f"{query.table} has such columns too: try --key {' or --key '.join(shared[:3])}.")
    return _lines([*lines, closing_line(hits)])


def side_of(sketch: Sketch) -> QueryNote:
    """Return what was asked of one side of an estimate."""
    pair, counts = sketch.pair, sketch.counts
    dropped = counts.null_keys + counts.null_values + counts.not_finite
    return QueryNote(
        pair.table, pair.key, pair.value, sketch.aggregate, counts.rows, sketch.distinct_keys, dropped
    )


def estimate_view(found: Estimate, left: QueryNote, right: QueryNote) -> RenderableType:
    """Answer in three lines: which two columns, how correlated, and how the tables meet."""
    names = [f"{side.table}.{side.value} ({side.aggregate} per {side.key})" for side in (left, right)]
    of_left = 100 * found.containment
    of_right = 100 * min(1.0, found.overlap / right.distinct_keys)
    about = "" if found.exact else "about "
    meet = (
        f"They share {about}{found.overlap:,.0f} keys: {of_left:.0f} % of the "
        f"{count_of(left.distinct_keys, 'key')} of {left.table}, {of_right:.0f} % of the "
        f"{count_of(right.distinct_keys, 'key')} of {right.table}."
    )
    lines = [" and ".join(names), estimate_sentence(found), meet]
    return _lines(lines)


def estimate_sentence(found: Estimate) -> str:
    """Say the correlation, its interval and its sample."""
    symbol = SYMBOLS[found.measure]
    if found.correlation is None:
        too_few = f"it takes 3 shared keys and there are {found.sample_size}"
        constant = f"a column has one value only on the {found.sample_size:,} shared keys"
        return f"{symbol} is undefined: {too_few if found.sample_size < 3 else constant}"
    if found.exact or found.low is None or found.high is None:
        keys = f"{found.sample_size:,} of {found.join_size:,.0f} shared keys"
        return f"{symbol} = {signed(found.correlation)}, from {keys} (exact)"
    return (
        f"{symbol} = {signed(found.correlation)}, 95 % between {signed(found.low)} and {signed(found.high)}, "
        f"from {found.sample_size:,} of about {found.join_size:,.0f} shared keys"
    )


def build_view(index: IndexFacts, elapsed_ms: float) -> RenderableType:
    """Report a build: what was indexed, what was not and why, and what to do next."""
    indexed = f"Indexed {_tables(index)} into {index.index} in {duration(elapsed_ms)}: {_sketches(index)}."
    lines = [indexed, *_left_out(index)]
    if index.sketches:
        lines.append(f"Ask it: covary query TABLE --key COLUMN --value COLUMN --index {index.index}")
    return _lines(lines)


def _tables(index: IndexFacts) -> str:
    rows = sum(table.rows for table in index.read)
    return f"{count_of(len(index.read), 'table')}, {count_of(rows, 'row')},"


def _sketches(index: IndexFacts) -> str:
    return f"{count_of(index.sketches, 'sketch')} of column pairs, {size_of(index.bytes)} on disk"


def _lines(lines: Iterable[str]) -> Group:
    return Group(*(Text(printable(line)) for line in lines))


def _left_out(index: IndexFacts) -> list[str]:
    lines = []
    if index.nothing_to_sketch:
        has = "has" if index.nothing_to_sketch == 1 else "have"
        tables = count_of(index.nothing_to_sketch, "table")
        lines.append(f"{tables} {has} nothing to sketch: no key column or no number column.")
    if index.skipped:
        lines.append(f"{count_of(len(index.skipped), 'table')} skipped:")
        lines += [f"  {skipped.path}: {skipped.problem}" for skipped in index.skipped[:SKIPPED_SHOWN]]
    if len(index.skipped) > SKIPPED_SHOWN:
        lines.append(f"  and {len(index.skipped) - SKIPPED_SHOWN:,} more: covary info {index.index} --json")
    return lines


def info_view(index: IndexFacts) -> RenderableType:
    """Describe an index: its settings, its size, its tables, and what it left out."""
    per_entry = f", {index.bytes / index.entries:.1f} bytes per entry" if index.entries else ""
    head = [
        f"{index.index}: {_tables(index)} {_sketches(index)}{per_entry}.",
        f"Made with size {index.size:,}, aggregate {', '.join(index.aggregates)}, hash {index.hash}, "
        f"format {index.format}.",
        "",
    ]
    table = _table("table", "rows>", "keys", "numbers")
    for each in index.read[:TABLES_SHOWN]:
        keys, numbers = (Text(_names(columns_of(each, role))) for role in ("key", "number"))
        table.add_row(Text(printable(each.name), "bold"), f"{each.rows:,}", keys, numbers)
    more = len(index.read) - TABLES_SHOWN
    tail = [f"and {more:,} more tables: covary info {index.index} --json"] if more > 0 else []
    tail += ["", *_left_out(index), f"One table's columns: covary info {index.index} --table NAME"]
    return Group(_lines(head), table, _lines(tail))


def _names(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    shown = ", ".join(map(printable, names[:NAMES_SHOWN]))
    return f"{shown} and {more} more" if more > 0 else shown or "-"


def table_named(index: IndexFacts, name: str) -> TableRecord:
    """Look a table up by name, offering near ones."""
    by_name = {table.name: table for table in index.contents}
    if name in by_name:
        return by_name[name]
    near = get_close_matches(name, by_name, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"covary info {index.index} lists them"
    raise TableError(f"{index.index} holds no table {name!r}; {hint}")


def columns_view(table: TableRecord) -> RenderableType:
    """List a table's columns: what each holds, what it serves as, and why."""
    columns = _table("column", "kind", "role", "why")
    for column in table.columns:
        name = Text(printable(column.name), "bold")
        columns.add_row(name, column.kind, column.role or "-", Text(printable(column.reason)))
    head = f"{table.name}: {count_of(table.rows, 'row')}, {size_of(table.bytes)}, {table.path}"
    return Group(_lines([head]), columns)
