import inspect
import subprocess
import sys
from pathlib import Path

import covary


def test_every_public_name_is_there_and_listed():
    assert all(hasattr(covary, name) for name in covary.__all__)
    defined = {
        name
        for name, value in vars(covary).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert defined <= set(covary.__all__)


def test_the_promised_names_are_public():
    promised = {"sketch", "join", "estimate", "build_index", "open_index", "Index", "Hits", "Estimate"}
    assert promised <= set(covary.__all__)


def test_every_public_function_says_what_it_does():
    for name in covary.__all__:
        value = getattr(covary, name)
        assert isinstance(value, str) or value.__doc__


def test_importing_covary_imports_neither_spark_nor_pandas():
    code = (
        "import sys, covary\n"
        "found = {'pyspark', 'pandas'} & {name.partition('.')[0] for name in sys.modules}\n"
        "sys.exit(', '.join(sorted(found)) or 0)"
    )
    root = Path(covary.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
