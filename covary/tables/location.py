"""Where a source or a table is: a value that knows its scheme, what of it may be shown, how to open it."""

import os
import stat
from dataclasses import dataclass, replace
from typing import IO

from covary.secrets import Secrets, bare_url, shown_url
from covary.tables.files import URL, FileState, NotAFile, file_system, local_state, remote_state
from covary.tables.url_marks import make_mark

CATALOG, SPARK = "iceberg:", "spark:"  # before what is named in a catalog, or in a Spark session


@dataclass(frozen=True, slots=True)
class Location:
    """A path of this machine, a URL, or a name that a catalog or a Spark session knows."""

    text: str  # in full, as it is opened; it may hold a secret, `shown` never does
    mark: str = ""  # tells it from another whose URL has other values; see covary.tables.url_marks

    @property
    def is_url(self) -> bool:
        """Whether it is a URL that is not of this machine's files."""
        return URL.match(self.text) is not None and not self.text.startswith("file://")

    @property
    def scheme(self) -> str:
        """What stands before the :// of a URL."""
        return self.text.partition("://")[0].lower()

    @property
    def is_of_catalog(self) -> bool:
        """Whether it is a catalog, a namespace or a table of one: iceberg:CATALOG.NAMESPACE.TABLE."""
        return self.text.startswith(CATALOG)

    @property
    def is_of_spark(self) -> bool:
        """Whether it is named in a Spark session: spark:TABLE, spark:SELECT ..."""
        return self.text.startswith(SPARK)

    @property
    def path(self) -> str:
        """The path as it is known wherever the command is run, if it is one of this machine."""
        return os.path.abspath(os.path.expanduser(self.text.removeprefix("file://")))

    @property
    def shown(self) -> str:
        """What of it may be stored and shown."""
        return shown_url(writable(self.text), self.mark)

    @property
    def bare(self) -> str:
        """What names its file: a path, or a URL up to its parameters."""
        return bare_url(self.text)

    @property
    def secrets(self) -> Secrets:
        """What of it must not be shown."""
        return Secrets.of(self.text)

    def marked(self, make_key: bool = True) -> "Location":
        """Return it with its mark; `make_key`: whether to make the key for marks if this user has none."""
        return replace(self, mark=make_mark(self.text, make_key))

    def open(self) -> IO[bytes]:
        """Open the file for reading from any position."""
        if not self.is_url:
            return open(self.text, "rb", buffering=0)
        files, path = file_system(self.text)
        return files.open(path, "rb")  # type: ignore[no-any-return]

    def state(self) -> FileState:
        """Return the file's size and version as they are now."""
        if not self.is_url:
            return local_state(os.stat(self.text))
        files, path = file_system(self.text)
        files.invalidate_cache()
        return remote_state(files.info(path))

    def read_start(self, length: int) -> tuple[FileState, bytes]:
        """Return the file's size and version, and its first bytes."""
        if self.is_url:
            with self.open() as file:
                return self.state(), file.read(length)
        # O_NONBLOCK: a named pipe without a writer would otherwise hang the listing.
        handle = os.open(self.text, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise NotAFile("not a regular file")
            return local_state(status), os.read(handle, length)
        finally:
            os.close(handle)

    def files(self) -> dict[str, FileState]:
        """The files right in the folder, by name, with the size and version of each."""
        if not self.is_url:
            with os.scandir(self.text) as entries:
                return {entry.name: local_state(entry.stat()) for entry in entries if entry.is_file()}
        files, path = file_system(self.text)
        files.invalidate_cache()
        listed = files.ls(path, detail=True)
        return {
            each["name"].rpartition("/")[2]: remote_state(each) for each in listed if each["type"] == "file"
        }


def writable(name: str) -> str:
    """Return a name as it can be written, whatever bytes it is made of."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
