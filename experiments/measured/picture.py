"""The picture of docs/statistics.md: hits of the demo as intervals, before the band that chance reaches."""

from pathlib import Path
from tempfile import TemporaryDirectory

import covary
from covary.cli.demo import BY_TIME, DELAY, FLIGHTS, find_data
from covary.cli.words import chance_of, format_r
from covary.query.hits import Hit, Hits

PAGE = Path(__file__).parents[2] / "docs" / "hits.svg"
LEFT, RIGHT, TOP, STEP, END = 130, 570, 84, 28, 0.45
BLUE, GREY, INK = "#0550ae", "#d0d7de", "#24292f"


def _x(r: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * (r + END) / (2 * END), 1)


def _text(x: float, y: float, words: str, **style: object) -> str:
    given = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{x}" y="{y}"{given}>{words.replace("<", "&lt;")}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="{width}"/>'


def _row(hit: Hit, y: float) -> list[str]:
    r, low, high = hit.correlation or 0.0, hit.low or 0.0, hit.high or 0.0
    return [
        _text(20, y + 5, hit.value),
        _line(_x(low), y, _x(high), y, BLUE, 3),
        f'<circle cx="{_x(r)}" cy="{y}" r="5" fill="{BLUE}"/>',
        _text(590, y + 5, format_r(r)),
        _text(650, y + 5, f"{hit.sample_size:,} of {hit.join_size:,.0f}"),
        _text(775, y + 5, chance_of(hit.q_value)),
    ]


def picture(hits: Hits) -> str:
    """Draw the hits, and the strongest of chance as a band around 0."""
    chance = abs(hits.by_chance[0].correlation or 0.0) if hits.by_chance else 0.0
    bottom, width = TOP + STEP * len(hits), round(_x(chance) - _x(-chance), 1)
    parts = [
        _text(20, 26, f"What moves with {hits.query.table}.{hits.query.value}", font_weight="bold"),
        f'<rect x="{_x(-chance)}" y="44" width="{width}" height="{bottom - 54}" fill="{GREY}"/>',
        _text(_x(0), 60, "chance", fill="#57606a", text_anchor="middle", font_size="12"),
        *(_text(x, 60, name, fill="#57606a") for x, name in ((590, "r"), (650, "n of N"), (775, "q"))),
        *(line for place, hit in enumerate(hits) for line in _row(hit, TOP + STEP * place)),
        _line(LEFT, bottom, RIGHT, bottom, INK),
    ]
    for tick in (-0.4, -0.2, 0.0, 0.2, 0.4):
        parts += [
            _line(_x(tick), bottom, _x(tick), bottom + 5, INK),
            _text(_x(tick), bottom + 22, format_r(tick), text_anchor="middle", font_size="12"),
        ]
    title = "The hits of the demo: each correlation, its 95 % interval, and how far chance reaches"
    body = "\n  ".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {bottom + 36}" font-size="14" '
        f'font-family="Helvetica, Arial, sans-serif" fill="{INK}">\n  <title>{title}</title>\n'
        f'  <rect width="860" height="{bottom + 36}" fill="#ffffff"/>\n  {body}\n</svg>\n'
    )


def main() -> None:
    """Ask the demo's question and draw the answer."""
    data = find_data()
    with TemporaryDirectory() as scratch:
        index = covary.build_index(str(data), into=Path(scratch, "index"))
        hits = index.query(data / FLIGHTS, BY_TIME, DELAY, null=True)
    PAGE.write_text(picture(hits), encoding="utf-8")
