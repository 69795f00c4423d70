"""One canonical text for a key, whatever type it came as."""

from collections.abc import Sequence
from datetime import time

import polars as pl

MIDNIGHT = time(0)
NORMALISER = "text-1"  # recorded in every index: sketches made under another one can't be compared


def dates_held_as_times(rows: pl.DataFrame) -> list[str]:
    """Name the columns of times that are all at midnight: dates, as pandas holds them."""
    times = [column for column in rows.get_columns() if isinstance(column.dtype, pl.Datetime)]
    held = [column for column in times if column.null_count() < column.len()]
    return [column.name for column in held if (column.dt.time() == MIDNIGHT).all()]


def with_dates(rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Write the named times as dates; one that is not at midnight after all stays as it is."""
    written = [
        rows[name].dt.to_string("%Y-%m-%d").zip_with(rows[name].dt.time() == MIDNIGHT, key_text(rows[name]))
        for name in names
        if name in rows.columns
    ]
    return rows.with_columns(written) if written else rows


def key_text(column: pl.Series) -> pl.Series:
    """Write a column as key text: whole numbers without a fraction, dates and times in ISO form."""
    kind = column.dtype
    if kind == pl.String:
        return column
    if kind.is_float():
        return _float_text(column)
    if kind.is_decimal():
        return column.cast(pl.String).str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    if isinstance(kind, pl.Datetime):
        return _datetime_text(column, kind)
    if kind == pl.Date:
        return column.dt.to_string("%Y-%m-%d")
    return column.cast(pl.String, strict=False)


def _float_text(column: pl.Series) -> pl.Series:
    # pandas turns integers with gaps into floats: 7030.0 must meet 7030.
    present = column.fill_nan(None)
    whole = present.cast(pl.Int64, strict=False)
    is_whole = (present == whole.cast(column.dtype)).fill_null(value=False)
    return whole.cast(pl.String).zip_with(is_whole, present.cast(pl.String))


def _datetime_text(column: pl.Series, kind: pl.Datetime) -> pl.Series:
    if kind.time_zone is not None:
        return column.dt.convert_time_zone("UTC").dt.to_string("%Y-%m-%dT%H:%M:%S%.fZ")
    return column.dt.to_string("%Y-%m-%dT%H:%M:%S%.f")
