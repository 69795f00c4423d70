"""Whatever stands in an index, a file or a history, on the screen it is text: no order and no markup."""

import io
import json
import unicodedata
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from covary.cli import app as cli
from covary.cli import terminal
from covary.cli.change_view import done_view, history_view, inspection_view
from covary.cli.index_view import build_view
from covary.cli.join_words import explanations_view
from covary.cli.pair_view import pairs_view
from covary.cli.progress import _bar
from covary.cli.terminal import show
from covary.cli.words import lines_of, table_of
from covary.index.check import Inspection
from covary.index.commit import commit, open_draft
from covary.index.history import Change
from covary.index.manifest import Manifest
from covary.index.segment_files import write_segment
from covary.index.segment_layout import build_segment
from covary.index.table_records import ColumnNote, TableRecord
from covary.progress import Progress
from covary.query.all_pairs import Pair, Pairs
from covary.query.ask import open_index
from covary.query.describe import describe_index
from covary.sketching.kernel import finish, sketch_rows
from covary.sketching.key_columns import exact_key
from covary.sketching.sketch_types import SketchConfig

CONFIG = SketchConfig(64, normaliser="text-1")
MARKUP = "[link=http://x]a[/link][/x][red]:smile:"
ORDERS = "\x1b[31m\x1b]0;t\x07\x9b31m\x90\x00\r\b\u202e\u2066\u200f\u2028\n"
HOSTILE = f"b{ORDERS}{MARKUP}e"
KEYS = [f"k{n}" for n in range(60)]


def is_an_order(char):
    return char != "\n" and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def require_harmless(output):
    assert [char for char in output if is_an_order(char)] == []


@pytest.fixture(params=[80, 400])
def width(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def hostile_record(**more):
    columns = tuple(
        ColumnNote(
            f"{name}{HOSTILE}", HOSTILE, role, HOSTILE, (f"{name}{HOSTILE}", HOSTILE), 1, 2,
            (HOSTILE,), ((HOSTILE, HOSTILE),),
        )
        for name, role in (("k", "key"), ("v", "number"), ("w", HOSTILE))
    )  # fmt: skip
    sentences = {name: (HOSTILE,) for name in ("damage", "left_out", "remarks")}
    given = {"name": HOSTILE, "path": f"/{HOSTILE}", "rows": 60, "bytes": 5, "version": HOSTILE}
    given |= {"columns": columns, "member": HOSTILE, "source": HOSTILE, "checksum": HOSTILE}
    return TableRecord(**given | sentences | more)


@pytest.fixture
def index(tmp_path):
    """An index with hostile text wherever there is text."""
    rng, folder = np.random.default_rng(3), tmp_path / "index"
    numbers = {f"v{HOSTILE}": pl.Series(rng.normal(size=60))}
    key = f"k{HOSTILE}"
    made = finish(sketch_rows(pl.DataFrame({key: KEYS}), [exact_key(key)], numbers, CONFIG, HOSTILE), CONFIG)
    odd = [replace(sketch, pair=replace(sketch.pair, value=f"o{HOSTILE}")) for sketch in made]
    skipped = hostile_record(name=f"s{HOSTILE}", problem=HOSTILE, source="")
    away = replace(skipped, name=f"a{HOSTILE}", path=HOSTILE, member=None)
    with open_draft(folder) as draft:
        records = [(hostile_record(), made + odd), (skipped, []), (away, [])]
        stored = write_segment(build_segment(records), draft.folder)
        names = ((HOSTILE, f"z{HOSTILE}"),) * 4
        commit(draft, Manifest(CONFIG, (stored,), *names))
    line = {"command": HOSTILE, "time": 1, "names": {"new": [HOSTILE], HOSTILE: [HOSTILE]}, "new": 1}
    (folder / "history.jsonl").write_text(json.dumps(line) + "\n")
    return folder


def output_of(*command, code=0):
    ran = CliRunner().invoke(cli.app, [str(each) for each in command])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    require_harmless(ran.output)
    assert ran.exit_code == code, ran.output
    return ran.output


@pytest.mark.parametrize(
    "command",
    [["info"], ["info", "--table", HOSTILE], ["history"], ["check"], ["info", "--table", "x[/x]\x1b"]],
)
@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["for a person", "as JSON"])
def test_no_command_about_an_index_shows_an_order(index, width, command, as_json):
    no_such_table = "x[/x]\x1b" in command
    output = output_of(command[0], index, *command[1:], *as_json, code=2 if no_such_table else 0)
    if not no_such_table and command != ["check"] and width == 400:
        assert MARKUP in output.replace("\n", "")


@pytest.mark.parametrize("more", [[], ["--explain"], ["--max-q", "1e-300"], ["--null"], ["--json"]])
@pytest.mark.parametrize("asked", ["hostile", "plain"])
def test_no_answer_shows_an_order(index, width, tmp_path, more, asked):
    table = tmp_path / ("t.csv" if asked == "plain" else "t[x][red]\x1b[31m\u202e.csv")
    key, value = ("k", "v") if asked == "plain" else ("[/x]\x1b[31m\u202ek", "[red]\x9bv")
    pl.DataFrame({key: KEYS, value: np.random.default_rng(3).normal(size=60)}).write_csv(table)
    output_of("query", table, "--key", key, "--value", value, "--index", index, *more)


