"""Iceberg tables, in a folder or of a catalog: one snapshot, its data files read apart by pyiceberg."""

import gzip
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from covary.errors import MissingPart, UnreadableTable
from covary.tables.arrow_frames import find_plain_columns, from_arrow, gather_frames, group_ranges, is_text
from covary.tables.files import require_files, require_files_in, s3_endpoint
from covary.tables.formats.parquet import PACKED
from covary.tables.lakehouses import LARGEST_METADATA, LOCAL, explain_failures, require_below, require_small
from covary.tables.location import CATALOG, Location
from covary.tables.reader import Layout, Range, Reader, RowRequest
from covary.tables.source import FoundFile, TableSource

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO, InputFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table

NEEDED = "reading Iceberg tables needs: pip install 'covary[iceberg]'"
METADATA = "metadata"
PACKED_METADATA = ".gz.metadata.json"
METADATA_FILE = re.compile(r"v?(\d++).*\.metadata\.json")


def list_catalog(source: str) -> Iterator[FoundFile]:
    """The table that a source names, or all those of the namespace or the catalog that it names."""
    with explain_failures(source):
        name, *inside = source.removeprefix(CATALOG).split(".")
        catalog = _open_catalog(name)
        if len(inside) > 1 and catalog.table_exists(tuple(inside)):
            yield FoundFile(Location(source), source.rpartition(".")[0], explicit=True, lakehouse="iceberg")
            return
        identifiers = list(_list_tables_below(catalog, tuple(inside)))
    if not identifiers:
        raise UnreadableTable(source, "there is no table")
    for identifier in sorted(identifiers):
        yield FoundFile(Location(f"{CATALOG}{'.'.join((name, *identifier))}"), source, lakehouse="iceberg")


class IcebergReader(Reader):
    """Folders, or entries of a catalog, with metadata of which files hold the rows."""

    name, title = "iceberg", "Iceberg"
    inner_folder = METADATA
    inner_mark = re.compile(r"(?!\.).*\.metadata\.json|version-hint\.text", re.DOTALL)
    is_packed = is_read_whole = True

    def table_in_folder(self, name: str, path: str) -> TableSource:
        """The table in a folder or of a catalog, at its newest snapshot."""
        with explain_failures(path):
            table = _open_table(path)
            snapshot = table.current_snapshot()
            # A column renamed since the last rows were written makes no snapshot, but it makes a schema.
            version = f"{snapshot.snapshot_id if snapshot else 0} {table.schema().schema_id}"
            source = TableSource(name, Location(path), self.name, None, None, 0, version)
            size = sum(task.file.file_size_in_bytes for task in _plan_tasks(table, source))
        return replace(source, size=size)

    def layout(self, source: TableSource) -> Layout:
        """The names of the columns that can serve."""
        with explain_failures(source.location.text):
            schema = _find_schema(_open_table(source.location.text), source)
            return Layout(find_plain_columns(schema.as_arrow()))

    def ranges(self, source: TableSource, layout: Layout, chunk_bytes: int) -> list[Range]:
        """The data files of the parts of a table."""
        with explain_failures(source.location.text):
            tasks = _plan_tasks(_open_table(source.location.text), source)
        return group_ranges([task.file.file_size_in_bytes for task in tasks], chunk_bytes)

    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """The rows of some data files that no delete file has taken away, small files together."""
        yield from gather_frames(_read_files(request), request.size)


READER = IcebergReader()


def _read_files(request: RowRequest) -> Iterator[pl.DataFrame]:
    source, (start, stop), columns = request.source, request.part, request.columns
    with explain_failures(source.location.text):
        table = _open_table(source.location.text)
        schema = _find_schema(table, source).select(*columns)
        tasks = _plan_tasks(table, source)[start : None if stop < 0 else stop]
    for task in tasks:
        with explain_failures(source.location.text, f"its data file {Location(task.file.file_path).shown}"):
            for batch in _read_batches(table, schema, task):
                yield from_arrow(batch, columns)


