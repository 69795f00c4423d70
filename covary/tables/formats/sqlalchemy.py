"""Tables of any database that SQLAlchemy has a dialect for: listed by its inspector, streamed as text."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import quote
from warnings import catch_warnings

import polars as pl

from covary.errors import MissingPart
from covary.secrets import Secrets
from covary.tables.files import require_files
from covary.tables.formats.sql_rows import ROWS_AT_ONCE, fetch_text_frames
from covary.tables.formats.sqlite import let_python_look, raise_if_stopped, require_companions
from covary.tables.location import Location
from covary.tables.reader import Layout, Reader, RowRequest
from covary.tables.source import TableSource

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection

# The drivers that install everywhere, where SQLAlchemy's own choice needs a compiler.
DRIVERS = {"mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql", "oracle": "oracle+oracledb"}
PACKAGES = {"MySQLdb": "mysqlclient", "sqlalchemy": "covary[sql]"}  # others are called as their module is
DIALECT_PACKAGES = {
    "bigquery": "sqlalchemy-bigquery",
    "clickhouse": "clickhouse-sqlalchemy",
    "cockroachdb": "sqlalchemy-cockroachdb",
    "databricks": "databricks-sqlalchemy",
    "duckdb": "duckdb-engine",
    "redshift": "sqlalchemy-redshift",
    "snowflake": "snowflake-sqlalchemy",
    "trino": "trino[sqlalchemy]",
}
UNKNOWN_SIZE = 1 << 20  # one of many small tables


def is_dialect(scheme: str) -> bool:
    """Whether SQLAlchemy, if it is there, knows a kind of database by this name."""
    try:
        from sqlalchemy import exc  # noqa: PLC0415  (an extra)
        from sqlalchemy.dialects import registry  # noqa: PLC0415
    except ImportError:
        return False
    try:
        registry.load(scheme.replace("+", "."))
    except (exc.NoSuchModuleError, ImportError):
        return False
    return True


class SqlReader(Reader):
    """Tables of a database that another reader has no driver of its own for, each read in one piece."""

    name, title = "sql", "SQL"

    def tables_on_server(self, url: str) -> list[TableSource]:
        """The tables and views of a database, of the schema that it has by default."""
        with _connect(url) as (connection, sqlalchemy):
            inspector = sqlalchemy.inspect(connection)
            names = sorted({*inspector.get_table_names(), *inspector.get_view_names()})
            address = sqlalchemy.make_url(url)
            database = (address.database or "").partition(";")[0] or address.get_backend_name()
        if connection.dialect.name == "sqlite":
            # A file's name, and where it is for a task that runs in another folder.
            url = f"sqlite:///{os.path.abspath(database)}"
            database = os.path.splitext(os.path.basename(database))[0]
        return [
            TableSource(f"{database}/{name}", Location(url), self.name, None, name, UNKNOWN_SIZE, "")
            for name in names
        ]

    def layout(self, source: TableSource) -> Layout:
        """The names of the columns that can serve."""
        with _connect(source.location.text) as (connection, sqlalchemy):
            types = sqlalchemy.types
            others = (types._Binary, types.ARRAY, types.JSON, types.Interval)
            # Warnings are of types that it does not know.
            with catch_warnings(action="ignore", category=sqlalchemy.exc.SAWarning):
                columns = sqlalchemy.inspect(connection).get_columns(source.member)
        return Layout(tuple(str(each["name"]) for each in columns if not isinstance(each["type"], others)))

    def frames(self, request: RowRequest) -> Iterator[pl.DataFrame]:
        """All rows, in batches of bounded size."""
        source, columns = request.source, request.columns
        with _connect(source.location.text) as (connection, sqlalchemy):
            # Without types: what the driver gives is what there is, and no cell is refused.
            wanted = [sqlalchemy.column(sqlalchemy.sql.quoted_name(name, True)) for name in columns]
            table = sqlalchemy.table(sqlalchemy.sql.quoted_name(str(source.member), True))
            streamed = connection.execution_options(stream_results=True, max_row_buffer=ROWS_AT_ONCE)
            result = streamed.execute(sqlalchemy.select(*wanted).select_from(table))
            yield from fetch_text_frames(result.fetchmany, columns, request.size)


READER = SqlReader()


@contextmanager
def _connect(url: str) -> Iterator["tuple[Connection, ModuleType]"]:
    """A connection, and SQLAlchemy itself."""
    try:
        import sqlalchemy  # noqa: PLC0415  (an extra)

        address = _parse_url(sqlalchemy, url)
        engine = sqlalchemy.create_engine(address, poolclass=sqlalchemy.NullPool, hide_parameters=True)
    except ImportError as problem:
        raise _explain_missing_package(url, PACKAGES.get(problem.name or "", problem.name)) from None
    except sqlalchemy.exc.NoSuchModuleError:
        raise _explain_missing_package(url, DIALECT_PACKAGES.get(_find_dialect(url))) from None
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise OSError("this is no URL of a database; write it as dialect://user@host/database") from None
    try:
        with engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                let_python_look(connection.connection.driver_connection)  # type: ignore[arg-type]
            yield connection, sqlalchemy
    except sqlalchemy.exc.SQLAlchemyError as problem:
        # The driver's own words, without the statement and the links that SQLAlchemy adds.
        cause = getattr(problem, "orig", None) or problem
        raise_if_stopped(cause)
        words = Secrets.of(url).hide(str(cause.args[-1] if cause.args else cause))
        raise OSError(words.strip().split("\n")[0]) from None
    finally:
        engine.dispose()


def _parse_url(sqlalchemy: ModuleType, url: str) -> "URL":
    address: URL = sqlalchemy.make_url(url)
    address = address.set(drivername=DRIVERS.get(address.drivername, address.drivername))
    if address.get_backend_name() == "sqlite" and address.database:
        path = os.path.abspath(address.database)
        require_files([path])
        require_companions(path)
        # SQLite makes a file that is not there, unless told to read only.
        return address.set(database=f"file:{quote(path)}", query={"mode": "ro", "uri": "true"})
    return address


def _explain_missing_package(url: str, package: str | None) -> MissingPart:
    advice = f"pip install '{package}'" if package else f"SQLAlchemy has none for {_find_dialect(url)}"
    return MissingPart(f"reading {_find_dialect(url)}:// needs a package that is not installed: {advice}")


def _find_dialect(url: str) -> str:
    return url.partition("://")[0].partition("+")[0]
