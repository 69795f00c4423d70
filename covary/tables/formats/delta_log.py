"""What delta-rs doesn't say of a Delta table's log: which file is at fault, and where it sends its reader."""

import json
import re
from collections import Counter
from collections.abc import Collection
from itertools import product
from typing import Any
from urllib.parse import unquote

from covary.tables.files import FileState, require_files_in
from covary.tables.formats.parquet import open_parquet
from covary.tables.lakehouses import LiesOutside, TooLarge, require_below, require_small
from covary.tables.location import Location

DELTA_LOG = "_delta_log"
COMMIT = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*")
COMPACTED = re.compile(r"\d{20}\.(\d{20})\.compacted\.json")
ONE_OF_SEVERAL = re.compile(r"(\d{20})\.checkpoint\.\d{10}\.(\d{10})\.parquet")
NUMBER = re.compile(r"\d{20}")
LARGEST_LOG = 1 << 30  # bytes of all its text since the last checkpoint, of which delta-rs holds much at once
LARGEST_CHECKPOINT = 1 << 30  # bytes of one file of it, unpacked: millions of data files
SIDECARS = "_sidecars"
VECTOR = ("storageType", "pathOrInlineDv")
UUID_LENGTH = 20  # of the name of a deletion vector's file, at the end of its path in the log


def require_small_log(path: str) -> None:
    """Refuse a log that can't be read to its end, or would fill the memory: delta-rs reads whole files."""
    if not Location(path).is_url:
        require_files_in(f"{path}/{DELTA_LOG}")
    files = Location(f"{path}/{DELTA_LOG}").files()
    last = _find_last_whole_checkpoint(files)
    total = 0
    for name, state in files.items():
        number = NUMBER.match(name)
        if name.endswith(".parquet") or (number and number[0] < last):
            continue  # judged by what it unpacks to; or told again by the checkpoint
        require_small(f"{DELTA_LOG}/{name}", state.size)
        total += state.size
    if total > LARGEST_LOG:
        raise TooLarge(f"{DELTA_LOG}, since its last checkpoint,", LARGEST_LOG)


def find_empty_commit(path: str) -> str | None:
    """The first commit with nothing in it: one that was cut short, for which delta-rs reads no change."""
    commits = _list_since_checkpoint(path)[0]
    return next((f"{DELTA_LOG}/{name}" for name, state in commits.items() if not state.size), None)


def find_damaged_file(path: str) -> str | None:
    """The first file of the log that can't be read, if one can't."""
    try:
        commits, checkpoints = _list_since_checkpoint(path)
    except OSError:
        return None
    for name in (*checkpoints, *commits):
        file = Location(f"{path}/{DELTA_LOG}/{name}")
        try:
            if name.endswith(".parquet"):
                with open_parquet(file):
                    continue
            with file.open() as lines:
                for line in lines.read().splitlines():
                    json.loads(line or b"null")
        except (OSError, ValueError):  # as are the errors of JSON and Arrow
            return f"{DELTA_LOG}/{name}"
    return None


def _list_since_checkpoint(path: str) -> tuple[dict[str, FileState], list[str]]:
    """The commits after the last checkpoint, in order, and the files of that checkpoint."""
    files = sorted(Location(f"{path}/{DELTA_LOG}").files().items())
    checkpoints = {name: match[1] for name, _ in files if (match := CHECKPOINT.fullmatch(name))}
    last = max(checkpoints.values(), default="")
    commits = {name: state for name, state in files if (match := COMMIT.fullmatch(name)) and match[1] > last}
    return commits, [name for name, number in checkpoints.items() if number == last]


def require_log_below(path: str, *, commits: bool) -> None:
    """Refuse a log by which deleted rows, or parts of a checkpoint, are looked for outside of the table.

    `commits`: whether to look at the commits, too, which name no parts of a checkpoint.
    """
    log = f"{path}/{DELTA_LOG}"
    names = Location(log).files()
    last = _find_last_whole_checkpoint(names)
    # Of what tells the newest version: that checkpoint, and all since then.
    kinds = (CHECKPOINT, COMMIT, COMPACTED) if commits else (CHECKPOINT,)
    sidecars: list[str] = []
    for name in names:
        if not any((match := kind.fullmatch(name)) and match[1] >= last for kind in kinds):
            continue
        look = _check_parquet if name.endswith(".parquet") else _check_json
        sidecars += look(f"{log}/{name}", path)
    for sidecar in sidecars:
        if "/" in unquote(sidecar) or ":" in sidecar:
            raise LiesOutside(sidecar)
        _check_parquet(f"{log}/{SIDECARS}/{sidecar}", path)


def _find_last_whole_checkpoint(names: Collection[str]) -> str:
    """The number of the last checkpoint of which no part is missing; "" if there is none."""
    parts = Counter((match[1], match[2]) for match in map(ONE_OF_SEVERAL.fullmatch, names) if match)
    whole = [number for (number, count), present in parts.items() if present == int(count)]
    alone = [name for name in names if not ONE_OF_SEVERAL.fullmatch(name)]
    whole += [match[1] for match in map(CHECKPOINT.fullmatch, alone) if match]
    return max(whole, default="")


def _check_json(file: str, folder: str) -> list[str]:
    """Look at the deletion vectors in a file of the log; return the other files that it names."""
    sidecars: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # Of a name that is given twice, one reader takes the first and another the last.
        kinds, vectors = ([value for name, value in pairs if name == wanted] for wanted in VECTOR)
        for kind, vector in product(kinds, vectors):
            _require_vector_below(kind, vector, folder)
        sidecars.extend(value["path"] for name, value in pairs if name == "sidecar" and value)
        return dict(pairs)

    with Location(file).open() as lines:
        for line in lines.read().splitlines():
            json.loads(line or b"null", object_pairs_hook=look)
    return sidecars


def _check_parquet(file: str, folder: str) -> list[str]:
    """Do as with JSON for a file of a checkpoint."""
    sidecars: list[str] = []
    wanted = [*(f"add.deletionVector.{name}" for name in VECTOR), "sidecar.path"]
    with open_parquet(Location(file)) as checkpoint:
        groups = (checkpoint.metadata.row_group(number) for number in range(checkpoint.num_row_groups))
        if sum(group.total_byte_size for group in groups) > LARGEST_CHECKPOINT:
            raise TooLarge(file[file.rindex(DELTA_LOG) :], LARGEST_CHECKPOINT)
        for group in range(checkpoint.num_row_groups):
            rows = checkpoint.read_row_group(group, columns=wanted).flatten().flatten()
            if wanted[0] in rows.column_names:
                known = rows.filter(rows[wanted[0]].is_valid())
                for kind, vector in zip(*(known[name].to_pylist() for name in wanted[:2]), strict=True):
                    _require_vector_below(kind, vector, folder)
            if wanted[2] in rows.column_names:
                sidecars += rows[wanted[2]].drop_null().to_pylist()
    return sidecars


def _require_vector_below(kind: str, vector: str, folder: str) -> None:
    if kind == "p":
        require_below(unquote(vector), folder)
    elif kind == "u" and len(vector) > UUID_LENGTH and not vector[:-UUID_LENGTH].isalnum():
        raise LiesOutside(vector)
