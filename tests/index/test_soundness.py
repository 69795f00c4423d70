import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covary.errors import DamagedIndex
from covary.index.check import check_index
from covary.index.checksums import PIECE_BYTES, checksums_of, in_memory
from covary.index.manifest import read_manifest
from covary.index.segment_files import ARRAYS, FILES
from covary.index.segment_layout import build_segment
from covary.index.soundness import are_sound_bytes
from covary.index.table_records import TableRecord
from covary.query.ask import open_index
from covary.sketching.sketch_types import ColumnPair, Counts, Sketch, SketchConfig
from tests.index import lying_index

HERE = Path(__file__).parent


def segment_in(index):
    [folder] = (index / "segments").iterdir()
    return folder


@given(st.binary(max_size=3 * PIECE_BYTES), st.data())
def test_any_bit_that_flips_is_noticed(content, data):
    array = np.frombuffer(content, dtype=np.uint8)
    sums, seen = checksums_of(array), np.zeros(-(-array.size // PIECE_BYTES), dtype=np.uint8)
    assert are_sound_bytes(in_memory(array).content, sums, seen.copy(), 0, array.size)
    if array.size:
        bit = data.draw(st.integers(0, 8 * array.size - 1))
        altered = array.copy()
        altered[bit // 8] ^= 1 << bit % 8
        assert not are_sound_bytes(in_memory(altered).content, sums, seen.copy(), 0, array.size)
        assert not np.array_equal(checksums_of(altered), sums)


@given(st.integers(1, 2 * PIECE_BYTES), st.integers(0, 50))
def test_two_signs_that_flip_are_noticed(size, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=size)
    altered = numbers.copy()
    altered[rng.choice(size, min(2, size), replace=False)] *= -1
    assert not np.array_equal(checksums_of(altered), checksums_of(numbers))


def test_pieces_that_change_places_are_noticed():
    numbers = np.random.default_rng(1).permutation(4 * PIECE_BYTES).astype(np.float64)
    assert not np.array_equal(checksums_of(np.roll(numbers, 1)), checksums_of(numbers))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Write an index of more than 64 MB, larger than what used to be looked at when it was opened."""
    folder, config = tmp_path_factory.mktemp("large") / "index", SketchConfig(150_000)
    rng = np.random.default_rng(1)
    hashes = rng.permutation(np.arange(1, 150_001, dtype=np.uint64) * np.uint64(0x2545F4914F6CDD1D))
    hashes = hashes[np.argsort(config.scheme.order(hashes))]
    counts = Counts(150_000, 0, 0, 0, -9.0, 9.0)
    tables = []
    for table in range(6):
        sketches = [
            Sketch(
                ColumnPair(f"t{table}", "k", f"v{n}"),
                "mean",
                config,
                hashes,
                rng.normal(size=150_000),
                counts,
                True,
            )
            for n in range(10)
        ]
        tables.append((TableRecord(f"t{table}", f"/t{table}.csv", 150_000), sketches))
    lying_index.write_index(folder, build_segment(tables), config)
    assert read_manifest(folder).bytes > 72 << 20
    return folder


@pytest.mark.parametrize("file", ["values", "members", "keys", "postings", "starts"])
def test_a_bit_that_flips_in_a_large_index_is_never_answered_from(large, file):
    path = segment_in(large) / f"{file}.arrow"
    query = open_index(large).sketch_at(0)
    position = path.stat().st_size // 2
    with path.open("r+b") as stream:
        stream.seek(position)
        content = stream.read(1)
        stream.seek(position)
        stream.write(bytes([content[0] ^ 64]))
    try:
        with pytest.raises(DamagedIndex, match=rf"{file}\.arrow is damaged: "):
            open_index(large).score(query)
        assert any(f"{file}.arrow" in name for name in check_index(large).damaged)
    finally:
        with path.open("r+b") as stream:
            stream.seek(position)
            stream.write(content)


def test_no_bit_that_flips_changes_an_answer(tmp_path):
    folder = tmp_path / "index"
    lying_index.write_index(folder, lying_index.honest_segment())
    query = pl.DataFrame(lying_index.ROWS).with_columns(
        x=pl.Series(np.random.default_rng(3).normal(size=300))
    )

    def answer():
        return open_index(folder).query(query, "k", "x", min_sample=3).to_dict()["hits"]

    right, rng = answer(), np.random.default_rng(5)
    assert right
    refused = 0
    for file in FILES:
        path = segment_in(folder) / file
        content = path.read_bytes()
        for position in rng.integers(0, len(content), 12).tolist():
            path.write_bytes(
                content[:position]
                + bytes([content[position] ^ 1 << int(rng.integers(8))])
                + content[position + 1 :]
            )
            try:
                assert answer() == right
            except DamagedIndex:
                refused += 1
            assert check_index(folder).damaged
        path.write_bytes(content)
    assert refused > 50


def test_a_name_of_an_array_that_is_no_text_is_damage(tmp_path):
    folder = tmp_path / "index"
    lying_index.write_index(folder, lying_index.honest_segment())
    path = segment_in(folder) / "starts.arrow"
    path.write_bytes(path.read_bytes().replace(b"start", b"\xf4tart"))
    with pytest.raises(DamagedIndex):
        open_index(folder)


def test_an_index_that_lies_with_right_checksums_is_refused_or_harmless(tmp_path):
    command = [sys.executable, str(HERE / "lying_index.py"), str(tmp_path), "--some"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert {name for name, *_ in rows} == {
        f"{file}.{each}" for file, columns in ARRAYS.items() for each in columns
    }
    assert [row for row in rows if "CRASHED" in row[3]] == []
    checked = {(name, lie): outcome for name, lie, command, outcome in rows if command == "check"}
    leading_outside = [(name, lie) for name, lie, _, outcome in rows if outcome == "refused"]
    assert len({name for name, _ in leading_outside}) > 20
    assert [lie for lie in leading_outside if checked[lie] == "answered 0"] == []
