"""Hostile indexes: contents that lie under checksums that fit, by somebody who knows the format."""

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc

from torture.altered import Arrays, contents_of, write_altered, write_manifest, write_with_file
from torture.indexes import PAIRS_EACH, Whole, whole_index
from torture.law import snapshot, timeless, touched, within
from torture.trials import LEAK, WRONG, Breach, Outcome, Suite
from torture.workplace import Record, Workplace

REFUSED = "refused"  # by check; a question may still be answered rightly by what is not touched by the lie
SAME = "refused or the same"
HARMLESS = "any answer"  # other data is no lie that could be told
MEMORY = 1500 << 20
DEADLINE = 20.0
RETIRED_AFTER = 400  # commands
# Every array whose numbers are positions or counts of positions: out of range they lead outside of memory.
PLACES = (
    "sketches.table", "sketches.key", "sketches.value", "sketches.granularity", "sketches.aggregate",
    "sketches.key_set", "sketches.value_start", "key_sets.size", "key_sets.block", "key_sets.order",
    "key_sets.member_start", "columns.start", "members.entry", "dictionary.place", "blocks.start",
    "blocks.set", "postings.block", "postings.entry", "starts.start",
)  # fmt: skip
NOT_NULL = ("name", "path", "rows", "bytes", "version", "source", "columns", "damage", "left_out", "remarks")
STARTS = ("columns.start", "blocks.start", "blocks.set", "starts.start")


class Lie(NamedTuple):
    """How an index lies, what is to come of it, and who writes it."""

    name: str
    wanted: str
    write: Callable[[Whole, Path, np.random.Generator], None]


def _in_arrays(alter: Callable[[Arrays, np.random.Generator], None]) -> Callable[..., None]:
    def write(whole: Whole, into: Path, rng: np.random.Generator) -> None:
        arrays, tables, names = contents_of(whole.index)
        alter(arrays, rng)
        write_altered(whole.index, into, arrays, tables, names)

    return write


def _somewhere(name: str, number: Callable[[np.ndarray[Any, Any]], Any]) -> Callable[..., None]:
    """Put one wrong number at some positions of an array."""

    def alter(arrays: Arrays, rng: np.random.Generator) -> None:
        array = arrays[name]
        some = rng.integers(array.size, size=int(rng.choice([1, 1, 3, array.size])))
        array[some] = number(array)

    return _in_arrays(alter)


def _largest(array: np.ndarray[Any, Any]) -> Any:
    return np.iinfo(array.dtype).max


def _just_above(array: np.ndarray[Any, Any]) -> Any:
    return min(int(array.max()) + 1_000_000, np.iinfo(array.dtype).max)


def _below(array: np.ndarray[Any, Any]) -> Any:
    return -1 if array.dtype.kind == "i" else np.iinfo(array.dtype).max


def _array_lies() -> Iterator[Lie]:
    for name in PLACES:
        for what, number in (("the largest", _largest), ("just above", _just_above), ("negative", _below)):
            yield Lie(f"{name}: {what}", REFUSED, _somewhere(name, number))
    for name in STARTS:
        yield Lie(
            f"{name}: descending", REFUSED, _in_arrays(lambda arrays, _, name=name: _reverse(arrays, name))
        )
        yield Lie(
            f"{name}: overlapping",
            SAME,
            _in_arrays(lambda arrays, rng, name=name: _overlap(arrays, name, rng)),
        )
    for name in (*PLACES, "keys.hash", "values.value", "key_sets.reach", "sketches.rows"):
        for kind in (np.float64, np.int8, np.uint8, np.float32, np.int32):
            yield Lie(
                f"{name}: as {np.dtype(kind).name}",
                HARMLESS if name in {"values.value", "key_sets.reach", "sketches.rows"} else SAME,
                _in_arrays(lambda arrays, _, name=name, kind=kind: _retype(arrays, name, kind)),
            )
    for number in (np.nan, np.inf, -np.inf, -1.0, 1e308):
        for name in ("key_sets.reach", "values.value", "sketches.minimum", "sketches.maximum"):
            yield Lie(f"{name}: {number}", HARMLESS, _in_arrays(_all(name, number)))
    for name in ("sketches.rows", "sketches.null_keys", "sketches.null_values", "sketches.not_finite"):
        for huge in (np.iinfo(np.int64).max, -1, np.iinfo(np.int64).min):
            yield Lie(f"{name}: {huge}", HARMLESS, _in_arrays(_all(name, huge)))
    yield Lie("key_sets.complete: 255", HARMLESS, _in_arrays(_all("key_sets.complete", 255)))
    yield Lie("keys.hash: descending", HARMLESS, _in_arrays(lambda arrays, _: _reverse(arrays, "keys.hash")))
    yield Lie("keys.hash: all the same", HARMLESS, _in_arrays(_all("keys.hash", 7)))
    yield Lie("members.entry: all the same", HARMLESS, _in_arrays(_all("members.entry", 0)))
    yield Lie("key_sets.order: not each once", SAME, _in_arrays(_all("key_sets.order", 0)))


