"""How the segments that tasks finish come to the build's scratch folder.

A task that has that folder on its disk writes there. One that hasn't, because its machine shares no disk with
the build's, returns the files in pieces as result rows, and the build writes them.
"""

import errno
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from covary.errors import CannotWrite
from covary.index.commit import explain_write_error
from covary.pipeline.plan import PARTS, TaskSettings
from covary.pipeline.reading_process import UNWATCHED, Watch
from covary.pipeline.session import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PIECE_BYTES = 4 << 20  # far below what Spark Connect takes as one message
ROUND_BYTES = 256 << 20  # sent to the build at once: Spark's driver refuses answers of a gigabyte
ARRIVING = "arriving"

DONE = pa.schema(
    [
        ("task", pa.string()),
        ("error", pa.int32()),
        ("message", pa.string()),
        ("file", pa.string()),
        ("start", pa.int64()),
        ("size", pa.int64()),
        ("content", pa.binary()),
    ]
)
Answers = Iterable[Any]  # rows of it, as Spark or Arrow gives them


def finish_task(
    segment: str, work: Callable[[TaskSettings], None], settings: TaskSettings, watch: Watch = UNWATCHED
) -> Iterator[pa.RecordBatch]:
    """Do the work that makes a segment where the settings it is given say, and answer that it is done.

    A failure to write is answered and not raised, so that Spark does not try the task again.
    """
    try:
        # Its name is this build's alone: who sees the folder sees the build's disk.
        if Path(settings.scratch, PARTS).is_dir():
            work(settings)
        else:
            with TemporaryDirectory(prefix="covary-", dir=watch.folder) as here:
                Path(here, PARTS).mkdir()
                work(replace(settings, scratch=here))
                yield from _cut_up(segment, Path(here, PARTS, segment))
    except OSError as problem:
        message = problem.strerror or str(problem)
        yield _make_row(task=segment, error=problem.errno or errno.EIO, message=message)
    else:
        yield _make_row(task=segment)


def _cut_up(segment: str, folder: Path) -> Iterator[pa.RecordBatch]:
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            start = 0
            # A file without content is a piece too.
            while (content := file.read(PIECE_BYTES)) or not start:
                yield _make_row(task=segment, file=path.name, start=start, size=len(content), content=content)
                start += len(content) or 1


def _make_row(**answer: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([answer], schema=DONE)


def require_done(answers: Answers, settings: TaskSettings) -> None:
    """Raise `CannotWrite` if a task could not write its segment."""
    for answer in answers:
        if answer["error"]:
            index = Path(settings.scratch).parent
            raise explain_write_error(index, OSError(answer["error"], answer["message"]))


def collect_segments(job: "DataFrame", settings: TaskSettings, spark: "SparkSession") -> None:
    """Run a job whose tasks make segments; files among their answers are written into the scratch folder."""
    if is_local(spark):
        require_done(job.collect(), settings)
        return
    # Kept by the workers, so that no task runs twice: all run at once here, and the files come after.
    kept = job.persist()
    answered = kept.drop("content").collect()
    try:
        require_done(answered, settings)
        _fetch(kept, answered, Path(settings.scratch))
    except (CannotWrite, OSError):
        kept.unpersist()
        raise
    kept.unpersist()  # not after an error of Spark's own: it might not answer


def _fetch(kept: "DataFrame", answered: Answers, scratch: Path) -> None:
    sizes: dict[str, int] = {}
    for answer in answered:
        if answer["file"]:
            sizes[answer["task"]] = sizes.get(answer["task"], 0) + answer["size"]
    for segments in _share_out(sizes):
        wanted = kept.filter(kept["file"].isNotNull() & kept["task"].isin(segments))
        _write(wanted.toLocalIterator(), scratch)
        for segment in segments:
            _put_in_place(segment, sizes[segment], scratch)


def _share_out(sizes: dict[str, int]) -> list[list[str]]:
    """Share segments out, so that those of a round are not too large to come together."""
    rounds: list[list[str]] = []
    filled = ROUND_BYTES
    for segment, size in sizes.items():
        if filled + size > ROUND_BYTES:
            rounds.append([])
            filled = 0
        rounds[-1].append(segment)
        filled += size
    return rounds


def _write(pieces: Answers, scratch: Path) -> None:
    for piece in pieces:
        path = scratch / ARRIVING / piece["task"] / piece["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        with path.open("r+b") as file:
            file.seek(piece["start"])
            file.write(piece["content"])


def _put_in_place(segment: str, size: int, scratch: Path) -> None:
    """Make an arrived segment one of the build's parts, unless it lacks something or a task put it there."""
    arrived, part = scratch / ARRIVING / segment, scratch / PARTS / segment
    whole = arrived.is_dir() and sum(file.stat().st_size for file in arrived.iterdir()) == size
    if whole and not part.exists():
        arrived.rename(part)
