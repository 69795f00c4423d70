import os
import shutil
import subprocess
import sys

import pytest

from covary.compiled import HERE
from covary.pipeline.send_code import _package


def digest_of(folder):
    script = "from covary import compiled; print(compiled._DIGEST)"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    "module",
    [
        "compiled",
        "statistics/moments",  # its loops are called by others
        "statistics/correlation",  # a constant of it stands in loops
        "index/checksums",
        "query/score_sketches",
        "tables/formats/csv_scan",  # it imports what it compiles only when it is needed
    ],
)
def test_machine_code_is_renewed_when_a_file_changes_that_loops_are_made_of(tmp_path, module):
    """Numba notices a change of the file that a loop stands in, not of those whose loops it calls."""
    shutil.copytree(HERE, tmp_path / "covary", ignore=shutil.ignore_patterns("__pycache__"))
    before = digest_of(tmp_path)
    with (tmp_path / "covary" / f"{module}.py").open("a") as file:
        file.write("# changed\n")
    assert digest_of(tmp_path) != before


def test_machine_code_is_kept_when_other_files_change(tmp_path):
    shutil.copytree(HERE, tmp_path / "covary", ignore=shutil.ignore_patterns("__pycache__"))
    before = digest_of(tmp_path)
    (tmp_path / "covary" / "cli" / "app.py").write_text("")
    assert digest_of(tmp_path) == before


@pytest.mark.parametrize("can_keep", [True, False])
def test_covary_works_from_a_zip(tmp_path, can_keep):
    zipped = shutil.copy(_package(), tmp_path)
    kept = tmp_path / "kept"
    if not can_keep:
        kept.write_text("a file, no folder")
    environment = {**os.environ, "PYTHONPATH": zipped, "XDG_CACHE_HOME": str(kept)}
    script = (
        "import covary\n"
        "from covary.statistics.ranks import normal_scores\n"
        "print(covary.__file__, normal_scores(3).size)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{zipped}/covary/__init__.py 3\n"
    assert any(kept.rglob("*.nbi")) == can_keep
