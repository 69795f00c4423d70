"""covary's own code on its way to Spark's workers: they need its dependencies, not covary itself.

A zip of the package is sent once per session. Workers put it before whatever they have installed, so an older
covary there does no harm.
"""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pyarrow as pa

from covary.pipeline.scratch import lasting_folder
from covary.pipeline.session import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = "covary"
SHIPPED = "spark.covary.shipped"  # noted in the session itself, which may outlive this process
SPARK_TYPES = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.list_(pa.list_(pa.string())): "array<array<string>>",
}
T = TypeVar("T")
Task = Callable[[Any], Any]  # as Spark calls it: with rows, for rows


def ship_covary(spark: "SparkSession") -> None:
    """Send this covary to a session's workers, unless they are on this machine or have it already."""
    if is_local(spark):
        return
    package = _package()
    if spark.conf.get(SHIPPED, None) != package.name:
        spark.addArtifacts(str(package), pyfile=True)
        spark.conf.set(SHIPPED, package.name)


def as_spark_schema(schema: pa.Schema) -> str:
    """Write a schema as Spark wants it: it takes columns by their order."""
    return ", ".join(f"`{field.name}` {SPARK_TYPES[field.type]}" for field in schema)


def as_task(function: Callable[..., object], *first: object) -> Task:
    """Give what Spark is to call on its workers: a function of a module, with its first arguments.

    Nothing of covary is loaded there before it is called: Polars reads how many threads it may have when it
    is loaded, and not every session lets us set that for its workers.
    """
    packed = pickle.dumps((function, first))

    def run(rows: object) -> object:
        # A worker is one task: more Polars threads than that would only fight over the cores.
        os.environ["POLARS_MAX_THREADS"] = "1"
        work, arguments = pickle.loads(packed)
        return work(*arguments, rows)

    return run


def as_numbered_task(function: Callable[..., Iterator[object]], *first: object) -> Task:
    """Give what Spark is to call on its workers for some numbers: a function that works on one at a time.

    It is called in a process of its own, with its first arguments, a number, and who watches it. What Spark
    knows as the worker only looks on: whatever a table does to that process, the worker lives.
    """
    packed = pickle.dumps((function, first))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from covary.pipeline.reading_process import lasting_process  # noqa: PLC0415  (on the worker)

        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from lasting_process().do(packed, number)

    return run


def as_table_task(function: Callable[..., Iterator[object]], *first: object) -> Task:
    """Give what Spark is to call on its workers for a table, of which it yields batches.

    The function is called in a process of its own, as that of a numbered task is.
    """
    packed = pickle.dumps((function, first))

    def run(table: pa.Table) -> pa.Table:
        from covary.pipeline.reading_process import lasting_process  # noqa: PLC0415

        return pa.Table.from_batches(list(lasting_process().do(packed, table)))

    return run


class Parcels(Generic[T]):
    """What tasks work on, packed one by one: a task of a large build unpacks only its own."""

    def __init__(self, things: Iterable[T]) -> None:
        self._packed = [pickle.dumps(thing) for thing in things]

    def __getitem__(self, number: int) -> T:
        thing: T = pickle.loads(self._packed[number])
        return thing


@cache
def _package() -> Path:
    """Write covary into a zip that is there as long as this process: Spark serves it from where it lies."""
    content = dict(_read_files(files(PACKAGE), PACKAGE))
    digest = sha256()
    for name, data in content.items():
        digest.update(f"{name} {len(data)} ".encode() + data)
    # Named by its content: a session refuses another file of the same name, and Numba keeps code by path.
    zipped = Path(lasting_folder(), f"{PACKAGE}-{digest.hexdigest()[:16]}.zip")
    with ZipFile(zipped, "w", ZIP_DEFLATED) as package:
        for name, data in content.items():
            package.writestr(ZipInfo(name), data, ZIP_DEFLATED)
    return zipped


def _read_files(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for item in sorted(folder.iterdir(), key=attrgetter("name")):
        if item.is_file():
            yield f"{name}/{item.name}", item.read_bytes()
        elif item.name != "__pycache__":
            yield from _read_files(item, f"{name}/{item.name}")
