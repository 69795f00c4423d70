"""The picture of the rooms: covary's packages in the order of the import contract, and who imports whom."""

import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PURPOSE = {
    "cli": "words in, words out: commands, options, views, progress",
    "spark": "many questions, or all pairs of columns, on Spark",
    "build": "sources and an index → an index brought up to date",
    "pipeline": "a plan → tasks → segments, on a runner",
    "query": "a question and an open index → hits",
    "index": "sketches ↔ files: segments, manifest, commits, history",
    "statistics": "two sketches → joined sample → measure, interval, chance",
    "sketching": "rows → sketches: hash, order, fold, cut, merge",
    "tables": "a location → the tables there → frames of bounded size",
    "columns": "cells → what they mean: key text, numbers, times, places",
}
WIDTH, HEIGHT, STEP, LEFT, TOP = 470, 44, 62, 20, 56
INK, PALE, LINES = "#24292f", "#57606a", ("#0550ae", "#8250df", "#116329", "#953800", "#a40e26")


def layers_of_contract() -> list[list[str]]:
    """Return the layers of the import contract, highest first, each with its packages and modules."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in layers]


def imports_between_rooms() -> set[tuple[str, str]]:
    """Return which room imports which: (importing, imported)."""
    graph = grimp.build_graph("covary", exclude_type_checking_imports=True, cache_dir=None)
    pairs = {
        (_room_of(importing), _room_of(imported))
        for importing in graph.modules
        for imported in graph.find_modules_directly_imported_by(importing)
    }
    return {(importing, imported) for importing, imported in pairs if importing != imported}


def _room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _text(x: float, y: float, words: str, **style: object) -> str:
    attributes = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{x}" y="{y}"{attributes}>{words}</text>'


def _box(y: float, name: str, words: str, line: str) -> list[str]:
    return [
        f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#f6f8fa" stroke="{line}"/>',
        _text(LEFT + 12, y + 27, name, font_weight="bold", fill=line),
        _text(LEFT + 104, y + 27, words, font_size="12", fill=PALE),
    ]


def _arrow(importing: int, imported: int, lines: int, line: str) -> str:
    """Draw an import from one box down to another, further out the further it goes."""
    edge, distance = LEFT + WIDTH, imported - importing
    start = TOP + STEP * importing + HEIGHT / 2 + 3
    end = TOP + STEP * imported + HEIGHT / 2 - 3 - 1.5 * min(distance, lines)
    out = edge + 22 + 22 * distance
    path = f"M {edge} {start} C {out} {start}, {out} {end}, {edge + 5} {end}"
    return f'<path d="{path}" fill="none" stroke="{line}" stroke-opacity="0.55" marker-end="url(#tip)"/>'


def draw() -> str:
    """Draw the rooms from the imports that are really there."""
    layers = layers_of_contract()
    rooms = [name for layer in layers for name in layer if name in PURPOSE]
    others = [name for layer in layers for name in layer if name not in PURPOSE and name != "__main__"]
    imports = imports_between_rooms()
    parts = [
        _text(LEFT, 24, "The rooms of covary", font_weight="bold"),
        _text(LEFT, 42, "An arrow: imports. All point down; a row travels up.", font_size="12", fill=PALE),
    ]
    for number, name in enumerate(rooms):
        line = LINES[number % len(LINES)]
        parts += _box(TOP + STEP * number, name, PURPOSE[name], line)
        below = [other for other in rooms if (name, other) in imports]
        parts += [_arrow(number, rooms.index(other), len(rooms), line) for other in below]
    bottom = TOP + STEP * len(rooms)
    users = [name for name in rooms if any((name, other) in imports for other in others)]
    words = f"used by {'all' if len(users) == len(rooms) else ', '.join(users)}"
    parts += [
        f'<rect x="{LEFT}" y="{bottom}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="{PALE}"/>',
        _text(LEFT + 12, bottom + 19, ", ".join(others), font_size="12"),
        _text(LEFT + 12, bottom + 36, words, font_size="11", fill=PALE),
    ]
    height, width = bottom + HEIGHT + 16, LEFT + WIDTH + 32 + 17 * len(rooms)
    tip = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    )
    body = "\n  ".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="14" '
        f'font-family="Helvetica, Arial, sans-serif" fill="{INK}">\n'
        f"  <title>The rooms of covary and who imports whom</title>\n"
        f'  <defs>{tip}<path d="M 0 0 L 8 4 L 0 8 z" fill="{PALE}"/></marker></defs>\n'
        f'  <rect width="{width}" height="{height}" fill="#ffffff"/>\n  {body}\n</svg>\n'
    )
