import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import functions

import covary
from covary.errors import CannotWrite
from covary.pipeline import plan as plans
from covary.pipeline import spark_runner as pipeline
from covary.pipeline.send_code import Parcels, as_numbered_task, as_table_task
from covary.sketching.hashing import SCHEMES
from covary.sketching.sketch_types import SketchConfig
from covary.tables.discover import find_tables

SIZE = 64
ROOT = Path(covary.__file__).parents[1]


def rows_of_a_large_table():
    rng = np.random.default_rng(7)
    count = 3000
    places = [f"place {number}" for number in rng.integers(0, 400, count)]
    # Cells with line ends, quotes and delimiters make a cut in the wrong place show.
    notes = [f'line one\nline "two", {number}' if number % 3 else "plain" for number in range(count)]
    gaps = [None if rng.random() < 0.2 else float(value) for value in np.round(rng.normal(size=count), 6)]
    return pl.DataFrame(
        {
            "place": places,
            "note": notes,
            "x": rng.normal(size=count) * 10.0 ** rng.integers(-5, 6, count),
            "y": gaps,
        }
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    rows = rows_of_a_large_table()
    rows.write_csv(folder / "text.csv")
    pq.write_table(rows.to_arrow(), folder / "packed.parquet", row_group_size=150)
    return folder


@pytest.fixture
def small_chunks(monkeypatch):
    # Only the plan, which is made on the driver, looks at these.
    monkeypatch.setattr(plans, "CHUNK_BYTES", 8 << 10)
    monkeypatch.setattr(plans, "PACKED_CHUNK_BYTES", 4 << 10)


def test_many_small_tables_give_the_same_bytes_as_one_process(bytes_of, spark, lake, tmp_path):
    covary.build_index(lake.folder, tmp_path / "spark", spark, size=SIZE, aggregates=("mean", "max"))
    covary.build_index(
        [lake.folder], tmp_path / "alone", aggregates=("mean", "max"), size=64, runner="process"
    )
    assert bytes_of(tmp_path / "spark") == bytes_of(tmp_path / "alone")


def test_tables_in_chunks_give_the_same_bytes_as_one_process(bytes_of, spark, large, small_chunks, tmp_path):
    config = SketchConfig(SIZE)
    todo = plans.plan(find_tables([large])[0], plans.TaskSettings(config, (), (), str(tmp_path)))
    assert len(todo.large) == 2
    assert min(len(table.chunks) for table in todo.large) >= 10
    aggregates = ("mean", "sum", "first", "last", "min", "max", "count")
    covary.build_index(large, tmp_path / "spark", spark, size=SIZE, aggregates=aggregates)
    covary.build_index([large], tmp_path / "alone", aggregates=aggregates, size=64, runner="process")
    assert bytes_of(tmp_path / "spark") == bytes_of(tmp_path / "alone")


@pytest.mark.parametrize("aggregate", ["mean", "last"])
@pytest.mark.parametrize("value", ["x", "y"])
def test_chunks_paths_and_frames_give_the_same_sketch(spark, large, small_chunks, tmp_path, aggregate, value):
    index = covary.build_index(large, tmp_path / "index", spark, size=SIZE, aggregates=(aggregate,))
    rows = rows_of_a_large_table().select("place", value)
    frames = [large / "text.csv", large / "packed.parquet", rows, rows.to_pandas(), rows.to_arrow()]
    made = [covary.sketch(frame, "place", value, size=SIZE, aggregate=aggregate) for frame in frames]
    made += [index.sketch(table, "place", value, aggregate) for table in ("text", "packed")]
    assert not made[0].complete
    assert len({each.key_hashes.tobytes() for each in made}) == 1
    assert len({each.values.tobytes() for each in made}) == 1


CONNECT = """
import sys
from pyspark.sql import SparkSession
import covary
from covary.pipeline import plan as plans
plans.CHUNK_BYTES, plans.PACKED_CHUNK_BYTES = 8 << 10, 4 << 10
spark = SparkSession.builder.remote("local[2]").getOrCreate()
covary.build_index(sys.argv[1:3], sys.argv[3], spark, size=64)
assert "connect" in type(spark).__module__
spark.stop()
"""


def test_spark_connect_gives_the_same_bytes(bytes_of, lake, large, small_chunks, tmp_path):
    paths = [*map(str, (lake.folder, large)), str(tmp_path / "connect")]
    # A session of its own: classic and Connect sessions don't live in one process.
    python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": python_path, "PYSPARK_PYTHON": sys.executable}
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, *paths],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    covary.build_index([lake.folder, large], tmp_path / "alone", size=64, runner="process")
    assert bytes_of(tmp_path / "connect") == bytes_of(tmp_path / "alone")


def test_xxhash64_is_spark_sqls(spark):
    texts = ["a", "2021-01", "Curaçao", "中华人民共和国", "🙂", " ", "x" * 31, "x" * 32, "x" * 33, "y" * 1000]
    column = functions.xxhash64(functions.col("text")).alias("hash")
    rows = spark.createDataFrame([(text,) for text in texts], "text string").select("text", column).collect()
    theirs = {row["text"]: row["hash"] for row in rows}
    ours = SCHEMES["xxhash64"].identify([pl.Series(texts)])[0].hashes.view(np.int64).tolist()
    assert dict(zip(texts, ours, strict=True)) == theirs