def _reverse(arrays: Arrays, name: str) -> None:
    arrays[name] = arrays[name][::-1].copy()


def _overlap(arrays: Arrays, name: str, rng: np.random.Generator) -> None:
    array = arrays[name]
    if array.size > 2:
        at = int(rng.integers(1, array.size - 1))
        array[at], array[at - 1] = array[at - 1], array[at]


def _retype(arrays: Arrays, name: str, kind: Any) -> None:
    with np.errstate(all="ignore"):
        arrays[name] = arrays[name].astype(kind)


def _all(name: str, number: Any) -> Callable[[Arrays, np.random.Generator], None]:
    def alter(arrays: Arrays, _: np.random.Generator) -> None:
        arrays[name] = np.full_like(arrays[name], number)

    return alter


def _in_file(
    name: str, alter: Callable[[pa.Table], pa.Table | list[pa.Table]], **how: Any
) -> Callable[..., None]:
    """Write a file of arrays in another way than covary does."""

    def write(whole: Whole, into: Path, _: np.random.Generator) -> None:
        def rewrite(file: Path) -> None:
            altered = alter(pa.ipc.open_file(str(file)).read_all())
            tables = altered if isinstance(altered, list) else [altered]
            with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, tables[0].schema, **how) as writer:
                for table in tables:
                    writer.write_table(table)

        write_with_file(whole.index, into, f"{name}.arrow", rewrite)

    return write


def _with_nulls(table: pa.Table) -> pa.Table:
    columns = [
        pa.array([None, *table.column(name).to_pylist()[1:]], table.schema.field(name).type)
        for name in table.column_names
    ]
    return pa.table(columns, names=table.column_names)


def _as_text(table: pa.Table) -> pa.Table:
    return pa.table(
        [table.column(name).cast(pa.string()) for name in table.column_names], names=table.column_names
    )


def _zeros(table: pa.Table, count: int) -> pa.Table:
    return pa.table(
        [
            pa.array(np.zeros(count, table.schema.field(name).type.to_pandas_dtype()))
            for name in table.column_names
        ],
        names=table.column_names,
    )


FILES = (
    "sketches",
    "key_sets",
    "columns",
    "members",
    "values",
    "dictionary",
    "blocks",
    "keys",
    "postings",
    "starts",
)


def _file_lies() -> Iterator[Lie]:
    for name in FILES:
        yield Lie(
            f"{name}: shorter by one", REFUSED, _in_file(name, lambda table: table.slice(0, len(table) - 1))
        )
        yield Lie(f"{name}: empty", REFUSED, _in_file(name, lambda table: table.slice(0, 0)))
        yield Lie(
            f"{name}: in two batches", SAME, _in_file(name, lambda table: [table.slice(0, 1), table.slice(1)])
        )
        yield Lie(f"{name}: with a null", SAME, _in_file(name, _with_nulls))
        yield Lie(f"{name}: as text", REFUSED, _in_file(name, _as_text))
        yield Lie(f"{name}: without a column", REFUSED, _in_file(name, lambda table: table.select([])))
        yield Lie(
            f"{name}: another column's name",
            REFUSED,
            _in_file(name, lambda table: table.rename_columns([f"x{n}" for n in range(table.num_columns)])),
        )
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    for name in ("values", "postings", "sketches"):
        yield Lie(f"{name}: packed", SAME, _in_file(name, lambda table: table, options=packed))
        yield Lie(
            f"{name}: a bomb",
            SAME,
            _in_file(
                name,
                lambda table: _zeros(table, 60_000_000 if table.num_columns < 3 else 8_000_000),
                options=packed,
            ),
        )


