"""Output: views for a terminal or a pipe, and facts as JSON."""

import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from covary.cli.words import printable

PIPE_WIDTH = 128
# Nothing that is shown is markup: names come from files, and may look like it.
AS_IT_STANDS: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}


class Harmless:
    """A view without anything that a terminal would obey, whatever its makers forgot."""

    def __init__(self, view: RenderableType) -> None:
        self._view = view

    def __rich_console__(self, screen: Console, options: ConsoleOptions) -> RenderResult:
        """Lay out the view, and look at each piece of text."""
        for text, style, control in screen.render(self._view, options):
            yield Segment(text if control else "\n".join(map(printable, text.split("\n"))), style, control)


def console(stderr: bool = False) -> Console:
    """Open a console as wide as the terminal, or as a pipe's reader may expect."""
    opened = Console(stderr=stderr, **AS_IT_STANDS)
    if opened.is_terminal:
        # Said once: rich would look at each line anew, and while Spark starts, stderr is a pipe of ours.
        return Console(stderr=stderr, force_terminal=True, **AS_IT_STANDS)
    if "COLUMNS" not in os.environ:
        opened.width = PIPE_WIDTH
    return opened


def show(view: RenderableType) -> None:
    """Print a view; in a pipe without the blanks that fill its lines."""
    out = console()
    if out.is_terminal:
        out.print(Harmless(view))
        return
    with out.capture() as captured:
        out.print(Harmless(view))
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def print_json(facts: Mapping[str, Any]) -> None:
    """Print facts for a program."""
    sys.stdout.write(json.dumps(plain(facts), indent=2, allow_nan=False) + "\n")


def plain(fact: Any) -> Any:
    """Return a fact as JSON can hold it: null for what is not finite, lists for tuples."""
    if isinstance(fact, Mapping):
        return {name: plain(part) for name, part in fact.items()}
    if isinstance(fact, list | tuple):
        return [plain(part) for part in fact]
    if isinstance(fact, float):
        return float(fact) if math.isfinite(fact) else None
    return fact
