"""A small cut of `./run torture`: trials of each suite that needs no minutes and no JVM of its own."""

import pytest

from torture.hostile import EVERY, together, try_one
from torture.lies import lies
from torture.suites import ALL, run_suite
from torture.workplace import Desks, Workplace

SEED = 7
HOSTILE = (  # in one folder
    "a stray quote in row 150",
    "rows that are too long",
    "a line of JSON 5,000 levels deep",
    "text in cp1251 that does not say so",
    "pipes, devices, sockets and loops",
    "a data folder with a manifest and segments",
    "a zip with ../up.csv",
    "a broken .zst",
    "a Delta log with ../..",
    "tables with names that are SQL",
)
LIES = (
    "sketches.table: just above",
    "starts.start: the largest",
    "members.entry: the largest",
    "blocks.start: negative",
    "values: shorter by one",
    "key_sets.reach: nan",
    "keys.hash: as float64",
    "names: none",
    "manifest: a segment named '../../outside'",
    "history: a pipe",
)
CUT = {
    "csv": range(40),
    "jsonl": range(25),
    "parquet": range(30),
    "arrow": range(20),
    "packed": range(30),
    "sqlite": range(8),
    "delta": range(2),
    "folders": [0, 3, 48, 55],  # somebody's segments; their manifest; a link to folders, to a file
    "inside": [12],
    "flips": range(20),
    "lies": [number for number, each in enumerate(lies()) if each.name in LIES],
    "sources": [0],
    "atonce": range(1),
    "secrets": [2, 24],  # a parameter of each name; a password with a space and a slash as it is
}


@pytest.fixture(scope="module")
def desks(tmp_path_factory):
    opened = Desks(tmp_path_factory.mktemp("desks"))
    yield opened
    opened.close()


def test_the_cut_names_what_there_is():
    assert {each.name for each in EVERY} >= {*HOSTILE}
    assert len(CUT["lies"]) == len(LIES)
    assert {suite.name for suite in ALL} - set(CUT) == {
        "duckdb",
        "iceberg",
        "hostile",
        "kills",
        "disks",
        "largeflips",
    }


@pytest.mark.parametrize("name", CUT)
def test_no_harm(name, desks, tmp_path):
    (suite,) = (suite for suite in ALL if suite.name == name)
    outcomes = list(run_suite(suite, tmp_path / name, SEED, desks, trials=CUT[name], quick=True))
    assert len(outcomes) == len(CUT[name])
    broken = {(each.trial, each.name): each.breaches for each in outcomes if each.breaches}
    assert not broken


def test_hostile_tables_do_no_harm(desks, tmp_path):
    workplace = Workplace("hostile", tmp_path, SEED, desks, quick=True)
    assert try_one(workplace, 0, together(HOSTILE)).breaches == ()
