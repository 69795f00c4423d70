"""The paper's experiments: all of it on tiny inputs, and what its stages compute against SciPy and pandas."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from covary.sketching.sketch_table import sketch
from covary.statistics.ranking import RANKERS
from experiments.indexes import smaller
from experiments.metrics import average_precision, gain, metrics_of
from experiments.paper.folders import Columns, chosen_combinations
from experiments.paper.sbn import table_pair
from experiments.paper.table1 import PUBLISHED as RANKING_OF_THE_PAPER
from experiments.paper.workplace import SMOKE, Workplace

ROOT = Path(__file__).parents[2]
SECTIONS = (
    "Figure 3", "Figure 4", "Table 1", "Figure 5", "Table 2", "Query evaluation", "Intervals", "Index size",
)  # fmt: skip
STAGES = (
    "columns", "truth", "estimates", "lists", "rankings", "answers-truth", "answers", "timings",
    "index-sizes",
)  # fmt: skip


def run(*arguments):
    command = [sys.executable, "-m", "experiments", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    into = tmp_path_factory.mktemp("results")
    done = run("--smoke", "--into", into)
    assert done.returncode == 0, done.stderr
    return into


@pytest.fixture(scope="module")
def collection(results):
    return results / "tables" / "example"


def test_one_command_makes_the_whole_report(results):
    report = (results / "report.md").read_text()
    page = (results / "report.html").read_text()
    for section in SECTIONS:
        assert f"## {section}" in report
    assert report.count("> **Published**") == len(SECTIONS)
    pictures = sorted(path.stem for path in (results / "figures").iterdir())
    assert pictures == ["figure3", "figure4", "figure5", "index_size", "queries"]
    assert page.count("data:image/png;base64,") == len(pictures)
    assert ".png" not in page
    assert "nan" not in report


def test_every_stage_is_kept_as_parquet_and_not_repeated(results, collection):
    for stage in STAGES:
        assert list((results / "example" / stage).glob("*.parquet"))
    assert not list(results.rglob("*.unfinished"))
    again = run("--smoke", "--into", results)
    assert again.returncode == 0
    assert len(again.stdout.splitlines()) == 1  # the report, and no stage
    other = run("--smoke", "--seed", 2, "--into", results)
    assert other.returncode != 0
    assert "other settings" in other.stderr


@pytest.mark.parametrize(
    ("collections", "said"),
    [
        (["nowhere"], "nowhere is no folder of tables"),
        (["sbn", "sbn"], "two collections are called sbn"),
        (["{empty}"], "no tables in"),
    ],
)
def test_collections_that_cannot_be_measured_are_refused_in_a_line(tmp_path, collections, said):
    (tmp_path / "empty").mkdir()
    named = [name.format(empty=tmp_path / "empty") for name in collections]
    done = run(*named, "--smoke", "--into", tmp_path / "results")
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_sample_of_combinations_is_as_large_as_asked_for_and_has_no_pair_twice(results):
    whole = Workplace("example", results / "example", SMOKE, results / "tables" / "example")
    few = replace(whole, scale=replace(SMOKE, combinations=60))
    assert chosen_combinations(whole).height == 91
    chosen = chosen_combinations(few)
    assert chosen.unique().height == chosen.height == 60
    assert (chosen["left"] < chosen["right"]).all()
    assert (chosen["left"].min(), chosen["right"].max()) >= (0, 12)
    assert set(chosen.iter_rows()) <= set(chosen_combinations(whole).iter_rows())


def test_lists_hold_every_column_of_other_tables(results):
    lists = pl.read_parquet(results / "example" / "lists" / "*.parquet")
    for (left,), rows in lists.group_by("left"):
        own = {left, left + 1 if left % 2 == 0 else left - 1}
        assert set(rows["right"]) == set(range(14)) - own
    rankings = pl.read_parquet(results / "example" / "rankings" / "*.parquet")
    assert set(rankings["ranker"]) == {*RANKERS, "jc-exact"}
    assert (rankings["listed"] <= rankings["joinable"]).all()
    means = {name: rows["nDCG@10"].mean() for (name,), rows in rankings.group_by("ranker")}
    assert means["finite-population"] > means["random"] + 0.1
    assert means["finite-population"] > means["jc-exact"] + 0.1
    answers = pl.read_parquet(results / "example" / "answers" / "*.parquet")
    assert answers["recall"].mean() > 0.9


def test_numbers_of_any_size_have_a_true_correlation(tmp_path):
    rows = pl.DataFrame(
        {
            "column": [0] * 4 + [1] * 4 + [2] * 4,
            "hash": [1, 2, 3, 4] * 3,
            "number": [1e300, 2e300, 4e300, 3e300, 1e-200, 2e-200, 3e-200, 4e-200, 5.0, 5.0, 5.0, 5.0],
        }
    )
    rows.write_parquet(tmp_path / "rows.parquet")
    _, correlations = Columns(tmp_path, 3).correlations_with(0)
    assert correlations[:2] == pytest.approx([1.0, 0.8])
    assert np.isnan(correlations[2])


def test_no_synthetic_table_is_without_rows():
    tiny = replace(SMOKE, sbn_rows=3)
    assert min(table_pair(number, tiny).right.height for number in range(300)) == 1


def test_the_truth_of_a_folder_is_that_of_pandas_and_scipy(results, collection):
    truth = pl.read_parquet(results / "example" / "truth" / "*.parquet")
    keys = pl.read_parquet(results / "example" / "columns" / "*.parquet")
    assert truth.height == 91  # all pairs of 14 columns
    means = {}
    for path in sorted(collection.iterdir()):
        frame = pd.read_csv(path).groupby("day").mean()
        means |= {len(means) + place: frame[name] for place, name in enumerate(frame.columns)}
    assert keys["column"].n_unique() == len(means)
    for row in truth.iter_rows(named=True):
        joined = pd.concat([means[row["left"]], means[row["right"]]], axis=1, join="inner")
        x, y = joined.to_numpy().T
        assert row["join_size"] == x.size
        assert row["pearson"] == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)
        assert row["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)


def test_all_joins_of_a_column_at_once_are_those_one_by_one(results):
    columns = Columns(results / "example" / "columns", 15)
    sizes, correlations = columns.correlations_with(14)  # which has no rows, as a table in a zip of several
    assert not sizes.any()
    assert np.isnan(correlations).all()
    for left in (0, 5, 13):
        sizes, correlations = columns.correlations_with(left)
        assert sizes[14] == 0
        for right in range(14):
            x, y = columns.join(left, right)
            assert sizes[right] == x.size
            assert correlations[right] == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)


def test_estimates_of_joins_seen_whole_are_the_truth(results):
    truth = pl.read_parquet(results / "example" / "truth" / "*.parquet")
    found = pl.read_parquet(results / "example" / "estimates" / "*.parquet")
    both = found.join(truth, on=["left", "right"], suffix=" true")
    whole = both.filter("exact")
    assert 0 < whole.height < both.height
    for name in ("pearson", "spearman", "rin", "qn"):
        assert whole[name].to_numpy() == pytest.approx(whole[f"{name} true"].to_numpy(), abs=1e-9)
    assert (whole["sample"] == whole["join_size"]).all()


def test_a_smaller_sketch_is_the_one_that_fewer_keys_would_have_given():
    rows = pl.DataFrame({"key": [f"k{n % 700}" for n in range(2000)], "x": np.arange(2000.0) % 97})
    large = sketch(rows, "key", "x", size=1024)
    for size in (64, 699, 700, 1024):
        small, expected = smaller(large, size), sketch(rows, "key", "x", size=size)
        assert small.key_hashes.tolist() == expected.key_hashes.tolist()
        assert small.values.tolist() == expected.values.tolist()
        assert (small.complete, small.config) == (expected.complete, expected.config)


def test_synthetic_tables_are_as_the_paper_says():
    pairs = [table_pair(number, SMOKE) for number in range(200)]
    again = table_pair(7, SMOKE)
    assert again.left.equals(pairs[7].left)
    sizes = np.array([pair.left.height for pair in pairs])
    shares = np.array([pair.right.height / pair.left.height for pair in pairs])
    assert stats.kstest(sizes / SMOKE.sbn_rows, "uniform").pvalue > 0.01
    assert stats.kstest(shares, "uniform").pvalue > 0.01
    correlations = []
    for pair in pairs:
        assert pair.left["key"].n_unique() == pair.left.height
        joined = pair.left.join(pair.right, on="key", suffix=" of Y")
        assert joined.height == pair.right.height
        if joined.height > 100:
            correlations.append(np.corrcoef(joined["number"], joined["number of Y"])[0, 1])
    assert stats.kstest(correlations, "uniform", (-1, 2)).pvalue > 0.01


def test_the_metrics_of_an_order():
    relevant = np.array([True, False, True, False])
    assert average_precision(relevant) == pytest.approx((1 + 2 / 3) / 2)
    assert np.isnan(average_precision(~relevant & relevant))
    best = np.array([0.9, 0.5, 0.1])
    assert gain(best, 2) == 1
    assert gain(best[::-1], 1) == pytest.approx(0.1 / 0.9)
    assert gain(best[::-1], 2) == pytest.approx((0.1 + 0.5 / np.log2(3)) / (0.9 + 0.5 / np.log2(3)))
    assert np.isnan(gain(np.zeros(3), 2))
    ties = metrics_of(np.array([0.1, 0.9]), np.array([1.0, 1.0]), np.array([2, 1]))
    assert ties[0] == 1
    unknown_last = metrics_of(np.array([0.1, 0.9]), np.array([np.nan, 0.0]), np.array([1, 2]))
    assert unknown_last[0] == 1


def test_the_papers_figures_stand_beside_ours():
    assert "| s4 (r·ci_h) | .529 +193 % | .467 +100 % | .705 +50 % | .841 +17 % |" in RANKING_OF_THE_PAPER
