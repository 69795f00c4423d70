"""Where a table is: a file, a member of a zip, a table of a lakehouse or a database."""

from dataclasses import dataclass

from covary.tables.files import FileState
from covary.tables.location import Location

SPARK = "spark"  # the format of what Spark reads
Identity = tuple[str, str | None]  # a path, and which table in it


@dataclass(frozen=True, slots=True)
class TableSource:
    """One table of a collection: where it is and how it is to be read."""

    name: str  # of its own in the collection
    location: Location  # an absolute path or a URL
    format: str  # who reads it, as in covary.tables.registry
    compression: str | None = None  # of a text file
    member: str | None = None  # which table of a zip or a database
    size: int = 0  # about how many bytes have to be read
    version: str = ""  # changes when the table does; "" where that can't be told without reading it
    source: str = ""  # what the person named when it was found: a file, a folder, a glob, a URL
    checksum: str | None = None  # of its content, if that is to tell whether it changed
    snapshot: str = ""  # the state of a server in which all tasks read it; "" if it is read in one piece

    @property
    def identity(self) -> Identity:
        """What it is known by from one build to the next."""
        return self.location.shown, self.member


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be a table, or a folder or a catalog's entry that is one."""

    location: Location  # an absolute path, or a URL
    root: str  # the folder below which tables are named
    explicit: bool = False  # named by the person, so an unknown suffix is no reason to pass it by
    state: FileState | None = None  # its size and version, if the listing told them
    lakehouse: str | None = None  # the format of a table that is more than a file


IN_A_URL = str.maketrans({"%": "%25", "@": "%40", "=": "%3D"})  # else they would be part of a secret


def locate_table(path: str, member: str | None) -> str:
    """Where a table is, down to which table of a zip or a database; a person can name it so."""
    if not member:
        return path
    return f"{path}#{member.translate(IN_A_URL) if '://' in path else member}"
