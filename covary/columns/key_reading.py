"""How a key column is read: decided once from a sample of its cells, then applied to every batch of it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from covary.columns.column_counts import TextSample, sample_text
from covary.columns.key_text import (
    holds_dates,
    make_canonical,
    make_columns_canonical,
    write_dates,
    write_key_text,
)
from covary.columns.number_forms import ABSENT
from covary.columns.periods import list_coarser, number_periods
from covary.columns.places import may_be_numbered, may_be_places, recognise_places, write_places
from covary.columns.time_forms import COMPACT_FORMATS
from covary.columns.times import TimeReading, decide_time_reading, read_times

FEWEST_PERIODS = 10  # on fewer keys a join is hidden anyhow
MARKS = sorted(ABSENT - {"nd"})  # North Dakota
TRUTHS = dict.fromkeys(("true", "yes", "y", "t"), "true") | dict.fromkeys(("false", "no", "n", "f"), "false")
CODES_SHARE = 0.9
CELLS = "cells"
LIKELY_YEARS = (1800, 2100)
YEAR = "year:"  # before a year, lest an id such as 2013 be taken for one


@dataclass(frozen=True, slots=True)
class KeyReading:
    """How the cells of a key column become text that equal keys share.

    Attributes:
        kind: "exact" (raw text), "text", "boolean", "country", "state", "year" (whole numbers) or "time".
        time: how times are written.
        granularities: those of a column of times, finest first; ("",) for any other.
        offered: those that leave enough keys where the column is a key by itself.
        are_dates: whether times are dates, as pandas holds them; asked of raw text alone.
        na_is_namibia: whether "na" is a country's code rather than a mark of absence.
    """

    kind: str = "exact"
    time: TimeReading | None = None
    granularities: tuple[str, ...] = ("",)
    offered: tuple[str, ...] = ("",)
    are_dates: bool = False
    na_is_namibia: bool = False

    @property
    def description(self) -> str:
        """Say in a few words how keys are read; "" if there is nothing to say."""
        if self.time:
            return self.time.description
        return {"year": "years", "country": "countries", "state": "US states"}.get(self.kind, "")


# Whole numbers that are years, which dates meet by year.
YEAR_READING = KeyReading("year", None, ("year",), ("year",))


def decide_exact_reading(cells: pl.Series) -> KeyReading:
    """Take raw text as the key: the paper's way."""
    return KeyReading(are_dates=holds_dates(cells))


def decide_key_reading(
    name: str,
    cells: pl.Series,
    *,
    compact: bool = False,
    sample: TextSample | None = None,
    whole: bool = True,
) -> KeyReading:
    """Decide how the cells of a key column become canonical text; their order does not matter.

    `compact` says whether whole numbers are dates, such as 20130105; `whole`, whether these are all cells of
    the column. `sample` are some of its text, if they have been taken.
    """
    cells = cells.alias(CELLS)
    if isinstance(cells.dtype, pl.Categorical | pl.Enum):
        cells = cells.cast(pl.String)
    if cells.dtype == pl.String:
        sample = sample or sample_text(cells)
    time: TimeReading | None = None
    if compact:
        time = decide_time_reading(make_canonical(write_key_text(cells)), compact=True)
    elif isinstance(cells.dtype, pl.Date | pl.Datetime) or (sample and sample.like_times):
        time = decide_time_reading(cells)
    if time:
        every = (time.granularity, *list_coarser(time.granularity))
        return KeyReading(
            "time", time, every, _offer_granularities(read_key_times(cells, time), every, whole)
        )
    if cells.dtype == pl.Boolean:
        return KeyReading("boolean")
    if sample:
        return _decide_text_reading(name, cells, sample)
    if may_be_numbered(name):
        kind = recognise_places(make_canonical(write_key_text(cells.drop_nulls().unique())), name)
        return KeyReading(kind or "text")
    return KeyReading("text")


def are_years(cells: pl.Series) -> bool:
    """Whether a column that a person took for a key, though its name says nothing, holds years."""
    numbers = cells.alias(CELLS).cast(pl.Float64, strict=False).drop_nulls()
    if not numbers.len() or numbers.len() < cells.len() - cells.null_count():
        return False
    return bool((numbers.is_between(*LIKELY_YEARS) & (numbers == numbers.floor())).all())


def read_key_times(column: pl.Series, reading: TimeReading) -> pl.Series:
    """Read the cells of a column of times; null where there is none or it can't be understood."""
    cells = column.alias(CELLS)
    if not COMPACT_FORMATS.isdisjoint(reading.formats):
        cells = make_canonical(write_key_text(cells))  # 20130105.0, where there are gaps
    return read_times(cells, reading)


def _offer_granularities(times: pl.Series, every: tuple[str, ...], whole: bool) -> tuple[str, ...]:
    """Return the granularities that leave enough keys: of a part of a table, all might."""
    instants = times.drop_nulls().to_physical().to_numpy()
    if not whole or not instants.size:
        return every
    ends = number_periods(np.array([instants.min(), instants.max()]), every[1:])
    coarse = zip(every[1:], ends, strict=True)
    return (every[0], *(each for each, (low, high) in coarse if high - low + 1 >= FEWEST_PERIODS))


def _decide_text_reading(name: str, cells: pl.Series, sample: TextSample) -> KeyReading:
    lowered = [cell.lower() for cell in sample.cells]
    if TRUTHS.keys() >= {*lowered}:
        return KeyReading("boolean")
    if not (may_be_numbered(name) or may_be_places(lowered)):
        return KeyReading("text")
    distinct = make_canonical(cells.drop_nulls().unique()).unique()
    codes = int((distinct.str.len_bytes() == 2).sum()) >= CODES_SHARE * distinct.len()
    named = distinct if codes else distinct.filter(~distinct.is_in(list(ABSENT)))
    kind = recognise_places(named, name)
    return KeyReading(kind or "text", na_is_namibia=codes and kind == "country")


def write_keys(rows: pl.DataFrame, readings: Mapping[str, KeyReading]) -> list[pl.Series]:
    """Write the cells of key columns that hold no times as text; a mark of absence may be left in it."""
    # Renamed, since Polars would take a name like ^x$ for a pattern.
    columns = [(rows[name].alias(CELLS), reading) for name, reading in readings.items()]
    texts = [
        (write_dates(cells) if reading.are_dates else write_key_text(cells), reading)
        for cells, reading in columns
    ]
    canonical = iter(make_columns_canonical([text for text, reading in texts if reading.kind != "exact"]))
    return [
        text if reading.kind == "exact" else _write_names(next(canonical), reading) for text, reading in texts
    ]


def _write_names(text: pl.Series, reading: KeyReading) -> pl.Series:
    """Write truths, years, countries and states in one way each."""
    if reading.kind == "boolean":
        return text.replace(TRUTHS)
    if reading.kind == "text":
        return text
    absent = text.is_in(MARKS)
    if reading.na_is_namibia:
        absent &= text != "na"
    text = text.set(absent, None)
    return YEAR + text if reading.kind == "year" else write_places(text, reading.kind)
