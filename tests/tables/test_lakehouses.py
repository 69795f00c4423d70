import datetime
import gzip
import json
import os
import shutil
import struct
import sys
import uuid
import zlib
from decimal import Decimal
from pathlib import Path

import boto3
import fsspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from polars.testing import assert_frame_equal
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, LongType
from pyiceberg.utils.config import Config

import covary
from covary.errors import MissingPart, UnreadableTable
from covary.pipeline.limits import Limits
from covary.pipeline.look_apart import look_in_processes
from covary.pipeline.reading_process import ReadingProcess
from covary.tables.discover import find_table, find_tables, name_source
from covary.tables.faults import Faults
from covary.tables.read import plan_chunks, read_chunk, read_layout
from covary.tables.reader import WHOLE, RowRequest
from covary.tables.registry import get_reader

ROWS = pa.table(
    {
        "key": [f"k{number % 50}" for number in range(300)],
        "x": pa.array(range(300), pa.int32()),
        "year": [2010 + number // 100 for number in range(300)],
    }
)


def delta(path, rows=ROWS, by="year"):
    write_deltalake(str(path), rows, partition_by=by)
    return str(path)


def warehouse(folder):
    """A catalog whose tables lie below a folder or a URL."""
    folder.mkdir(exist_ok=True)
    return SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")


def iceberg(folder, *parts, name="ns.t", by=None):
    """An Iceberg table with a data file for every part."""
    catalog = warehouse(folder)
    catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
    table = catalog.create_table(name, parts[0].schema)
    if by:
        with table.update_spec() as change:
            change.add_identity(by)
    for part in parts:
        table.append(part)
    return table


def folder_of(table):
    return table.location().removeprefix("file://")


def rows_of(source, chunk_bytes=1, columns=None):
    """All rows of a table, read in as many parts as it can be cut into, and the number of parts."""
    table = source if not isinstance(source, str) else find_table(source)
    layout = read_layout(table)
    chunks = plan_chunks(table, layout, chunk_bytes)
    frames = [frame for chunk in chunks for frame in read_chunk(chunk, layout, columns)]
    return pl.concat(frames), len(chunks)


def assert_same_sketch(path, rows, key="key", value="x"):
    sketched, expected = covary.sketch(path, key=key, value=value), covary.sketch(rows, key=key, value=value)
    assert expected.size > 0
    assert sketched.key_hashes.tolist() == expected.key_hashes.tolist()
    assert sketched.values.tolist() == pytest.approx(expected.values.tolist())


def names_and_formats(sources):
    return [(table.name, table.format) for table in find_tables(sources).tables]


@pytest.fixture
def lake(tmp_path):
    """A folder with a Delta table, an Iceberg table, a CSV file and an ordinary folder of Parquet files."""
    folder = tmp_path / "lake"
    (folder / "plain" / "metadata").mkdir(parents=True)
    delta(folder / "deep" / "er" / "d")
    iceberg(folder / "ice", ROWS[:100], ROWS[100:])
    (folder / "ice" / "catalog.db").unlink()
    pl.from_arrow(ROWS).write_csv(folder / "c.csv")
    pq.write_table(ROWS, folder / "plain" / "metadata" / "p.parquet")
    return folder


LAKE = [("c", "csv"), ("deep/er/d", "delta"), ("ice/ns/t", "iceberg"), ("plain/metadata/p", "parquet")]


def test_a_lakehouse_table_is_one_table_wherever_it_is_found(lake):
    assert names_and_formats([lake]) == LAKE
    assert names_and_formats([lake / "*"]) == LAKE
    assert names_and_formats([f"{lake}/**"]) == LAKE
    assert names_and_formats([lake / "deep/er/*"]) == [("d", "delta")]
    assert names_and_formats([lake / "deep" / "er" / "d"]) == [("d", "delta")]
    assert names_and_formats([lake / "ice" / "ns" / "t"]) == [("t", "iceberg")]


def test_a_glob_of_its_data_files_names_the_table_once(lake):
    assert names_and_formats([lake / "deep/er/d/*/*.parquet"]) == [("d", "delta")]
    assert names_and_formats([lake / "**" / "*.parquet"]) == LAKE[1:]


def test_its_size_is_that_of_its_present_files(tmp_path):
    path = delta(tmp_path / "t")
    write_deltalake(path, ROWS[:10], mode="overwrite")
    (there,) = DeltaTable(path).file_uris()
    assert find_table(path).size == Path(there).stat().st_size
    table = iceberg(tmp_path / "ice", ROWS[:100], ROWS[100:])
    files = (tmp_path / "ice").rglob("*.parquet")
    assert find_table(folder_of(table)).size == sum(file.stat().st_size for file in files)


def test_delta_rows_are_those_of_one_parquet_file(tmp_path):
    path = delta(tmp_path / "a dir #é" / "t")
    rows, parts = rows_of(path)
    assert parts == 3
    assert_frame_equal(rows[ROWS.column_names], pl.from_arrow(ROWS), check_row_order=False)
    assert_same_sketch(path, ROWS)
    assert rows_of(path, chunk_bytes=1 << 30)[1] == 1


def test_iceberg_rows_are_those_of_one_parquet_file(tmp_path):
    table = iceberg(tmp_path / "a dir é", ROWS[:150], ROWS[150:], by="year")
    rows, parts = rows_of(folder_of(table))
    assert parts == 4
    assert_frame_equal(rows, pl.from_arrow(ROWS), check_row_order=False)
    assert_same_sketch(folder_of(table), ROWS)


def test_a_delta_table_is_read_at_the_version_that_was_found(tmp_path):
    path = delta(tmp_path / "t")
    before = find_table(path)
    write_deltalake(path, ROWS[:7], mode="overwrite")
    assert find_table(path).version != before.version
    assert rows_of(before)[0].height == 300
    assert rows_of(path)[0].height == 7


def test_an_iceberg_table_is_read_at_the_snapshot_that_was_found(tmp_path):
    table = iceberg(tmp_path / "ice", ROWS)
    before = find_table(folder_of(table))
    table.overwrite(ROWS[:7])
    with table.update_schema() as change:
        change.rename_column("x", "y")
    assert rows_of(before)[0].columns == ["key", "x", "year"]
    assert rows_of(before)[0].height == 300
    now, _ = rows_of(folder_of(table))
    assert (now.columns, now.height) == (["key", "y", "year"], 7)


def test_a_snapshot_that_was_expired_is_missed_by_name(tmp_path):
    table = iceberg(tmp_path / "ice", ROWS)
    before = find_table(folder_of(table))
    table.append(ROWS)
    table.maintenance.expire_snapshots().by_id(int(before.version.split()[0])).commit()
    with pytest.raises(UnreadableTable, match=r"its snapshot \d+ is gone; index it again"):
        rows_of(before)


def test_a_delta_table_put_in_the_place_of_another_is_noticed(tmp_path):
    path = delta(tmp_path / "t")
    before = find_table(path)
    shutil.rmtree(path)
    delta(path, ROWS[:7])
    assert find_table(path).version != before.version
    with pytest.raises(UnreadableTable, match="another table was put in its place"):
        rows_of(before)


def test_deleted_rows_are_gone(tmp_path):
    path = delta(tmp_path / "t")
    DeltaTable(path).delete("x >= 250")
    assert sorted(rows_of(path)[0]["x"]) == list(range(250))
    table = iceberg(tmp_path / "ice", ROWS[:100], ROWS[100:])
    table.delete("x >= 250")
    assert sorted(rows_of(folder_of(table))[0]["x"]) == list(range(250))


def test_partition_values_have_the_types_of_the_schema(tmp_path):
    rows = pa.table(
        {
            "day": [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 3)],
            "amount": [Decimal("1.50"), Decimal("2.25"), None],
            "at": [datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)] * 3,
            "text": ["a b/%20", "é", None],
            "x": [1, 2, 3],
        }
    )
    path = delta(tmp_path / "t", rows, ["day", "amount", "at", "text"])
    read, parts = rows_of(path)
    assert parts == 3
    assert_frame_equal(read.select(rows.column_names).sort("x"), pl.from_arrow(rows), check_dtypes=False)
    assert read.schema["day"] == pl.Date
    assert read.schema["amount"].is_decimal()
    assert read.schema["at"] == pl.Datetime("us", "UTC")
    assert sorted(rows_of(path, columns=["text"])[0]["text"].drop_nulls()) == ["a b/%20", "é"]


