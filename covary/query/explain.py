"""How the keys of a hit met those of the query: the columns, how each was read, and examples."""

from collections.abc import Sequence

import polars as pl

from covary.columns.key_reading import YEAR, KeyReading
from covary.columns.periods import write_periods
from covary.columns.times import decide_time_reading, read_times
from covary.query.hits import Explanation, Hit, MetColumns
from covary.query.stored_sketches import StoredSketches
from covary.sketching.key_choice import split_key
from covary.sketching.key_columns import Examples, read_columns
from covary.sketching.sketch_table import PairSketches

EXAMPLES_SHOWN = 3
QUERY_EXAMPLES = 4096


def explain_hit(hit: Hit, asked: PairSketches, index: StoredSketches) -> Explanation:
    """Say how the keys of a hit met those of the query, column by column."""
    query = next(each for each in asked.sketches if each.sketch.pair.key == hit.query_key)
    notes = index.columns_of(hit.table)
    columns = split_key(hit.key, notes)
    if len(columns) != len(query.key.columns):
        # Only an index that was made to mislead names a key of one column and one of several alike.
        return Explanation(())
    met: list[MetColumns] = []
    for column, mine, reading in zip(columns, query.key.columns, query.key.readings, strict=True):
        granularity = hit.granularity if any(reading.granularities) else ""
        note = notes[column]
        own = _by_text(_own_examples(asked.rows[[mine]], reading, index), granularity)
        others = _by_text(note["canonical_examples"], granularity)
        examples = [
            (own[text], others[text], text) for text in own if text in others and own[text] != others[text]
        ]
        described = reading.description or ("as it is written" if reading.kind == "exact" else "text")
        met.append(MetColumns(mine, described, column, note["reason"], tuple(examples[:EXAMPLES_SHOWN])))
    return Explanation(tuple(met))


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
