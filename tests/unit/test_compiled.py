import re

from covary.compiled import HERE, SOURCES


def imports_of(module):
    return set(re.findall(r"^from covary\.(\w+) import", (HERE / f"{module}.py").read_text(), re.M))


def test_machine_code_is_renewed_when_a_file_changes_whose_loops_others_call():
    """Numba notices a change of the file that a loop stands in, not of those whose loops it calls."""
    with_loops = {path.stem for path in HERE.glob("*.py") if "compiled" in imports_of(path.stem)}
    assert {"moments", "scoring", "bootstrap"} <= with_loops
    for module in with_loops:
        for called in imports_of(module) & with_loops:
            assert {called, module} <= set(SOURCES), f"{module} calls loops of {called}"
