"""The wheel of ./run wheel, installed where nothing else is: it indexes and answers without Spark or Java."""

import json
import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import PathDistribution, distribution
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="what builds the wheel is not installed")
    folder = tmp_path_factory.mktemp("dist")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(folder), str(ROOT))
    subprocess.run(pip, check=True)
    (built,) = folder.glob("covary-*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    """A virtual environment with the wheel and the packages that it asks for, linked from this one."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    options = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", *options)
    subprocess.run([*pip, str(wheel)], check=True)
    (described,) = site.glob("covary-*.dist-info")
    link_requirements(PathDistribution(described).requires, site, set())
    return folder


def link_requirements(requirements, site, linked):
    for each in map(Requirement, requirements or ()):
        name = each.name.lower()
        if name in linked or (each.marker and not each.marker.evaluate({"extra": ""})):
            continue
        linked.add(name)
        package = distribution(each.name)
        assert each.specifier.contains(package.version, prereleases=True)
        for top in {file.parts[0] for file in package.files} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(package.locate_file(top))
        link_requirements(package.requires, site, linked)


@pytest.fixture(scope="module")
def covary_there(bare, tmp_path_factory):
    """A way to run that covary, in a folder with two tables, with no other program on the path."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "data").mkdir()
    rng = np.random.default_rng(1)
    days = pl.date_range(pl.date(2013, 1, 1), pl.date(2013, 12, 31), "1d", eager=True)
    rain = rng.normal(size=365)
    pl.DataFrame({"day": days, "rain": rain}).write_csv(folder / "data" / "weather.csv")
    pl.DataFrame({"date": days, "sales": rain + rng.normal(size=365)}).write_csv(folder / "sales.csv")
    keep = {
        name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR") if name in os.environ
    }

    def run(*arguments):
        return subprocess.run(
            [bare / "bin" / "covary", *map(str, arguments)],
            cwd=folder,
            env={**keep, "PATH": str(bare / "bin")},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_there_is_neither_spark_nor_java(bare):
    code = "import importlib.util as u, sys; sys.exit(u.find_spec('pyspark') is not None)"
    assert subprocess.run([bare / "bin" / "python", "-c", code], check=False).returncode == 0
    assert shutil.which("java", path=str(bare / "bin")) is None


@pytest.mark.parametrize("choice", [("--runner", "process"), ()], ids=["asked for", "by itself"])
def test_an_index_is_built_and_asked(covary_there, choice):
    into = "-".join(("index", *choice)).replace("--", "")
    built = covary_there("index", "data", "--into", into, *choice)
    assert built.returncode == 0, built.stderr
    assert "Traceback" not in built.stderr
    assert ("Spark is not installed" in built.stderr) == (not choice)
    asked = covary_there("query", "sales.csv", "--key", "date", "--value", "sales", "--index", into, "--json")
    assert asked.returncode == 0, asked.stderr
    (hit,) = json.loads(asked.stdout)["hits"]
    assert (hit["table"], hit["value"]) == ("weather", "rain")
    assert 0.6 < hit["correlation"] < 0.8
