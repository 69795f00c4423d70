"""The most correlated pairs of columns, as a person reads them."""

from rich.console import Group, RenderableType
from rich.text import Text

from covary.cli.answer_view import interval_words, sample_words
from covary.cli.join_words import column_of
from covary.cli.words import chance_of, count_of, duration, lines_of, printable, signed, table_of
from covary.query.all_pairs import Pair, Pairs

WIDE = 120


def pairs_view(found: Pairs, width: int) -> RenderableType:
    """List pairs, best first, and say how many were compared."""
    on = ["on"] if width >= WIDE else []
    table = table_of("#>", "column", "and", "r>", "95 %", "sample>", "q>", *on)
    for place, pair in enumerate(found, start=1):
        hit, r = pair.right, pair.right.correlation or 0.0
        cells = [
            Text(f"{place:,}"),
            Text(printable(f"{pair.left.table}.{pair.left.value}"), "bold"),
            Text(printable(f"{hit.table}.{column_of(hit)}"), "bold"),
            Text(signed(r), "green" if r >= 0 else "red"),
            Text(interval_words(hit)),
            Text(sample_words(hit)),
            Text(chance_of(hit.q_value)),
        ]
        table.add_row(*cells, *([Text(printable(_keys(pair)))] if on else []))
    return Group(*([table] if len(found) else []), lines_of([_closing(found)]))


def _keys(pair: Pair) -> str:
    by = f", by {pair.right.granularity}" if pair.right.granularity not in ("", "moment") else ""
    return " and ".join(f"{mine} = {other}" for mine, other in pair.right.met) + by


def _closing(found: Pairs) -> str:
    verb = "survives" if found.survivors == 1 else "survive"
    level = f"{100 * found.level:g} %"
    compared = f"{count_of(found.columns, 'column')}, {count_of(found.compared, 'pair')} compared"
    shown = f", the best {len(found):,} shown" if len(found) < found.compared else ""
    return f"{compared}{shown}; {found.survivors:,} {verb} {level}. {duration(found.elapsed_ms)}"
