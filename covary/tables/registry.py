"""Every format that is read, each by the READER of its module in covary.tables.formats."""

from functools import cache
from importlib import import_module

from covary.tables.reader import Reader
from covary.tables.source import TableSource
from covary.tables.spark_catalog import SparkReader

# What a file is taken for is decided in this order: text, which has no mark of its own, comes last.
MODULES = (
    "parquet", "arrow", "sqlite", "duckdb", "delta", "iceberg", "postgresql", "sqlalchemy",
    "json_lines", "csv_rows",
)  # fmt: skip
_OF_FORMATS = [import_module(f"covary.tables.formats.{module}").READER for module in MODULES]
READERS: dict[str, Reader] = {reader.name: reader for reader in (*_OF_FORMATS, SparkReader())}


def get_reader(source: TableSource) -> Reader:
    """The reader of a table."""
    return READERS[source.format]


@cache
def find_readers(suffix: str) -> tuple[Reader, ...]:
    """The readers of files with a suffix: several for .db."""
    return tuple(reader for reader in READERS.values() if suffix in reader.suffixes)
