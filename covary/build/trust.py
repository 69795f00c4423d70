"""Which sources a user gave an index on this machine: only these are read again without being asked.

An index may come from somebody else, and its sources with it: they could name this user's secret files, or
servers that only this machine can reach. So what was given is noted apart from the index, in the user's state
folder, by digests.
"""

import json
import os
import tempfile
from collections.abc import Collection, Iterable
from hashlib import sha256
from pathlib import Path

from covary.errors import UntrustedSources
from covary.own_files import open_plain
from covary.tables.url_marks import find_state_folder

RECORDS = "given-sources"
LARGEST_RECORD = 64 << 20
MOST_SHOWN, LONGEST_SHOWN = 5, 200


def require_given(
    sources: Iterable[str], given: Collection[str], index: Path, *, confirmed: bool
) -> tuple[str, ...]:
    """Refuse sources that an index brings along; return those that are confirmed now.

    `given` are those of them that the user names now; `confirmed` says that the user answers for all.
    """
    known = _read_digests(index)
    foreign = tuple(
        each for each in dict.fromkeys(sources) if _digest(each) not in known and each not in given
    )
    if foreign and not confirmed:
        raise UntrustedSources(_explain_refusal(foreign, index))
    return foreign


def remember_given(sources: Iterable[str], index: Path) -> str | None:
    """Note all sources of an index, once it is made from them; return a sentence if that can't be done."""
    wanted, known = frozenset(map(_digest, sources)), _read_digests(index)
    if wanted <= known:
        return None
    try:
        _write_digests(known | wanted, index)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        return (
            f"can't remember here what {index} is made from ({reason}); to update it without naming its "
            f"sources, add --trust-sources"
        )
    return None


def _explain_refusal(foreign: tuple[str, ...], index: Path) -> str:
    shown = ", ".join(map(quoted, foreign[:MOST_SHOWN]))
    more = f" and {len(foreign) - MOST_SHOWN} more" if len(foreign) > MOST_SHOWN else ""
    return (
        f"{index} would read sources that you never gave it on this machine: {shown}{more}; if the index is "
        f"yours (it was moved or copied here, or made by an earlier covary or under another home), add "
        f"--trust-sources once; if it is somebody else's, look at all of its sources first "
        f"(covary info {index}), or name your own"
    )


def quoted(source: str) -> str:
    """Write the name of a source so that a terminal takes no orders from it."""
    return repr(source if len(source) <= LONGEST_SHOWN else f"{source[:LONGEST_SHOWN]}…")


def _digest(source: str) -> str:
    return sha256(source.encode("utf-8", "surrogatepass")).hexdigest()


def _read_digests(index: Path) -> frozenset[str]:
    """Read what was noted of an index; nothing, if another may have written it or it is damaged."""
    try:
        with open(open_plain(_find_record(index)), encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            others_may_write = status.st_uid != os.geteuid() or status.st_mode & 0o022
            if others_may_write or status.st_size > LARGEST_RECORD:
                return frozenset()
            noted = json.load(file)
        return frozenset(noted["sources"]) if noted["index"] == _name_of(index) else frozenset()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return frozenset()


def _write_digests(digests: Collection[str], index: Path) -> None:
    record = _find_record(index)
    for folder in (record.parent.parent, record.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, written = tempfile.mkstemp(dir=record.parent, prefix=".new-")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            json.dump({"index": _name_of(index), "sources": sorted(digests)}, file)
            file.flush()
            os.fsync(handle)
        os.replace(written, record)
    except BaseException:
        os.unlink(written)
        raise


def _find_record(index: Path) -> Path:
    return find_state_folder() / RECORDS / f"{_digest(_name_of(index))}.json"


def _name_of(index: Path) -> str:
    return os.path.realpath(index).encode("utf-8", "backslashreplace").decode("utf-8")
