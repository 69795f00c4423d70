import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from covary.tables.faults import Faults
from covary.tables.formats import csv_records
from covary.tables.formats.csv_dialect import Dialect
from covary.tables.formats.csv_records import (
    count_cells,
    count_to_boundary,
    cut_records,
    find_record_boundary,
)

cells = st.text(alphabet='ab1,"\n\r;', max_size=6)


@st.composite
def csv_files(draw, cells=cells):
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=40))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator=end).writerows(rows)
    return rows, buffer.getvalue().encode()


def dialect_of(width, measured=()):
    return Dialect(",", '"', "utf-8", "\n", False, tuple(f"c{i}" for i in range(width)), 0, measured)


def parsed(text):
    return list(csv.reader(io.StringIO(text.decode(), newline="")))


def read(text, dialect, piece=1 << 20, size=1 << 20, beyond=None):
    """The rows of a text, cut into pieces, and what is wrong with it."""
    faults = Faults()
    rows = []
    pieces = (text[at : at + piece] for at in range(0, len(text), piece))
    for records in cut_records(pieces, dialect, faults, size, iter([beyond]) if beyond else None):
        if records.separators is not None:
            count_cells(records, dialect, faults)
        rows += parsed(records.text)
    return rows, faults


@given(csv_files(), st.integers(1, 60), st.integers(1, 60))
def test_pieces_end_at_records_whatever_their_size(file, piece, size):
    rows, text = file
    got, faults = read(text, dialect_of(len(rows[0])), piece, size)
    assert got == parsed(text)
    assert not faults.counts


@given(csv_files(), st.data())
def test_a_boundary_told_by_the_bytes_around_it_is_a_true_one(file, data):
    rows, text = file
    at = data.draw(st.integers(1, len(text)))
    begin = data.draw(st.integers(0, at - 1))
    boundary = find_record_boundary(text[begin:], at - begin, dialect_of(len(rows[0])))
    counted = count_to_boundary([text], at, dialect_of(len(rows[0])))
    if b'"' in text[begin:]:
        assert boundary is None or begin + boundary == counted
    assert parsed(text[:counted]) + parsed(text[counted:]) == parsed(text)


damaged_lines = st.lists(
    st.sampled_from(
        [b"1,2", b"33,4.5", b'"5,6', b'7,"8', b'9",10', b'11,12"', b'"13","14"', b'"a,b', b'c",d', b"x", b"",
         b'"e', b'"', b'1,"f\ng",2', b'15,"1""6"', b'"""17",18', b"1,2,3"]
    ),
    min_size=1,
    max_size=40,
)  # fmt: skip


@given(damaged_lines, st.integers(1, 80), st.integers(1, 80), st.booleans())
@example([b"1,2", b'"5,6', b"1,2", b"1,2", b'9",10', b"1,2"], 1, 1, True)
def test_stray_quotes_give_the_same_rows_whatever_the_pieces(lines, piece, size, closed):
    text = b"\n".join(lines) + b"\n" * closed
    dialect = dialect_of(2, (0, 1))
    rows, faults = read(text, dialect)
    assert read(text, dialect, piece, size) == (rows, faults)


@given(damaged_lines, st.data())
def test_stray_quotes_give_the_same_rows_wherever_a_file_is_cut(lines, data):
    text = b"\n".join(lines) + b"\n"
    at = data.draw(st.integers(1, len(text)))
    begin = data.draw(st.integers(0, at - 1))
    dialect = dialect_of(2, (0, 1))
    rows, faults = read(text, dialect)
    counted = count_to_boundary([text], at, dialect)
    boundary = find_record_boundary(text[begin:], at - begin, dialect)
    if b'"' in text[begin:]:
        assert boundary is None or begin + boundary == counted
    first, in_first = read(text[:counted], dialect, beyond=text[counted:])
    second, in_second = read(text[counted:], dialect)
    in_first.include(in_second)
    assert first + second == rows
    assert in_first == faults


@given(damaged_lines | csv_files().map(lambda file: file[1].split(b"\n")), st.booleans())
def test_compiled_or_not_a_text_is_read_alike(lines, closed):
    text = b"\n".join(lines) + b"\n" * closed
    dialect = dialect_of(2, (0, 1))
    plain = read(text, dialect)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "COMPILED_FROM", 0)
        assert read(text, dialect) == plain


@given(st.text(alphabet='a,"\n\r', max_size=300))
def test_a_text_passes_as_regular_only_if_python_reads_its_lines_as_its_records(text):
    text = text.replace("\r", "\r\n").encode()
    dialect = dialect_of(2)
    separators = csv_records.count_separators(text, dialect)
    if separators is not None:
        lines = text.removesuffix(b"\n").split(b"\n") if text else []
        rows = [row for line in lines for row in csv.reader([line.removesuffix(b"\r").decode()])]
        assert separators == sum(len(row) - 1 for row in rows if row)
        if b"\n\n" not in text:
            assert rows == parsed(text)


def test_long_text_passes_as_regular_wherever_its_quotes_lie():
    row = b'"a,b","c""d",1\r\n'
    for shift in range(70):
        text = b"x" * shift + b",,\n" + row * 50
        assert csv_records.count_separators(text, dialect_of(3)) == 2 * 51
        assert csv_records.count_separators(text + b'1,"2\n3",4\n' + row, dialect_of(3)) is None
        assert csv_records.count_separators(text + b'1,2",4\n' + row, dialect_of(3)) is None
        assert csv_records.count_separators(text + b'"1"2,3,4\n' + row, dialect_of(3)) is None
        assert csv_records.count_separators(text + b'1,2,"4', dialect_of(3)) is None


def test_a_stray_quote_does_not_move_the_boundaries_after_it():
    text = b'a,5" x,"q"\n' + b'b,"c\nd","e"\n' * 50
    dialect = dialect_of(3)
    boundary = find_record_boundary(text[5:], 300, dialect)
    assert boundary is not None
    assert text[5 + boundary :].startswith(b"b,")


def test_an_unclosed_quote_does_not_swallow_the_rest_of_a_large_file(monkeypatch):
    monkeypatch.setattr(csv_records, "LONGEST_RECORD", 400)
    pieces = [b'a,"b\n', *[b"c,d\n"] * 1000]
    faults = Faults()
    texts = [records.text for records in cut_records(pieces, dialect_of(2), faults, 100)]
    assert max(map(len, texts)) < 1000
    assert sum(len(parsed(text)) for text in texts) == 1001
    assert faults.counts == {"stray": 1}


@pytest.mark.parametrize("begin", [b"", b'"', b'7,"'])
def test_a_line_without_an_end_is_passed_over(monkeypatch, begin):
    monkeypatch.setattr(csv_records, "LONGEST_RECORD", 4096)
    pieces = [b"1,2\n3,4\n" + begin, *[b"x" * 64] * 1000, b"\n5,6\n"]
    rows, faults = read(b"".join(pieces), dialect_of(2, (0, 1)), 64, 1024)
    assert rows == [["1", "2"], ["3", "4"], ["5", "6"]]
    assert faults.counts == {"overlong": 1}
    for at in (9, 1000, 10_000, 63_000):
        assert count_to_boundary(iter(pieces), at, dialect_of(2, (0, 1))) == sum(map(len, pieces)) - 4
