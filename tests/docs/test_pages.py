"""Pages that are made from the code say what the code says now; ./run docs writes them anew."""

import re

import pytest

import covary
from covary.cli.app import app
from experiments.pages.__main__ import DOCS, PAGES
from experiments.pages.python_api import GROUPS
from experiments.pages.rooms import PURPOSE, imports_between_rooms, layers_of_contract

OF_THE_RUN_SCRIPT = {"--lowest", "--page"}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_made_from_the_code_is_fresh(name):
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), f"docs/{name} is out of date: ./run docs writes it anew"


def test_the_python_page_has_every_public_name():
    listed = {name for names in GROUPS.values() for name in names}
    assert listed == set(covary.__all__) - {"__version__"}


def test_the_page_of_commands_has_every_command():
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert f"\n## covary {command.name or command.callback.__name__}\n" in page


def test_the_picture_shows_every_room_and_every_import_between_rooms():
    picture = (DOCS / "rooms.svg").read_text(encoding="utf-8")
    drawn = sum(1 for pair in imports_between_rooms() if set(pair) <= set(PURPOSE))
    assert picture.count("marker-end") == drawn
    packages = {path.parent.name for path in (DOCS.parent / "covary").glob("*/__init__.py")}
    assert packages <= set(PURPOSE)
    assert set(PURPOSE) <= {name for layer in layers_of_contract() for name in layer}


@pytest.mark.parametrize("page", ["ask.md", "install.md", "sources.md"])
def test_every_option_that_a_guide_names_is_there(page):
    known = set(re.findall(r"--[a-z-]+", (DOCS / "commands.md").read_text(encoding="utf-8")))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", (DOCS / page).read_text(encoding="utf-8")))
    assert named - known <= OF_THE_RUN_SCRIPT


def test_the_index_of_pages_names_every_page():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).as_posix()
        assert name == "README.md" or f"({name})" in index, f"docs/README.md does not name {name}"
