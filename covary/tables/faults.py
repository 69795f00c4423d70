"""What is wrong with the text of a table that was read all the same, counted as it is read."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

SHORT, LONG, LONE, STRAY, UNCLOSED, OVERLONG, NOT_OBJECTS, NOT_UTF8 = (
    "short", "long", "lone", "stray", "unclosed", "overlong", "not objects", "not UTF-8",
)  # fmt: skip
LONGEST_EXAMPLE = 60
# Lines of one cell, such as totals and remarks below the rows, that are no reason to doubt the rest.
FEW_LINES, FEW_OF_ROWS = 5, 0.01


@dataclass(slots=True)
class Faults:
    """How many rows were read, and how many of them, or of the lines between, are not as they should be."""

    rows: int = 0  # blank ones not left out
    counts: dict[str, int] = field(default_factory=dict)  # by kind: SHORT and so on
    # Of each kind the smallest text, so that the order of rows and chunks does not matter.
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, count: int = 1, example: str = "") -> None:
        """Count faults of a kind."""
        if count:
            self.counts[kind] = self.counts.get(kind, 0) + count
        if example:
            text = example[:LONGEST_EXAMPLE]
            self.examples[kind] = min(self.examples.get(kind, text), text)

    def include(self, other: "Faults") -> None:
        """Add those of another part of the table."""
        self.rows += other.rows
        for kind, count in other.counts.items():
            self.add(kind, count)
        for kind, example in other.examples.items():
            self.add(kind, 0, example)

    def sentences(self) -> list[str]:
        """Say what is wrong and how it was read, as the index writes it down."""
        counts = Counter(self.counts)
        if counts[LONE] > max(FEW_LINES, FEW_OF_ROWS * self.rows):
            counts[SHORT] += counts[LONE]
        lines = [
            f"{counts[kind]:,} of {self.rows:,} {words(counts[kind] == 1)}{self._example(kind)}"
            for kind, words in WORDS.items()
            if counts[kind]
        ]
        if lost := counts[NOT_UTF8]:
            are = "character is" if lost == 1 else "characters are"
            lines.append(f"{lost:,} {are} not UTF-8 as the rest is, read as windows-1252 (western European)")
        return lines

    def _example(self, kind: str) -> str:
        return f", for example {self.examples[kind]!r}" if kind in self.examples else ""


WORDS: dict[str, Callable[[bool], str]] = {
    STRAY: lambda one: f"rows open{'s' * one} a stray quote, read as if it were not there",
    UNCLOSED: lambda one: f"lines follow{'s' * one} a quote that is never closed, read as one cell",
    SHORT: lambda one: (
        f"rows {'has' if one else 'have'} fewer cells than the header, the rest taken as missing"
    ),
    LONG: lambda one: f"rows {'has' if one else 'have'} more cells than the header, those beyond it not read",
    OVERLONG: lambda one: f"rows {'is' if one else 'are'} longer than 16 MB, passed over",
    NOT_OBJECTS: lambda one: f"lines {'is no JSON object' if one else 'are no JSON objects'}, passed over",
}
