"""What covary may not write to, remove or follow, whatever lies in the folder it is given."""

import io
import json
import os
import shutil

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import covary
from covary.build.upkeep import compact_index, remove_tables
from covary.cli.change_view import COMMITS_SHOWN, history_view
from covary.errors import CannotWrite, DamagedIndex, NotAnIndex, StoreError, UnsupportedFormat
from covary.index import commit as commits
from covary.index import history
from covary.index.check import check_index
from covary.index.commit import commit, open_draft
from covary.index.history import Change, read_history
from covary.index.manifest import FORMAT, Manifest, seal_of
from covary.index.segment_files import write_segment
from covary.index.segment_layout import build_segment
from covary.index.table_records import TableRecord
from covary.own_files import set_mark
from covary.sketching.kernel import finish, sketch_rows
from covary.sketching.key_columns import exact_key
from covary.sketching.sketch_types import SketchConfig

CONFIG = SketchConfig(16)
HEX = "0123456789abcdef" * 2
NUMBERS = pl.Series(np.random.default_rng(5).normal(size=30))
KEYS = pl.DataFrame({"k": [f"k{n}" for n in range(30)]})


def write_index(folder, table="t"):
    values = pl.Series("v", np.arange(30.0))
    made = finish(sketch_rows(KEYS, [exact_key("k")], {"v": values}, CONFIG, table), CONFIG)
    with open_draft(folder) as draft:
        stored = write_segment(build_segment([(TableRecord(table, f"/{table}.csv", 30), made)]), draft.folder)
        commit(draft, Manifest(CONFIG, (stored,)))


def build(source, into, **settings):
    return covary.build_index(source, into, runner="process", size=16, **settings)


@pytest.fixture
def index(tmp_path):
    write_index(tmp_path / "index")
    return tmp_path / "index"


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    KEYS.with_columns(v=NUMBERS).write_csv(tmp_path / "data" / "t.csv")
    return tmp_path / "data"


@pytest.fixture
def precious(tmp_path):
    """A folder of a user's own, outside of any index."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    return tmp_path / "precious"


def state(folder):
    """Everything below a folder: contents of files, targets of links, and what kind the rest is."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = path.read_bytes() if path.is_file() else path.stat().st_mode
    return found


def segment_in(index):
    [name] = [stored["name"] for stored in json.loads((index / "manifest.json").read_text())["segments"]]
    return index / "segments" / name


def sealed(content):
    content = {name: value for name, value in content.items() if name != "checksum"}
    return json.dumps(content | {"checksum": seal_of(content)})


def change_manifest(index, **changes):
    content = json.loads((index / "manifest.json").read_text())
    (index / "manifest.json").write_text(sealed(content | changes))


OTHERS = {
    "segments of the user's": {"segments/customers/a.csv": "key,x\n"},
    "a lock": {"lock": "mine"},
    "a history": {"history.jsonl": "mine\n"},
    "all names of an index": {"segments/customers/a.csv": "k", "lock": "", "history.jsonl": "{}\n"},
    "notes on building": {".building-notes/a.txt": "mine"},
    "what looks like scratch": {".building-host-12-0123456789ab/a.txt": "mine"},
    "a segment's name": {f"segments/{HEX}/a.csv": "mine"},
    "a manifest of a web page": {"manifest.json": '{"name": "shop", "icons": []}', "icon.png": "x"},
    "a manifest with a format": {"manifest.json": '{"format": 3, "config": {}, "segments": []}'},
    "an empty manifest": {"manifest.json": ""},
    "a mark of somebody else": {"covary-index": "my notes on covary's index\n"},
    "a mark that goes on": {
        "covary-index": "This folder is a covary index: covary writes and removes files in it.\nX"
    },
    "an empty mark among others": {"covary-index": "", "thesis.txt": "years of work"},
}


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("content", OTHERS.values(), ids=OTHERS)
def test_what_is_not_shown_to_be_an_index_is_never_written_to(tmp_path, data, content, fresh):
    folder = tmp_path / "project"
    for name, text in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    before = state(folder)
    with pytest.raises(CannotWrite) as refused:
        build(data, folder, fresh=fresh)
    assert "--fresh" not in str(refused.value)
    assert state(folder) == before
    for change in (lambda: compact_index(folder), lambda: remove_tables(folder, ["t"])):
        with pytest.raises(StoreError) as refused:
            change()
        assert "--fresh" not in str(refused.value)
    assert state(folder) == before