def test_a_column_added_to_a_delta_table_is_null_before(tmp_path):
    path = delta(tmp_path / "t", ROWS, None)
    write_deltalake(path, ROWS[:2].append_column("z", [[0.5, 1.5]]), mode="append", schema_mode="merge")
    rows, parts = rows_of(path)
    assert parts == 2
    assert (rows["z"].null_count(), sorted(rows["z"].drop_nulls())) == (300, [0.5, 1.5])
    alone, _ = rows_of(path, columns=["z"])
    assert (alone.height, alone["z"].null_count()) == (302, 300)


def test_iceberg_columns_are_known_by_their_ids(tmp_path):
    table = iceberg(tmp_path / "ice", ROWS[:200])
    with table.update_schema() as change:
        change.rename_column("x", "y")
        change.update_column("x", LongType())
    with table.update_schema() as change:
        change.add_column("x", DoubleType())
    table.append(pa.table({"key": ["big"], "y": pa.array([2**40]), "year": [2013], "x": [0.5]}))
    rows, _ = rows_of(folder_of(table))
    assert sorted(rows["y"]) == [*range(200), 2**40]
    assert rows["x"].drop_nulls().to_list() == [0.5]
    assert rows_of(folder_of(table), columns=["x"])[0].height == 201
    assert_same_sketch(folder_of(table), rows, value="y")


# What delta-rs reads but doesn't write, written by hand: deletion vectors, mapped names, widened types.

BASE_85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def roaring_bitmap(rows):
    """A Roaring bitmap of one container."""
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)
    return struct.pack("<IQI", 1681511377, 1, 0) + bitmap


def in_base_85(data):
    text = ""
    for start in range(0, len(data), 4):
        number = int.from_bytes(data[start : start + 4].ljust(4, b"\0"), "big")
        text += "".join(BASE_85[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return text


def deletion_vector(rows):
    """Deleted rows, in the text that Delta Lake keeps in its log."""
    data = roaring_bitmap(rows)
    text, size = in_base_85(data), len(data)
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": size, "cardinality": len(rows)}


def field(name, kind, number=None):
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return {"name": name, "type": kind, "nullable": True, "metadata": mapping if number else {}}


def delta_by_hand(folder, fields, files, features, partitioned=(), **configuration):
    """A Delta table of given data files: (rows, partition values, deleted rows) each."""
    actions = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        },
        {
            "metaData": {
                "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": partitioned,
                "configuration": configuration,
            }
        },
    ]
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    for number, (rows, values, deleted) in enumerate(files):
        file = folder / f"part %{number}.parquet"
        pq.write_table(rows, file)
        add = {
            "path": f"part%20%25{number}.parquet",
            "partitionValues": values,
            "size": file.stat().st_size,
            "modificationTime": number,
            "dataChange": True,
            "stats": json.dumps({"numRecords": rows.num_rows}),
        }
        actions.append({"add": add | ({"deletionVector": deletion_vector(deleted)} if deleted else {})})
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return str(folder)


