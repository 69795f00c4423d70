"""Rows of JSON Lines files, all as text, so that no part of a table decides on types of its own."""

import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import polars as pl

from covary.errors import UnreadableTable
from covary.tables.faults import NOT_OBJECTS
from covary.tables.formats.csv_dialect import LINES, SAMPLE_BYTES
from covary.tables.formats.csv_records import split_records
from covary.tables.formats.encodings import utf16_byte_order
from covary.tables.formats.text_bytes import CELLS_AT_ONCE, cut_text, open_text, read_records
from covary.tables.reader import FileReader, FileStart, Layout, Range, RowRequest
from covary.tables.skipped import NotATable, Why
from covary.tables.source import TableSource

COLUMN_NAME = re.compile("[^\ud800-\udfff]+")  # Polars reads none that is empty or has half a character
LONGEST_INTEGER = 38  # digits, so that it fits in 128 bits: Polars reads no text with a longer one


class JsonLinesReader(FileReader):
    """One JSON object a line."""

    name, title = "jsonl", "JSON Lines"
    suffixes = (".jsonl", ".ndjson", ".json")
    may_be_packed = True

    def suits(self, start: FileStart) -> bool:
        """Whether it says to be JSON Lines, by its name or by its first character."""
        first = start.head.lstrip()[:1]
        if start.suffix not in self.suffixes and first != b"{" and not (start.undeclared and first == b"["):
            return False
        if start.head.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"[":
            raise NotATable(Why.JSON_ARRAY)
        return True

    def layout(self, source: TableSource) -> Layout:
        """The names of the plain fields in the first lines; one that mostly holds lists or objects goes."""
        with open_text(source) as file:
            sample = file.read(4 * SAMPLE_BYTES).removeprefix(codecs.BOM_UTF8)
            if source.compression is None and source.size > 8 * SAMPLE_BYTES:
                file.seek(source.size - 4 * SAMPLE_BYTES)
                sample = sample.rpartition(b"\n")[0] + b"\n" + file.read().partition(b"\n")[2]
        if utf16_byte_order(sample):
            raise UnreadableTable(source.location.shown, "JSON Lines in UTF-16; convert it to UTF-8")
        nested: Counter[str] = Counter()
        plain: Counter[str] = Counter()
        for row in _parse_objects(sample):
            for name, value in row.items():
                nested[name] += isinstance(value, dict | list)
                plain[name] += isinstance(value, bool | int | float | str)
        if not nested:
            raise UnreadableTable(source.location.shown, "no JSON object on any of its first lines")
        # One odd cell is no reason to lose a column.
        names = (name for name in nested if nested[name] <= plain[name])
        return Layout(tuple(filter(COLUMN_NAME.fullmatch, names)))

    def ranges(self, source: TableSource, layout: Layout, chunk_bytes: int) -> list[Range]:
        """The bytes of the parts of a table; none if it can only be read from its start."""
        return cut_text(source, LINES, chunk_bytes)

    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """The rows of a part of a JSON Lines file, with what is wrong counted."""
        columns, faults = request.columns, request.faults
        schema = dict.fromkeys(columns, pl.String)  # whatever the type, so that no part infers its own
        most = max(1, CELLS_AT_ONCE // max(len(columns), 1))
        texts = (records.text for records in read_records(request, LINES))
        for piece in chain.from_iterable(split_records(text, LINES, most) for text in texts):
            text = piece.removeprefix(codecs.BOM_UTF8)
            try:
                frame = pl.read_ndjson(text, schema=schema)
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
                rows = ({name: row[name] for name in columns if name in row} for row in _parse_objects(text))
                good = [json.dumps(row).encode() for row in rows]
                frame = (
                    pl.read_ndjson(b"\n".join(good), schema=schema) if good else pl.DataFrame(schema=schema)
                )
                lines = sum(bool(line.strip()) for line in text.split(b"\n"))
                faults.rows += lines - frame.height
                faults.add(NOT_OBJECTS, lines - frame.height)
            faults.rows += frame.height
            yield frame


READER = JsonLinesReader()


def _parse_objects(text: bytes) -> Iterator[dict[str, object]]:
    """The objects of JSON Lines; a line that isn't one (a truncated last one, say) is passed over."""
    for line in text.split(b"\n"):
        try:
            # NaN and Infinity, which JSON does not have, and numbers that Polars does not are left as text.
            row = json.loads(line, parse_constant=str, parse_int=_parse_integer, parse_float=_parse_decimal)
        except (ValueError, RecursionError):  # no JSON, or so deeply nested that none can be read
            continue
        if isinstance(row, dict):
            yield row


def _parse_integer(text: str) -> int | str:
    return int(text) if len(text) <= LONGEST_INTEGER else text


def _parse_decimal(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text
