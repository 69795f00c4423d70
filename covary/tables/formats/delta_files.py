"""One data file of a Delta table, its rows as the table has them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from covary.tables.files import URL
from covary.tables.formats.parquet import open_parquet, read_row_groups
from covary.tables.lakehouses import LOCAL, require_below
from covary.tables.location import Location

FIELD_ID, MAPPED_ID, MAPPED_NAME = (
    b"PARQUET:field_id", "delta.columnMapping.id", "delta.columnMapping.physicalName",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table: its path in the log, its bytes, and the values of its partition."""

    path: str
    size: int
    partition: Mapping[str, object]

    def find_path(self, folder: str) -> str:
        """The file's path in the table's folder: the log names it by a URL, mostly relative to that."""
        path = LOCAL.sub("", unquote(self.path))
        if not (URL.match(path) or LOCAL.match(self.path)):
            path = f"{folder.rstrip('/')}/{path}"
        require_below(path, folder)
        return path


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table's columns, and what tells how they are named in its files."""

    columns: pa.Schema  # with the names and types that the table has now
    fields: Mapping[str, Mapping[str, object]]  # of each column, its number and its name in the files
    mapping: str  # by which of the two files know a column, "id" or "name"; "none": by the table's name
    partition: frozenset[str]  # the columns that are not in the files

    def find_stored_names(self, file: pa.Schema) -> dict[str, str]:
        """The name that each column has in a file, if the file has it."""
        inside = {name: name for name in file.names}
        if self.mapping == "id":
            inside = {(field.metadata or {}).get(FIELD_ID, b"").decode(): field.name for field in file}
        mark = {"id": MAPPED_ID, "name": MAPPED_NAME}.get(self.mapping)
        known_by = {name: str(self.fields[name].get(mark)) if mark else name for name in self.columns.names}
        return {
            name: inside[mark]
            for name, mark in known_by.items()
            if mark in inside and name not in self.partition
        }


def read_file_rows(
    file: DataFile,
    folder: str,
    schema: TableSchema,
    columns: list[str],
    size: int,
    kept: pa.BooleanArray | None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file: renamed, widened, nulls where it lacks a column, without those deleted since."""
    location = Location(file.find_path(folder))
    with open_parquet(location) as opened:
        stored = schema.find_stored_names(opened.schema_arrow)
    wanted = [stored[name] for name in columns if name in stored]
    with open_parquet(location, wanted, coerce_int96_timestamp_unit="us") as opened:
        mask = None if kept is None else _make_mask(kept, opened.metadata.num_rows)
        start = 0
        for batch in read_row_groups(opened, (0, -1), wanted, size):
            arrays = []
            for name in columns:
                dtype = schema.columns.field(name).type
                if name in stored:
                    arrays.append(_cast(batch.column(stored[name]), dtype))
                else:
                    arrays.append(pa.repeat(pa.scalar(file.partition.get(name), dtype), batch.num_rows))
            rows = pa.RecordBatch.from_arrays(arrays, names=columns)
            yield rows if mask is None else rows.filter(pa.array(mask[start : start + batch.num_rows]))
            start += batch.num_rows


def _make_mask(kept: pa.BooleanArray, rows: int) -> npt.NDArray[np.bool_]:
    mask = np.ones(rows, dtype=bool)  # what a deletion vector says nothing of is there
    mask[: len(kept)] = kept.values.to_numpy(zero_copy_only=False)
    return mask


def _cast(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type) and pa.types.is_string(dtype):
        return column  # unpacked, each cell would be a copy
    # Only timestamps may lose something: digits below the microsecond, which Delta doesn't have.
    return column.cast(dtype, safe=not pa.types.is_timestamp(dtype))
