"""Oversized and hostile tables among good ones: bounded time and memory, named, no harm to the rest."""

import bz2
import gzip
import json
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from torture.fuzz import truth_of
from torture.goodtables import GOOD, PLACES, deep_json, delta_table, frame, json_line, write_good
from torture.law import answered, same_answers, snapshot, touched, unnamed, within
from torture.trials import LARGE, LEAK, WRONG, Breach, Outcome, Suite
from torture.workplace import Record, Workplace

Rng = np.random.Generator
# A view may take half an hour by default, for which nobody here waits: what matters is that it is ended.
SECONDS_A_TABLE, DEADLINE = 60, 240.0
MEMORY = 1500 << 20
INDEX_FEW, INDEX_TIMES = 24 << 20, 5  # how large an index may be: so much, or so many times its data
LONGEST_ARGUMENT = 100_000
ASKED_WITH = 2  # hostile tables of each trial
PATIENCE, GRACE = 20.0, 10.0  # seconds before Ctrl-C is pressed, and until that must have ended a command
SECRET = "hostile-secret-6c1f"


class Around(NamedTuple):
    """Where a hostile thing is put: a folder that is indexed, and one outside of it."""

    data: Path
    outside: Path
    rng: Rng


Judge = Callable[["Seen"], list[Breach]]


class Seen(NamedTuple):
    """What an index says of the tables of a hostile folder."""

    around: Around
    tables: dict[str, dict[str, Any]]
    text: bytes

    def of(self, name: str) -> list[dict[str, Any]]:
        """The tables whose paths hold this name."""
        return [table for path, table in self.tables.items() if name in path]

    def said(self, name: str) -> bool:
        """Whether something was said of a table: that it was skipped, damaged or sketched in part."""
        return any(table["problem"] or table["damage"] or table["left_out"] for table in self.of(name))


class Hostile(NamedTuple):
    """One hostile thing, and what has to be said of it."""

    name: str
    make: Callable[[Around], None]
    judge: Judge | None = None
    meanwhile: Callable[[Around], Any] | None = None


def _lost_rows(name: str, rows: int) -> Judge:
    """Rows may be lost only if that is said."""

    def judge(seen: Seen) -> list[Breach]:
        read = max((table["rows"] for table in seen.of(name)), default=0)
        if seen.said(name) or read >= rows:
            return []
        return [Breach(WRONG, f"{rows - read} of {rows} rows of {name} lost and not said")]

    return judge


def _columns(name: str, wanted: str) -> Judge:
    """A column has its right name, or it is said that the encoding is not known."""

    def judge(seen: Seen) -> list[Breach]:
        names = [column["name"] for table in seen.of(name) for column in table["columns"]]
        if wanted in names or seen.said(name):
            return []
        return [Breach(WRONG, f"{name}: columns {names[:3]}, not {wanted!r}, and no word")]

    return judge


def _unread(seen: Seen) -> list[Breach]:
    return [Breach(LEAK, "a file outside was read")] if SECRET.encode() in seen.text else []


def _named(*names: str) -> Judge:
    def judge(seen: Seen) -> list[Breach]:
        locations = "\n".join(f"{path}#{table['member']}" for path, table in seen.tables.items())
        return [Breach(WRONG, f"{name!r} is not named") for name in names if name not in locations]

    return judge


def _lines(rows: int, cell: Callable[[int], str] = lambda row: str(row * row % 97)) -> list[str]:
    return ["place,y", *(f"place {row},{cell(row)}" for row in range(rows))]


def _text(name: str, lines: list[str] | str | bytes) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        text = "\n".join(lines) + "\n" if isinstance(lines, list) else lines
        (around.data / name).write_bytes(text.encode() if isinstance(text, str) else text)

    return make


# --- Quotes and rows


def _stray_quotes() -> Iterator[Hostile]:
    for row in (2, 150, 299):
        lines = _lines(300)
        lines[row] = f'"{lines[row]}'
        yield Hostile(f"a stray quote in row {row}", _text("stray.csv", lines), _lost_rows("stray", 299))
    lines = _lines(300)
    lines[100] = f'"{lines[100]}'
    lines[200] = f'{lines[200]}"'
    yield Hostile("a cell that swallows a hundred lines", _text("stray.csv", lines), _lost_rows("stray", 298))
    lines = _lines(300)
    lines[100] = 'place 100,"7'
    lines[101] = 'place 101,7"'
    yield Hostile("a cell that swallows a line", _text("stray.csv", lines), _lost_rows("stray", 299))
    lines = [line if number % 5 else f"{line},7,8" for number, line in enumerate(_lines(300))]
    lines[0] = "place,y"
    yield Hostile("rows that are too long", _text("ragged.csv", lines), _ragged)
    lines = [line if number % 5 else line.partition(",")[0] for number, line in enumerate(_lines(300))]
    lines[0] = "place,y"
    yield Hostile("rows that are too short", _text("ragged.csv", lines), _ragged)
    yield Hostile("nothing but quotes", _text("quotes.csv", b'"' * 3_000_000))
    yield Hostile("quotes and delimiters", _text("quotes.csv", b"a,b\n" + b'",' * 1_500_000))
    yield Hostile("nothing but line ends", _text("ends.csv", b"\n" * 5_000_000))
    yield Hostile(
        "returns without line feeds",
        _text("ends.csv", "\r".join(_lines(300)) + "\r"),
        _lost_rows("ends", 300),
    )


