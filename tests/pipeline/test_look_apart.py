import os
import signal
import time
import zipfile
import zlib
from pathlib import Path
from threading import Event, Timer

import pytest

from covary.errors import MissingPart
from covary.pipeline.limits import Limits
from covary.pipeline.look_apart import look_in_processes
from covary.pipeline.reading_process import ReadingProcess, Stopped
from covary.tables.discover import find_tables
from covary.tables.skipped import NotToBeSeen
from tests.needs import measured

HERE = Path(__file__).parent
CSV = b"day,x\n1,2\n3,4\n"


@pytest.fixture
def look(monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    with ReadingProcess() as process:
        yield look_in_processes([process], Limits(2, 400_000_000))


def test_what_a_file_holds_is_found_as_if_it_were_looked_into_here(tmp_path, look):
    for name in ("one.zip", "two.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in ("a.csv", "b.csv", "c.parquet")[: 1 if name == "one.zip" else 3]:
                archive.writestr(member, CSV)
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04broken")
    (tmp_path / "no.sqlite").write_bytes(b"SQLite format 3\0 no more")
    assert find_tables([tmp_path], look=look) == find_tables([tmp_path])


def _stay(_):
    time.sleep(60)


def _die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def _fill(_):
    room = []
    while True:
        room.append(bytearray(os.urandom(1 << 20)) * 16)
        time.sleep(0.01)


def _miss(_):
    raise MissingPart("pip install 'it'")


def _fail(_):
    raise KeyError("it\nall of it")


@measured
@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (_stay, NotToBeSeen, "it took longer than 2 s; --table-timeout sets another limit"),
        (_fill, NotToBeSeen, "it needs more than 0.4 GB of memory; --memory sets another limit"),
        (_die, NotToBeSeen, "was killed twice"),
        (_fail, NotToBeSeen, "KeyError: 'it"),
        (_miss, MissingPart, "pip install 'it'"),
    ],
)
def test_a_file_that_is_too_much_for_its_reader_is_named_and_the_next_is_looked_into(
    look, function, error, message
):
    with pytest.raises(error, match=message):
        look("/data/it", function, 1)
    assert look("/data/next", len, "next") == 4


def test_who_waits_for_a_look_is_let_go(look):
    stop = Event()
    Timer(0.3, stop.set).start()
    with pytest.raises(Stopped):
        look("/data/it", _stay, 1, stop=stop)


@measured
def test_a_packed_list_of_an_iceberg_table_fills_no_memory(tmp_path):
    pytest.importorskip("pyiceberg")
    from tests.tables.test_lakehouses import ROWS, folder_of, iceberg  # noqa: PLC0415

    path = Path(folder_of(iceberg(tmp_path / "ice", ROWS)))
    (listed,) = (path / "metadata").glob("snap-*.avro")
    listed.write_bytes(_with_zeros(listed.read_bytes(), 4 << 30))
    (tmp_path / "good.csv").write_bytes(CSV)
    with ReadingProcess() as process:
        look = look_in_processes([process], Limits(60, 400_000_000))
        tables, (skipped,), _ = find_tables([path, tmp_path / "good.csv"], look=look)
    assert [table.name for table in tables] == ["good"]
    assert "it needs more than 0.4 GB of memory" in skipped.reason.text


def _with_zeros(avro: bytes, size: int) -> bytes:
    """Give an Avro file one block of zeros for those that it has."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = b"".join(packer.compress(bytes(1 << 24)) for _ in range(size >> 24)) + packer.flush()
    mark = avro[-16:]  # which ends its header and each block
    return avro.partition(mark)[0] + mark + _long(1) + _long(len(block)) + block + mark


def _long(number: int) -> bytes:
    number, written = 2 * number, b""
    while number > 127:
        written += bytes([number & 127 | 128])
        number >>= 7
    return written + bytes([number])
