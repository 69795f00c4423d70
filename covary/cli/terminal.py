"""Output: views for a terminal or a pipe, and JSON for a program."""

import json
import math
import os
import sys
from collections.abc import Mapping
from functools import partial

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from covary.cli.words import printable

PIPE_WIDTH = 128
# Nothing that is shown is markup: names come from files, and may look like it.
plain_console = partial(Console, highlight=False, markup=False, emoji=False)


class Harmless:
    """Removes control characters from a finished view, should a part of it have forgotten to."""

    def __init__(self, view: RenderableType) -> None:
        self._view = view

    def __rich_console__(self, screen: Console, options: ConsoleOptions) -> RenderResult:
        """Lay out the view, and look at each piece of text."""
        for text, style, control in screen.render(self._view, options):
            yield Segment(text if control else "\n".join(map(printable, text.split("\n"))), style, control)


def console(stderr: bool = False) -> Console:
    """Open a console as wide as the terminal, or as a pipe's reader may expect."""
    opened = plain_console(stderr=stderr)
    if opened.is_terminal:
        # Forced, since rich would ask again at each line, and while Spark starts, stderr is a pipe of ours.
        return plain_console(stderr=stderr, force_terminal=True)
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


def print_json(answer: Mapping[str, object]) -> None:
    """Print an answer for a program."""
    sys.stdout.write(json.dumps(as_json_value(answer), indent=2, allow_nan=False) + "\n")


def as_json_value(value: object) -> object:
    """Return a value as JSON can hold it: null for what is not finite, lists for tuples."""
    if isinstance(value, Mapping):
        return {name: as_json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json_value(each) for each in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
