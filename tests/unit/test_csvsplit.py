import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from covary.csvfile import Dialect
from covary.csvsplit import blocks, count_to_boundary, record_boundary

cells = st.text(alphabet='ab1,"\n\r;', max_size=6)


@st.composite
def csv_files(draw):
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=40))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator=end).writerows(rows)
    return rows, buffer.getvalue().encode()


def dialect_of(rows):
    return Dialect(",", '"', "utf-8", "\n", False, tuple(f"c{i}" for i in range(len(rows[0]))), 0)


def parsed(block):
    return list(csv.reader(io.StringIO(block.decode(), newline="")))


@given(csv_files(), st.integers(1, 60), st.integers(1, 60))
def test_blocks_end_at_records_whatever_their_size(file, piece, size):
    rows, text = file
    pieces = [text[start : start + piece] for start in range(0, len(text), piece)]
    # A bound of four blocks guards against unclosed quotes, so a block must hold a record here.
    cut = list(blocks(pieces, dialect_of(rows), size + 60))
    assert b"".join(cut) == text
    assert [row for block in cut for row in parsed(block)] == parsed(text)


@given(csv_files(), st.data())
def test_a_boundary_told_by_the_bytes_around_it_is_a_true_one(file, data):
    rows, text = file
    at = data.draw(st.integers(1, len(text)))
    begin = data.draw(st.integers(0, at - 1))
    found = record_boundary(text[begin:], at - begin, dialect_of(rows))
    counted = count_to_boundary([text], at, dialect_of(rows))
    if b'"' in text[begin:]:
        assert found is None or begin + found == counted
    assert parsed(text[:counted]) + parsed(text[counted:]) == parsed(text)


def test_a_stray_quote_does_not_move_the_boundaries_after_it():
    text = b'a,5" x,"q"\n' + b'b,"c\nd","e"\n' * 50
    dialect = Dialect(",", '"', "utf-8", "\n", False, ("x", "y", "z"), 0)
    found = record_boundary(text[5:], 300, dialect)
    assert found is not None
    assert text[5 + found :].startswith(b"b,")


def test_an_unclosed_quote_does_not_swallow_the_rest_of_a_large_file():
    dialect = Dialect(",", '"', "utf-8", "\n", False, ("x", "y"), 0)
    pieces = [b'a,"b\n', *[b"c,d\n"] * 1000]
    assert max(map(len, blocks(pieces, dialect, 100))) < 500
