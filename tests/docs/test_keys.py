"""Every rule of docs/keys.md is tried on the example that stands beside it."""

import re
from pathlib import Path

import polars as pl
import pytest

from covary.columns.key_reading import decide_key_reading
from covary.columns.numbers import decide_number_reading, read_numbers
from covary.sketching.hashing import SCHEMES
from covary.sketching.key_columns import read_columns

PAGE = (Path(__file__).parents[2] / "docs" / "keys.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<written>[^`]+)` \| (?P<read>[^|]+?) \|[^|]*\| (?P<beside>[^|]+) \|$", re.M)


def rules(*headings):
    sections = re.split(r"^## ", PAGE, flags=re.M)
    found = [section for section in sections if section.startswith(headings)]
    assert len(found) == len(headings)
    for section in found:
        for row in ROW.finditer(section):
            yield pytest.param(
                row["written"], row["read"], re.findall(r"`([^`]+)`", row["beside"]), id=row["written"]
            )


@pytest.mark.parametrize(("written", "read", "beside"), list(rules("Numbers")))
def test_numbers_are_read_as_the_page_says(written, read, beside):
    column = pl.Series([written, *beside])
    reading = decide_number_reading(column)
    assert reading is not None
    found = read_numbers(column, reading)
    if read in ("missing", "not understood"):
        assert found.values[0] is None
        unused = (found.unused.missing, found.unused.not_understood)
        assert unused == ((1, 0) if read == "missing" else (0, 1))
    else:
        assert found.values[0] == pytest.approx(float(read))
        assert found.values.null_count() == 0


@pytest.mark.parametrize(
    ("written", "read", "beside"), list(rules("Keys as text", "Countries and US states", "Dates and times"))
)
def test_keys_are_read_as_the_page_says(written, read, beside):
    column = pl.Series("key", [written, *beside])
    scheme = SCHEMES["xxhash64"]
    read_column = read_columns(column.to_frame(), {"key": decide_key_reading("key", column)}, scheme)["key"]
    texts = dict(read_column.examples(column, scheme, 100))
    assert texts.get(written) == (None if read == "missing" else read)
    assert len(texts) == len(column) - (read == "missing")


def test_every_table_of_the_page_is_tried():
    assert len(ROW.findall(PAGE)) == PAGE.count("\n| `")
