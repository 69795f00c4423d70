"""How the keys of a hit met those of the query: the columns, how each was read, and examples."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from covary.columns.key_reading import YEAR, KeyReading
from covary.columns.periods import write_periods
from covary.columns.times import decide_time_reading, read_times
from covary.query.hits import Explanation, Hit, MetColumns
from covary.query.stored_sketches import StoredSketches
from covary.sketching.key_choice import split_key
from covary.sketching.key_columns import Examples, read_columns
from covary.sketching.sketch_table import PairSketches, SketchWithKey

EXAMPLES_SHOWN = 3
QUERY_EXAMPLES = 4096


def explain_hit(hit: Hit, asked: PairSketches, index: StoredSketches) -> Explanation:
    """Say how the keys of a hit met those of the query, column by column."""
    query = next(each for each in asked.sketches if each.sketch.pair.key == hit.query_key)
    notes = _column_notes(hit.table, index)
    columns = split_key(hit.key, notes)
    if len(columns) != len(query.key.columns):
        # Only an index that was made to mislead names a key of one column and one of several alike.
        columns = ()
    return Explanation(
        tuple(
            _match_columns(hit, query, number, notes[column], asked.rows, index)
            for number, column in enumerate(columns)
        )
    )


def _column_notes(table: str, index: StoredSketches) -> dict[str, dict[str, Any]]:
    notes = index.tables.filter(pl.col("name") == table)["columns"]
    return {note["name"]: note for note in notes[0]} if len(notes) else {}


def _match_columns(
    hit: Hit,
    query: SketchWithKey,
    number: int,
    note: dict[str, Any],
    rows: pl.DataFrame,
    index: StoredSketches,
) -> MetColumns:
    column, reading = query.key.columns[number], query.key.readings[number]
    granularity = hit.granularity if any(reading.granularities) else ""
    mine = _by_text(_own_examples(rows[[column]], reading, index), granularity)
    theirs = _by_text(note["canonical_examples"], granularity)
    met = [(mine[text], theirs[text], text) for text in mine if text in theirs and mine[text] != theirs[text]]
    described = reading.description or ("as it is written" if reading.kind == "exact" else "text")
    return MetColumns(column, described, note["name"], note["reason"], tuple(met[:EXAMPLES_SHOWN]))


def _own_examples(rows: pl.DataFrame, reading: KeyReading, index: StoredSketches) -> Examples:
    if reading.kind == "exact":
        return ()
    column, scheme = rows.to_series(), index.config.scheme
    read = read_columns(rows, {column.name: reading}, scheme)[column.name]
    return read.examples(column, scheme, QUERY_EXAMPLES)


def _by_text(examples: Sequence[Sequence[str]], granularity: str) -> dict[str, str]:
    """Map canonical texts, at a granularity, to the first way in which they are written."""
    if not examples:
        return {}
    written, texts = (list(each) for each in zip(*examples, strict=True))
    if granularity:
        cells = pl.Series(texts)
        if reading := decide_time_reading(cells):
            texts = write_periods(read_times(cells, reading), granularity).to_list()
            texts = [f"{YEAR}{text}" for text in texts] if granularity == "year" else texts
    return dict(zip(reversed(texts), reversed(written), strict=True))
