"""What the page for operators shows is what happens: its lines are run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def block(language):
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.S).group(1).strip()


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A folder with a small lake, and a way to run commands in it."""
    folder = tmp_path_factory.mktemp("operations")
    (folder / "lake").mkdir()
    rng = np.random.default_rng(1)
    days = pl.date_range(pl.date(2013, 1, 1), pl.date(2013, 12, 31), "1d", eager=True)
    for name in ("weather", "traffic"):
        pl.DataFrame({"day": days, name: rng.normal(size=365)}).write_csv(folder / "lake" / f"{name}.csv")
    sales = {"date": days, "revenue": rng.normal(size=365), "visitors": rng.normal(size=365)}
    pl.DataFrame(sales).write_csv(folder / "sales.csv")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # Wide, so that how long something took doesn't decide where lines end.
    environment = {**os.environ, "PATH": path, "PYTHONPATH": python_path, "COLUMNS": "160"}

    def run(*command):
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="module")
def said(shell):
    """What each line of the command line prints, run in order."""
    return [shell("sh", "-c", line) for line in block("bash").splitlines()]


def test_the_lines_of_the_command_line(said):
    made, again, history, checked, told = said
    assert "Indexed 2 tables" in made
    assert "Nothing has changed: 2 tables as before." in again
    assert len(history.splitlines()) == 2  # the second line committed nothing
    assert "Every file is as it was written." in checked
    assert "lake." in told


def test_the_lines_of_python(said, shell):
    rows, pairs, compared = shell(sys.executable, "-c", block("python")).split()
    assert int(rows) >= 4
    assert int(pairs) == int(compared) == 1


def test_every_command_and_option_named_is_there():
    for command in ("index", "remove", "compact", "history", "check", "info", "pairs"):
        assert f"covary {command}" in PAGE
    helped = subprocess.run(
        [sys.executable, "-m", "covary", "index", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout
    for option in re.findall(r"`(--[a-z-]+)`", PAGE):
        assert option in helped
