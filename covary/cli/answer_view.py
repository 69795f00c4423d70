"""Answers as a person reads them: to a query, to a query that finds nothing, and to an estimate."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from covary.cli.index_view import add_tables
from covary.cli.join_words import by_granularity, column_of, how_it_joins
from covary.cli.words import chance_of, count_of, duration, format_r, lines_of, names_of, printable, table_of
from covary.index.table_records import TableRecord
from covary.query.describe import IndexSummary
from covary.query.hits import Hit, Hits, QueryNote
from covary.statistics.correlation import SMALLEST_SAMPLE
from covary.statistics.estimate import Estimate
from covary.statistics.key_sets import KeySets, SetEstimate
from covary.statistics.measures import MEASURES
from covary.statistics.ranking import RANKERS


def hits_view(hits: Hits, width: int) -> RenderableType:
    """Lay out the answer to a query: what was asked, the best hits, and what was left out."""
    query = hits.query
    asked = f"{query.aggregate} per {query.key}, {count_of(query.distinct_keys, 'key')}"
    column = f"{query.table}.{query.value}" if query.table else query.value
    headline = Text.assemble("What moves with ", (printable(column), "bold"), printable(f" ({asked})"))
    joins = [how_it_joins(hit, query) for hit in hits]
    columns = _columns_of(hits)
    needed = sum(max(len(heading), *map(len, cells)) + 2 for heading, cells in columns)
    wide = width >= needed + max(map(len, joins), default=0)
    table = table_of(*(heading for heading, _ in columns))
    if wide:
        table.add_column("how it joins", overflow="fold", ratio=1)
        columns.append(("", [Text(join) for join in joins]))
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*row)
    below = [] if wide else [Text("\nHow they join, by #"), _runs(joins), Text()]
    return Group(
        headline, table, *below, lines_of([*_damage_lines(hits), *chance_lines(hits), closing_line(hits)])
    )


def _columns_of(hits: Hits) -> list[tuple[str, list[Text]]]:
    """Return each column of an answer: its heading (> if it stands to the right), and a cell for each hit."""
    bh = hits.correction == "bh"
    columns = [
        ("#>", [Text(str(number)) for number in range(1, len(hits) + 1)]),
        ("table", [Text(printable(hit.table)) for hit in hits]),
        ("column", [Text(printable(column_of(hit)), "bold") for hit in hits]),
        (f"{MEASURES[hits.measure].symbol}>", [r_cell(hit) for hit in hits]),
    ]
    if any(hit.low is not None for hit in hits):
        promised = f"{100 * hits[0].confidence:g} %"
        heading = hits.interval if hits.interval == "hoeffding-small" else promised
        columns.append((heading, [Text(interval_words(hit)) for hit in hits]))
    columns += [
        ("sample>", [Text(sample_words(hit)) for hit in hits]),
        (
            "q>" if bh else f"q ({hits.correction})>",
            [Text(chance_of(hit.q_value if bh else hit.q_value_by)) for hit in hits],
        ),
    ]
    if hits.by_chance is not None:
        chance = [format_r(hit.correlation or 0.0) for hit in hits.by_chance] + ["–"] * len(hits)
        columns.append(("by chance>", [Text(r, "dim") for r in chance[: len(hits)]]))
    return columns


def r_cell(hit: Hit) -> Text:
    """Write a correlation, green above 0 and red below."""
    r = hit.correlation or 0.0
    return Text(format_r(r), "green" if r >= 0 else "red")


def interval_words(estimate: Estimate) -> str:
    """Write the ends of an interval."""
    if estimate.exact:
        return "exact"
    low, high = estimate.low, estimate.high
    return "" if low is None or high is None else f"[{format_r(low)}, {format_r(high)}]"


def sample_words(estimate: Estimate) -> str:
    """Write how many keys an estimate rests on, and of how many."""
    size = f"{estimate.sample_size:,}"
    return f"all {size}" if estimate.exact else f"{size}/~{estimate.join_size:,.0f}"


def _runs(joins: Sequence[str]) -> RenderableType:
    """List each way of joining once for neighbouring hits that share it."""
    table = table_of("#>", "join")
    table.show_header = False
    for join, rows in groupby(range(len(joins)), key=lambda row: joins[row]):
        numbers = [row + 1 for row in rows]
        run = f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
        table.add_row(run, Text(join))
    return Padding(table, (0, 0, 0, 1))


def _damage_lines(hits: Hits) -> list[str]:
    """Name the tables of hits in which something was wrong."""
    damaged = list(dict.fromkeys(printable(hit.table) for hit in hits if hit.damaged))
    if not damaged:
        return []
    return [f"Read though damaged: {names_of(damaged)}. covary info INDEX --table NAME says what is wrong."]


def chance_lines(hits: Hits) -> list[str]:
    """Say how many columns are unlikely to be chance, and what shuffled numbers came to."""
    lines = [f"Day or month first can't be told in {name}: read as month first." for name in hits.ambiguous]
    if hits.tested:
        verb = "survives" if hits.survivors == 1 else "survive"
        test = "" if hits.tested_by == hits.measure else f" by {hits.tested_by}"
        level = f"{100 * hits.level:g} %"
        line = f"{hits.survivors:,} of {count_of(hits.tested, 'column')} {verb} {level}{test}"
        if hits.survivors:
            line += f": on average {level} of survivors at most are chance"
        if hits.max_q is None and 0 < hits.survivors < hits.tested:
            line += f" (--max-q {hits.level:g} shows them alone)"
        lines.append(f"{line}.")
    if hits.by_chance is not None:
        lines.append(_line_of_chance(hits, hits.by_chance))
    return lines


def _line_of_chance(hits: Hits, by_chance: Sequence[Hit]) -> str:
    shuffled = "With your numbers shuffled over their keys"
    if not by_chance:
        return f"{shuffled}, no column has a correlation."
    best = by_chance[0]
    line = f"{shuffled}, the best hit is {best.table}.{best.value}: "
    line += f"{MEASURES[hits.measure].symbol} = {format_r(best.correlation or 0.0)}"
    if hits and not RANKERS[hits.rank].is_baseline:
        above = sum(hit.score > best.score for hit in hits)
        line += f"; {above} of the {len(hits)} shown {'ranks' if above == 1 else 'rank'} above it"
    if len(by_chance) > 1 and hits:
        line += "; by chance lists its hits in order, whatever stands beside them"
    return printable(f"{line}.")


def closing_line(hits: Hits) -> str:
    """Say how many columns join, and which were left out and why."""
    joined = hits.shown_of
    verb = "joins" if joined == 1 else "join"
    parts = [f"{count_of(joined, 'column')} {verb}"] if joined or not hits.hidden else []
    if 0 < len(hits) < joined - hits.constant:
        parts[0] += f", the best {len(hits)} shown"
    if hits.retrieve is not None:
        parts.append(
            f"of {hits.candidates:,}, those sharing the most sampled keys were looked at (--retrieve)"
        )
    if hits.shortlist is not None and hits.shortlist < hits.tested:
        best = f"the best {hits.shortlist:,} by {hits.scored_by} and {hits.rank}"
        parts.append(f"{best} measured by {hits.measure} (--shortlist)")
    elif hits.shortlist is not None:
        parts.append(f"all {hits.shortlist:,} measured by {hits.measure}")
    if hits.undefined:
        parts.append(f"{hits.undefined:,} without a {hits.measure} (too many equal values)")
    return f"{'; '.join(parts + _left_out(hits, joined))}. {duration(hits.elapsed_ms)}"


def _left_out(hits: Hits, joined: int) -> list[str]:
    parts = []
    if hits.max_q is not None:
        parts.append(f"only q of at most {hits.max_q:g} shown (--max-q)")
    if hits.constant and joined > hits.constant:
        parts.append(f"{hits.constant:,} of them constant where they join")
    hidden = "more hidden" if joined else "hidden"
    if hits.hidden:
        remedy = "; --min-sample to see them" if hits.min_sample > SMALLEST_SAMPLE else ""
        parts.append(f"{hits.hidden:,} {hidden} (fewer than {hits.min_sample} sampled keys{remedy})")
    if hits.unrelated:
        reason = "small numbers alone under other names; --small-numbers to see them"
        parts.append(f"{hits.unrelated:,} {hidden} ({reason})")
    if hits.common:
        common = count_of(hits.common, "column")
        parts.append(f"{common} on few keys that {hits.hosts:,} tables share, ranked lower")
    if hits.own:
        own = count_of(hits.own, "column")
        parts.append(f"{own} of {printable(hits.query.table)} itself left out (--include-own)")
    return parts


def no_hits_view(
    hits: Hits, index: IndexSummary, path: str | None, columns: Sequence[str], examples: Sequence[str]
) -> RenderableType:
    """Say that nothing joins, what the keys look like, and what to try instead.

    The queried table lies at `path` and has these columns; `examples` are some of its keys.
    """
    query = hits.query
    if not index.read:
        return lines_of([f"Nothing in {index.index} joins with {query.table}.", add_tables(index)])
    if hits.max_q is not None and hits.tested:
        lines = [f"Of {count_of(hits.tested, 'column')} tested, none has a q of at most {hits.max_q:g}."]
    elif hits.undefined:
        lines = [f"Columns join, but none of those measured has a {hits.measure}: too many equal values."]
    elif hits.candidates - hits.unrelated > hits.hidden:
        lines = [f"Columns join, but either they or {query.value} have one value only where they do."]
    elif hits.hidden:
        common = f"{hits.min_sample} keys in common with {query.table} on {query.key}"
        lines = [f"Nothing in {index.index} has {common} in the sample."]
    else:
        lines = [f"Nothing in {index.index} joins with {query.table} on {query.key}."]
        if examples:
            lines.append(f"Its keys look like {', '.join(repr(key) for key in examples)}.")
        others = [table for table in index.read if table.location != path]
        lines += _keys_to_try(query, others, columns)
    if hits.by_chance:
        lines.append(_line_of_chance(hits, hits.by_chance))
    return lines_of([*lines, closing_line(hits)])


def _keys_to_try(query: QueryNote, tables: Sequence[TableRecord], columns: Sequence[str]) -> list[str]:
    """Say on which columns other tables can be joined, and which of them the queried table has too."""
    joinable = [table for table in tables if table.columns_as("number")]
    tables_with = Counter(name for table in joinable for name in table.columns_as("key"))
    if not tables_with:
        return []
    most = ", ".join(f"{name} ({count_of(n, 'table')})" for name, n in tables_with.most_common(5))
    lines = [f"The index joins on, most frequent first: {most}."]
    shared = [name for name in columns if name in tables_with and name != query.key]
    if shared:
        lines.append(f"{query.table} has such columns too: try --key {' or --key '.join(shared[:3])}.")
    return lines


def estimate_view(estimate: Estimate, keys: KeySets, left: QueryNote, right: QueryNote) -> RenderableType:
    """Answer in three lines: which two columns, how correlated, and how the tables meet."""
    names, shares = [], []
    for side, share, distinct in (
        (left, keys.left_containment, keys.left_distinct),
        (right, keys.right_containment, keys.right_distinct),
    ):
        per_key = f"{side.aggregate} per {side.key}{by_granularity(side.granularity)}"
        names.append(f"{side.table}.{side.value} ({per_key})")
        shares.append(f"{share_of_keys(share)} of the {count_of(distinct.value, 'key')} of {side.table}")
    meet = f"They share {number_of_keys(keys.intersection)} keys: {', '.join(shares)}."
    return lines_of([" and ".join(names), estimate_sentence(estimate), meet])


def number_of_keys(count: SetEstimate) -> str:
    """Write a number of keys, with its standard error unless it was counted."""
    return f"{count.value:,.0f}" if count.exact else f"about {count.value:,.0f} ± {count.error:,.0f}"


def share_of_keys(share: SetEstimate) -> str:
    """Write a share of keys, with its standard error unless it was counted."""
    if share.exact:
        return f"{100 * share.value:.0f} %"
    digits = 1 if share.error < 0.01 else 0
    return f"{100 * share.value:.{digits}f} ± {100 * share.error:.{digits}f} %"


def estimate_sentence(estimate: Estimate) -> str:
    """Say the correlation, its interval and its sample."""
    symbol = MEASURES[estimate.measure].symbol
    if estimate.correlation is None:
        return f"{symbol} is undefined: {estimate.reason}"
    about = "" if estimate.exact else "about "
    parts = [f"{symbol} = {format_r(estimate.correlation)}"]
    low, high = estimate.low, estimate.high
    if not estimate.exact and low is not None and high is not None:
        parts.append(f"{100 * estimate.confidence:g} % between {format_r(low)} and {format_r(high)}")
    parts.append(f"from {estimate.sample_size:,} of {about}{estimate.join_size:,.0f} shared keys")
    if estimate.p_value is not None:
        parts.append(f"p {_compared(estimate.p_value)}")
    return ", ".join(parts) + (" (exact)" if estimate.exact else "")


def _compared(p: float) -> str:
    written = chance_of(p)
    return written.replace("<", "< ") if written.startswith("<") else f"= {written}"