def test_no_answer_without_hits_shows_an_order(index, width, tmp_path):
    pl.DataFrame({"k": [f"{HOSTILE}{n}" for n in range(60)], "v": range(60)}).write_csv(tmp_path / "t.csv")
    output_of("query", tmp_path / "t.csv", "--key", "k", "--value", "v", "--index", index)


def test_no_estimate_shows_an_order(tmp_path, width):
    key, value = "[/x]\x1b[31m\u202ek", "[red]\x9bv"
    table = tmp_path / "t[x][red]\x1b[31m\u202e.csv"
    pl.DataFrame({key: KEYS, value: np.random.default_rng(3).normal(size=60)}).write_csv(table)
    sides = [part for side in ("left", "right") for part in (f"--{side}-key", key, f"--{side}-value", value)]
    output_of("estimate", table, table, *sides)


def printed(view, capsys):
    show(view)
    output = capsys.readouterr().out
    require_harmless(output)
    return output


def test_no_view_shows_an_order(index, width, capsys, tmp_path):
    pl.DataFrame({"k": KEYS, "v": np.random.default_rng(3).normal(size=60)}).write_csv(tmp_path / "t.csv")
    answer = open_index(index).query(tmp_path / "t.csv", "k", "v", explain=True)
    assert len(answer) == 2
    asked = replace(answer.query, table=HOSTILE, key=HOSTILE, value=HOSTILE)
    hostile_hits = [
        replace(hit, granularity=HOSTILE, met=((HOSTILE, HOSTILE),), rows_per_key=3.0) for hit in answer
    ]
    pairs = Pairs(HOSTILE, 2, 1, 1, 0.05, tuple(Pair(asked, hit) for hit in hostile_hits), 5.0)
    assert MARKUP in printed(pairs_view(pairs, width), capsys).replace("\n", "") or width == 80
    printed(explanations_view(replace(answer, query=asked, hits=tuple(hostile_hits))), capsys)
    change = Change(HOSTILE, 1, 1, 1, 1, 1, names={kind: [HOSTILE] for kind in ("new", "lost", HOSTILE)})
    for view in (build_view(describe_index(index), change, 5), done_view(HOSTILE, change)):
        printed(view, capsys)
    printed(history_view([change] * 1001, HOSTILE), capsys)
    inspection = Inspection(HOSTILE, 1, 1, 1, {HOSTILE: HOSTILE}, (HOSTILE,), (HOSTILE,), (HOSTILE,))
    printed(inspection_view(inspection, 5), capsys)


@pytest.mark.parametrize("text", [HOSTILE, MARKUP, ORDERS, "\\[", "[/", "a\\"])
@pytest.mark.parametrize("is_terminal", [False, True])
def test_what_is_printed_is_text_whatever_its_maker_forgot(text, is_terminal, capsys, monkeypatch):
    screen = terminal.plain_console(force_terminal=is_terminal, color_system=None, width=300)
    monkeypatch.setattr(terminal, "console", lambda: screen)
    careless = Table(text, title=text)
    careless.add_row(text)
    show(Group(careless, Text(text), text))
    output = capsys.readouterr().out
    require_harmless(output)
    assert output.count(":smile:") == 5 * text.count(":smile:")


@pytest.mark.parametrize("text", [HOSTILE, MARKUP, ORDERS])
def test_a_cell_is_text_in_any_console(text):
    rows = table_of("name")
    rows.add_row(text)
    shown = io.StringIO()
    Console(file=shown, width=300).print(rows, lines_of([text]))
    require_harmless(shown.getvalue())
    assert shown.getvalue().count(":smile:") == 2 * text.count(":smile:")


def test_progress_shows_names_as_they_are(monkeypatch):
    shown = io.StringIO()
    screen = Console(file=shown, width=300, force_terminal=True, color_system=None)
    with _bar(screen) as report:
        report(Progress(1, 2, reading=(MARKUP,), spark="working"))
    assert MARKUP in shown.getvalue()


def test_a_key_that_is_named_like_two_columns_is_no_reason_to_end(tmp_path):
    rows = pl.DataFrame({"k": KEYS})
    numbers = {"v": pl.Series("v", np.random.default_rng(5).normal(size=60))}
    made = finish(sketch_rows(rows, [exact_key("k")], numbers, CONFIG, "t"), CONFIG)
    lying = [replace(each, pair=replace(each.pair, key="k,v")) for each in made]
    notes = tuple(ColumnNote(name, "text", "key", "", (name,)) for name in ("k", "v"))
    with open_draft(tmp_path / "i") as draft:
        segment = build_segment([(TableRecord("t", "/t", 60, columns=notes), lying)])
        commit(draft, Manifest(CONFIG, (write_segment(segment, draft.folder),)))
    asked = pl.DataFrame({"k": KEYS, "v": numbers["v"]})
    [hit] = open_index(tmp_path / "i").query(asked, "k", "v", explain=True)
    assert hit.explanation.columns == ()