def test_rows_of_a_deletion_vector_are_gone(tmp_path):
    files = [(ROWS[:100], {}, [1, 3, 99]), (ROWS[100:], {}, None)]
    fields = [field("key", "string"), field("x", "integer"), field("year", "long")]
    path = delta_by_hand(tmp_path / "t é", fields, files, ["deletionVectors"])
    rows, parts = rows_of(path)
    assert parts == 2
    assert rows["x"].to_list() == [number for number in range(300) if number not in {1, 3, 99}]
    assert_same_sketch(path, pa.table(DeltaTable(path).scan().read_all()))


def test_a_deletion_vector_goes_on_from_batch_to_batch(tmp_path):
    files = [(pa.table({"x": pa.array(range(3000), pa.int32())}), {}, [5, 2000])]
    path = delta_by_hand(tmp_path / "t", [field("x", "integer")], files, ["deletionVectors"])
    source = find_table(path)
    request = RowRequest(source, WHOLE, read_layout(source), ["x"], 1, Faults())
    frames = list(get_reader(source).frames(request))
    assert len(frames) > 1
    assert pl.concat(frames)["x"].to_list() == [row for row in range(3000) if row not in {5, 2000}]


def test_a_deletion_vector_of_an_unknown_file_is_refused(tmp_path, monkeypatch):
    path = delta_by_hand(tmp_path / "t", [field("x", "integer")], [(ROWS, {}, [5])], ["deletionVectors"])
    monkeypatch.setattr("covary.tables.formats.delta._make_uri", lambda table, path: path)
    with pytest.raises(UnreadableTable, match="its deletion vectors: they belong to files"):
        rows_of(path)


def test_the_log_tells_the_partition_whatever_the_file_says(tmp_path):
    fields = [field("x", "integer"), field("year", "long")]
    files = [(ROWS, {"year": "1999"}, None)]
    path = delta_by_hand(tmp_path / "t", fields, files, ["timestampNtz"], ["year"])
    assert rows_of(path)[0]["year"].unique().to_list() == [1999]


def delta_with_its_file_at(location, folder):
    """A Delta table whose log says that its data file is at a location."""
    path = delta_by_hand(folder / "t", [field("x", "integer")], [(ROWS, {}, None)], ["timestampNtz"])
    Path(path, "part %0.parquet").rename(Path(path, "a b.parquet"))
    log = Path(path, "_delta_log", f"{0:020}.json")
    log.write_text(log.read_text().replace("part%20%250.parquet", location))
    return path


@pytest.mark.parametrize("slashes", ["/", "///"])
def test_a_data_file_may_be_named_in_full(tmp_path, slashes):
    path = delta_with_its_file_at(f"file:{slashes}{str(tmp_path)[1:]}/t/a%20b.parquet", tmp_path)
    assert rows_of(path)[0]["x"].to_list() == list(range(300))
    (tmp_path / "link").symlink_to(path)
    assert rows_of(str(tmp_path / "link"))[0]["x"].to_list() == list(range(300))


@pytest.mark.parametrize(
    "location",
    [
        "../secret.parquet",
        "%2e%2e/secret.parquet",
        "x/../../secret.parquet",
        "file:{folder}/secret.parquet",
        "file://{folder}/secret.parquet",
        "file://{folder}/t/../secret.parquet",
        "FILE://{folder}/secret.parquet",
        "http://127.0.0.1:9/secret.parquet",
        "s3://bucket/secret.parquet",
    ],
)
def test_a_data_file_outside_of_a_delta_table_is_refused_by_name(tmp_path, location):
    pq.write_table(ROWS, tmp_path / "secret.parquet")
    path = delta_with_its_file_at(location.format(folder=tmp_path), tmp_path)
    with pytest.raises(UnreadableTable, match=r"lies outside, as in a shallow clone: .*secret\.parquet"):
        rows_of(path)
    pl.from_arrow(ROWS).write_csv(tmp_path / "c.csv")
    tables, skipped, _ = find_tables([path, tmp_path / "c.csv"])
    assert [table.name for table in tables] == ["c"]
    assert [each.path for each in skipped] == [path]


def vector_file(rows):
    """What a file of deletion vectors holds, if it holds one."""
    data = roaring_bitmap(rows)
    return b"\1" + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data)), len(data)


