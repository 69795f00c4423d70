"""Tables, views and queries of a Spark session, by name: spark:db.table, spark:db, spark:SELECT ..."""

import re
from typing import TYPE_CHECKING, Any

from covary.errors import UnreadableTable
from covary.tablesource import TableSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX, FORMAT = "spark:", "spark"
NAME_LENGTH = 60
ERROR_CLASS = re.compile(r"^\[[A-Z_.]+\] ")


def is_of_spark(source: str) -> bool:
    """Whether a source is named in a Spark session."""
    return source.startswith(PREFIX)


def spark_tables(source: str, spark: "SparkSession") -> list[TableSource]:
    """The table, the tables of the database, or the query that a source names."""
    named = source.removeprefix(PREFIX).strip()
    if len(named.split()) > 1:
        return [_source(" ".join(named.split())[:NAME_LENGTH], source)]
    try:
        if spark.catalog.tableExists(named):
            return [_source(named, source)]
        if spark.catalog.databaseExists(named):
            tables = spark.catalog.listTables(named)
            names = sorted(f"{named}.{table.name}" for table in tables if not table.isTemporary)
            return [_source(name, f"{PREFIX}{name}") for name in names]
    except Exception as problem:  # a name that can't be one, a catalog out of reach
        reason = f"Spark has no such table or database: {spark_reason(problem)}"
        raise UnreadableTable(source, reason) from problem
    raise UnreadableTable(source, "Spark has no such table or database")


def _source(name: str, path: str) -> TableSource:
    return TableSource(name, path, FORMAT, None, None, 0, "")


def spark_reason(problem: Any) -> str:
    """Say in one line what Spark says of a table."""
    lines = str(problem).strip().splitlines()
    return ERROR_CLASS.sub("", lines[0])[:200] if lines else type(problem).__name__