def _ragged(seen: Seen) -> list[Breach]:
    return [] if seen.said("ragged") else [Breach(WRONG, "60 rows of the wrong length, and no word")]


# --- Size


def _long_line(size: int) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        with (around.data / "long.csv").open("wb") as file:
            file.write(b"place,y\nplace 1,1\n")
            for _ in range(size >> 20):
                file.write(b"x,1 " * (1 << 18))

    return make


def _wide(columns: int, rows: int) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        with (around.data / "wide.csv").open("w") as file:
            file.write(",".join(["place", *(f"c{number}" for number in range(columns - 1))]) + "\n")
            for row in range(rows):
                cells = around.rng.integers(0, 99, columns - 1)
                file.write(f"place {row}," + ",".join(map(str, cells.tolist())) + "\n")

    return make


def _wide_parquet(columns: int, rows: int) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        cells = {f"c{number}": around.rng.normal(size=rows) for number in range(columns)}
        pl.DataFrame({"place": [f"place {row}" for row in range(rows)], **cells}).write_parquet(
            around.data / "wide.parquet"
        )

    return make


def _many_keys(around: Around) -> None:
    rng, rows = around.rng, 400
    keys = {
        f"k{number}": [f"code {cell}" for cell in rng.integers(0, 20 + number, rows)] for number in range(300)
    }
    pl.DataFrame({**keys, **{f"v{n}": rng.normal(size=rows) for n in range(300)}}).write_csv(
        around.data / "keys.csv"
    )


def _dictionary(cell: int, rows: int, kind: str) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        words = [f"{number:04}" + "x" * cell for number in range(3)]
        slots = pa.array(np.arange(rows) % 3, pa.int32())
        text = pa.DictionaryArray.from_arrays(slots, pa.array(words))
        table = pa.table({"place": text, "y": pa.array(around.rng.normal(size=rows))})
        if kind == "parquet":
            pyarrow.parquet.write_table(table, around.data / "dictionary.parquet", compression="zstd")
        else:
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            with pa.ipc.new_file(around.data / "dictionary.arrow", table.schema, options=options) as writer:
                writer.write_table(table)

    return make


def _zeros_parquet(around: Around) -> None:
    zeros = pa.array(np.zeros(100_000_000, np.int8))
    pyarrow.parquet.write_table(
        pa.table({"place": zeros, "y": zeros}), around.data / "zeros.parquet", compression="zstd"
    )


def _zeros_arrow(around: Around) -> None:
    zeros = pa.array(np.zeros(60_000_000))
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(
        around.data / "zeros.arrow", pa.schema([("y", pa.float64())]), options=options
    ) as writer:
        writer.write_table(pa.table({"y": zeros}))


def _holes(name: str) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        with (around.data / name).open("wb") as file:
            file.write(b"place,y\nplace 1,1\n" if name.endswith("csv") else b'{"place": "a", "y": 1}\n')
            file.truncate(40 << 30)

    return make


