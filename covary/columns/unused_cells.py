"""What could not be used of a column, counted: missing cells, and cells that were not understood."""

from dataclasses import dataclass

EXAMPLES, LONGEST_EXAMPLE = 3, 60


@dataclass(frozen=True, slots=True)
class Tally:
    """How many cells of a column are missing, how many are there but not understood, and a few of those."""

    missing: int = 0
    not_understood: int = 0
    examples: tuple[str, ...] = ()

    def __add__(self, other: "Tally") -> "Tally":
        # The smallest texts, so that the order of rows and chunks does not matter.
        examples = sorted({text[:LONGEST_EXAMPLE] for text in (*self.examples, *other.examples)})[:EXAMPLES]
        return Tally(
            self.missing + other.missing, self.not_understood + other.not_understood, tuple(examples)
        )


class Tallies(dict[str, Tally]):
    """The tallies of a table's columns, by name."""

    def add(self, column: str, tally: Tally) -> None:
        """Count some more rows of a column."""
        self[column] = self.get(column, Tally()) + tally
