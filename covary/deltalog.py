"""Which file of a Delta table's log is at fault, which delta-rs doesn't say."""

import json
import re

from covary.columnar import parquet_file
from covary.filesystems import FileFacts, files_in, open_bytes
from covary.lakehouses import DELTA_LOG

COMMIT = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*")


def emptied_commit(path: str) -> str | None:
    """The first commit with nothing in it: one that was cut short, for which delta-rs reads no change."""
    commits = _since_checkpoint(path)[0]
    return next((f"{DELTA_LOG}/{name}" for name, facts in commits.items() if not facts.size), None)


def damage_of(path: str) -> str | None:
    """The first file of the log that can't be read, if one can't."""
    try:
        commits, checkpoints = _since_checkpoint(path)
    except OSError:
        return None
    for name in (*checkpoints, *commits):
        try:
            if name.endswith(".parquet"):
                with parquet_file(f"{path}/{DELTA_LOG}/{name}"):
                    continue
            with open_bytes(f"{path}/{DELTA_LOG}/{name}") as file:
                for line in file.read().splitlines():
                    json.loads(line or b"null")
        except (OSError, ValueError):  # as are the errors of JSON and Arrow
            return f"{DELTA_LOG}/{name}"
    return None


def _since_checkpoint(path: str) -> tuple[dict[str, FileFacts], list[str]]:
    """The commits after the last checkpoint, in order, and the files of that checkpoint."""
    files = sorted(files_in(f"{path}/{DELTA_LOG}").items())
    checkpoints = [(int(match[1]), name) for name, _ in files if (match := CHECKPOINT.fullmatch(name))]
    last = max((number for number, _ in checkpoints), default=-1)
    commits = {
        name: facts for name, facts in files if (match := COMMIT.fullmatch(name)) and int(match[1]) > last
    }
    return commits, [name for number, name in checkpoints if number == last]
