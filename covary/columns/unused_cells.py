"""What could not be used of a column, counted: missing cells, and cells that were not understood."""

from dataclasses import dataclass

import polars as pl

EXAMPLES, LONGEST_EXAMPLE = 3, 60


@dataclass(frozen=True, slots=True)
class Tally:
    """How many cells of a column are missing, how many are there but not understood, and a few of those."""

    missing: int = 0
    not_understood: int = 0
    examples: tuple[str, ...] = ()

    def __add__(self, other: "Tally") -> "Tally":
        examples = sorted({text[:LONGEST_EXAMPLE] for text in (*self.examples, *other.examples)})[:EXAMPLES]
        return Tally(
            self.missing + other.missing, self.not_understood + other.not_understood, tuple(examples)
        )


def take_examples(cells: pl.Series) -> tuple[str, ...]:
    """Return the smallest of some stripped cells, so that the order of rows and chunks does not matter."""
    return tuple(cells.str.head(LONGEST_EXAMPLE).unique().sort().head(EXAMPLES).to_list())


class Tallies(dict[str, Tally]):
    """The tallies of a table's columns, by name."""

    def add(self, column: str, tally: Tally) -> None:
        """Count some more rows of a column."""
        self[column] = self.get(column, Tally()) + tally
