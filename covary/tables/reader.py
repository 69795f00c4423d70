"""What the reader of a format does. A new format is one module in formats/ and one line in registry.py."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from covary.tables.faults import Faults
from covary.tables.source import TableSource

if TYPE_CHECKING:
    from covary.tables.formats.csv_dialect import Dialect

Range = tuple[int, int]  # bytes of text, row groups, data files, blocks: each reader has its own
WHOLE: Range = (0, -1)  # from the start to the end


@dataclass(frozen=True, slots=True)
class Layout:
    """What must be known of a table before a part of it can be read."""

    columns: tuple[str, ...]  # the names of those that can be a key or a number
    dialect: "Dialect | None" = None  # how a CSV file is written
    damage: tuple[str, ...] = ()  # what is wrong with the table, and how it is read all the same
    remarks: tuple[str, ...] = ()  # how it is read where a person may not expect it, though nothing is wrong


class RowRequest(NamedTuple):
    """Which rows to read: some columns of a part of a table, in frames of about `size` bytes.

    A reader of what people write by hand, such as CSV, counts in `faults` the rows, and those that are wrong;
    of typed files there is nothing to count.
    """

    source: TableSource
    part: Range
    layout: Layout
    columns: list[str]
    size: int
    faults: Faults


class FileStart(NamedTuple):
    """What tells the format of a text file: its suffix, its first bytes, and how it was come by."""

    suffix: str  # in small letters
    head: bytes  # the first bytes, unpacked
    explicit: bool  # a person named the file, so that an unknown suffix is no reason to pass it by
    undeclared: bool = False  # it is compressed and its name does not tell what it holds, as in sales.gz


class Reader(ABC):
    """How tables of one format are recognised, cut into parts and read.

    What is wrong with a file is raised as UnreadableTable, or as an error of `read.FAILURES`, whose text
    becomes the reason that a person reads.
    """

    name: str  # of the format, as in TableSource.format
    title: str  # of the format, as a person knows it
    suffixes: tuple[str, ...] = ()  # of files that hold it
    marks: tuple[tuple[int, bytes], ...] = ()  # bytes that tell such a file, each with its position
    # A file without them is looked at as text or as an archive alone.
    schemes: tuple[str, ...] = ()  # of URLs that name a server of it
    inner_folder: str = ""  # that a folder holds which is one table
    # The name of a file in that folder which tells such a table; None: the folder alone does.
    inner_mark: re.Pattern[str] | None = None
    is_file = False  # a table is one file, which has a checksum
    may_be_packed = False  # a file of it may be compressed, or lie in a zip; only text is
    holds_tables = False  # a file of it holds tables with names of their own, told by a foreign reader
    is_packed = False  # it packs more rows into a byte than text does, so that parts are made smaller
    is_read_whole = False  # a part comes unpacked as a whole, and needs memory as large as it is

    def suits(self, start: FileStart) -> bool:
        """Whether a text file may be of this format; NotATable if it is nearly so."""
        return False

    def tables_in_file(self, file: TableSource) -> Sequence[TableSource]:
        """The tables of a file that is of this format."""
        return [replace(file, format=self.name)]

    def table_in_folder(self, name: str, path: str) -> TableSource:
        """The one table that a folder, or an entry of a catalog, is."""
        raise NotImplementedError

    def tables_on_server(self, url: str) -> Sequence[TableSource]:
        """Every table of the database that a URL names."""
        raise NotImplementedError

    def version(self, source: TableSource) -> str:
        """What changes when the table does. Where one version or state of a table is opened, it is that."""
        return source.version

    @abstractmethod
    def layout(self, source: TableSource) -> Layout:
        """Look into a table just far enough to know how to read any part of it."""

    def ranges(self, source: TableSource, layout: Layout, chunk_bytes: int) -> list[Range]:
        """The parts of a table, each about `chunk_bytes` on disk; none if it is read in one piece."""
        return []

    @abstractmethod
    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """The rows that are asked for, in the table's order."""


class FileReader(Reader):
    """A reader whose tables are one file each."""

    is_file = True

    def version(self, source: TableSource) -> str:
        """The file's version as it is now."""
        return source.location.state().version
