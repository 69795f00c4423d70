import os
import re
import shutil
import subprocess
import sys

import pytest

from covary.compiled import HERE, SOURCES
from covary.shipping import _package


def imports_of(module):
    return set(re.findall(r"^from covary\.(\w+) import", (HERE / f"{module}.py").read_text(), re.M))


def test_machine_code_is_renewed_when_a_file_changes_whose_loops_others_call():
    """Numba notices a change of the file that a loop stands in, not of those whose loops it calls."""
    with_loops = {path.stem for path in HERE.glob("*.py") if "compiled" in imports_of(path.stem)}
    assert {"moments", "scoring", "bootstrap"} <= with_loops
    for module in with_loops:
        for called in imports_of(module) & with_loops:
            assert {called, module} <= set(SOURCES), f"{module} calls loops of {called}"


@pytest.mark.parametrize("can_keep", [True, False])
def test_covary_works_from_a_zip(tmp_path, can_keep):
    zipped = shutil.copy(_package(), tmp_path)
    kept = tmp_path / "kept"
    if not can_keep:
        kept.write_text("a file, no folder")
    environment = {**os.environ, "PYTHONPATH": zipped, "XDG_CACHE_HOME": str(kept)}
    script = (
        "import covary\nfrom covary.ranks import normal_scores\nprint(covary.__file__, normal_scores(3).size)"
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
