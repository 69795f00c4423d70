"""Where a table is: a file, a member of a zip, a table of a lakehouse or a database."""

from dataclasses import dataclass

from covary.secrets import shown_url
from covary.tables.files import FileFacts

SPARK = "spark"  # the format of what Spark reads
Identity = tuple[str, str | None]  # a path, and which table in it


@dataclass(frozen=True, slots=True)
class TableSource:
    """One table of a collection: where it is and how it is to be read.

    Attributes:
        name: of its own in the collection.
        path: where it is, an absolute path or a URL; it may hold a secret, `place` never does.
        format: who reads it, as in covary.tables.registry.
        compression: of a text file.
        member: which table of a zip or a database.
        size: about how many bytes have to be read.
        version: changes when the table does; "" where that can't be told without reading it.
        source: what the person named when it was found: a file, a folder, a glob, a URL.
        checksum: of its content, if that is to tell whether it changed.
        snapshot: the state of a server in which all tasks read it; "" if it is read in one piece.
        mark: tells its place from that of another whose URL has other values; see covary.tables.url_marks.
    """

    name: str
    path: str
    format: str
    compression: str | None
    member: str | None
    size: int
    version: str
    source: str = ""
    checksum: str | None = None
    snapshot: str = ""
    mark: str = ""

    @property
    def place(self) -> str:
        """The path as it may be stored and shown."""
        return shown(self.path, self.mark)

    @property
    def identity(self) -> Identity:
        """What it is known by from one build to the next."""
        return self.place, self.member


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be a table, or a folder or a catalog's entry that is one.

    Attributes:
        path: absolute, or a URL.
        root: the folder below which tables are named.
        explicit: named by the person, so an unknown suffix is no reason to pass it by.
        facts: if the listing told them.
        lakehouse: the format of a table that is more than a file.
    """

    path: str
    root: str
    explicit: bool = False
    facts: FileFacts | None = None
    lakehouse: str | None = None


IN_A_URL = str.maketrans({"%": "%25", "@": "%40", "=": "%3D"})  # else they would be part of a secret


def table_place(path: str, member: str | None) -> str:
    """Where a table is, down to which table of a zip or a database; a person can name it so."""
    if not member:
        return path
    return f"{path}#{member.translate(IN_A_URL) if '://' in path else member}"


def shown(path: str, mark: str = "") -> str:
    """Return a path as it may be stored and shown."""
    return shown_url(writable(path), mark)


def writable(name: str) -> str:
    """Return a name as it can be written, whatever bytes it is made of."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
