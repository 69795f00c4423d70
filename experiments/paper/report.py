"""The report: every artefact beside what the paper published, as Markdown and as one page of HTML."""

import base64
import os
import re
from collections.abc import Callable
from pathlib import Path

from covary.statistics.correlation import SMALLEST_SAMPLE
from experiments.artefact import Artefact, Measured, save
from experiments.paper.figure3 import figure3
from experiments.paper.figure4 import figure4
from experiments.paper.figure5 import figure5
from experiments.paper.index_size import index_size
from experiments.paper.intervals import intervals
from experiments.paper.queries import queries
from experiments.paper.table1 import table1
from experiments.paper.table2 import table2
from experiments.writing import table

FIGURES = "figures"
OF_EVERY: tuple[Callable[[list[Measured]], Artefact], ...] = (figure3, figure4, table2, intervals, index_size)
IN_ORDER = (figure3, figure4, table1, figure5, table2, queries, intervals, index_size)
STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;font-size:13px;margin:1rem 0}
td,th{border:1px solid #d0d7de;padding:2px 8px;text-align:right}
td:first-child,th:first-child{text-align:left}
img{max-width:100%}
blockquote{border-left:4px solid #d0d7de;margin-left:0;padding-left:1rem;color:#57606a}"""


def write_report(collections: list[Measured], into: Path, command: str) -> str:
    """Write report.md and report.html with their figures; return the Markdown below its heading."""
    page = [_introduction(collections, command)]
    real = any(collection.rankings is not None for collection in collections)
    for make in IN_ORDER:
        if make in OF_EVERY or real:
            page.append(_section(make(collections), make.__name__, into))
    body = "\n\n".join(page)
    text = f"# The paper's experiments, repeated\n\n{body}\n"
    (into / "report.md").write_text(text, encoding="utf-8")
    (into / "report.html").write_text(_as_html(text, into), encoding="utf-8")
    return body


def _introduction(collections: list[Measured], command: str) -> str:
    rows = [
        (c.name, f"{c.index_sizes['columns'].max():,}", f"{c.truth.height:,}", f"{c.estimates.height:,}")
        for c in collections
    ]
    heading = ("collection", "⟨key, number⟩ columns", "joins measured in full", "estimates from sketches")
    scale = collections[0].workplace.scale
    said = (
        f"Made by `{command}` on {os.cpu_count()} cores, seed {scale.seed}. Of a real collection all pairs of"
        f" columns are joined in full, or {scale.combinations:,} of them chosen at random, and kept when they"
        f" share at least {SMALLEST_SAMPLE} keys; {scale.ranked_queries:,} columns chosen at random are"
        f" ranked for, and {scale.timed_queries:,} ask when answers are timed."
    )
    return f"{said}\n\n{table(heading, rows)}"


def _section(artefact: Artefact, name: str, into: Path) -> str:
    parts = [f"## {artefact.title}"]
    if artefact.picture:
        save(artefact.picture, into / FIGURES / f"{name}.png")
        parts.append(f"![{artefact.title}]({FIGURES}/{name}.png)")
    published = "\n".join(f"> {line}".rstrip() for line in artefact.published.split("\n"))
    return "\n\n".join([*parts, artefact.text, f"> **Published**\n>\n{published}"])


def _as_html(text: str, into: Path) -> str:
    from markdown import markdown

    def embedded(match: re.Match[str]) -> str:
        picture = base64.b64encode((into / match.group(1)).read_bytes()).decode()
        return f'src="data:image/png;base64,{picture}"'

    body = re.sub(r'src="([^"]+\.png)"', embedded, markdown(text, extensions=["tables"]))
    head = f"<meta charset='utf-8'><title>covary: the paper's experiments</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{body}</body></html>\n"
