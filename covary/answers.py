"""Answers as a person reads them: to a query, to a query that finds nothing, and to an estimate."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from covary.facts import IndexFacts, columns_of
from covary.query import Estimate, Hit, Hits, QueryNote
from covary.segment import TableRecord
from covary.wording import count_of, duration, lines_of, printable, signed, table_of

HEADINGS = ("table", "column", "r>", "95 %", "sample>")
SYMBOLS = {"pearson": "r", "spearman": "ρ"}
FOLDED = {
    "mean": "averaged", "sum": "summed", "count": "counted", "min": "to the smallest",
    "max": "to the largest", "first": "to the first", "last": "to the last",
}  # fmt: skip


def hits_view(hits: Hits, width: int) -> RenderableType:
    """Lay out the answer to a query: what was asked, the best hits, and what was left out."""
    query = hits.query
    asked = f"{query.aggregate} per {query.key}, {count_of(query.distinct_keys, 'key')}"
    column = f"{query.table}.{query.value}" if query.table else query.value
    headline = Text.assemble("What moves with ", (printable(column), "bold"), printable(f" ({asked})"))
    joins = [how_it_joins(hit, query) for hit in hits]
    wide = width >= _width_beside(hits) + max(map(len, joins), default=0)
    table = table_of("#>", *HEADINGS[:2], f"{SYMBOLS[hits.measure]}>", *HEADINGS[3:])
    if wide:
        table.add_column("how it joins", overflow="fold", ratio=1)
    for place, (hit, join) in enumerate(zip(hits, joins, strict=True), start=1):
        table.add_row(str(place), *_hit_cells(hit), *([join] if wide else []))
    below = [] if wide else [Text("\nHow they join, by #"), _runs(joins), Text()]
    return Group(headline, table, *below, Text(closing_line(hits)))


def _width_beside(hits: Hits) -> int:
    """Return how many columns a terminal needs for all that stands before "how it joins"."""
    lengths = [[len(cell) for cell in _hit_cells(hit)] for hit in hits.hits]
    widest: list[int] = [max(column) for column in zip(*lengths, strict=True)]
    return len("100  ") + sum(widest) + 2 * len(widest)


def _hit_cells(hit: Hit) -> list[Text]:
    r = hit.correlation or 0.0
    return [
        Text(printable(hit.table)),
        Text(printable(_column(hit)), "bold"),
        Text(signed(r), "green" if r >= 0 else "red"),
        Text(_interval(hit)),
        Text(_sample(hit)),
    ]


def _column(hit: Hit) -> str:
    """Name the column; and its aggregate, unless it is the usual one."""
    return hit.value if hit.aggregate == "mean" else f"{hit.aggregate} of {hit.value}"


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
    table = table_of("#>", "join")
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
    parts = [f"{count_of(joined, 'column')} {verb}"] if joined or not hits.hidden else []
    if 0 < len(hits) < joined - hits.constant:
        parts[0] += f", the best {len(hits)} shown"
    if hits.constant and joined > hits.constant:
        parts.append(f"{hits.constant:,} of them constant where they join")
    if hits.hidden:
        reason = f"fewer than {hits.min_sample} sampled keys; --min-sample to see them"
        parts.append(f"{hits.hidden:,} {'more ' if joined else ''}hidden ({reason})")
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
        lines = ["Columns join, but none of them varies: no correlation."]
    elif hits.hidden:
        common = f"{hits.min_sample} keys in common with {query.table} on {query.key}"
        lines = [f"Nothing in {index.index} has {common} in the sample."]
    else:
        lines = [f"Nothing in {index.index} joins with {query.table} on {query.key}."]
        if examples:
            lines.append(f"Its keys look like {', '.join(repr(key) for key in examples)}.")
        others = [table for table in index.read if table.path != path]
        lines += _keys_to_try(query, others, columns)
    return lines_of([*lines, closing_line(hits)])


def _keys_to_try(query: QueryNote, tables: Sequence[TableRecord], columns: Sequence[str]) -> list[str]:
    """Say on which columns other tables can be joined, and which of them the queried table has too."""
    joinable = [table for table in tables if columns_of(table, "number")]
    held = Counter(name for table in joinable for name in columns_of(table, "key"))
    if not held:
        return []
    most = ", ".join(f"{name} ({count_of(n, 'table')})" for name, n in held.most_common(5))
    lines = [f"The index joins on, most frequent first: {most}."]
    shared = [name for name in columns if name in held and name != query.key]
    if shared:
        lines.append(f"{query.table} has such columns too: try --key {' or --key '.join(shared[:3])}.")
    return lines


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
    return lines_of([" and ".join(names), estimate_sentence(found), meet])


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