def _size() -> Iterator[Hostile]:
    yield Hostile("a line of 8 MB", _long_line(8 << 20))
    yield Hostile("a line of 100 MB", _long_line(100 << 20))
    yield Hostile("20,000 columns", _wide(20_000, 30))
    yield Hostile("100,000 columns", _wide(100_000, 3))
    yield Hostile("5,000 columns of Parquet", _wide_parquet(5_000, 300))
    yield Hostile("300 keys and 300 numbers", _many_keys)
    yield Hostile("a dictionary of three long words, Parquet", _dictionary(100_000, 80_000, "parquet"))
    yield Hostile("a dictionary of three longer words, Parquet", _dictionary(2_000_000, 4_000, "parquet"))
    yield Hostile("a dictionary of three long words, Arrow", _dictionary(100_000, 80_000, "arrow"))
    yield Hostile("a hundred million zeros, Parquet", _zeros_parquet)
    yield Hostile("480 MB of zeros, packed Arrow", _zeros_arrow)
    yield Hostile("40 GB of holes, CSV", _holes("holes.csv"))
    yield Hostile("40 GB of holes, JSON Lines", _holes("holes.jsonl"))
    yield Hostile(
        "a header of 4 MB in one name", _text("header.csv", "place," + "y" * 4_000_000 + "\na,1\nb,2\n")
    )
    many = json_line(**{f"c{number}": number for number in range(60_000)})
    yield Hostile("a line of JSON with 60,000 names", _text("names.jsonl", many * 5))
    other = b"".join(
        json_line(place=f"p{row}", **{f"c{row}-{n}": n for n in range(10)}) for row in range(6_000)
    )
    yield Hostile("lines of JSON each with other names", _text("names.jsonl", other))
    yield Hostile(
        "a number of a million digits",
        _text("digits.csv", _lines(50, lambda row: "7" * 1_000_000 if row == 9 else "7")),
    )
    digits = b'{"place": "a", "y": ' + b"7" * 1_000_000 + b"}\n"
    yield Hostile(
        "a JSON number of a million digits", _text("digits.jsonl", json_line(place="b", y=1) * 20 + digits)
    )


# --- Cells that cost more than their length


QUADRATIC = (
    ".",
    ",",
    "'",
    '"',
    "(",
    "[",
    " ",
    "-",
    "+",
    "$",
    "%",
    "1,",
    "1.",
    "1 ",
    "1/",
    ":",
    "0",
    "\u00a0",
    "٫",
    "e",
    "1e",
    "T",
    "n/a ",
)


def _cells(mark: str, kind: str, length: int) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        cell = (mark * length)[:length]
        cells = [cell if row % 10 == 3 else str(row) for row in range(40)]
        made = pl.DataFrame(
            {"place": [f"place {row}" for row in range(40)], "y": cells, cell[:30] or "z": cells}
        )
        if kind == "parquet":
            made.write_parquet(around.data / "cells.parquet")
        else:
            made.write_csv(around.data / "cells.csv", quote_style="always")

    return make


def _quadratic() -> Iterator[Hostile]:
    for number, mark in enumerate(QUADRATIC):
        kind = ("parquet", "csv")[number % 2]
        yield Hostile(f"cells of {mark!r}, {kind}", _cells(mark, kind, 1 << 20))
    yield Hostile("cells of 16,000 characters", _cells("1,1.", "parquet", 16_000))
    yield Hostile("a header of brackets", _text("header.csv", "([{" * 20_000 + ",y\na,1\nb,2\nc,3\n"))


# --- Packed


