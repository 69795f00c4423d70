"""An index is read again from what its user gave it on this machine, and from nothing else unasked."""

import json
import os
import shutil
import stat
from dataclasses import replace
from functools import partial

import polars as pl
import pytest
from typer.testing import CliRunner

import covary
from covary.build.upkeep import compact_index, remove_tables
from covary.cli.app import app
from covary.errors import CovaryError, DamagedIndex, UntrustedSources
from covary.index.manifest import read_manifest
from covary.tables.url_marks import make_mark

build_index = partial(covary.build_index, runner="process")


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """The state folder of a user who has given nothing yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def tables(tmp_path):
    write(tmp_path / "tables" / "mine.csv")
    return tmp_path / "tables"


@pytest.fixture
def index(tables, tmp_path):
    build_index(tables, tmp_path / "index", size=32)
    return tmp_path / "index"


def write(path, rows=20):
    path.parent.mkdir(exist_ok=True)
    pl.DataFrame({"place": [f"p{n}" for n in range(rows)], "y": [n * n / 7 for n in range(rows)]}).write_csv(
        path
    )
    return path


def plant(index, *sources):
    """Do what an attacker can: name sources in an index, under a checksum that is right."""
    manifest = read_manifest(index)
    sources = tuple(sorted({*manifest.sources, *map(str, sources)}))
    (index / "manifest.json").write_text(replace(manifest, sources=sources).to_json())


def records(state):
    return [path for path in state.rglob("*") if path.is_file()]


def test_what_was_given_is_read_again_without_a_word(index, tables):
    write(tables / "new.csv")
    assert set(build_index(None, index).tables["name"]) == {"mine", "new"}
    assert build_index(None, index, repair=True).tables.height == 2


def test_a_planted_source_is_refused_and_named(index, tmp_path, bytes_of):
    secret = write(tmp_path / "secret" / "keys.csv")
    plant(index, secret, "http://169.254.169.254/latest", "spark:SELECT 1 AS a")
    before = bytes_of(index)
    for refresh in ({}, {"repair": True}, {"checksum": True}):
        with pytest.raises(UntrustedSources) as caught:
            build_index(None, index, **refresh)
        for named in (str(secret), "http://169.254.169.254/latest", "spark:SELECT 1 AS a"):
            assert named in str(caught.value)
        assert str(tmp_path / "tables") not in str(caught.value)
    with pytest.raises(UntrustedSources):  # nor is it read beside a source that is given
        build_index(write(tmp_path / "more" / "m.csv"), index)
    assert bytes_of(index) == before


def test_a_planted_source_is_confirmed_once(index, tmp_path):
    plant(index, write(tmp_path / "theirs.csv"))
    assert set(build_index(None, index, trust_sources=True).tables["name"]) == {"mine", "theirs"}
    assert len(build_index(None, index).tables) == 2


def test_a_confirmation_counts_only_when_the_build_is_done(index, tmp_path):
    plant(index, write(tmp_path / "theirs.csv"))
    values = next(index.rglob("values.arrow"))
    whole = values.read_bytes()
    values.write_bytes(whole[:-1])
    with pytest.raises(DamagedIndex):
        build_index(None, index, trust_sources=True)
    values.write_bytes(whole)
    with pytest.raises(UntrustedSources):
        build_index(None, index)


def test_naming_a_planted_source_is_giving_it(index, tmp_path):
    theirs = write(tmp_path / "theirs.csv")
    plant(index, theirs)
    build_index(theirs, index)
    assert len(build_index(None, index).tables) == 2


def test_starting_over_needs_no_trust(index, tables, tmp_path):
    plant(index, tmp_path / "nowhere")
    assert build_index(tables, index, fresh=True).tables.height == 1
    build_index(None, index)


def test_an_index_that_was_moved_is_trusted_once_more_and_the_old_place_is_not_lost(index, tmp_path):
    moved = shutil.copytree(index, tmp_path / "moved")
    with pytest.raises(UntrustedSources, match="if the index is yours"):
        build_index(None, moved)
    build_index(None, moved, trust_sources=True)
    build_index(None, moved)
    build_index(None, index)


def test_an_index_is_known_by_its_real_place(index, tmp_path):
    (tmp_path / "link").symlink_to(index.parent)
    build_index(None, tmp_path / "link" / "index")


def test_what_reads_no_source_needs_no_trust(index, tmp_path):
    plant(index, tmp_path / "nowhere")
    compact_index(index)
    remove_tables(index, str(tmp_path / "nowhere"))
    build_index(None, index)


def test_notes_are_the_users_alone_and_tell_no_source(index, tables, state):
    [record] = records(state)
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in record.parents[:2])
    assert str(tables) not in record.read_text()


def test_no_note_is_written_twice(index, state):
    [record] = records(state)
    before = record.stat()
    build_index(None, index)
    assert os.path.samestat(record.stat(), before)
    assert records(state) == [record]


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: record.unlink(),
        lambda record: record.write_text(record.read_text()[:-10]),
        lambda record: record.write_text("[" * 100_000),
        lambda record: record.write_text('{"index": 1}'),
        lambda record: record.write_text('{"index": "/elsewhere", "sources": []}'),
        lambda record: record.write_bytes(b"\xff\xfe"),
        lambda record: record.chmod(0o666),
        lambda record: (record.rename(record.with_name("else")), record.symlink_to(record.with_name("else"))),
        lambda record: (record.unlink(), os.mkfifo(record)),
        lambda record: (record.unlink(), record.mkdir(), (record / "x").mkdir()),
        pytest.param(
            lambda record: os.chown(record, 12345, -1),
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away"),
        ),
    ],
)
def test_notes_that_are_damaged_or_of_others_count_for_nothing(index, state, tables, damage):
    [record] = records(state)
    damage(record)
    with pytest.raises(UntrustedSources):
        build_index(None, index)
    if not record.is_dir():
        build_index(tables, index)  # and are replaced
        build_index(None, index)


def test_notes_of_one_index_do_not_serve_for_another(index, tmp_path, state):
    [record] = records(state)
    other = shutil.copytree(index, tmp_path / "other")
    with pytest.raises(UntrustedSources):
        build_index(None, other)
    build_index(None, other, trust_sources=True)
    [another] = {*records(state)} - {record}
    shutil.copy2(record, another)
    with pytest.raises(UntrustedSources):
        build_index(None, other)


def test_without_a_place_for_notes_it_is_said_once(tables, tmp_path, state, monkeypatch):
    state.write_text("a file where a folder should be")
    with pytest.warns(UserWarning, match="can't remember here .* add trust_sources=True"):
        build_index(tables, tmp_path / "index", size=32)
    with pytest.raises(UntrustedSources):
        build_index(None, tmp_path / "index")
    with pytest.warns(UserWarning, match="can't remember here"):
        assert build_index(None, tmp_path / "index", trust_sources=True).tables.height == 1


def test_without_a_home_nothing_is_written_beside_the_work(tables, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user that the system doesn't know
    monkeypatch.chdir(tables)
    with pytest.warns(UserWarning, match="there is no home folder"):
        build_index(".", tmp_path / "index", size=32)
    with pytest.raises(CovaryError, match=r"can't keep the key .*there is no home folder.*XDG_STATE_HOME"):
        make_mark("https://host/a.csv?page=1")
    assert os.listdir(tables) == ["mine.csv"]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_line_refuses_confirms_and_remembers(index, tmp_path):
    plant(index, write(tmp_path / "theirs.csv"), "http://\x1b[31mred")
    refused = run("index", "--into", index)
    assert refused.exit_code == 2
    assert len(refused.stderr.splitlines()) == 1
    assert "\x1b" not in refused.stderr
    assert "--trust-sources" in refused.stderr
    confirmed = run("index", "--into", index, "--trust-sources")
    assert confirmed.exit_code == 0, confirmed.stderr
    assert "theirs.csv" in confirmed.stderr
    assert "\x1b" not in confirmed.stderr + confirmed.stdout
    again = run("index", "--into", index, "--json")
    assert again.exit_code == 0
    assert "from now on" not in again.stderr
    assert {each["path"] for each in json.loads(again.stdout)["skipped"]} == {"http://…"}


def test_a_hundred_planted_sources_make_one_short_line(index, tmp_path):
    plant(index, *(tmp_path / f"{'x' * 500}{number}" for number in range(100)))
    with pytest.raises(UntrustedSources, match="and 95 more") as caught:
        build_index(None, index)
    assert len(str(caught.value)) < 2500


def test_hostile_keys_values_and_exclusions_are_only_ever_names(index, tables, tmp_path):
    texts = ("\x1b[31m", "spark:DROP TABLE t", "/etc/passwd", "x/" * 5000, "$(touch pwned)", "a,b,\udc80")
    manifest = replace(read_manifest(index), keys=texts, values=texts, excluded=texts)
    (index / "manifest.json").write_text(manifest.to_json())
    write(tables / "new.csv")
    update = run("index", "--into", index)
    assert update.exit_code in {0, 2}
    info = run("info", index)
    assert info.exit_code == 0
    for each in (update, info):
        assert "\x1b" not in each.stdout + each.stderr
        assert each.exception is None or isinstance(each.exception, SystemExit), each.exception
    build_index(write(tmp_path / "more" / "m.csv").parent / "**", index)