@pytest.mark.parametrize("made", [None, "empty", "linked", "marked in vain", "marked"])
def test_a_new_or_empty_folder_becomes_an_index(tmp_path, data, made):
    if made == "linked":
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "index").symlink_to("elsewhere")
    elif made:
        (tmp_path / "index").mkdir()
    if made == "marked in vain":  # killed before it could write the mark
        (tmp_path / "index" / "covary-index").touch()
    if made == "marked":
        set_mark(tmp_path / "index")
    build(data, tmp_path / "index")
    assert covary.open_index(tmp_path / "index").tables["name"].to_list() == ["t"]
    assert check_index(tmp_path / "index").not_ours == ()


@pytest.mark.parametrize("version", [6, FORMAT, 8])
def test_an_index_without_a_mark_is_known_by_its_manifest(index, data, version):
    (index / "covary-index").unlink()
    change_manifest(index, format=version)
    old = segment_in(index)
    if version != FORMAT:
        with pytest.raises(UnsupportedFormat, match="--fresh"):
            build(data, index)
    build(data, index, fresh=True)
    assert covary.open_index(index).tables["path"].to_list() == [str(data / "t.csv")]
    assert not old.exists()
    assert check_index(index).not_ours == ()


@pytest.mark.parametrize("text", ["", "{", "null", '{"format": 8}', "[" * 5000, '{"checksum": "x"}'])
def test_a_damaged_manifest_is_replaced_where_there_is_a_mark_and_kept_aside(index, data, text):
    (index / "manifest.json").write_text(text)
    with pytest.raises(DamagedIndex, match="--fresh"):
        build(data, index)
    build(data, index, fresh=True)
    assert covary.open_index(index).tables["path"].to_list() == [str(data / "t.csv")]
    kept = [path.read_text() for path in index.glob("manifest.json.damaged-*")]
    assert kept == ([text] if text else [])


def test_a_damaged_manifest_without_a_mark_is_not_taken_for_ours(index, data):
    (index / "covary-index").unlink()
    (index / "manifest.json").write_text("{")
    before = state(index)
    for fresh in (False, True):
        with pytest.raises(CannotWrite, match="choose a new folder"):
            build(data, index, fresh=fresh)
    with pytest.raises(NotAnIndex, match="not a covary index"):
        covary.open_index(index)
    assert state(index) == before


USERS = {
    "segments/customers/a.csv": "mine",
    "segments/notes.txt": "mine",
    f"segments/{HEX}/a.csv": "mine",
    f"segments/{HEX[::-1]}/keys.arrow": "mine",
    ".building-notes/a.txt": "mine",
    ".building-host-12-xyz/a.txt": "mine",
    ".building-thesis-20240131-0123456789ab/a.txt": "mine",
    "thesis.txt": "mine",
    "manifest.json.old": "mine",
}


def test_only_what_covary_wrote_is_removed_from_an_index(index, data, precious):
    for name, text in USERS.items():
        (index / name).parent.mkdir(parents=True, exist_ok=True)
        (index / name).write_text(text)
    links = {f"segments/{HEX[1:]}0": precious, ".building-host-12-0123456789ab": precious}
    for name, target in links.items():
        (index / name).symlink_to(target)
    killed = index / ".building-host-12-ba9876543210"  # what its writer left
    (killed / "parts").mkdir(parents=True)
    set_mark(killed)
    old = segment_in(index)
    first = {str(index / name.rpartition("/")[0] or name) for name in USERS if name.count("/") == 2}
    build(data, index, fresh=True)
    compact_index(index)
    remove_tables(index, ["t"])
    build(data / "t.csv", index)
    assert not old.exists()
    assert not killed.exists()
    assert {name: (index / name).read_text() for name in USERS} == USERS
    assert state(precious) == {"thesis.txt": b"years of work"}
    found = check_index(index)
    assert found.left_over == ()
    assert first | {str(index / name) for name in links} <= set(found.not_ours)
    assert not any(str(segment_in(index)) in name for name in found.not_ours)


def test_a_segment_that_no_manifest_names_is_removed_if_it_is_what_its_name_says(index, tmp_path):
    write_index(tmp_path / "other", "u")
    for name, changed in (("whole", False), ("damaged", True)):
        left = index / "segments" / segment_in(tmp_path / "other").name
        shutil.copytree(segment_in(tmp_path / "other"), left)
        if changed:
            (left / "values.arrow").write_text("mine")
        (tmp_path / name).mkdir()
        write_index(index, f"new {name}")
        assert left.exists() == changed
    assert check_index(index).not_ours == (str(left),)


