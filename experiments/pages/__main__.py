"""Write every page of docs/ that is made from the code: ./run docs."""

from pathlib import Path

from experiments.pages import commands, python_api, rooms

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"rooms.svg": rooms.draw, "commands.md": commands.describe, "python.md": python_api.describe}


def main() -> None:
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
        print(DOCS / name)


if __name__ == "__main__":
    main()
