import pkgutil

import pytest

from covary.tables import formats
from covary.tables.kinds import find_marked_reader
from covary.tables.registry import MODULES, READERS, find_readers


def test_every_reader_is_registered_under_its_own_name():
    modules = {module.name for module in pkgutil.iter_modules(formats.__path__)}
    assert set(MODULES) <= modules
    assert len(READERS) == len(MODULES) + 1  # no two of one name; the other is Spark's
    assert all(reader.title for reader in READERS.values())


@pytest.mark.parametrize(
    ("suffix", "names"), [(".csv", ["csv"]), (".db", ["sqlite", "duckdb"]), (".png", [])]
)
def test_readers_are_found_by_suffix(suffix, names):
    assert [reader.name for reader in find_readers(suffix)] == names


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"PAR1\x15\x04", "parquet"),
        (b"ARROW1\0\0", "arrow"),
        (b"SQLite format 3\0", "sqlite"),
        (b"12345678DUCK", "duckdb"),
        (b"day,x\n1,2\n", None),
        (b"", None),
    ],
)
def test_the_first_bytes_of_a_file_tell_its_reader(head, name):
    reader = find_marked_reader(head)
    assert (reader and reader.name) == name