@pytest.mark.parametrize(
    ("kind", "location", "refused"),
    [
        ("u", "ab", False),
        ("p", "file://{folder}/t/ab/{name}", False),
        ("u", "..", True),
        ("u", "ab/../..", True),
        ("p", "file://{folder}/{name}", True),
        ("p", "file://{folder}/t/%2e%2e/{name}", True),
        ("p", "file:///dev/zero", True),
    ],
)
@pytest.mark.parametrize("where", ["commit", "checkpoint"])
def test_deletion_vectors_are_read_below_the_table_alone(tmp_path, kind, location, refused, where):
    content, size = vector_file([5, 7])
    mark = uuid.UUID(int=7)
    name = f"deletion_vector_{mark}.bin"
    (tmp_path / name).write_bytes(content)
    path = delta_by_hand(tmp_path / "t", [field("x", "integer")], [(ROWS, {}, [5])], ["deletionVectors"])
    Path(path, "ab").mkdir()
    Path(path, "ab", name).write_bytes(content)
    written = location.format(folder=tmp_path, name=name) + (in_base_85(mark.bytes) if kind == "u" else "")
    log = Path(path, "_delta_log", f"{0:020}.json")
    *others, last = map(json.loads, log.read_text().splitlines())
    vector = {"storageType": kind, "pathOrInlineDv": written, "offset": 1, "sizeInBytes": size}
    last["add"]["deletionVector"] = vector | {"cardinality": 2}
    log.write_text("\n".join(map(json.dumps, [*others, last])))
    if where == "checkpoint":
        DeltaTable(path).create_checkpoint()
    if refused:
        with pytest.raises(UnreadableTable, match="lies outside, as in a shallow clone"):
            rows_of(path)
    else:
        assert rows_of(path)[0]["x"].to_list() == [each for each in range(300) if each not in {5, 7}]


def test_a_vector_that_is_named_twice_is_refused_for_either(tmp_path):
    path = delta_by_hand(tmp_path / "t", [field("x", "integer")], [(ROWS, {}, [5])], ["deletionVectors"])
    log = Path(path, "_delta_log", f"{0:020}.json")
    twice = '"deletionVector": {"storageType": "p", "pathOrInlineDv": "file:///etc/x", '
    log.write_text(log.read_text().replace('"deletionVector": {', twice))
    with pytest.raises(UnreadableTable, match="lies outside"):
        rows_of(path)


@pytest.mark.parametrize(
    "sidecar", ["../../../secret.parquet", "file://{folder}/secret.parquet", "file:///dev/zero"]
)
def test_a_part_of_a_checkpoint_lies_beside_it(tmp_path, sidecar):
    path = delta_by_hand(tmp_path / "t", [field("x", "integer")], [(ROWS, {}, None)], ["v2Checkpoint"])
    log = Path(path, "_delta_log", f"{0:020}.json")
    *others, last = map(json.loads, log.read_text().splitlines())
    last["add"]["partitionValues"] = {"none": ""}
    pq.write_table(pa.Table.from_pylist([last]), tmp_path / "secret.parquet")
    part = {"path": sidecar.format(folder=tmp_path), "sizeInBytes": 1, "modificationTime": 0}
    lines = [{"checkpointMetadata": {"version": 0}}, *others, {"sidecar": part}]
    checkpoint = log.with_name(f"{0:020}.checkpoint.{uuid.UUID(int=7)}.json")
    checkpoint.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(UnreadableTable, match="lies outside, as in a shallow clone"):
        rows_of(path)


def test_an_iceberg_table_is_read_below_its_folder_alone(tmp_path):
    pq.write_table(ROWS, tmp_path / "secret.parquet")
    table = iceberg(tmp_path / "ice", ROWS)
    table.add_files([f"file://{tmp_path}/secret.parquet"])
    with pytest.raises(UnreadableTable, match=r"lies outside, as in a shallow clone: .*secret\.parquet"):
        rows_of(folder_of(table))


@pytest.mark.parametrize(
    "elsewhere", ["file://{folder}/{name}", "{folder}/t/../{name}", "s3://bucket/{name}"]
)
def test_iceberg_metadata_leads_nowhere_else(tmp_path, elsewhere):
    path = Path(folder_of(iceberg(tmp_path / "ice", ROWS)))
    newest = max((path / "metadata").glob("*.metadata.json"))
    content = json.loads(newest.read_text())
    listed = Path(content["snapshots"][-1]["manifest-list"].removeprefix("file://"))
    shutil.copy(listed, tmp_path / listed.name)
    content["snapshots"][-1]["manifest-list"] = elsewhere.format(folder=tmp_path, name=listed.name)
    newest.write_text(json.dumps(content))
    with pytest.raises(UnreadableTable, match="lies outside, as in a shallow clone"):
        rows_of(str(path))


@pytest.mark.parametrize(
    "name",
    ["_last_checkpoint", f"{1:020}.json", f"{0:020}.crc", f"{0:020}.checkpoint.parquet", "_sidecars/a"],
)
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_pipe_or_device_in_a_delta_log_is_refused_by_name(tmp_path, name, make):
    path = delta(tmp_path / "t")
    odd = Path(path, "_delta_log", name)
    odd.parent.mkdir(exist_ok=True)
    make(odd)
    _, (skipped,), _ = find_tables([tmp_path])
    refusal = f"_delta_log/{name} is not a regular file, and opening it may never end; remove it"
    assert (skipped.path, skipped.reason.text) == (path, refusal)


def test_a_pipe_in_the_metadata_of_an_iceberg_table_is_refused_by_name(tmp_path):
    path = folder_of(iceberg(tmp_path / "ice", ROWS))
    os.mkfifo(Path(path, "metadata", "v9.metadata.json"))
    with pytest.raises(UnreadableTable, match=r"metadata/v9\.metadata\.json is not a regular file"):
        find_table(path)


