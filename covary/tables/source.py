"""Where a table is: a file, a member of a zip, a table of a lakehouse or a database."""

from dataclasses import dataclass

from covary.tables.files import FileState
from covary.tables.location import Location

SPARK = "spark"  # the format of what Spark reads
Identity = tuple[str, str | None]  # a path, and which table in it


@dataclass(frozen=True, slots=True)
class TableSource:
    """One table of a collection: where it is and how it is to be read.

    Attributes:
        name: of its own in the collection.
        location: where it is: an absolute path or a URL.
        format: who reads it, as in covary.tables.registry.
        compression: of a text file.
        member: which table of a zip or a database.
        size: about how many bytes have to be read.
        version: changes when the table does; "" where that can't be told without reading it.
        source: what the person named when it was found: a file, a folder, a glob, a URL.
        checksum: of its content, if that is to tell whether it changed.
        snapshot: the state of a server in which all tasks read it; "" if it is read in one piece.
    """

    name: str
    location: Location
    format: str
    compression: str | None
    member: str | None
    size: int
    version: str
    source: str = ""
    checksum: str | None = None
    snapshot: str = ""

    @property
    def identity(self) -> Identity:
        """What it is known by from one build to the next."""
        return self.location.shown, self.member


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be a table, or a folder or a catalog's entry that is one.

    Attributes:
        location: an absolute path, or a URL.
        root: the folder below which tables are named.
        explicit: named by the person, so an unknown suffix is no reason to pass it by.
        state: its size and version, if the listing told them.
        lakehouse: the format of a table that is more than a file.
    """

    location: Location
    root: str
    explicit: bool = False
    state: FileState | None = None
    lakehouse: str | None = None


IN_A_URL = str.maketrans({"%": "%25", "@": "%40", "=": "%3D"})  # else they would be part of a secret


def locate_table(path: str, member: str | None) -> str:
    """Where a table is, down to which table of a zip or a database; a person can name it so."""
    if not member:
        return path
    return f"{path}#{member.translate(IN_A_URL) if '://' in path else member}"
