"""Delta Lake tables: one version of a table, its data files read apart, each as the table's log says."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

import polars as pl
import pyarrow as pa

from covary.errors import MissingPart
from covary.tables.arrow_frames import find_plain_columns, from_arrow, gather_frames, group_ranges
from covary.tables.files import URL, s3_endpoint
from covary.tables.formats.delta_files import DataFile, TableSchema, read_file_rows
from covary.tables.formats.delta_log import (
    DELTA_LOG,
    find_damaged_file,
    find_empty_commit,
    require_log_below,
    require_small_log,
)
from covary.tables.lakehouses import LiesOutside, TooLarge, explain_failures
from covary.tables.location import Location
from covary.tables.reader import Layout, Range, Reader, RowRequest
from covary.tables.source import TableSource

if TYPE_CHECKING:
    from deltalake import DeltaTable

# What a table may ask of its reader that is seen to here or in delta-rs; any other feature is refused.
READER_FEATURES = {
    "columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview",
    "v2Checkpoint", "vacuumProtocolCheck", "variantType", "variantType-preview",
    "variantShredding", "variantShredding-preview",
}  # fmt: skip
# In files that delta-rs reads wherever the log says they are.
KEPT_APART = {"deletionVectors", "v2Checkpoint"}


class DeltaReader(Reader):
    """Folders with a log of which files hold the rows."""

    name, title = "delta", "Delta Lake"
    inner_folder = DELTA_LOG
    is_packed = is_read_whole = True

    def table_in_folder(self, name: str, path: str) -> TableSource:
        """The table in a folder, at its newest version."""
        with explain_failures(path):
            require_small_log(path)
            if not Location(path).is_url:  # elsewhere, delta-rs finds nothing that is not of the same store
                _look_before_opening(path)
            table = _open_table(path)
            if empty := find_empty_commit(path):
                raise ValueError(f"{empty} is empty; the newest changes are lost")
            # The number alone would not tell a table from another that was put in its place.
            version = f"{table.version()} {table.metadata().id}"
            files = _list_data_files(table)
            for file in files:
                file.find_path(path)  # which refuses one that lies elsewhere
            if {*(table.protocol().reader_features or ())} & KEPT_APART:
                require_log_below(path, commits=True)
            size = sum(file.size for file in files)
        return TableSource(name, Location(path), self.name, None, None, size, version)

    def layout(self, source: TableSource) -> Layout:
        """The names of the columns that can serve."""
        return Layout(find_plain_columns(_read_schema(_open_pinned(source)).columns))

    def ranges(self, source: TableSource, layout: Layout, chunk_bytes: int) -> list[Range]:
        """The data files of the parts of a table."""
        return group_ranges([file.size for file in _list_data_files(_open_pinned(source))], chunk_bytes)

    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """The rows of some data files, in batches of bounded size, small files together."""
        yield from gather_frames(_read_files(request), request.size)


READER = DeltaReader()


def _look_before_opening(path: str) -> None:
    """Refuse a checkpoint of which a part lies elsewhere, or fills the memory: delta-rs reads all at once."""
    try:
        require_log_below(path, commits=False)
    except (LiesOutside, TooLarge):
        raise
    except Exception:  # what is damaged, delta-rs tells
        return


def _read_files(request: RowRequest) -> Iterator[pl.DataFrame]:
    source, (start, stop), columns = request.source, request.part, request.columns
    table = _open_pinned(source)
    kept, schema = _find_kept_rows(table, source), _read_schema(table)
    for file in _list_data_files(table)[start : None if stop < 0 else stop]:
        with explain_failures(source.location.text, f"its data file {unquote(Location(file.path).shown)}"):
            mask = kept.get(_make_uri(table, file.path))
            for batch in read_file_rows(file, source.location.text, schema, columns, request.size, mask):
                yield from_arrow(batch, columns)


def _open_table(path: str, version: int | None = None) -> "DeltaTable":
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise MissingPart("reading Delta tables needs: pip install 'covary[delta]'") from None
    try:
        table = DeltaTable(path, version=version, storage_options=_make_storage_options(path))
    except Exception as problem:
        if damaged := find_damaged_file(path):
            raise ValueError(f"{damaged} can't be read: {problem}") from problem
        raise
    if unknown := set(table.protocol().reader_features or ()) - READER_FEATURES:
        raise ValueError(
            f"it uses a feature of Delta Lake that covary can't read: {', '.join(sorted(unknown))}"
        )
    return table


def _make_storage_options(path: str) -> dict[str, str] | None:
    """What delta-rs must be told: all else, credentials too, it finds in the environment by itself."""
    endpoint = s3_endpoint()
    if not endpoint or not path.startswith("s3"):
        return None
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower()}


def _open_pinned(source: TableSource) -> "DeltaTable":
    number, _, identity = source.version.partition(" ")
    with explain_failures(source.location.text):
        table = _open_table(source.location.text, int(number))
        if str(table.metadata().id) != identity:
            raise ValueError("another table was put in its place while it was read; try again")
    return table


def _read_schema(table: "DeltaTable") -> TableSchema:
    metadata = table.metadata()
    return TableSchema(
        pa.schema(table.schema().to_arrow()),
        {field.name: field.metadata for field in table.schema().fields},
        metadata.configuration.get("delta.columnMapping.mode", "none"),
        frozenset(metadata.partition_columns),
    )


def _list_data_files(table: "DeltaTable") -> list[DataFile]:
    """Every data file of the version, in the order in which they were written."""
    order = [("modification_time", "ascending"), ("path", "ascending")]
    actions = pa.table(table.get_add_actions()).sort_by(order)
    parted = "partition" in actions.column_names
    partitions = actions["partition"].to_pylist() if parted else [{}] * actions.num_rows
    rows = zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), partitions, strict=True)
    return [DataFile(*row) for row in rows]


def _make_uri(table: "DeltaTable", path: str) -> str:
    return unquote(path if URL.match(path) else f"{table.table_uri.rstrip('/')}/{path}")


def _find_kept_rows(table: "DeltaTable", source: TableSource) -> dict[str, pa.BooleanArray]:
    """Which rows of the files that have a deletion vector are still there."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    with explain_failures(source.location.text, "its deletion vectors"):
        vectors = pa.table(table.deletion_vectors())
        paths = [unquote(path) for path in vectors["filepath"].to_pylist()]
        known = {_make_uri(table, file.path) for file in _list_data_files(table)}
        if not known.issuperset(paths):  # or deleted rows would be read as if they were there
            raise ValueError("they belong to files that the table doesn't list")
        return dict(zip(paths, vectors["selection_vector"], strict=True))