def test_what_travels_to_the_workers_can_be_pickled(lake, large, small_chunks, tmp_path):
    settings = plans.TaskSettings(SketchConfig(SIZE), (), (), str(tmp_path))
    todo = plans.plan(find_tables([lake.folder, large])[0], settings)
    assert todo.groups
    assert todo.large
    assert pickle.loads(pickle.dumps((todo, settings))) == (todo, settings)
    groups, large = Parcels(todo.groups), Parcels(todo.large)
    for work in (
        as_numbered_task(pipeline.sketch_one_group, groups, settings),
        as_numbered_task(pipeline.sketch_one_chunk, large, [0], settings),
        as_table_task(pipeline.merge_table, large, settings),
    ):
        assert callable(cloudpickle.loads(cloudpickle.dumps(work)))
    arrived = pickle.loads(pickle.dumps(large))
    assert [arrived[number] for number in range(len(todo.large))] == list(todo.large)


def fail_to_unpack():
    raise AssertionError("what another task works on was unpacked")


class Unwanted:
    def __reduce__(self):
        return fail_to_unpack, ()


def test_a_task_unpacks_only_what_it_works_on():
    parcels = pickle.loads(pickle.dumps(Parcels([Unwanted(), ("mine",), Unwanted()])))
    assert parcels[1] == ("mine",)
    with pytest.raises(AssertionError, match="another task"):
        parcels[0]


def test_a_broken_file_is_named_and_the_rest_is_there(spark, lake, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    good = (lake.folder / "middle.parquet").read_bytes()
    (folder / "good.parquet").write_bytes(good)
    (folder / "truncated.parquet").write_bytes(good[: len(good) // 2])
    (folder / "empty.csv").write_bytes(b"")
    (folder / "text.csv").write_bytes((lake.folder / "strong.csv").read_bytes())
    index = covary.build_index(folder, tmp_path / "index", spark, size=SIZE)
    problems = dict(index.tables.select(pl.col("path").str.split("/").list.last(), "problem").iter_rows())
    assert problems["good.parquet"] is None
    assert problems["text.csv"] is None
    assert problems["truncated.parquet"]
    assert problems["empty.csv"] == "the file is empty"
    assert index.sketch("good", "place", "y").counts.rows == 300
    assert index.sketch("text", "place", "y").counts.rows == 300


def test_a_large_table_without_numbers_is_still_listed(spark, small_chunks, tmp_path):
    (tmp_path / "tables").mkdir()
    words = pl.DataFrame({"a": [f"word {n}" for n in range(3000)], "b": [f"other {n}" for n in range(3000)]})
    words.write_csv(tmp_path / "tables" / "words.csv")
    rows_of_a_large_table().head(20).write_csv(tmp_path / "tables" / "numbers.csv")
    index = covary.build_index(tmp_path / "tables", tmp_path / "index", spark, size=SIZE)
    assert set(index.tables["name"]) == {"words", "numbers"}


def test_a_build_that_died_before_its_manifest_does_not_block_the_next(spark, lake, tmp_path):
    index = tmp_path / "index"
    covary.build_index(lake.folder / "strong.csv", index, spark, size=SIZE)
    # As after a power cut between the two steps of commit: a segment is in place, its manifest is not.
    covary.build_index(lake.folder / "weak.arrow", tmp_path / "other", spark, size=SIZE)
    (segment,) = (tmp_path / "other" / "segments").iterdir()
    dead = segment.rename(index / "segments" / segment.name)
    assert covary.open_index(index).tables["name"].to_list() == ["strong"]
    assert covary.build_index(lake.folder, index, spark, size=SIZE).tables.height == 4
    assert not dead.exists()


@pytest.mark.parametrize("in_chunks", [False, True], ids=["whole", "in chunks"])
def test_a_full_disk_leaves_the_previous_index_as_it_was(
    bytes_of, spark, lake, large, mounted, monkeypatch, in_chunks
):
    disk = mounted("size=768k")
    index = disk / "index"
    covary.build_index(lake.folder / "strong.csv", index, spark, size=16)
    before = bytes_of(index)
    left = os.statvfs(disk)
    (disk / "ballast").write_bytes(b"\0" * (left.f_bavail * left.f_frsize - (40 << 10)))
    if in_chunks:
        monkeypatch.setattr(plans, "CHUNK_BYTES", 8 << 10)
        monkeypatch.setattr(plans, "PACKED_CHUNK_BYTES", 4 << 10)
    with pytest.raises(CannotWrite, match="the disk is full; nothing was changed"):
        covary.build_index(
            [lake.folder, large], index, spark, size=1024, aggregates=("mean", "sum", "min"), fresh=True
        )
    assert bytes_of(index) == before
    assert sorted(path.name for path in index.iterdir()) == [
        "covary-index",
        "history.jsonl",
        "lock",
        "manifest.json",
        "segments",
    ]


def test_a_disk_that_fills_up_while_chunks_are_read_is_told(spark, large, small_chunks, mounted):
    disk = mounted("size=4m,nr_inodes=12")
    with pytest.raises(CannotWrite, match="the disk is full; nothing was changed"):
        covary.build_index(large / "text.csv", disk / "index", spark, size=SIZE)
    assert not list(disk.iterdir())