def _zip_of(*members: tuple[str, bytes], name: str = "odd.zip") -> Callable[[Around], None]:
    def make(around: Around) -> None:
        import warnings

        with (
            warnings.catch_warnings(),
            zipfile.ZipFile(around.data / name, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            warnings.simplefilter("ignore")  # of two members of one name
            for member, content in members:
                archive.writestr(member, content)

    return make


def _bomb(kind: str, gigabytes: int) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        block = b"\0" * (16 << 20) if kind != "lines" else b"place 1,1\n" * (1 << 20)
        times = (gigabytes << 30) // len(block)
        if kind == "zip":
            with (
                zipfile.ZipFile(around.data / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive,
                archive.open("bomb.csv", "w", force_zip64=True) as member,
            ):
                for _ in range(times):
                    member.write(block)
            return
        packer, suffix = {
            "gz": (gzip.compress, "gz"),
            "bz2": (bz2.compress, "bz2"),
            "zst": (lambda content: pa.compress(content, "zstd", asbytes=True), "zst"),
            "lines": (gzip.compress, "gz"),
        }[kind]
        head = packer(b"place,y\n")
        (around.data / f"bomb.csv.{suffix}").write_bytes(head + packer(block) * times)

    return make


def _lying_zip(around: Around) -> None:
    """A zip whose members all claim to be where the first is, and to be small."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", "\n".join(_lines(2_000_000, lambda row: "1")))
    content = bytearray(packed.getvalue())
    at = content.rfind(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", 10)
    (around.data / "lying.zip").write_bytes(content)


def _encrypted_zip(around: Around) -> None:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.csv", "\n".join(_lines(300)))
    content = bytearray(packed.getvalue())
    for mark, position in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.find(mark) + position] |= 1
    (around.data / "locked.zip").write_bytes(content)


def _packed() -> Iterator[Hostile]:
    for kind, size in (("zip", 2), ("gz", 20), ("bz2", 20), ("zst", 20), ("lines", 20)):
        yield Hostile(f"a bomb of {size} GB: {kind}", _bomb(kind, size))
    good = "\n".join(_lines(100)).encode()
    for name in (
        "../up.csv",
        "../../../../tmp/up.csv",
        "/etc/up.csv",
        "..\\up.csv",
        "C:\\up.csv",
        "a/../../up.csv",
    ):
        yield Hostile(f"a zip with {name}", _zip_of((name, good), ("plain.csv", good)), _named("up.csv"))
    yield Hostile(
        "a zip with two of one name",
        _zip_of(("a.csv", good), ("a.csv", good.replace(b",1", b",2"))),
        _two_of_one_name,
    )
    yield Hostile(
        "a zip of 20,000 members", _zip_of(*((f"m{n}.csv", b"place,y\na,1\nb,2\n") for n in range(20_000)))
    )
    yield Hostile("a zip in a zip in a zip", _zip_of(("in.zip", _zipped(_zipped(good)))))
    yield Hostile(
        "a zip with names of escape codes", _zip_of(("\x1b[2J\x1b]0;owned\x07.csv", good), ("a\nb.csv", good))
    )
    yield Hostile("a zip that lies about a size", _lying_zip)
    yield Hostile("a zip that asks for a password", _encrypted_zip, _named("locked"))
    raw = zlib.compress(good)
    for suffix in (".gz", ".bz2", ".zst", ".csv.gz", ".csv.bz2", ".csv.zst", ".zip"):
        yield Hostile(
            f"a broken {suffix}", _text(f"broken{suffix}", _mark(suffix) + raw[:80]), _named("broken")
        )
        yield Hostile(f"a {suffix} cut in the middle", _cut_packed(suffix), _cut_said)


def _zipped(content: bytes) -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in.csv", content)
    return packed.getvalue()


def _mark(suffix: str) -> bytes:
    return {".gz": b"\x1f\x8b\x08", ".bz2": b"BZh9", ".zst": b"\x28\xb5\x2f\xfd", ".zip": b"PK\x03\x04"}[
        Path(suffix).suffix or suffix
    ]


def _cut_packed(suffix: str) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        rows = "\n".join(_lines(20_000, lambda row: str(hash((row, 1)) % 100_003))).encode()
        way = suffix.rpartition(".")[2]
        packer = {
            "gz": gzip.compress,
            "bz2": bz2.compress,
            "zst": lambda text: pa.compress(text, "zstd", asbytes=True),
            "zip": _zipped,
        }[way]
        content = packer(rows)
        (around.data / f"short{suffix}").write_bytes(content[: len(content) // 2])

    return make


def _cut_said(seen: Seen) -> list[Breach]:
    return [] if seen.said("short") else [Breach(WRONG, "half of a packed file is missing, and no word")]


def _two_of_one_name(seen: Seen) -> list[Breach]:
    tables = [path for path in seen.tables if "odd.zip" in path]
    return (
        []
        if len(tables) > 1 or seen.said("odd.zip")
        else [Breach(WRONG, "two members of one name became one table, and no word")]
    )


# --- Text that is nested, or written in another alphabet


CYRILLIC, CHINESE = "Продажи", "销售额"
ENCODINGS = (
    ("cp1251", CYRILLIC), ("koi8-r", CYRILLIC), ("gb18030", CHINESE), ("utf-16-le", CYRILLIC),
    ("utf-16-be", CHINESE),
)  # fmt: skip


def _encoded(encoding: str, word: str) -> Callable[[Around], None]:
    lines = [f"город,{word}" if word == CYRILLIC else f"城市,{word}"]
    towns = ["Москва", "Казань", "Омск", "Пермь"] if word == CYRILLIC else ["北京", "上海", "广州", "深圳"]
    lines += [f"{towns[row % 4]} {row},{row * 7 % 31}" for row in range(300)]
    return _text("encoded.csv", "\n".join(lines).encode(encoding))


def _texts() -> Iterator[Hostile]:
    for levels in (900, 5_000, 100_000, 5_000_000):
        good = b"".join(json_line(place=town, y=number) for number, town in enumerate(PLACES))
        text = (
            good[: len(good) // 2].rpartition(b"\n")[0]
            + b"\n"
            + deep_json(levels)
            + good[len(good) // 2 :].partition(b"\n")[2]
        )
        yield Hostile(
            f"a line of JSON {levels:,} levels deep", _text("deep.jsonl", text), _lost_rows("deep", 198)
        )
    yield Hostile("deep JSON alone", _text("deep.jsonl", deep_json(300_000)))
    yield Hostile(
        "deep JSON as the first line",
        _text("deep.jsonl", deep_json(300_000) + json_line(place="a", y=1) * 50),
    )
    yield Hostile(
        "objects within objects", _text("deep.jsonl", b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"\n")
    )
    for encoding, word in ENCODINGS:
        yield Hostile(
            f"text in {encoding} that does not say so", _encoded(encoding, word), _columns("encoded", word)
        )
    yield Hostile(
        "UTF-8 with halves of characters",
        _text("halves.csv", b"place,y\n" + b"".join(b"\xc3 %d,%d\n" % (n, n) for n in range(300))),
    )
    yield Hostile(
        "a NUL in each cell",
        _text("nul.csv", b"place,y\n" + b"".join(b"p\0%d,%d\n" % (n, n) for n in range(300))),
        _lost_rows("nul", 300),
    )
    yield Hostile(
        "names that are SQL",
        _text("sql.csv", ['"; DROP TABLE x; --","$(touch pwned)","`id`"', *("a,1,2" for _ in range(50))]),
    )
    yield Hostile(
        "names that are the same",
        _text("same.csv", ["y,y,y,,,", *(f"p{n},{n},{n},1,2,3" for n in range(99))]),
    )
    yield Hostile(
        "names of escape codes",
        _text("codes.csv", ["\x1b[2Jplace,\x1b]0;owned\x07y", *(f"\x1b[31mp{n},{n}" for n in range(99))]),
    )


# --- Things that are no files, and files with odd names


def _special(around: Around) -> None:
    os.mkfifo(around.data / "pipe.csv")
    (around.data / "zero.csv").symlink_to("/dev/zero")
    (around.data / "random.jsonl").symlink_to("/dev/urandom")
    (around.data / "stdin.csv").symlink_to("/dev/stdin")
    (around.data / "memory.csv").symlink_to("/proc/self/mem")
    (around.data / "tty.csv").symlink_to("/dev/tty")
    (around.data / "loop.csv").symlink_to("loop.csv")
    (around.data / "round").mkdir()
    (around.data / "round" / "again").symlink_to(around.data / "round")
    (around.data / "up").symlink_to(around.data)
    (around.data / "nothing.csv").symlink_to(around.outside / "not there.csv")
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(around.data)  # the path of a socket must be short
    server.bind("socket.csv")
    os.chdir(here)
    server.close()
    if os.geteuid() == 0:
        with suppress(OSError):
            os.mknod(around.data / "device.csv", 0o20600, os.makedev(1, 5))


def _odd_names(around: Around) -> None:
    good = "\n".join(_lines(60))
    names = [
        b"new\nline.csv", b"\x1b[2J\x1b]0;owned\x07.csv", b"not \xff\xfe utf-8.csv", b"-rf.csv",
        b"--into.csv", b"%s%n.csv", b"a#b.csv", b"[glob]*.csv", b"$(touch pwned).csv", b"quote'\".csv",
        b"; rm -rf ~.csv",
        "\u202egnp.csv".encode(), b"x" * 250 + b".csv", b" .csv", b"tab\t.csv", b"back\\slash.csv",
        "\u00e9.csv".encode(),
        "e\u0301.csv".encode(), b"a=b&password=x.csv",
    ]  # fmt: skip
    for name in names:
        with open(os.path.join(os.fsencode(around.data), name), "w") as file:
            file.write(good)
    deep = around.data
    for _ in range(100):
        deep /= "deeper"
    deep.mkdir(parents=True)
    (deep / "bottom.csv").write_text(good)


def _many_files(around: Around) -> None:
    for number in range(3_000):
        (around.data / f"tiny{number}.csv").write_text("place,y\na,1\nb,2\n" if number % 3 else "")


def _own_manifest(around: Around) -> None:
    (around.data / "segments").mkdir()
    (around.data / "manifest.json").write_text('{"name": "an app of ours"}')
    (around.data / "segments" / "east.csv").write_text("\n".join(_lines(100)))


def _own_manifest_below(around: Around) -> None:
    below = around.data / "below"
    (below / "segments").mkdir(parents=True)
    (below / "manifest.json").write_text('{"format": 7}')
    (below / "west.csv").write_text("\n".join(_lines(100)))


def _in_contents(*names: str) -> Judge:
    def judge(seen: Seen) -> list[Breach]:
        return [Breach(WRONG, f"{name} was passed over") for name in names if not seen.of(name)]

    return judge


def _places() -> Iterator[Hostile]:
    yield Hostile("pipes, devices, sockets and loops", _special)
    yield Hostile("odd names", _odd_names)
    yield Hostile("3,000 tiny and empty files", _many_files)
    yield Hostile("a data folder with a manifest and segments", _own_manifest, _in_contents("east.csv"))
    yield Hostile(
        "a folder below with a manifest and segments", _own_manifest_below, _in_contents("west.csv")
    )


# --- Databases and lakehouses


def _sqlite(*statements: str) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        connection = sqlite3.connect(around.data / "hostile.sqlite")
        connection.execute("CREATE TABLE good (place TEXT, y REAL)")
        connection.executemany(
            "INSERT INTO good VALUES (?, ?)", [(town, n * n % 97) for n, town in enumerate(PLACES)]
        )
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    return make


def _duckdb(statement: str) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        import duckdb

        secret = around.outside / "secret.csv"
        secret.write_text("place,y\n" + "".join(f"{SECRET} {n},{n}\n" for n in range(50)))
        connection = duckdb.connect(str(around.data / "hostile.duckdb"))
        connection.execute(
            "CREATE TABLE good AS SELECT 'place ' || i AS place, i * i % 97 AS y FROM range(200) t(i)"
        )
        connection.execute(statement.format(secret=secret))
        connection.close()

    return make


def _delta_outside(path: str) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        table = around.data / "delta"
        delta_table(table, around.rng)
        rows = frame(around.rng, 100).with_columns(place=pl.lit(f"{SECRET} ") + pl.col("place"))
        rows.write_parquet(around.outside / "secret.parquet")
        size = (around.outside / "secret.parquet").stat().st_size
        relative = os.path.relpath(around.outside / "secret.parquet", table)
        where = path.format(
            relative=relative,
            absolute=around.outside / "secret.parquet",
            quoted=relative.replace("..", "%2e%2e"),
        )
        add = {"path": where, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
        last = max((table / "_delta_log").glob("*.json"))
        (last.with_name(f"{int(last.stem) + 1:020}.json")).write_text(json.dumps({"add": add}) + "\n")

    return make


def _databases() -> Iterator[Hostile]:
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    yield Hostile(
        "an endless view",
        _sqlite(f"CREATE VIEW endless AS {count} SELECT 'p' || i AS place, i AS y FROM n"),
        _named("endless"),
    )
    yield Hostile(
        "a view that never gives a row",
        _sqlite(f"CREATE VIEW silent AS {count} SELECT 'p' AS place, i AS y FROM n WHERE i < 0"),
        _named("silent"),
    )
    yield Hostile(
        "a view of huge cells",
        _sqlite(
            "CREATE VIEW huge AS SELECT hex(zeroblob(300000000)) AS place, 1 AS y UNION ALL SELECT 'a', 2"
        ),
    )
    yield Hostile(
        "a view on itself",
        _sqlite(
            "CREATE VIEW a AS SELECT 1 AS place, 2 AS y",
            "PRAGMA writable_schema=ON",
            "UPDATE sqlite_schema SET sql='CREATE VIEW a AS SELECT * FROM a' WHERE name='a'",
        ),
    )
    yield Hostile(
        "a view that joins itself a million times",
        _sqlite(
            "CREATE VIEW big AS SELECT a.place, sum(a.y * b.y * c.y * d.y) AS y "
            "FROM good a, good b, good c, good d GROUP BY a.place"
        ),
    )
    yield Hostile(
        "a view that loads code",
        _sqlite("CREATE VIEW loads AS SELECT load_extension('/tmp/evil.so') AS place, 1 AS y"),
    )
    yield Hostile(
        "tables with names that are SQL",
        _sqlite(
            'CREATE TABLE "x; DROP TABLE good; --" ("place" TEXT, "y""; --" REAL)',
            'CREATE TABLE "\x1b[2J\n" (place, y)',
        ),
    )
    yield Hostile(
        "2,000 columns and a broken view",
        _sqlite(
            "CREATE TABLE wide (" + ", ".join(f"c{n} REAL" for n in range(2_000)) + ")",
            "CREATE VIEW broken AS SELECT lost FROM nowhere",
        ),
    )
    yield Hostile(
        "a DuckDB view that reads a file outside",
        _duckdb("CREATE VIEW spy AS SELECT * FROM read_csv('{secret}')"),
        _unread,
    )
    yield Hostile(
        "an endless DuckDB view",
        _duckdb("CREATE VIEW endless AS SELECT 'p' || i AS place, i AS y FROM range(1000000000000) t(i)"),
    )
    yield Hostile(
        "a DuckDB view of huge cells",
        _duckdb("CREATE VIEW huge AS SELECT repeat('x', 1000000000) AS place, i AS y FROM range(50) t(i)"),
    )
    for name, path in (
        ("../..", "{relative}"),
        ("an absolute path", "{absolute}"),
        ("a file:// URL", "file://{absolute}"),
        ("%2e%2e", "{quoted}"),
    ):
        yield Hostile(f"a Delta log with {name}", _delta_outside(path), _unread)


# --- Columnar files that a careful writer made


def _deep_parquet(levels: int, rows: int) -> Callable[[Around], None]:
    def make(around: Around) -> None:
        kind: pa.DataType = pa.int32()
        cell: Any = 1
        for _ in range(levels):
            kind, cell = pa.struct([("a", kind)]), {"a": cell}
        table = pa.table({"place": pa.array(["a", "b"][:rows]), "deep": pa.array([cell] * rows, kind)})
        pyarrow.parquet.write_table(table, around.data / "deep.parquet")

    return make


def _odd_types(around: Around) -> None:
    from decimal import Decimal

    columns = {
        "place": pa.array([f"p{n}" for n in range(100)]),
        "decimal": pa.array([Decimal(10) ** 70 + n for n in range(100)], pa.decimal256(76, 2)),
        "early": pa.array([-(1 << 62)] * 100, pa.timestamp("s")),
        "late": pa.array([(1 << 62)] * 100, pa.timestamp("us", tz="Nowhere/Land")),
        "time": pa.array([86_399_999_999] * 100, pa.time64("us")),
        "span": pa.array([1 << 62] * 100, pa.duration("ns")),
        "half": pa.array(np.full(100, np.inf, np.float16)),
        "bytes": pa.array([b"\xff\xfe"] * 100),
        "nothing": pa.nulls(100),
        "list": pa.array([[[1]]] * 100),
        "map": pa.array([[("a", 1)]] * 100, pa.map_(pa.string(), pa.int32())),
        "": pa.array(range(100)),
        "\x1b[2J\n\0": pa.array(range(100)),
    }
    with pa.ipc.new_file(around.data / "types.arrow", pa.table(columns).schema) as writer:
        writer.write_table(pa.table(columns))
    for name in ("early", "late", "half", "span"):
        with suppress(pa.ArrowException):
            pyarrow.parquet.write_table(
                pa.table({"place": columns["place"], name: columns[name], "y": columns[""]}),
                around.data / f"{name}.parquet",
            )


def _columnar() -> Iterator[Hostile]:
    for levels, rows in ((60, 2), (300, 2), (500, 0)):
        yield Hostile(f"Parquet nested {levels} levels deep", _deep_parquet(levels, rows))
    yield Hostile("odd types", _odd_types)


# --- Files that change while they are read


def _big_files(around: Around) -> None:
    rows = 400_000
    made = pl.DataFrame({"place": [f"place {n}" for n in range(rows)], "y": around.rng.normal(size=rows)})
    made.write_parquet(around.data / "moving.parquet", row_group_size=20_000)
    made.write_ipc(around.data / "moving.arrow")
    made.write_csv(around.data / "moving.csv")


@contextmanager
def _truncating(around: Around) -> Iterator[None]:
    files = {file: file.read_bytes() for file in around.data.glob("moving.*")}
    yield from _keep_doing(
        lambda turn: [
            file.write_bytes(content[: len(content) // 3] if turn % 2 else content)
            for file, content in files.items()
        ]
    )


@contextmanager
def _vanishing(around: Around) -> Iterator[None]:
    files = {file: file.read_bytes() for file in around.data.glob("moving.*")}

    def turn(number: int) -> None:
        for file, content in files.items():
            if number % 2:
                file.unlink(missing_ok=True)
            else:
                file.write_bytes(content)

    yield from _keep_doing(turn)


def _keep_doing(act: Callable[[int], object]) -> Iterator[None]:
    done = threading.Event()

    def go() -> None:
        turn = 0
        while not done.is_set():
            turn += 1
            act(turn)
            time.sleep(0.03)
        act(0)

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _moving() -> Iterator[Hostile]:
    yield Hostile("files that are cut while they are read", _big_files, None, _truncating)
    yield Hostile("files that come and go while they are read", _big_files, None, _vanishing)


# What is limited is limited in the processes of a command of its own; the others can do with any.
COSTLY: tuple[Hostile, ...] = (*_packed(), *_databases(), *_quadratic(), *_size(), *_moving())
EVERY: tuple[Hostile, ...] = (*_stray_quotes(), *_texts(), *_places(), *_columnar(), *COSTLY)


def _run(workplace: Workplace, numbers: Iterator[int]) -> Iterator[Outcome]:
    for trial in numbers:
        yield try_one(workplace, trial, EVERY[trial % len(EVERY)])


def together(names: Sequence[str]) -> Hostile:
    """Put several hostile things, that do not get in each other's way, into one folder."""
    parts = [hostile for hostile in EVERY if hostile.name in names]

    def make(around: Around) -> None:
        for part in parts:
            part.make(around)

    def judge(seen: Seen) -> list[Breach]:
        return [breach for part in parts if part.judge for breach in part.judge(seen)]

    return Hostile(", ".join(part.name for part in parts), make, judge)


def try_one(workplace: Workplace, trial: int, hostile: Hostile) -> Outcome:
    """Index a hostile thing beside good tables, and judge what comes of it."""
    record = Record(workplace, trial, hostile.name)
    home = workplace.empty("home")
    around = Around(home / "data", home / "outside", workplace.rng(trial))
    around.outside.mkdir()
    asked = write_good(around.data)
    hostile.make(around)
    index = workplace.empty("made") / "index"
    truth = truth_of(workplace)
    before = snapshot(home)
    command = workplace.fresh if hostile in COSTLY else workplace.spark_desk
    with hostile.meanwhile(around) if hostile.meanwhile else nullcontext():
        limit = ("--table-timeout", str(SECONDS_A_TABLE))
        built = record.run(
            command, "index", str(around.data), "--into", str(index), *limit, "--json", deadline=DEADLINE
        )
    if not hostile.meanwhile:
        record.breaches += touched(before, snapshot(home), may_add=False)
    record.breaches += within(built, MEMORY)
    if built.code == 0:
        question = (str(asked), "--key", "place", "--value", "x", "--index", str(index), "--top", "100000")
        record.breaches += same_answers(truth, record.run(workplace.desk, "query", *question, "--json"), GOOD)
        record.run(workplace.desk, "query", *question[:-2])
        record.run(workplace.desk, "info", str(index))
        said = record.run(workplace.desk, "info", str(index), "--json", deadline=120)
        info = answered(said)
        record.breaches += unnamed(_files_in(around.data), info)
        record.breaches += _too_large(around.data, index)
        if info and hostile.judge:
            tables = {
                table["path"] + (f"#{table['member']}" if table["member"] else ""): table
                for table in info["contents"]
            }
            record.breaches += hostile.judge(Seen(around, tables, said.out))
        if info and not (workplace.quick or hostile.meanwhile):
            _ask_with(record, around.data, index, info["contents"])
    elif not record.breaches:
        record.breaches.append(Breach(WRONG, f"no index of the good tables: {built.err[-300:]!r}"))
    return record.outcome()


def _ask_with(record: Record, data: Path, index: Path, tables: list[dict[str, Any]]) -> None:
    """Ask with hostile tables themselves: covary answers, refuses, or heeds Ctrl-C, and keeps its limit."""
    others = [table for table in tables if not table["path"].startswith(str(data / "good"))]
    for table in others[:ASKED_WITH]:
        path = table["path"] + (f"#{table['member']}" if table["member"] else "")
        names = [*(column["name"] for column in table["columns"][:2]), "place", "y"]
        if max(map(len, names)) > LONGEST_ARGUMENT:  # no shell could hand it over
            names = ["place", "y"]
        question = ("query", path, "--key", names[0], "--value", names[1], "--index", str(index))
        ran = record.run(
            record.workplace.fresh,
            *question,
            "--memory",
            "1GB",
            deadline=PATIENCE + GRACE,
            meanwhile=_interrupt_late(),
        )
        record.breaches += within(ran, MEMORY)


def _interrupt_late() -> Callable[[subprocess.Popen[bytes], float], None]:
    """Press Ctrl-C once, after a while."""
    waiting = [PATIENCE]

    def press(process: subprocess.Popen[bytes], seconds: float) -> None:
        if waiting and seconds > waiting[0]:
            waiting.clear()
            process.send_signal(signal.SIGINT)

    return press


def _files_in(folder: Path) -> list[Path]:
    found = []
    for parent, _, files in os.walk(folder):
        found += [
            Path(parent, name)
            for name in files
            if name not in {"manifest.json"} and not name.endswith(".crc")
        ]
    return found


def _too_large(data: Path, index: Path) -> list[Breach]:
    size, given = (
        sum(file.lstat().st_blocks * 512 for file in folder.rglob("*")) for folder in (index, data)
    )
    if size <= max(INDEX_FEW, INDEX_TIMES * given):
        return []
    return [Breach(LARGE, f"an index of {size:,} bytes for {given:,} bytes of data")]


def suites() -> list[Suite]:
    """Everything hostile that somebody thought of, each built by a command of its own."""
    return [
        Suite(
            "hostile",
            len(EVERY),
            14.0,
            _run,
            "oversized and hostile tables: quotes, lines, bombs, wide, deep, devices, names, views, paths",
        )
    ]
