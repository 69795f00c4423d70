"""The most correlated pairs of columns, as a person reads them."""

from rich.console import Group, RenderableType
from rich.text import Text

from covary.cli.answer_view import interval_words, r_cell, sample_words
from covary.cli.join_words import by_granularity, column_of
from covary.cli.words import chance_of, count_of, duration, lines_of, printable, table_of
from covary.query.all_pairs import Pairs

WIDE = 120


def pairs_view(pairs: Pairs, width: int) -> RenderableType:
    """List pairs, best first, and say how many were compared."""
    on = ["on"] if width >= WIDE else []
    table = table_of("#>", "column", "and", "r>", "95 %", "sample>", "q>", *on)
    for number, pair in enumerate(pairs, start=1):
        hit = pair.right
        cells = [
            Text(f"{number:,}"),
            Text(printable(f"{pair.left.table}.{pair.left.value}"), "bold"),
            Text(printable(f"{hit.table}.{column_of(hit)}"), "bold"),
            r_cell(hit),
            Text(interval_words(hit)),
            Text(sample_words(hit)),
            Text(chance_of(hit.q_value)),
        ]
        if on:
            keys = " and ".join(f"{mine} = {other}" for mine, other in hit.met)
            cells.append(Text(printable(keys + by_granularity(hit.granularity))))
        table.add_row(*cells)
    return Group(*([table] if len(pairs) else []), lines_of([_closing(pairs)]))


def _closing(pairs: Pairs) -> str:
    verb = "survives" if pairs.survivors == 1 else "survive"
    level = f"{100 * pairs.level:g} %"
    compared = f"{count_of(pairs.columns, 'column')}, {count_of(pairs.compared, 'pair')} compared"
    shown = f", the best {len(pairs):,} shown" if len(pairs) < pairs.compared else ""
    return f"{compared}{shown}; {pairs.survivors:,} {verb} {level}. {duration(pairs.elapsed_ms)}"
