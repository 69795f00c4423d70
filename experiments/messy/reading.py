"""Whether columns are read as what they are: numbers as numbers, codes as none."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import covary
from covary.errors import CovaryError
from experiments.messy.truth import Identifier, NumberColumn, Table, Truth, means


@dataclass(frozen=True, slots=True)
class Column:
    """A column that was misjudged, and what the index says of it."""

    table: str
    name: str
    style: str
    mark: str | None
    said: str


@dataclass(frozen=True, slots=True)
class Reading:
    """How columns were read."""

    numbers: tuple[str, ...]  # the style of each
    codes: tuple[str, ...]
    missed: tuple[Column, ...]  # numbers that were not read as such
    taken: tuple[Column, ...]  # codes that were read as numbers
    wrong: tuple[Column, ...] | None  # numbers that were read, but not as they are; None if not compared


def read_columns(index: covary.Index, folder: Path, truth: Truth, check_values: bool) -> Reading:
    """Compare what the index says of every column with what it is."""
    notes = {
        (row["name"], note["name"]): note
        for row in index.tables.iter_rows(named=True)
        for note in row["columns"] or ()
    }
    missed, taken, wrong = [], [], []
    for table in truth.tables:
        for column in (*table.numbers, *table.identifiers.values()):
            note = notes.get((table.name, column.name))
            said = f"{note['role']}: {note['reason']}" if note else "nothing"
            mark = column.mark if isinstance(column, NumberColumn) else None
            judged = Column(table.name, column.name, _style_of(column), mark, said)
            is_number = note is not None and note["role"] == "number"
            if isinstance(column, Identifier):
                taken += [judged] if is_number else []
            elif not is_number:
                missed.append(judged)
            elif check_values and (difference := _misread(folder, table, column)):
                wrong.append(replace(judged, said=difference))
    numbers = tuple(_style_of(column) for table in truth.tables for column in table.numbers)
    codes = tuple(_style_of(column) for table in truth.tables for column in table.identifiers.values())
    return Reading(numbers, codes, tuple(missed), tuple(taken), tuple(wrong) if check_values else None)


def _style_of(column: Identifier | NumberColumn) -> str:
    if isinstance(column, NumberColumn):
        return f"`{column.style}`"
    return f"{column.label} `{column.style}`" if column.style else column.label


def _misread(folder: Path, table: Table, column: NumberColumn) -> str:
    """What differs between the numbers of a column as they are and as they were read; "" if nothing does."""
    try:
        read = covary.sketch(folder / table.file, key=table.key[0].name, value=column.name, size=1 << 16)
    except CovaryError as problem:
        return without_folder(str(problem), folder)
    counts = read.counts
    if counts.null_keys:
        return f"{counts.null_keys} rows have lost their key, {table.key[0].name} `{table.key[0].style}`"
    absent = int(np.isnan(column.values).sum())
    if counts.null_values + counts.not_finite != absent:
        return f"{counts.null_values + counts.not_finite} missing, not {absent}"
    grains = (table.key[0].grain,)
    per_key = list(means(table.key[:1], grains, column).values())
    true = np.array([np.nanmin(column.values), np.nanmax(column.values), np.mean(per_key)])
    seen = np.array([counts.minimum, counts.maximum, np.mean(read.values)])
    if any(np.allclose(seen * scale, true, rtol=1e-9) for scale in (1, 100 if "%" in column.style else 1)):
        return ""
    said, not_said = (" ".join(f"{each:g}" for each in figures) for figures in (seen, true))
    return f"least, most, mean {said}, not {not_said}"


def without_folder(said: str, folder: Path) -> str:
    """Name files as they are called in the collection, wherever that lies."""
    return said.replace(f"{folder}/", "").replace(f"{folder.absolute()}/", "")