def test_files_in_a_segments_folder_that_are_not_its_own_stay(index):
    (segment_in(index) / "notes.txt").write_text("mine")
    folder = segment_in(index)
    assert check_index(index).not_ours == (str(folder / "notes.txt"),)
    write_index(index, "u")
    assert (folder / "notes.txt").read_text() == "mine"
    assert check_index(index).not_ours == (str(folder),)


@pytest.mark.parametrize("what", ["folder", "link", "file"])
def test_what_is_in_the_way_of_a_segment_is_set_aside(index, tmp_path, precious, what):
    write_index(tmp_path / "other", "u")
    place = index / "segments" / segment_in(tmp_path / "other").name
    if what == "folder":
        shutil.copytree(precious, place)
    elif what == "link":
        place.symlink_to(precious)
    else:
        place.write_text("mine")
    before = state(precious)
    write_index(index, "u")
    assert covary.open_index(index).tables["name"].to_list() == ["u"]
    [aside] = place.parent.glob("*.damaged-*")
    if what == "file":
        assert aside.read_text() == "mine"
    else:
        assert state(aside) == before
    assert state(precious) == before


def replaced(path, how, target):
    """Put something else in the place of a file or a folder of an index, which is kept beside it."""
    path.rename(path.parents[1] / "moved") if path.exists() else None
    if how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    elif how == "nowhere":
        path.symlink_to("nowhere")
    else:
        path.symlink_to(target)


@pytest.mark.parametrize("how", ["link", "pipe", "folder", "nowhere", "device"])
@pytest.mark.parametrize("name", ["manifest.json", "history.jsonl", "lock", "covary-index"])
def test_no_link_or_pipe_is_taken_for_a_file_of_an_index(tmp_path, data, precious, name, how):
    index = tmp_path / "in" / "index"
    build(data, index)
    target = "/dev/zero" if how == "device" else precious / "thesis.txt"
    replaced(index / name, "link" if how == "device" else how, target)
    KEYS.with_columns(w=NUMBERS).write_csv(data / "u.csv")
    changes = [
        lambda: build(data, index),
        lambda: build(data, index, fresh=True),
        lambda: compact_index(index),
        lambda: remove_tables(index, ["t"]),
    ]
    before = state(precious)
    if name == "manifest.json":
        changes.append(lambda: covary.open_index(index))
    if name in {"manifest.json", "history.jsonl"}:
        changes.append(lambda: read_history(index))
    for change in changes:
        with pytest.raises(StoreError, match=name):
            change()
    assert state(precious) == before
    if name != "manifest.json":
        assert covary.open_index(index).tables["name"].to_list() == ["t"]


@pytest.mark.parametrize("how", ["link", "file", "nowhere"])
@pytest.mark.parametrize("whole", [True, False])
def test_no_link_is_taken_for_a_folder_of_an_index(tmp_path, data, index, how, whole):
    folder = index / "segments" if whole else segment_in(index)
    folder.rename(tmp_path / "elsewhere")
    if how == "file":
        folder.write_text("mine")
    else:
        folder.symlink_to("nowhere" if how == "nowhere" else tmp_path / "elsewhere")
    before = state(tmp_path / "elsewhere")
    with pytest.raises(DamagedIndex, match="damaged"):
        covary.open_index(index)
    for change in (lambda: compact_index(index), lambda: remove_tables(index, ["t"])):
        with pytest.raises(StoreError):
            change()
    if whole:
        with pytest.raises(DamagedIndex, match="damaged"):
            check_index(index)
        with pytest.raises(CannotWrite, match="nothing was changed"):
            build(data, index, fresh=True)
    else:
        assert check_index(index).damaged
        build(data, index, repair=True)
        assert covary.open_index(index).tables["path"].to_list() == [str(data / "t.csv")]
    assert state(tmp_path / "elsewhere") == before


@pytest.mark.parametrize("how", ["link", "pipe", "folder"])
@pytest.mark.parametrize("name", ["tables.arrow.zst", "keys.arrow"])
def test_no_link_or_pipe_is_taken_for_a_file_of_a_segment(tmp_path, data, index, name, how):
    (tmp_path / "elsewhere").write_bytes((segment_in(index) / name).read_bytes())
    replaced(segment_in(index) / name, how, tmp_path / "elsewhere")
    with pytest.raises(DamagedIndex, match=name):
        covary.open_index(index)
    [(file, _)] = check_index(index).damaged.items()
    assert file.endswith(name)
    build(data, index, repair=True)
    assert str(data / "t.csv") in covary.open_index(index).tables["path"].to_list()


