"""Tables, views and queries of a Spark session, by name: spark:db.table, spark:db, spark:SELECT ...

What is given is never run as it stands: Spark's SQL can also overwrite folders, drop tables, start programs.
A name is handed over where only a name can stand, and a query where Spark's own parser admits only a query.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from covary.errors import UnreadableTable
from covary.secrets import Secrets
from covary.tables.location import SPARK as PREFIX
from covary.tables.location import Location
from covary.tables.reader import Layout, Reader, RowRequest
from covary.tables.source import SPARK, TableSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME_LENGTH = 60
ERROR_CLASS, ERROR_STATE = re.compile(r"^\[[A-Z_.]+\] "), re.compile(r"\.?\s+SQLSTATE: .*$")
NAME = re.compile(r"(?:`(?:[^`]|``)+`|[^`.\s]+)(?:\.(?:`(?:[^`]|``)+`|[^`.\s]+))*")
PLAIN_NAME = re.compile(r"\w+")
# Beginning with SELECT it is no command, whatever is put into it; where it is put, only a query can stand.
# EXPLAIN would not do to find out: it runs EXECUTE IMMEDIATE, and calls Java while it optimises.
READING = "SELECT * FROM (WITH covary_source AS (\n{}\n\n) SELECT * FROM covary_source)"
REPLACED = (
    (re.compile(r"\$\{"), "Spark would put settings or secrets in place of its ${...}"),
    (re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"), "it holds control characters"),
)
# What a query can do besides reading. Sought in texts and comments too: better one refused than misread.
MORE_THAN_READING = (
    *REPLACED,
    (re.compile(r"\b(?:JAVA_METHOD|(?:TRY_)?REFLECT)\b", re.ASCII), "it calls methods of Java"),
    (re.compile(r"\bUSING\b(?!\s*\()", re.ASCII), "it may start a program (USING without parentheses)"),
    (
        re.compile(r"\bIDENTIFIER\b\s*(?:\(|/\*|--|[^\x00-\x7f])", re.ASCII),
        "it makes up names as it runs (IDENTIFIER)",
    ),
)


class SparkReader(Reader):
    """What Spark reads itself, partition by partition; see covary.pipeline.spark_tables."""

    name, title = SPARK, "Spark"

    def layout(self, source: TableSource) -> Layout:
        """Refuse to look into it without Spark."""
        raise UnreadableTable(source.location.shown, "only Spark reads it")

    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """Refuse to read it without Spark."""
        raise UnreadableTable(request.source.location.shown, "only Spark reads it")


def list_spark_tables(source: str, spark: "SparkSession") -> list[TableSource]:
    """The table, the tables of the database, or the query that a source names."""
    named = _read_name(source)
    try:
        if not NAME.fullmatch(named):
            open_spark_rows(source, spark)
            name = " ".join(Location(source).shown.removeprefix(PREFIX).split())
            return [TableSource(name[:NAME_LENGTH], Location(source), SPARK)]
        if spark.catalog.tableExists(named):
            return [TableSource(named, Location(source), SPARK)]
        if spark.catalog.databaseExists(named):
            tables = spark.catalog.listTables(named)
            names = sorted(f"{named}.{_quote(table.name)}" for table in tables if not table.isTemporary)
            return [TableSource(name, Location(f"{PREFIX}{name}"), SPARK) for name in names]
    except UnreadableTable:
        raise
    except Exception as problem:  # a name that can't be one, a catalog out of reach
        what = "such table or database" if NAME.fullmatch(named) else "answer to this query"
        reason = f"Spark has no {what}: {describe_spark_error(problem, source)}"
        raise UnreadableTable(source, reason) from problem
    raise UnreadableTable(source, "Spark has no such table or database")


def open_spark_rows(source: str, spark: "SparkSession") -> "DataFrame":
    """The rows of a table, a view or a query; what is none of these is refused before anything is run."""
    named = _read_name(source)
    if NAME.fullmatch(named):
        return spark.table(named)
    try:
        return spark.sql(READING.format(named.rstrip("; \t\r\n")))
    except Exception as problem:
        if type(problem).__name__ != "ParseException":
            raise
        why = describe_spark_error(problem, source)
        reason = f"Spark takes it for no query ({why}); name a table, or write one SELECT"
        raise UnreadableTable(source, reason) from problem


def _read_name(source: str) -> str:
    """What a source says, if a name or a query may say it."""
    named = source.removeprefix(PREFIX).strip()
    # In capitals, as Spark's parser has it: that takes ſ for S.
    for pattern, reason in REPLACED if NAME.fullmatch(named) else MORE_THAN_READING:
        if pattern.search(named.upper()):
            raise UnreadableTable(source, f"{reason}; covary only reads: name a table or a view")
    return named


def _quote(name: str) -> str:
    return name if PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def describe_spark_error(problem: BaseException, source: str) -> str:
    """Say in one line what Spark says of a table."""
    lines = Secrets.of(source).hide(str(problem)).strip().splitlines()
    if not lines:
        return type(problem).__name__
    return ERROR_STATE.sub("", ERROR_CLASS.sub("", lines[0]))[:200]