def test_a_data_file_that_is_a_pipe_is_refused_by_name(tmp_path):
    for path in (delta(tmp_path / "t", by=None), folder_of(iceberg(tmp_path / "ice", ROWS))):
        (file,) = Path(path).rglob("*.parquet")
        file.unlink()
        os.mkfifo(file)
        with pytest.raises(UnreadableTable, match=rf"its data file .*{file.name} is not a regular file"):
            rows_of(path)


TOO_LARGE = (
    "is larger than 256 MB unpacked, the most that is read; write a checkpoint of the table, or expire "
)


@pytest.mark.parametrize("name", ["_last_checkpoint", f"{0:020}.json", f"{1:020}.json"])
def test_a_huge_file_in_a_delta_log_is_refused_unread(tmp_path, name):
    path = delta(tmp_path / "t")
    with Path(path, "_delta_log", name).open("ab") as file:
        file.truncate((256 << 20) + 1)  # a hole, which takes no room on the disk
    with pytest.raises(UnreadableTable, match=f"_delta_log/{name} {TOO_LARGE}"):
        find_table(path)


def test_a_delta_log_that_is_huge_as_a_whole_is_refused_but_for_what_a_checkpoint_tells(
    tmp_path, monkeypatch
):
    path = delta(tmp_path / "t")
    for _ in range(4):
        write_deltalake(path, ROWS, mode="append")
    monkeypatch.setattr("covary.tables.formats.delta_log.LARGEST_LOG", 5000)
    with pytest.raises(UnreadableTable, match="_delta_log, since its last checkpoint, is larger than"):
        find_table(path)
    DeltaTable(path).create_checkpoint()
    with Path(path, "_delta_log", f"{0:020}.json").open("ab") as file:
        file.truncate((256 << 20) + 1)
    assert rows_of(path)[0].height == 1500


def test_a_checkpoint_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = delta(tmp_path / "t")
    DeltaTable(path).create_checkpoint()
    monkeypatch.setattr("covary.tables.formats.delta_log.LARGEST_CHECKPOINT", 1000)
    with pytest.raises(UnreadableTable, match=rf"_delta_log/{0:020}\.checkpoint\.parquet is larger than"):
        find_table(path)


@pytest.mark.parametrize("is_packed", [True, False])
def test_iceberg_metadata_that_would_fill_the_memory_is_refused(tmp_path, is_packed):
    path = folder_of(iceberg(tmp_path / "ice", ROWS))
    name = f"v9{'.gz' * is_packed}.metadata.json"
    with Path(path, "metadata", name).open("wb") as file:
        if is_packed:
            file.write(gzip.compress(bytes(1 << 20), 1) * 257)
        else:
            file.truncate((256 << 20) + 1)
    with pytest.raises(UnreadableTable, match=f"metadata/{name}: it {TOO_LARGE}"):
        find_table(path)


def test_packed_iceberg_metadata_is_read(tmp_path):
    path = Path(folder_of(iceberg(tmp_path / "ice", ROWS)))
    newest = max((path / "metadata").glob("*.metadata.json"))
    (path / "metadata" / "v9.gz.metadata.json").write_bytes(gzip.compress(newest.read_bytes()))
    newest.unlink()
    assert rows_of(str(path))[0].height == 300


def test_a_huge_list_of_an_iceberg_table_is_refused_unread(tmp_path):
    path = folder_of(iceberg(tmp_path / "ice", ROWS))
    (listed,) = Path(path, "metadata").glob("snap-*.avro")
    with listed.open("ab") as file:
        file.truncate((256 << 20) + 1)
    with pytest.raises(UnreadableTable, match=rf"{listed.name} {TOO_LARGE}"):
        find_table(path)


