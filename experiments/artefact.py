"""A figure or a table of the report: what it shows, what the paper published, and its picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from experiments.paper.workplace import Workplace

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Artefact:
    """One section of the report."""

    title: str
    text: str
    published: str
    picture: "Figure | None" = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A collection with what all stages found."""

    workplace: Workplace
    truth: pl.DataFrame
    estimates: pl.DataFrame
    rankings: pl.DataFrame | None  # of a real collection; the tables of a synthetic one join only in pairs
    timings: pl.DataFrame
    answers: pl.DataFrame | None
    index_sizes: pl.DataFrame

    @property
    def name(self) -> str:
        return self.workplace.name

    @property
    def compared(self) -> pl.DataFrame:
        """Estimates beside the truth, which is named `true ...`."""
        true = self.truth.rename(lambda name: name if name in ("left", "right") else f"true {name}")
        return self.estimates.join(true, on=["left", "right"])


def panels(rows: int, columns: int, width: float = 3.0, height: float = 2.6) -> tuple["Figure", list]:
    """Make an empty picture of several panels, and list its panels row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained", dpi=110)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def save(picture: "Figure", place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(place)