def _in_frame(name: str, alter: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[..., None]:
    def write(whole: Whole, into: Path, _: np.random.Generator) -> None:
        arrays, tables, names = contents_of(whole.index)
        frames = {"tables": tables, "names": names}
        frames[name] = alter(frames[name])
        write_altered(whole.index, into, arrays, frames["tables"], frames["names"])

    return write


def _with_null_cells(tables: pl.DataFrame, column: str) -> pl.DataFrame:
    return tables.with_columns(pl.lit(None, tables.schema[column]).alias(column))


def _packed_otherwise(name: str, table: Callable[[], pa.Table], **how: Any) -> Callable[..., None]:
    """Write a file that describes in another way than covary does, packed as covary packs it."""

    def write(whole: Whole, into: Path, _: np.random.Generator) -> None:
        def rewrite(file: Path) -> None:
            made, sink = table(), pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, made.schema, **how) as writer:
                writer.write_table(made)
            file.write_bytes(pa.compress(sink.getvalue(), codec="zstd", asbytes=True))

        write_with_file(whole.index, into, f"{name}.arrow.zst", rewrite)

    return write


def _one_text(count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array(["x" * 200_000]))


def _same_text_in_view() -> pa.Table:
    text = pa.py_buffer(b"x" * 200_000)
    view = np.array([200_000, int.from_bytes(b"xxxx", "little"), 0, 0], np.int32)
    views = pa.py_buffer(np.tile(view, 1_000_000))
    return pa.table({"name": pa.Array.from_buffers(pa.string_view(), 1_000_000, [None, views, text])})


def _packed_bombs() -> Iterator[Lie]:
    packed = {"options": pa.ipc.IpcWriteOptions(compression="zstd")}
    old = {"options": pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)}
    texts = pa.large_string()
    for name in ("names", "tables"):
        ways: tuple[tuple[str, Callable[[], pa.Table], dict[str, Any]], ...] = (
            ("zeros", lambda: pa.table({"name": pa.array(np.zeros(90_000_000, np.int64))}), {}),
            ("zeros, packed twice", lambda: pa.table({"name": np.zeros(90_000_000, np.int64)}), packed),
            ("one text a million times", _same_text_in_view, {}),
            ("a dictionary", lambda: pa.table({"name": _one_text(20_000)}), {}),
            ("a packed dictionary", lambda: pa.table({"name": _one_text(20_000)}), packed),
            ("no text but nulls", lambda: pa.table({"name": pa.nulls(10**9)}), {}),
            ("an old format", lambda: pa.table({"name": pa.array(["x"], texts)}), old),
        )
        for what, table, how in ways:
            yield Lie(f"{name}: a bomb of {what}", REFUSED, _packed_otherwise(name, table, **how))


def _no_arrow(whole: Whole, into: Path, rng: np.random.Generator) -> None:
    write_with_file(whole.index, into, "names.arrow.zst", lambda file: _overwrite(file, rng.bytes(3000)))


