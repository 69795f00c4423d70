"""Every error that is the user's to mend; the command line and the service translate them in one place.

CovaryError                 exit code 2
├── TableError
│   ├── UnreadableTable     the file or frame can't be read
│   │   └── NothingThere    where it would be can be looked into, and it is not there
│   ├── NoTables            nothing to index was found
│   ├── NoSuchColumn        with the nearest names
│   └── UnusableColumn      empty, or of the wrong kind
├── SketchError
│   └── IncompatibleSketches
├── StoreError
│   ├── NotAnIndex
│   ├── UnsupportedFormat
│   ├── DamagedIndex        a file is missing, truncated or altered
│   ├── CannotWrite         no permission, disk full
│   └── IndexBusy           another process is writing it
├── TaskFailed              a part of a build could not be done: Spark failed, or a process that reads tables
├── MachineFault            this machine failed, and no table or index is to blame: no memory, a broken disk
├── UntrustedSources        an index names sources that its user never gave it
└── MissingPart             an extra, or Java, is not installed

Notice                      a warning: the work goes on, and a person should know of something
├── DamagedTable            a table was read though something is wrong with it
└── RunsWithoutSpark        there is no Spark here, so this machine reads the tables by itself
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from heapq import nsmallest
from typing import TypeVar

from covary.secrets import Secrets, shown_url, without_secrets

T = TypeVar("T")
MOST_NAMES_COMPARED, LONGEST_NAME = 1_000, 60


class CovaryError(Exception):
    """A mistake that the user can mend; its text says what, where, and what to do next."""

    exit_code = 2

    def __init__(self, text: str = "") -> None:
        super().__init__(without_secrets(text))

    def hide(self, secrets: Secrets) -> None:
        """Let it tell nothing of some secrets, nor keep an error that does."""
        self.args = (secrets.hide(str(self)),)
        self.forget_causes()

    def forget_causes(self) -> None:
        """Let go of the errors that led to it."""
        self.__cause__ = self.__context__ = None


@contextmanager
def hiding(given: str) -> Iterator[None]:
    """Let no error out of the block that tells a secret of a source, as a person gave it."""
    try:
        with _as_our_own(given):
            yield
    except CovaryError as problem:
        secrets = Secrets.of(given)
        if secrets or tells_secrets(problem, secrets):
            problem.hide(secrets)
        raise


@contextmanager
def _as_our_own(given: str) -> Iterator[None]:
    try:
        yield
    except CovaryError:
        raise
    except Exception as problem:
        secrets = Secrets.of(given)
        if not (secrets or tells_secrets(problem, secrets)):
            raise
        raise UnreadableTable(given, secrets.hide(f"{type(problem).__name__}: {problem}")) from None


def tells_secrets(problem: BaseException | None, secrets: Secrets) -> bool:
    """Whether an error, or one that led to it, tells a secret."""
    while problem is not None:
        if any(secrets.hide(text) != text for text in (str(problem), repr(problem))):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


class Notice(UserWarning):
    """Something that a person should know of, though the work goes on; it fits in a line."""


class RunsWithoutSpark(Notice):
    """There is no Spark here, so this machine reads the tables of a build by itself."""


class DamagedTable(Notice):
    """What is wrong with a table that was read all the same; the answer may rest on a part of it."""


def chosen(name: object, choices: Mapping[str, T], what: str) -> T:
    """Return what a person chose by name, or say what there is to choose from."""
    if not isinstance(name, str) or name not in choices:
        raise CovaryError(f"there is no {what} {name!r}; choose from {', '.join(choices)}")
    return choices[name]


class TableError(CovaryError):
    """Something about a table."""


class UnreadableTable(TableError):
    """A file or frame that can't be read as a table."""

    def __init__(self, path: str, reason: str) -> None:
        path = shown_url(path)
        self.path = path if "://" in path else without_secrets(path)
        self.reason = without_secrets(reason)
        Exception.__init__(self, f"can't read {self.path}: {self.reason}")

    def hide(self, secrets: Secrets) -> None:
        """Let its reason tell nothing of some secrets; its path doesn't."""
        self.reason = secrets.hide(self.reason)
        self.args = (f"can't read {self.path}: {self.reason}",)
        self.forget_causes()


class NothingThere(UnreadableTable):
    """A source that can be looked into, and holds no table."""


class NoTables(TableError):
    """No table was found where one was expected."""


class NoSuchColumn(TableError):
    """A column that the table does not have."""

    def __init__(self, name: str, table: str, columns: Iterable[str]) -> None:
        # Hidden before it is cut: half a password is not known for one.
        name = _short(without_secrets(shown_url(str(name))))
        names = [_short(column) for column in columns]
        near = near_names(name, names)
        shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {shown}"
        super().__init__(f"there is no column {name!r} in {table}; {hint}")


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """The three names most like one that is not among them; long ones are cut."""
    wanted = _short(name).casefold()
    by_folded = {short.casefold(): short for short in map(_short, names)}
    # Comparing takes up to a millisecond each, and names of very different lengths aren't alike.
    compared = nsmallest(MOST_NAMES_COMPARED, by_folded, key=lambda other: abs(len(other) - len(wanted)))
    return [by_folded[match] for match in get_close_matches(wanted, compared, n=3, cutoff=0.5)]


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


class UnusableColumn(TableError):
    """A column that exists but can't serve as the key or the value it was named for."""


class SketchError(CovaryError):
    """Something about sketches."""


class IncompatibleSketches(SketchError):
    """Two sketches made with different settings, whose hashes can't be compared."""


class StoreError(CovaryError):
    """Something about an index on disk."""


class NotAnIndex(StoreError):
    """A path that holds no index."""


class UnsupportedFormat(StoreError):
    """An index written by another format version."""


class DamagedIndex(StoreError):
    """An index file that is missing, truncated or altered."""


class CannotWrite(StoreError):
    """The index can't be written: no permission, or no room."""


class IndexBusy(StoreError):
    """An index that another process is writing, or has changed in the meantime."""


class TaskFailed(CovaryError):
    """A part of a build that could not be done: Spark failed, or a process that reads tables did."""


class MachineFault(CovaryError):
    """A failure of this machine's own, for which no table and no index is to blame."""


class UntrustedSources(CovaryError):
    """Sources that an index brought along, and that its user neither gave it here nor confirmed."""


class MissingPart(CovaryError):
    """An optional package or program that this command needs."""