@pytest.mark.parametrize("name", ["lock", "history.jsonl"])
def test_a_file_with_another_name_elsewhere_is_not_changed(index, tmp_path, name):
    (tmp_path / "copy").hardlink_to(index / name)
    before = (tmp_path / "copy").read_bytes()
    write_index(index, "u")
    assert (tmp_path / "copy").read_bytes() == before
    assert len(read_history(index)) == 2


@pytest.mark.parametrize("name", ["lock", "history.jsonl", "covary-index"])
@pytest.mark.parametrize("text", ["mine", "process 1 on here\nmine\n", "x" * 5000, "{}", '{"comm}'])
def test_a_file_of_a_name_of_ours_that_covary_did_not_write_is_left_alone(index, name, text):
    (index / name).write_text(text)
    with pytest.raises(CannotWrite, match="move it away"):
        write_index(index, "u")
    assert (index / name).read_text() == text


def test_lines_of_a_history_that_covary_did_not_write_stay(index):
    with (index / "history.jsonl").open("a") as history:
        history.write('mine\n{"command": "never came"}\n{"comm')
    write_index(index, "u")
    assert "mine\n" in (index / "history.jsonl").read_text()
    with pytest.raises(DamagedIndex, match="remove it"):
        read_history(index)


def test_lines_of_a_history_whose_manifest_never_came_go(index):
    with (index / "history.jsonl").open("a") as history:
        history.write('{"command": "never came"}\n{"comm')
    write_index(index, "u")
    assert [change.command for change in read_history(index)] == ["write", "write"]


@pytest.mark.parametrize("name", ["manifest.json", "history.jsonl"])
def test_a_file_beyond_any_size_is_refused_before_it_is_read(index, name):
    os.truncate(index / name, 1 << 40)
    with pytest.raises(DamagedIndex, match=r"1,099,511,627,776 bytes are more"):
        read_history(index)


def test_a_first_build_that_failed_removes_only_what_it_made(tmp_path, monkeypatch):
    folder = tmp_path / "index"
    folder.mkdir()

    def fail(*_):
        (folder / "segments" / "notes.txt").write_text("mine")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(commits, "append_change", fail)
    with pytest.raises(CannotWrite, match="the disk is full"):
        write_index(folder)
    assert list(state(folder)) == ["segments", "segments/notes.txt"]
    assert (folder / "segments" / "notes.txt").read_text() == "mine"


def test_a_failed_first_build_in_an_empty_folder_leaves_it_empty(tmp_path, data):
    (tmp_path / "index").mkdir()
    (data / "t.csv").unlink()
    with pytest.raises(covary.CovaryError, match="no tables"):
        build(data, tmp_path / "index")
    assert state(tmp_path / "index") == {}


NAMES = ["..", "../../precious", "/tmp", "customers", HEX[1:], HEX.upper(), "", "é" * 32, f"{HEX}/.", 5, None]


@pytest.mark.parametrize("name", NAMES)
def test_a_segment_of_another_name_is_refused(index, data, precious, name):
    segments = json.loads((index / "manifest.json").read_text())["segments"]
    change_manifest(index, segments=[segments[0] | {"name": name}])
    with pytest.raises(DamagedIndex, match="damaged"):
        covary.open_index(index)
    old = state(index / "segments")
    build(data, index, fresh=True)
    assert state(precious) == {"thesis.txt": b"years of work"}
    assert covary.open_index(index).tables["path"].to_list() == [str(data / "t.csv")]
    assert old.keys() - state(index / "segments").keys()  # what is shown to be ours went all the same


def with_segment(**changes):
    return lambda content: {"segments": [content["segments"][0] | changes]}


def with_config(**changes):
    return lambda content: {"config": content["config"] | changes}


def with_sizes(size):
    def changes(content):
        [segment] = content["segments"]
        files = {name: file | {"size": size} for name, file in segment["files"].items()}
        return {"segments": [segment | {"files": files}]}

    return changes