def _overwrite(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def _frame_lies() -> Iterator[Lie]:
    yield Lie("tables: none", REFUSED, _in_frame("tables", lambda tables: tables.head(0)))
    yield Lie(
        "tables: one too few", REFUSED, _in_frame("tables", lambda tables: tables.head(tables.height - 1))
    )
    yield Lie("names: none", REFUSED, _in_frame("names", lambda names: names.head(0)))
    yield Lie(
        "names: numbers",
        REFUSED,
        _in_frame("names", lambda names: pl.DataFrame({"name": range(names.height)})),
    )
    yield Lie(
        "names: null",
        REFUSED,
        _in_frame(
            "names", lambda names: pl.DataFrame({"name": [None] * names.height}, schema={"name": pl.String})
        ),
    )
    yield Lie(
        "names: of another column",
        REFUSED,
        _in_frame("names", lambda names: names.rename({"name": "nom"}).with_columns(name=pl.lit(None))),
    )
    yield Lie(
        "names: escape codes",
        HARMLESS,
        _in_frame("names", lambda names: names.with_columns(name="\x1b]0;owned\x07\x1b[2J" + pl.col("name"))),
    )
    yield Lie(
        "tables: escape codes",
        HARMLESS,
        _in_frame(
            "tables",
            lambda tables: tables.with_columns(
                name="\x1b[31m\r\n" + pl.col("name"), path="\x1b[2J" + pl.col("path")
            ),
        ),
    )
    yield Lie(
        "tables: numbers for paths",
        SAME,
        _in_frame("tables", lambda tables: tables.with_columns(path=pl.lit(7))),
    )
    yield Lie(
        "tables: negative rows",
        HARMLESS,
        _in_frame("tables", lambda tables: tables.with_columns(rows=pl.lit(-(1 << 62)))),
    )
    yield Lie(
        "tables: null names",
        REFUSED,
        _in_frame("tables", lambda tables: tables.with_columns(name=pl.lit(None, pl.String))),
    )
    for column in ("name", "path", "rows", "columns", "problem", "source", "version"):
        yield Lie(
            f"tables: without {column}",
            SAME,
            _in_frame("tables", lambda tables, column=column: tables.drop(column)),
        )
    for column in NOT_NULL:
        yield Lie(
            f"tables: nulls for {column}",
            REFUSED,
            _in_frame("tables", lambda tables, column=column: _with_null_cells(tables, column)),
        )
    yield from _packed_bombs()
    yield Lie("names: no Arrow", REFUSED, _no_arrow)


def _says(alter: Callable[[dict[str, Any]], Any]) -> Callable[..., None]:
    return lambda whole, into, _: write_manifest(whole.index, into, alter)


def _set(*path: Any, to: Any) -> Callable[..., None]:
    def alter(content: dict[str, Any]) -> None:
        at: Any = content
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = to

    return _says(alter)


def _beside(act: Callable[[Path], None]) -> Callable[..., None]:
    def write(whole: Whole, into: Path, _: np.random.Generator) -> None:
        shutil.copytree(whole.index, into)
        act(into)

    return write


def _linked(name: str, to: str) -> Callable[[Path], None]:
    def act(index: Path) -> None:
        (index / name).unlink(missing_ok=True)
        (index / name).symlink_to(to)

    return act


def _holes(name: str, size: int) -> Callable[[Path], None]:
    def act(index: Path) -> None:
        with (index / name).open("ab") as file:
            file.truncate(size)

    return act


def _pipe(name: str) -> Callable[[Path], None]:
    def act(index: Path) -> None:
        (index / name).unlink(missing_ok=True)
        os.mkfifo(index / name)

    return act


def _manifest_lies() -> Iterator[Lie]:
    segment = ("segments", 0)
    for name in ("../../outside", "/etc", "..", "a/../../b", "", "x" * 5000, "ａｂ", 7, None):
        yield Lie(f"manifest: a segment named {str(name)[:20]!r}", REFUSED, _set(*segment, "name", to=name))
    for removed in ([1 << 62], [-1], list(range(200_000)), ["0"], "all", [0.5], [1 << 70]):
        yield Lie(f"manifest: removed {str(removed)[:12]}", SAME, _set(*segment, "removed", to=removed))
    for size in (0, -1, 1 << 62, "1024", None, 1e300, True):
        yield Lie(f"manifest: sketches of {size!r}", HARMLESS, _set("config", "size", to=size))
    for aggregates in (["nonsense"], [], "mean", [7], ["mean"] * 100_000):
        yield Lie(
            f"manifest: aggregates {str(aggregates)[:20]}",
            HARMLESS,
            _set("config", "aggregates", to=aggregates),
        )
    for field in ("hash", "normaliser"):
        yield Lie(f"manifest: {field} of nonsense", REFUSED, _set("config", field, to="nonsense\x1b[2J"))
    yield Lie("manifest: another format", REFUSED, _set("format", to=1 << 80))
    yield Lie("manifest: format text", REFUSED, _set("format", to="\x1b[31m6"))
    yield Lie(
        "manifest: a deep one",
        REFUSED,
        _beside(lambda index: _overwrite(index / "manifest.json", b"[" * 200_000)),
    )
    yield Lie(
        "manifest: a long number",
        REFUSED,
        _beside(lambda index: _overwrite(index / "manifest.json", b'{"format": ' + b"9" * 200_000 + b"}")),
    )
    yield Lie("manifest: 20 GB of holes", REFUSED, _beside(_holes("manifest.json", 20 << 30)))
    yield Lie("manifest: endless", REFUSED, _beside(_linked("manifest.json", "/dev/zero")))
    yield Lie("manifest: a pipe", REFUSED, _beside(_pipe("manifest.json")))
    yield Lie("history: endless", SAME, _beside(_linked("history.jsonl", "/dev/zero")))
    yield Lie("history: 20 GB of holes", SAME, _beside(_holes("history.jsonl", 20 << 30)))
    yield Lie("history: a pipe", SAME, _beside(_pipe("history.jsonl")))
    yield Lie("lock: a pipe", SAME, _beside(_pipe("lock")))
    yield Lie("lock: 20 GB of holes", SAME, _beside(_holes("lock", 20 << 30)))


@cache
def lies() -> tuple[Lie, ...]:
    """Every lie, in an order of its own."""
    return (*_array_lies(), *_file_lies(), *_frame_lies(), *_manifest_lies())


def _run_lies(workplace: Workplace, numbers: Iterator[int]) -> Iterator[Outcome]:
    whole = whole_index(workplace)
    for trial in numbers:
        lie = lies()[trial % len(lies())]
        record = Record(workplace, trial, lie.name)
        index = workplace.empty("trial") / "index"
        lie.write(whole, index, workplace.rng(trial))
        before = snapshot(whole.index)
        record.breaches += _asked(record, whole, index, lie)
        record.breaches += touched(before, snapshot(whole.index), may_add=False)
        for ran in record.ran:
            record.breaches += within(ran, MEMORY)
        workplace.kept["calm"] = not record.breaches
        yield record.outcome()


def _asked(record: Record, whole: Whole, index: Path, lie: Lie) -> list[Breach]:
    breaches = []
    desk = record.workplace.desk
    if desk.ran > RETIRED_AFTER or not place_is_calm(record.workplace):
        desk.close()  # what a lie spoils in memory is to be laid at it alone
    commands = [("info", str(index), "--json"), ("history", str(index))]
    if record.trial % PAIRS_EACH == 0:
        commands.append(("pairs", str(index), "--json"))
    questions = [question for question in whole.questions if question[0] == "query"]
    truth = dict(zip(whole.questions, whole.answers, strict=True))
    rightly = _answers_of_one_segment(record.workplace, whole) if "manifest" not in lie.name else truth
    for question in questions:
        words = [str(index) if word == "INDEX" else word for word in question]
        ran = record.run(desk, *words, deadline=DEADLINE)
        same = timeless(ran).replace(str(index), "INDEX") in (rightly[question], truth[question])
        if lie.wanted != HARMLESS and ran.code == 0 and not same:
            breaches.append(Breach(WRONG, f"{lie.name}: believed; {question[0]} answers something else"))
    checked = record.run(desk, "check", str(index), deadline=DEADLINE)
    if lie.wanted == REFUSED and checked.code == 0:
        breaches.append(Breach(WRONG, f"{lie.name}: check finds nothing wrong"))
    for command in commands:
        record.run(desk, *command, deadline=DEADLINE)
    record.run(desk, "remove", str(index), "t3", deadline=DEADLINE)
    record.run(desk, "compact", str(index), deadline=DEADLINE)
    record.run(desk, *(str(index) if word == "INDEX" else word for word in questions[0]))
    return breaches


def place_is_calm(workplace: Workplace) -> bool:
    """Whether the trial before broke nothing."""
    calm: bool = workplace.kept.get("calm", True)
    return calm


def _answers_of_one_segment(workplace: Workplace, whole: Whole) -> dict[tuple[str, ...], str]:
    """What the first segment of the undamaged index answers alone."""
    known: dict[tuple[str, ...], str] | None = workplace.desks.kept.get("one segment")
    if known is None:
        index = workplace.empty("one") / "index"
        arrays, tables, names = contents_of(whole.index)
        write_altered(whole.index, index, arrays, tables, names)
        known = {}
        for question in whole.questions:
            ran = workplace.desk(*(str(index) if word == "INDEX" else word for word in question))
            known[question] = timeless(ran).replace(str(index), "INDEX")
        workplace.desks.kept["one segment"] = known
    return known


def _run_sources(workplace: Workplace, numbers: Iterator[int]) -> Iterator[Outcome]:
    """Sources that come with an index are neither read nor run unless this user gave them."""
    whole = whole_index(workplace)
    with Listening() as (port, heard):
        for trial in numbers:
            victim = workplace.empty("victim")
            (victim / "papers").mkdir()
            (victim / "papers" / "thesis.txt").write_text("years of work")
            pl.DataFrame({"place": [f"p{n}" for n in range(50)], "secret": range(50)}).write_csv(
                victim / "own.csv"
            )
            sources = hostile_sources(victim, port)
            name, source = sources[trial % len(sources)]
            record = Record(workplace, trial, f"a source that {name}")
            index = workplace.empty("trial") / "index"
            write_manifest(
                whole.index, index, lambda content, source=source: content.update(sources=[source])
            )
            before = snapshot(victim)
            heard.clear()
            record.run(workplace.spark_desk, "index", "--into", str(index), deadline=120)
            record.run(workplace.desk, "info", str(index))
            record.breaches += touched(before, snapshot(victim), may_add=False)
            if heard:
                record.breaches.append(
                    Breach(LEAK, f"a source that came with the index was asked: {heard[0]!r}")
                )
            info = record.run(workplace.desk, "info", str(index), "--json")
            if b'"secret"' in info.out:
                record.breaches.append(Breach(LEAK, "a file that only the index named was read"))
            # The same typed by the user: a command is no source, whoever names it.
            if source.startswith("spark:") and not source.startswith("spark:SELECT"):
                record.run(
                    workplace.spark_desk,
                    "index",
                    source,
                    "--into",
                    str(workplace.empty("typed") / "i"),
                    deadline=120,
                )
                record.breaches += touched(before, snapshot(victim), may_add=False)
            yield record.outcome()


def hostile_sources(victim: Path, port: int) -> list[tuple[str, str]]:
    """Sources that do harm when they are read, and what harm."""
    papers = victim / "papers"
    return [
        ("overwrites a folder", f"spark:INSERT OVERWRITE DIRECTORY '{papers}' USING csv SELECT 1"),
        (
            "overwrites, behind a comment",
            f"spark:/* SELECT */ INSERT OVERWRITE DIRECTORY '{papers}' USING csv SELECT 1",
        ),
        (
            "overwrites, in a WITH",
            f"spark:WITH a AS (SELECT 1) INSERT OVERWRITE DIRECTORY '{papers}' USING csv SELECT * FROM a",
        ),
        ("makes a table", f"spark:CREATE TABLE t USING csv LOCATION '{victim}/made' AS SELECT 1"),
        ("drops a table", "spark:DROP TABLE IF EXISTS t"),
        ("adds a jar", f"spark:ADD JAR '{victim}/own.csv'"),
        ("sets", "spark:SET spark.sql.shuffle.partitions=1"),
        ("reads a file by a query", f"spark:SELECT * FROM csv.`{victim}/own.csv`"),
        ("reads by a table function", f"spark:SELECT * FROM read_files('{victim}/own.csv')"),
        ("calls Java", "spark:SELECT java_method('java.lang.Runtime', 'getRuntime')"),
        ("is two statements", f"spark:SELECT 1; INSERT OVERWRITE DIRECTORY '{papers}' USING csv SELECT 1"),
        ("asks a server", f"http://127.0.0.1:{port}/a.csv"),
        ("asks a database", f"postgresql://127.0.0.1:{port}/db"),
        ("asks an object store", f"s3://127.0.0.1:{port}/bucket"),
        ("reads a file", str(victim / "own.csv")),
        ("reads a folder", str(victim)),
        ("is a chain of file systems", f"simplecache::http://127.0.0.1:{port}/a.csv"),
        ("is a chain that reads", f"filecache::file://{victim}/own.csv"),
        ("asks a dialect", f"mysql://127.0.0.1:{port}/db"),
        ("makes a database file", f"sqlite:///{victim}/made.db"),
        ("makes a DuckDB file", f"duckdb:///{victim}/made.duckdb"),
    ]


class Listening:
    """A port on loopback that notes whoever asks, and hangs up."""

    def __enter__(self) -> tuple[int, list[bytes]]:
        self.heard: list[bytes] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()
        return self.socket.getsockname()[1], self.heard

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1.0)
                try:
                    self.heard.append(connection.recv(200))
                except OSError:
                    self.heard.append(b"")

    def __exit__(self, *_: object) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def suites() -> list[Suite]:
    """Lies in the contents of an index, and sources that come along with one."""
    return [
        Suite(
            "lies",
            len(lies()),
            8.0,
            _run_lies,
            "structured lies under right checksums: numbers out of range, other types, bombs, odd manifests",
        ),
        Suite(
            "sources",
            21,
            1.0,
            _run_sources,
            "indexes whose sources do harm when they are read again, or run",
        ),
    ]
