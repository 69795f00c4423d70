"""Which line of a CSV file is its header, what its columns are called, and where its data begin."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from covary.columns.number_forms import LONGEST_CELL

HEADER_EVIDENCE = 10

_NUMBER = r"[-+$€£]?\(?[-+]?(\d[\d,]*(\.\d*)?|\.\d+)([eE][-+]?\d+)?\)?\s?%?"
_DATE = r"\d{1,4}[-/.]\d{1,2}([-/.]\d{1,4})?([T ]\d{1,2}:\d{2}.*)?"
_KIND = re.compile(rf"(?P<number>{_NUMBER})|(?P<date>{_DATE})")
_SEPARATOR = re.compile(r"sep=.?", re.IGNORECASE)  # tells Excel the delimiter, which may cut it in two
_YEAR = re.compile(r"(1[89]|20)\d\d")


class Record(NamedTuple):
    """The cells of one record, and the byte after it."""

    cells: list[str]
    stop: int


def find_header(records: list[Record], start: int) -> tuple[bool, tuple[str, ...], int]:
    """Whether there's a header, the columns' names, and where the data begins."""
    filled = [number for number, record in enumerate(records) if any(record.cells)]
    if not filled:
        return False, (), start
    width = Counter(len(records[number].cells) for number in filled).most_common(1)[0][0]
    first = next((number for number in filled if not _is_preamble(records[number].cells, width)), filled[0])
    body = [records[number].cells for number in filled if number > first][:HEADER_EVIDENCE]
    names = records[first].cells
    if not _is_header(names, body):
        width = max(width, len(names))
        before = records[first - 1].stop if first else start
        return False, _make_unique([""] * width), before
    # R leaves the name of the row names out; others end every row but the header with a delimiter.
    if len(names) == width - 1 and any(row[-1] for row in body if len(row) == width):
        names = ["", *names]
    return True, _make_unique([*names, *[""] * (width - len(names))]), records[first].stop


def _is_preamble(cells: list[str], width: int) -> bool:
    """A title, a comment or a word to Excel above the header: at most one cell filled, or marked."""
    title = sum(map(bool, cells)) <= 1 and (width > 2 or len(cells) < width)
    comment = cells[0].startswith("#") and len(cells) < width
    for_excel = bool(_SEPARATOR.fullmatch(cells[0])) and not any(cells[1:])
    return width > 1 and (title or comment or for_excel)


def _is_header(names: list[str], body: list[list[str]]) -> bool:
    """Column by column: a name where data follow is for it, a cell of the data's kind against it."""
    votes = 0
    counting_up = _counts_up(names) and not any(map(_counts_up, body[:1]))
    for name, *cells in zip(names, *(row for row in body if len(row) == len(names)), strict=False):
        kinds = [_tell_kind(cell) for cell in cells if cell]
        if not kinds or not name.strip():
            continue
        kind = max(dict.fromkeys(kinds), key=kinds.count)
        year_on_top = _YEAR.fullmatch(name) and not any(map(_YEAR.fullmatch, cells))
        number_is_name = year_on_top or (name.isdecimal() and counting_up)
        if kind == "text":
            votes -= 2 * (name in cells)
        elif kinds.count(kind) >= 0.8 * len(kinds) and not number_is_name:
            votes += 1 if _tell_kind(name) != kind else -1
    return votes >= 0


def _counts_up(cells: list[str]) -> bool:
    """Whether 1, 2, 3, ... stand across a line: those are names, data hardly ever do."""
    numbers = [int(cell) for cell in cells if cell.isdecimal() and len(cell) < 10]
    return len(numbers) > 2 and all(after - before == 1 for before, after in pairwise(numbers))


def _tell_kind(cell: str) -> str:
    stripped = cell.strip()
    match = _KIND.fullmatch(stripped) if len(stripped) <= LONGEST_CELL else None
    return str(match.lastgroup) if match else "text"


def _make_unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names as written; the empty become column_N, the repeated get _2, _3, ..."""
    taken = set(names)
    given: dict[str, None] = {}  # in order
    repeats: dict[str, int] = {}  # where to go on counting: a name may be repeated a million times
    for number, written in enumerate(names, start=1):
        name = wanted = written if written.strip() else f"column_{number}"
        while name in given or (name != written and name in taken):
            repeats[wanted] = repeats.get(wanted, 1) + 1
            name = f"{wanted}_{repeats[wanted]}"
        given[name] = None
    return tuple(given)
