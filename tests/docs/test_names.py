"""Pages that lead through the code name files and functions that are there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STOPS = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`([a-z_]+(?:/[a-z_]+)*\.py):([A-Za-z_.]+)`")
FILE = re.compile(r"`((?:[a-z_.]+/)*[a-z_]+\.(?:py|md|toml|svg|txt)|(?:[a-z_.]+/)+)`")


def defined_in(path):
    """Names of functions, classes, their methods and constants that a module defines."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("page", [STOPS, CONTRIBUTING], ids=["how-it-works", "CONTRIBUTING"])
def test_every_name_in_a_module_is_there(page):
    for file, name in NAMED.findall(page):
        path = next((path for path in (ROOT / "covary" / file, ROOT / file) if path.is_file()), None)
        assert path, f"there is no {file}"
        assert name in defined_in(path), f"{file} defines no {name}"


@pytest.mark.parametrize("page", [STOPS, CONTRIBUTING], ids=["how-it-works", "CONTRIBUTING"])
def test_every_file_is_there(page):
    for name in FILE.findall(page):
        candidates = (ROOT / name, ROOT / "covary" / name, ROOT / "docs" / name)
        assert any(path.exists() for path in candidates), f"there is no {name}"


def test_a_row_passes_at_most_twenty_stops_in_the_order_of_the_rooms():
    numbers = [int(number) for number in re.findall(r"^(\d+)\. `", STOPS, re.M)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) <= 20
