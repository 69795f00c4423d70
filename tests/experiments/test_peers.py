"""The comparison with what people use today: every peer on a tiny lake, and what judges them."""

import polars as pl
import pytest

from benchmarks.against import compare
from benchmarks.growth import exponent, synthetic_columns
from benchmarks.lake import make_lake
from benchmarks.peers import PEERS, quality

PAGE = """
<!-- peers -->
<!-- end of peers -->
<!-- growth -->
<!-- end of growth -->
"""


def test_every_peer_answers_the_same_questions(tmp_path):
    page = tmp_path / "docs" / "page.md"
    (page.parent / "figures").mkdir(parents=True)
    page.write_text(PAGE)
    compare(tmp_path / "scratch", page, counts=(200, 400), tables=16)
    rows = [line.split(" | ") for line in page.read_text().splitlines() if line.startswith("| ")]
    quality_of = {row[0].removeprefix("| "): float(row[3]) for row in rows if row[0][2:] in PEERS}
    assert set(quality_of) == set(PEERS)
    assert quality_of["Polars, full joins"] == quality_of["DuckDB, full joins"] == 1.0
    assert quality_of["covary"] > 0.8
    assert "a power of" in page.read_text()
    assert (page.parent / "figures" / "growth.png").stat().st_size > 1000


def test_a_lake_is_the_same_every_time(tmp_path):
    lake, again = make_lake(tmp_path / "one", 6, 2), make_lake(tmp_path / "two", 6, 2)
    assert lake.queries == again.queries
    for name in lake.names:
        assert pl.read_parquet(lake.path(name)).equals(pl.read_parquet(again.path(name)))
    assert make_lake(tmp_path / "one", 6, 2) == lake


def test_quality_counts_what_an_answer_leaves_out():
    truth = pl.DataFrame({"query": ["q"] * 3, "table": ["a", "b", "c"], "r": [-0.9, 0.5, 0.1]})
    assert quality(truth, {"q": ["a", "b", "c"]}) == 1
    assert quality(truth, {"q": ["a"]}) < quality(truth, {"q": ["a", "b"]}) < 1
    assert quality(truth, {"q": []}) == 0
    assert quality(truth, {"q": ["elsewhere", "a"]}) < quality(truth, {"q": ["a", "elsewhere"]})


def test_the_exponent_of_growth_is_fitted():
    assert exponent([10, 100, 1000], [3 * size**0.5 for size in (10, 100, 1000)]) == pytest.approx(0.5)


def test_synthetic_columns_have_the_sizes_asked_for():
    columns = list(synthetic_columns(300))
    assert len(columns) == 300
    assert max(sketch.size for sketch in columns) == 256
    assert len({sketch.pair for sketch in columns}) == 300