def _open_table(path: str) -> "Table":
    location = Location(path)
    if location.is_of_catalog:
        name, *identifier = path.removeprefix(CATALOG).split(".")
        return _open_catalog(name).load_table(tuple(identifier))
    try:
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import StaticTable
    except ImportError:
        raise MissingPart(NEEDED) from None
    if not location.is_url:
        require_files_in(f"{path}/{METADATA}")
    listed = Location(f"{path}/{METADATA}").files()
    matches = [match for match in map(METADATA_FILE.fullmatch, listed) if match]
    if not matches:
        raise ValueError(f"there is no *.metadata.json in its folder {METADATA!r}")
    newest = max(matches, key=lambda match: (int(match[1]), match[0]))[0]
    with explain_failures(path, f"{METADATA}/{newest}"):
        file, files = f"{path}/{METADATA}/{newest}", _make_reader_below(path)
        is_packed = newest.endswith(PACKED_METADATA)
        require_small("it", _measure_unpacked(file) if is_packed else listed[newest].size)
        # Not by StaticTable.from_metadata: what a table says of servers and of code to load is not for us.
        metadata = FromInputFile.table_metadata(files.new_input(file))
        return StaticTable(("static-table", file), metadata, file, files, NoopCatalog("static-table"))


def _measure_unpacked(path: str) -> int:
    """How large a file is once unpacked, as far as that is no matter: a kilobyte may unpack to a megabyte."""
    size = 0
    with Location(path).open() as file, gzip.GzipFile(fileobj=file) as unpacked:
        while size <= LARGEST_METADATA and (piece := unpacked.read(1 << 20)):
            size += len(piece)
    return size


def _make_reader_below(folder: str) -> "FileIO":
    """What reads the files of a table in a folder, all of them, and none that lies elsewhere."""
    from pyiceberg.io import load_file_io

    endpoint = s3_endpoint()  # which pyiceberg does not find in the environment by itself
    files = load_file_io({"s3.endpoint": endpoint} if endpoint else {}, folder)
    read = files.new_input

    def read_below(location: str) -> "InputFile":
        require_below(location, folder)
        path = LOCAL.sub("", location)
        if not Location(path).is_url:
            require_files([path])
            if path.endswith(".avro"):  # a list of data files, read as a whole
                require_small(os.path.basename(path), os.path.getsize(path))
        return read(location)

    files.new_input = read_below  # type: ignore[method-assign]
    return files


def _open_catalog(name: str) -> "Catalog":
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError:
        raise MissingPart(NEEDED) from None
    return load_catalog(name)


def _list_tables_below(catalog: "Catalog", namespace: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if namespace:
        yield from catalog.list_tables(namespace)
    for inner in catalog.list_namespaces(namespace):
        if inner != namespace:
            yield from _list_tables_below(catalog, inner)


def _find_schema(table: "Table", source: TableSource) -> "Schema":
    return table.schemas()[int(source.version.split()[1])]


def _plan_tasks(table: "Table", source: TableSource) -> "list[FileScanTask]":
    """Every data file of the snapshot with its delete files, in a fixed order."""
    snapshot = int(source.version.split()[0])
    if not snapshot:
        return []
    if table.snapshot_by_id(snapshot) is None:
        raise ValueError(f"its snapshot {snapshot} is gone; index it again")
    return sorted(table.scan(snapshot_id=snapshot).plan_files(), key=lambda task: task.file.file_path)


def _read_batches(table: "Table", schema: "Schema", task: "FileScanTask") -> Iterator[pa.RecordBatch]:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io import pyarrow as reader

    options: dict[str, tuple[str, ...]] = {}
    packed = task.file.file_size_in_bytes < PACKED * task.file.record_count
    if packed and "dictionary_columns" in signature(reader.ArrowScan).parameters:  # not in older versions
        texts = (field.name for field in schema.as_arrow() if is_text(field.type))
        options["dictionary_columns"] = tuple(texts)
    scan = reader.ArrowScan(table.metadata, table.io, schema, AlwaysTrue(), **options)  # type: ignore[arg-type]
    # What is meant to be called, and calls this, holds all batches of a file in memory.
    one_by_one = getattr(scan, "_record_batches_from_scan_tasks_and_deletes", None)
    deletes_of = getattr(reader, "_read_all_delete_files", None)
    if one_by_one and deletes_of:
        yield from one_by_one([task], deletes_of(table.io, [task]))
    else:
        yield from scan.to_record_batches([task])
