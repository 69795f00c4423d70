"""What the README shows is what happens: its lines are run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import covary

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str) -> list[str]:
    found = re.search(rf"```{language}\n(.*?)```", README, re.S)
    assert found, f"the README has no {language} block"
    return found.group(1).strip().splitlines()


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A folder to run the README's lines in, with this covary's command on the path."""
    folder = tmp_path_factory.mktemp("readme")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(line):
        return subprocess.run(
            line,
            shell=True,
            cwd=folder,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def outputs(shell):
    """What each line of the command line prints, run in order."""
    results = {line: shell(line) for line in block("bash")}
    for line, result in results.items():
        assert result.returncode == 0, f"{line}\n{result.stderr}"
    return {line.split()[1]: result.stdout for line, result in results.items()}


def test_the_opening_is_a_sentence_two_commands_and_the_answer():
    assert len(block("bash")) == 5
    assert len(block("python")) == 6
    first_code = README[: README.index("```")].count("\n")
    assert first_code <= 25


def test_the_demo_prints_the_answer_shown(outputs):
    shown = re.search(r"```\n(What moves with.*?)\n\.\.\.", README, re.S).group(1)
    assert shown in outputs["demo"]
    assert shown in outputs["query"]


def test_the_demo_says_what_was_joined_and_how_long_it_took(outputs):
    said = " ".join(outputs["demo"].split())
    for words in (
        "met by airport and hour as one key",
        "by day",
        "Building the index took",
        "asking took",
        "95 % confidence",
    ):
        assert words in said


def test_the_python_lines_run(outputs, shell):
    program = "\n".join(block("python"))
    result = shell(f"{sys.executable} - <<'PROGRAM'\n{program}\nPROGRAM")
    assert result.returncode == 0, result.stderr
    assert "'weather', 'pressure', -0.22" in result.stdout
    assert "Estimate(correlation=" in result.stdout


def test_the_changelog_speaks_of_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changelog, re.M).group(1) == covary.__version__
    assert f'version = "{covary.__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_no_page_has_a_gap_where_a_figure_belongs():
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert "@@" not in text, page.name
        assert not re.search(r"<!-- ([\w-]+) -->\s*<!-- end of \1 -->", text), page.name


def test_pages_link_to_files_that_are_there():
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
