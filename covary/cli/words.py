"""How numbers, names, lines and tables are written for a person."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

NAMES_SHOWN = 8
LONGEST_CELL, LONGEST_LINE = 500, 10_000  # rich takes seconds to lay out a name of a million characters


def printable(text: str) -> str:
    """Return text from a file on one line and without anything that a terminal would obey.

    Whatever reaches a person goes through this: cells and lines here, and once more all that is printed, in
    `covary.cli.terminal.show` and `covary.cli.commands.complain`.
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def shorten(text: str, length: int = LONGEST_CELL) -> str:
    """Cut what is longer than anybody would read."""
    return text if len(text) <= length else f"{text[:length]}…"


def format_r(correlation: float) -> str:
    """Write a correlation with its sign and two decimals, never as -0.00."""
    return f"{round(correlation, 2) + 0.0:+.2f}"


def chance_of(probability: float | None) -> str:
    """Write a p-value or q-value with two digits, and none that nobody would read."""
    if probability is None:
        return ""
    if probability < 0.001:
        return "<0.001"
    return f"{probability:.2g}" if probability < 0.1 else f"{probability:.2f}"


def count_of(number: float, noun: str) -> str:
    """Write "1 table", "1,458 tables", or "~6,805 keys" for an estimate."""
    about = "" if float(number).is_integer() else "~"
    ending = "" if round(number) == 1 else "es" if noun.endswith("ch") else "s"
    first, of, rest = noun.partition(" of ")
    return f"{about}{number:,.0f} {first}{ending}{of}{rest}"


def duration(milliseconds: float) -> str:
    """Write a time as people say it."""
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def size_of(count: float) -> str:
    """Write a number of bytes in a unit that suits it."""
    if count < 1000:
        return f"{count:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


def names_of(names: Sequence[str], count: int | None = None) -> str:
    """Write some names, and how many more there are of so many."""
    more = (len(names) if count is None else count) - NAMES_SHOWN
    shown = ", ".join(map(printable, names[:NAMES_SHOWN]))
    return f"{shown} and {more:,} more" if more > 0 else shown or "-"


def lines_of(lines: Iterable[str]) -> Group:
    """Lay out sentences, one below the other."""
    return Group(*(Text(printable(shorten(line, LONGEST_LINE))) for line in lines))


class PlainTable(Table):
    """A table whose cells stand as they are: rich would take [red] in a name for markup."""

    def add_row(
        self, *cells: RenderableType | None, style: StyleType | None = None, end_section: bool = False
    ) -> None:
        """Add a row whose names are text only, never markup or control characters."""
        super().add_row(*map(_plain_cell, cells), style=style, end_section=end_section)


def _plain_cell(cell: RenderableType | None) -> RenderableType | None:
    if isinstance(cell, str):
        return Text(printable(shorten(cell)))
    if isinstance(cell, Text) and (len(cell.plain) > LONGEST_CELL or not cell.plain.isprintable()):
        return Text(printable(shorten(cell.plain)), cell.style)
    return cell


def table_of(*headings: str) -> PlainTable:
    """Make a table without lines; a heading that ends in ">" stands over numbers, aligned right."""
    table = PlainTable(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for heading in headings:
        numeric = heading.endswith(">")
        table.add_column(
            heading.removesuffix(">"),
            justify="right" if numeric else "left",
            no_wrap=numeric or heading.endswith(" %"),
            overflow="fold",
        )
    return table
