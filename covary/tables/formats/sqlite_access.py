"""What every way to read a SQLite file sees to: no pipe beside it hangs it, and Ctrl-C ends a query."""

import sqlite3
from typing import Any

from covary.tables.files import require_files

COMPANIONS = ("-journal", "-wal", "-shm")  # which SQLite opens without a look at what they are
# Of SQLite's own machine: some milliseconds of work, beside which a call of Python is nothing.
STEPS_BETWEEN_LOOKS = 100_000


def require_companions(path: str) -> None:
    """Refuse a file beside which a pipe or a device has the name of its journal."""
    require_files(f"{path}{suffix}" for suffix in COMPANIONS)


def let_python_look(database: Any) -> None:
    """Give Python a turn now and then while a query computes, or it would never see a Ctrl-C."""
    database.set_progress_handler(_go_on, STEPS_BETWEEN_LOOKS)


def raise_if_stopped(problem: BaseException | None) -> None:
    """Raise the KeyboardInterrupt that ended a query: the driver drops it, and tells another error."""
    if getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
        raise KeyboardInterrupt from None


def _go_on() -> int:
    return 0