ODD = {
    "a size beyond any": with_sizes(10**400),
    "a negative size": with_sizes(-1),
    "a table beyond any": with_segment(removed=[10**30]),
    "a sketch beyond any": with_config(size=10**30),
    "a normaliser that is no text": with_config(normaliser=[1]),
    "an aggregate twice": with_config(aggregates=["mean", "mean"]),
    "a version beyond any": lambda content: {"format": 10**4000},
    "sources that are no texts": lambda content: {"sources": [5]},
    "a seed beyond any": with_config(seed=10**4000),
    "no seed": lambda content: {"config": {}},
    "what no manifest has": lambda content: {"z": [{}, {}]},
    "what no segment has": with_segment(z=[{}]),
}


@pytest.mark.parametrize("changes", ODD.values(), ids=ODD)
def test_a_sealed_manifest_with_odd_entries_is_refused_in_short(index, changes):
    change_manifest(index, **changes(json.loads((index / "manifest.json").read_text())))
    for read in (covary.open_index, check_index, compact_index):
        with pytest.raises(StoreError) as refused:
            read(index)
        assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    "line",
    [
        "[" * 5000,
        '{"command": {"a": 1}, "time": 1}',
        '{"command": "x", "names": 5}',
        '{"command": "x", "time": 3e11}',
        '{"command": "x", "time": NaN}',
        '{"command": "x", "time": 1, "bytes": 1e300}',
        '{"command": "x", "time": 1, "new": "1"}',
        '{"command": "x", "time": 1, "names": {"a": "b"}}',
        '{"command": "x", "time": 1, "names": {"a": [5]}}',
        '{"command": "x", "time": 1, "names": {"a": [' + "[" * 900 + "]" * 900 + "]}}",
        '{"command": "x", "time": 1, "manifest": ' + "[" * 900 + "]" * 900 + "}",
        "5",
    ],
)
def test_a_history_with_odd_lines_is_damage(index, line):
    (index / "history.jsonl").write_text(f"{line}\n")
    with pytest.raises(DamagedIndex, match="remove it"):
        read_history(index)


def test_any_time_and_size_that_a_history_may_tell_is_shown(index):
    line = (
        f'{{"command": "x", "time": {history.LAST_SECOND - 1}, "bytes": {history.MOST - 1}, "seconds": 1e17}}'
    )
    (index / "history.jsonl").write_text(f"{line}\n")
    [told] = read_history(index)
    shown = io.StringIO()
    Console(file=shown, width=200).print(history_view([told], "lake"))
    assert "9892-" in shown.getvalue()


def test_a_history_longer_than_any_is_refused_before_it_is_read(index, monkeypatch):
    monkeypatch.setattr(history, "MOST_COMMITS", 3)
    line = '{"command": "x", "time": 1}\n'
    (index / "history.jsonl").write_text(3 * line)
    assert len(read_history(index)) == 3
    (index / "history.jsonl").write_text(4 * "[\n")
    with pytest.raises(DamagedIndex, match=r"history.jsonl .*remove it.*its 4 lines"):
        read_history(index)


def test_a_full_history_is_set_aside_and_never_copied(index, tmp_path):
    file = index / "history.jsonl"
    os.truncate(file, 1 << 40)
    (tmp_path / "copy").hardlink_to(file)  # by which a history is copied before it is written to
    write_index(index, "u")
    assert [change.command for change in read_history(index)] == ["write"]
    [older] = index.glob("history.jsonl.older-*")
    assert older.samefile(tmp_path / "copy")
    assert older.stat().st_size == 1 << 40


def test_a_long_history_is_shown_from_its_newest_commits():
    changes = [Change("index", 1e9, new=number) for number in range(COMMITS_SHOWN + 5)]
    shown = io.StringIO()
    Console(file=shown, width=200).print(history_view(changes, "lake"))
    assert "5 earlier commits: covary history lake --json" in shown.getvalue()
    assert len(shown.getvalue().splitlines()) == COMMITS_SHOWN + 2
    assert f" {COMMITS_SHOWN + 4:,} " in shown.getvalue()


def test_a_manifest_too_long_to_be_read_again_is_not_written(index, monkeypatch):
    before = state(index)
    monkeypatch.setattr(commits, "LARGEST_MANIFEST", len((index / "manifest.json").read_bytes()) - 1)
    monkeypatch.setattr(commits, "_manifest_text", lambda _: before["manifest.json"].decode())
    with pytest.raises(CannotWrite, match="nothing was changed"):
        write_index(index)
    assert state(index) == before
