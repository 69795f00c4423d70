"""The text of a key, whatever type it came as: as it is written, and made canonical."""

from collections.abc import Callable, Sequence
from datetime import time

import polars as pl

from covary.errors import IncompatibleSketches, SketchError

MIDNIGHT = time(0)
# How keys become text, by what a person calls it. Recorded in every index, with a version that changes when a
# rule does: sketches made under another one can't be compared.
NORMALISERS = {"canonical": "canonical-1", "exact": "text-1"}

LOOKALIKES = {
    **dict.fromkeys("‘’‚‛ʼʹ′´`＇", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),  # without width
    "ß": "ss",  # what upper case makes of it
    "ς": "σ",  # one letter in two forms
}
ODD = r"[^ -~]|[`]|  "  # anything but plain ASCII with single spaces
PADDED_NUMBER = r"^(?:-0|\+?-?0[0-9]+|\+-?[0-9]+|[+]?-?[0-9]+\.0*|[+]?-?0[0-9]+\.0*)$"
# Made once, because building an expression costs more than running it on a small table.
PLAINER = pl.all().str.to_lowercase().str.strip_chars()
IS_ODD = pl.all().str.contains(ODD).any()
IS_PADDED = pl.all().str.contains(PADDED_NUMBER).any().name.suffix(" padded")
IS_CANONICAL = ~pl.all().str.contains(rf"[A-Z]|^ | $|{ODD}|{PADDED_NUMBER}").any()
MANY_CELLS, PROBED_CELLS = 100_000, 1_000
WHOLE_NUMBER = r"^\+?(-?)0*([0-9]+)(?:\.0*)?$"


def check_normaliser(name: str) -> None:
    """Refuse keys that were made into text in a way that this version does not know."""
    if name not in NORMALISERS.values():
        known = " and ".join(NORMALISERS.values())
        raise IncompatibleSketches(
            f"keys were written by {name!r}, this covary knows {known}; rebuild the index with covary index"
        )


def choose_normaliser(key_text: str | None, hash: str) -> str:
    """Say how keys become text: canonical, unless the paper's hash asks for the paper's raw text."""
    chosen = ("exact" if hash == "murmur3" else "canonical") if key_text is None else key_text
    if not isinstance(chosen, str) or chosen not in NORMALISERS:
        raise SketchError(f"there is no {chosen!r} way to write keys (--keys); there are: canonical, exact")
    return NORMALISERS[chosen]


def holds_dates(column: pl.Series) -> bool:
    """Whether a column of times holds nothing but midnights: dates, as pandas holds them."""
    if not isinstance(column.dtype, pl.Datetime) or column.null_count() == column.len():
        return False
    return bool((column.dt.time() == MIDNIGHT).all())


def write_dates(times: pl.Series) -> pl.Series:
    """Write times as dates; one that is not at midnight after all stays a time."""
    is_date = times.dt.time() == MIDNIGHT
    return times.dt.to_string("%Y-%m-%d").zip_with(is_date, write_key_text(times))


def write_key_text(column: pl.Series) -> pl.Series:
    """Write a column as key text: whole numbers without a fraction, dates and times in ISO form."""
    kind = column.dtype
    if kind == pl.String:
        return column
    if kind.is_float():
        return _write_floats(column)
    if kind.is_decimal():
        return column.cast(pl.String).str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    if isinstance(kind, pl.Datetime):
        zoned = kind.time_zone is not None
        times = column.dt.convert_time_zone("UTC") if zoned else column
        return times.dt.to_string(f"%Y-%m-%dT%H:%M:%S%.f{'Z' if zoned else ''}")
    if kind == pl.Date:
        return column.dt.to_string("%Y-%m-%d")
    return column.cast(pl.String, strict=False)


def _write_floats(column: pl.Series) -> pl.Series:
    # pandas turns integers with gaps into floats: 7030.0 must meet 7030.
    present = column.fill_nan(None)
    whole = present.cast(pl.Int64, strict=False)
    is_whole = (present == whole.cast(column.dtype)).fill_null(value=False)
    return whole.cast(pl.String).zip_with(is_whole, present.cast(pl.String))


def make_canonical(text: pl.Series) -> pl.Series:
    """Write key text so that what people take for one key is one text; twice is the same as once.

    Unicode's NFKC, lower case, single inner spaces and none outside, straight quotes and plain hyphens; whole
    numbers without leading zeros or a fraction of zeros.
    """
    return make_columns_canonical([text])[0]


def make_columns_canonical(texts: Sequence[pl.Series]) -> list[pl.Series]:
    """Make several columns of key text canonical in few calls: on a small table the calls are the cost."""
    if texts and texts[0].len() > MANY_CELLS:
        return [text if _is_canonical(text) else _canonicalise([text])[0] for text in texts]
    return _canonicalise(texts) if texts else []


def _is_canonical(text: pl.Series) -> bool:
    """Whether a long column is canonical as it is, which takes a third of the time of making it so."""
    cells = text.alias("").to_frame()
    return bool(cells.head(PROBED_CELLS).select(IS_CANONICAL).item() and cells.select(IS_CANONICAL).item())


def _canonicalise(texts: Sequence[pl.Series]) -> list[pl.Series]:
    # Under numbers for names: Polars would take a name like ^x$ for a pattern.
    rows = pl.DataFrame([text.alias(str(number)) for number, text in enumerate(texts)]).select_seq(PLAINER)
    flags = rows.select_seq(IS_ODD, IS_PADDED).row(0)
    odd, padded = flags[: len(texts)], flags[len(texts) :]
    return [_canonicalise_column(*each) for each in zip(rows.get_columns(), odd, padded, strict=True)]


def _canonicalise_column(text: pl.Series, is_odd: bool, is_padded: bool) -> pl.Series:
    if is_odd:
        text = _change_cells(text, text.str.contains(ODD), _replace_lookalikes)
    if is_odd or is_padded:
        padded = text.str.contains(PADDED_NUMBER)
        text = _change_cells(text, padded, _strip_zeros) if padded.any() else text
    return text


def _change_cells(text: pl.Series, where: pl.Series, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Change only the cells that need it: most columns have few or none."""
    if where.all():
        return change(text)
    return text.clone().scatter(where.arg_true(), change(text.filter(where)))


def _replace_lookalikes(text: pl.Series) -> pl.Series:
    plain = text.str.normalize("NFKC").str.to_lowercase().str.replace_many(LOOKALIKES)
    return plain.str.normalize("NFKC").str.replace_all(r"\s+", " ").str.strip_chars()


def _strip_zeros(text: pl.Series) -> pl.Series:
    return text.str.replace(WHOLE_NUMBER, "${1}${2}").str.replace("^-0$", "0")
