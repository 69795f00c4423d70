"""Tables in Markdown, and pages with parts that a program writes."""

from collections.abc import Iterable, Sequence
from pathlib import Path


def table(heading: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def between_marks(page: Path, name: str, text: str) -> None:
    """Put text between the marks of this name."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, after = page.read_text(encoding="utf-8").split(start)
    page.write_text(f"{before}{start}\n{text}\n{end}{after.split(end)[1]}", encoding="utf-8")


def part_of(page: Path, name: str) -> str:
    """Return the text between the marks of this name."""
    return (
        page.read_text(encoding="utf-8")
        .split(f"<!-- {name} -->")[1]
        .split(f"<!-- end of {name} -->")[0]
        .strip()
    )