def test_an_iceberg_table_names_no_code_and_no_server(tmp_path, monkeypatch):
    (tmp_path / "planted_reader.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    path = Path(folder_of(iceberg(tmp_path / "ice", ROWS)))
    newest = max((path / "metadata").glob("*.metadata.json"))
    content = json.loads(newest.read_text())
    content["properties"] |= {"py-io-impl": "planted_reader.Reader", "s3.endpoint": "http://attacker"}
    newest.write_text(json.dumps(content))
    assert rows_of(str(path))[0].height == 300
    assert not (tmp_path / "ran").exists()


def test_mapped_names_are_read_as_the_schema_has_them(tmp_path):
    rows = pa.table({"col-1": ["a", "b", "c"], "col-2": [1, 2, 3]})
    fields = [field("key", "string", 1), field("x", "long", 2), field("col-1", "integer", 3)]
    files = [(rows, {"col-3": "7"}, [1]), (rows, {"col-3": None}, None)]
    mode = {"delta.columnMapping.mode": "name"}
    features = ["columnMapping", "deletionVectors"]
    path = delta_by_hand(tmp_path / "t", fields, files, features, ["col-1"], **mode)
    read, _ = rows_of(path)
    assert read.to_dict(as_series=False) == {
        "key": ["a", "c", "a", "b", "c"],
        "x": [1, 3, 1, 2, 3],
        "col-1": [7, 7, None, None, None],
    }
    assert_frame_equal(read, pl.DataFrame(DeltaTable(path).scan().read_all()))


def test_names_mapped_by_number_are_read_by_number(tmp_path):
    numbered = pa.schema(
        [
            pa.field("anything", pa.string(), metadata={"PARQUET:field_id": "1"}),
            pa.field("key", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    fields = [field("key", "string", 1), field("x", "long", 2), field("new", "long", 3)]
    mode = {"delta.columnMapping.mode": "id"}
    files = [(pa.table([["a", "b"], [1, 2]], schema=numbered), {}, None)]
    path = delta_by_hand(tmp_path / "t", fields, files, ["columnMapping"], **mode)
    assert rows_of(path)[0].to_dict(as_series=False) == {
        "key": ["a", "b"],
        "x": [1, 2],
        "new": [None, None],
    }


def test_widened_types_are_read_as_the_wider(tmp_path):
    old = pa.table(
        {
            "x": pa.array([1], pa.int8()),
            "y": pa.array([0.5], pa.float32()),
            "z": pa.array([3], pa.int32()),
            "amount": pa.array([Decimal("1.5")], pa.decimal128(4, 1)),
            "at": [datetime.date(2020, 1, 2)],
        }
    )
    new = pa.table(
        {
            "x": [2**40],
            "y": [0.1],
            "z": [0.25],
            "amount": [Decimal("12345.678")],
            "at": [datetime.datetime(2020, 1, 3, 4)],
        }
    )
    kinds = {"x": "long", "y": "double", "z": "double", "amount": "decimal(10,3)", "at": "timestamp_ntz"}
    fields = [field(name, kind) for name, kind in kinds.items()]
    features = ["typeWidening", "timestampNtz"]
    path = delta_by_hand(tmp_path / "t", fields, [(old, {}, None), (new, {}, None)], features)
    assert rows_of(path)[0].to_dict(as_series=False) == {
        "x": [1, 2**40],
        "y": [0.5, 0.1],
        "z": [3.0, 0.25],
        "amount": [Decimal("1.5"), Decimal("12345.678")],
        "at": [datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 3, 4)],
    }


def test_a_spark_timestamp_far_from_now_is_read(tmp_path):
    far = datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)
    path = delta_by_hand(tmp_path / "t", [field("at", "timestamp")], [(ROWS, {}, None)], ["timestampNtz"])
    file = tmp_path / "t" / "part %0.parquet"
    pq.write_table(pa.table({"at": [far]}), file, use_deprecated_int96_timestamps=True)
    assert rows_of(path)[0]["at"].to_list() == [far]


@pytest.mark.parametrize(
    ("feature", "named"), [("unheardOf", "unheardOf"), ("catalogManaged", "catalog-managed")]
)
def test_a_feature_that_can_not_be_honoured_is_named(tmp_path, feature, named):
    delta_by_hand(tmp_path / "t", [field("x", "integer")], [(ROWS, {}, None)], [feature])
    tables, skipped, _ = find_tables([tmp_path])
    assert tables == []
    assert [(each.path, named in each.reason.text) for each in skipped] == [(str(tmp_path / "t"), True)]


def test_a_feature_that_delta_rs_knows_and_covary_does_not_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("covary.tables.formats.delta.READER_FEATURES", set())
    path = delta_by_hand(tmp_path / "t", [field("x", "integer")], [(ROWS, {}, None)], ["deletionVectors"])
    with pytest.raises(UnreadableTable, match="a feature of Delta Lake that covary can't read: deletionV"):
        find_table(path)


def add_deletes(table, monkeypatch, content, rows):
    """Commit a delete file, which pyiceberg reads but doesn't write."""
    file = f"{table.location()}/data/deletes.parquet"
    pq.write_table(rows, file.removeprefix("file://"))
    deletes = DataFile.from_args(
        content=content,
        file_path=file,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows.num_rows,
        file_size_in_bytes=1,
        equality_ids=[2] if content == DataFileContent.EQUALITY_DELETES else None,
    )
    deletes.spec_id = 0
    monkeypatch.setattr(ManifestWriterV2, "content", lambda self: ManifestContent.DELETES)
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        snapshot.append_data_file(deletes)


def test_rows_of_an_iceberg_delete_file_are_gone(tmp_path, monkeypatch):
    table = iceberg(tmp_path / "ice", ROWS[:100], ROWS[100:])
    first = next(task.file.file_path for task in table.scan("x < 100").plan_files())
    positions = pa.table({"file_path": [first, first], "pos": [0, 42]})
    add_deletes(table, monkeypatch, DataFileContent.POSITION_DELETES, positions)
    rows, parts = rows_of(folder_of(table))
    assert parts == 2
    assert sorted(rows["x"]) == [number for number in range(300) if number not in {0, 42}]


def test_iceberg_deletes_that_can_not_be_honoured_are_named(tmp_path, monkeypatch):
    table = iceberg(tmp_path / "ice", ROWS)
    add_deletes(table, monkeypatch, DataFileContent.EQUALITY_DELETES, pa.table({"x": [5]}))
    tables, skipped, _ = find_tables([tmp_path / "ice" / "ns"])
    assert tables == []
    assert "equality deletes" in skipped[0].reason.text


def test_a_missing_data_file_is_named(tmp_path):
    path = delta(tmp_path / "t")
    (missing, *_) = sorted(Path(path).rglob("*.parquet"))
    missing.unlink()
    with pytest.raises(UnreadableTable) as refusal:
        rows_of(path)
    name = missing.relative_to(path)
    assert refusal.value.reason == f"its data file {name}: there is no such file"
    table = iceberg(tmp_path / "ice", ROWS)
    (missing,) = (tmp_path / "ice").rglob("*.parquet")
    missing.unlink()
    with pytest.raises(UnreadableTable, match=f"its data file file://{missing}: there is no such file"):
        rows_of(folder_of(table))


def test_a_data_file_of_another_type_is_named(tmp_path):
    files = [(ROWS, {}, None), (pa.table({"x": ["seven"]}), {}, None)]
    path = delta_by_hand(tmp_path / "t", [field("x", "integer")], files, ["timestampNtz"])
    with pytest.raises(UnreadableTable, match=r"its data file part %1.parquet: .*seven"):
        rows_of(path)


def test_a_damaged_data_file_is_named(tmp_path):
    path = delta(tmp_path / "t", ROWS, None)
    (file,) = Path(path).rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(UnreadableTable, match=f"its data file {file.name}: "):
        rows_of(path)


@pytest.mark.parametrize("part", [0, 0.5])
def test_a_truncated_delta_log_is_named(tmp_path, part):
    path = delta(tmp_path / "t")
    write_deltalake(path, ROWS, mode="append")
    last = Path(path, "_delta_log", f"{1:020}.json")
    last.write_bytes(last.read_bytes()[: int(last.stat().st_size * part)])
    tables, (skipped,), _ = find_tables([tmp_path])
    assert tables == []
    assert skipped.path == path
    assert skipped.reason.text.startswith(f"_delta_log/{last.name} ")


def test_a_truncated_checkpoint_is_named(tmp_path):
    path = delta(tmp_path / "t")
    DeltaTable(path).create_checkpoint()
    (checkpoint,) = Path(path, "_delta_log").glob("*.parquet")
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    with pytest.raises(UnreadableTable, match=f"_delta_log/{checkpoint.name} can't be read"):
        find_table(path)


def test_a_commit_that_a_checkpoint_covers_may_be_empty(tmp_path):
    path = delta(tmp_path / "t")
    DeltaTable(path).create_checkpoint()
    Path(path, "_delta_log", f"{0:020}.json").write_bytes(b"")
    assert rows_of(path)[0].height == 300


def test_truncated_iceberg_metadata_is_named(tmp_path):
    table = iceberg(tmp_path / "ice", ROWS)
    newest = Path(table.metadata_location.removeprefix("file://"))
    newest.write_bytes(newest.read_bytes()[:100])
    tables, (skipped,), _ = find_tables([tmp_path / "ice" / "ns"])
    assert tables == []
    assert skipped.reason.text.startswith(f"metadata/{newest.name}: ")


def test_a_missing_manifest_is_named(tmp_path):
    table = iceberg(tmp_path / "ice", ROWS)
    Path(table.current_snapshot().manifest_list.removeprefix("file://")).unlink()
    with pytest.raises(UnreadableTable, match=r"snap-\d+.*avro"):
        find_table(folder_of(table))


def test_the_newest_iceberg_metadata_counts(tmp_path):
    table = iceberg(tmp_path / "ice", ROWS)
    metadata = Path(folder_of(table), "metadata")
    newest = metadata / Path(table.metadata_location).name
    for name in ("v9.metadata.json", "v10.metadata.json"):  # as Hadoop's tables have them
        shutil.copy(newest, metadata / name)
    (metadata / "v9.metadata.json").write_text("not this one")
    assert rows_of(folder_of(table))[0].height == 300
    for file in metadata.glob("*.metadata.json"):
        file.unlink()
    (metadata / "version-hint.text").write_text("10")
    with pytest.raises(UnreadableTable, match=r"there is no \*.metadata.json"):
        find_table(folder_of(table))


def test_a_table_without_rows_is_no_table(tmp_path):
    table = warehouse(tmp_path / "ice")
    table.create_namespace("ns")
    table.create_table("ns.t", ROWS.schema)
    source = find_table(str(tmp_path / "ice" / "ns" / "t"))
    assert read_layout(source).columns == ("key", "x", "year")
    layout = read_layout(source)
    assert [list(read_chunk(chunk, layout)) for chunk in plan_chunks(source, layout)] == [[]]


@pytest.mark.parametrize(("package", "folder"), [("deltalake", "deep/er/d"), ("pyiceberg.table", "ice/ns/t")])
def test_a_missing_package_is_named(lake, monkeypatch, package, folder):
    extra = "delta" if package == "deltalake" else "iceberg"
    monkeypatch.setitem(sys.modules, package, None)
    tables, (skipped,), _ = find_tables([lake])
    assert len(tables) == 3
    assert skipped.path == str(lake / folder)
    assert f"pip install 'covary[{extra}]'" in skipped.reason.text
    for find in (find_table, lambda path: find_tables([path])):
        with pytest.raises(MissingPart, match=rf"pip install 'covary\[{extra}\]'"):
            find(str(lake / folder))


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    """A catalog of three tables in two namespaces, known to pyiceberg by its configuration."""
    for name in ("a.t", "a.u", "b.t"):
        iceberg(tmp_path / "ice", ROWS, name=name)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/ice/catalog.db")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # read when it was imported
    return tmp_path


def test_a_catalog_names_its_tables(catalog):
    assert names_and_formats(["iceberg:lake"]) == [
        ("a/t", "iceberg"),
        ("a/u", "iceberg"),
        ("b/t", "iceberg"),
    ]
    assert [table.name for table in find_tables(["iceberg:lake.a"]).tables] == ["t", "u"]
    (table,) = find_tables(["iceberg:lake.b.t"]).tables
    assert (table.name, table.location.text, table.source) == ("t", "iceberg:lake.b.t", "iceberg:lake.b.t")
    assert rows_of(table)[0].height == 300
    assert_same_sketch("iceberg:lake.a.u", ROWS)
    both = [table.name for table in find_tables(["iceberg:lake.a", "iceberg:lake.b"]).tables]
    assert both == ["iceberg:lake.a.t", "u", "iceberg:lake.b.t"]
    assert name_source("iceberg:lake.a") == "iceberg:lake.a"


@pytest.mark.parametrize("source", ["iceberg:nowhere", "iceberg:lake.c", "iceberg:lake.a.none", "iceberg:"])
def test_a_catalog_or_table_that_is_not_there_is_named(catalog, source):
    with pytest.raises(UnreadableTable, match=source):
        find_tables([source])
    with pytest.raises(UnreadableTable, match=source):
        find_table(source)


def test_a_query_needs_one_table_of_a_catalog(catalog):
    with pytest.raises(UnreadableTable, match=r"it holds 3 tables; name one, as iceberg:lake\.a\.t"):
        find_table("iceberg:lake")


@pytest.fixture
def bucket(s3_server):
    """A bucket with a Delta table, an Iceberg table and a CSV file."""
    fsspec.filesystem("s3").invalidate_cache()
    client = boto3.client("s3")
    client.create_bucket(Bucket="lakehouses")
    yield client
    for page in client.get_paginator("list_objects_v2").paginate(Bucket="lakehouses"):
        for each in page.get("Contents", ()):
            client.delete_object(Bucket="lakehouses", Key=each["Key"])
    client.delete_bucket(Bucket="lakehouses")


@pytest.fixture
def remote(bucket, tmp_path, monkeypatch):
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    options = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
    write_deltalake("s3://lakehouses/lake/d", ROWS, partition_by="year", storage_options=options)
    catalog = SqlCatalog(
        "lake",
        **{"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": "s3://lakehouses/lake", "s3.endpoint": endpoint},
    )
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.t", ROWS.schema)
    table.append(ROWS[:100])
    table.append(ROWS[100:])
    bucket.put_object(Bucket="lakehouses", Key="lake/c.csv", Body=pl.from_arrow(ROWS).write_csv().encode())
    return table.location()


def test_lakehouse_tables_of_a_bucket(remote):
    lake = [("c", "csv"), ("d", "delta"), ("ns/t", "iceberg")]
    assert names_and_formats(["s3://lakehouses/lake"]) == lake
    assert names_and_formats(["s3://lakehouses/lake/**"]) == lake
    assert names_and_formats(["s3://lakehouses/lake/*"]) == lake[:2]
    assert names_and_formats(["s3://lakehouses/lake/d/*/*.parquet"]) == [("d", "delta")]
    assert names_and_formats(["s3://lakehouses/lake/d/"]) == [("d", "delta")]
    assert names_and_formats([remote]) == [("t", "iceberg")]
    for url, parts in (("s3://lakehouses/lake/d", 3), (remote, 2)):
        rows, chunks = rows_of(url)
        assert chunks == parts
        assert_frame_equal(rows[ROWS.column_names], pl.from_arrow(ROWS), check_row_order=False)
        assert_same_sketch(url, ROWS)


def test_lakehouse_tables_of_a_bucket_are_looked_into_with_limits(remote):
    asked = []

    def look(path, function, *given, stop=None):
        asked.append(path)
        return function(*given)

    here = find_tables(["s3://lakehouses/lake"])
    assert find_tables(["s3://lakehouses/lake"], look=look) == here
    assert sorted(asked) == sorted(
        table.location.text for table in here.tables if get_reader(table).name != "csv"
    )
    with ReadingProcess() as one, ReadingProcess() as other:
        look = look_in_processes([one, other], Limits())
        for _ in range(2):  # what the threads started ends with them
            assert find_tables(["s3://lakehouses/lake"], look=look) == here


def test_a_missing_object_is_named_without_a_secret(remote, bucket):
    listed = bucket.list_objects_v2(Bucket="lakehouses", Prefix="lake/")["Contents"]
    for key in [each["Key"] for each in listed if each["Key"].endswith(".parquet")]:
        bucket.delete_object(Bucket="lakehouses", Key=key)
    for url in ("s3://lakehouses/lake/d", remote):
        with pytest.raises(
            UnreadableTable, match=r"its data file .*parquet: there is no such file"
        ) as refusal:
            rows_of(url)
        assert "very-secret" not in str(refusal.value)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_columns_are_judged_by_all_small_files_not_by_the_first(tmp_path, kind):
    days = [datetime.date(2013, 1, 1) + datetime.timedelta(days=number) for number in range(5)]
    schema = pa.schema([("day", pa.date32()), ("x", pa.float64()), ("late", pa.float64())])
    numbers = [float(number * 7 % 41) for number in range(40)]
    parts = [
        pa.table({"day": [day] * 40, "x": numbers, "late": numbers if number else [None] * 40}, schema=schema)
        for number, day in enumerate(days)
    ]
    if kind == "delta":
        for part in parts:
            write_deltalake(str(tmp_path / "daily"), part, mode="append")
        path = str(tmp_path / "daily")
    else:
        path = folder_of(iceberg(tmp_path / "house", *parts))
    table = find_table(path)
    layout = read_layout(table)
    [chunk] = plan_chunks(table, layout)
    first = next(read_chunk(chunk, layout))
    assert first["day"].n_unique() == 5
    assert first["late"].null_count() == 40
