import csv
import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from covary import join, sketch
from covary.sketching.hashing import SCHEMES
from covary.statistics.correlation import pearson
from covary.statistics.intervals import Sampled, fisher
from covary.statistics.measures import MEASURES

HERE = Path(__file__).parent
REFERENCE = json.loads((HERE / "reference.json").read_text(encoding="utf-8"))
MURMUR3 = SCHEMES["murmur3"]
T_X = pl.DataFrame(
    {"k": [f"2021-0{month}" for month in range(1, 8)], "x": [6.0, 4.0, 2.0, 3.0, 0.5, 4.0, 2.0]}
)
T_Y = pl.DataFrame(
    {
        "k": ["2021-01", "2021-01", "2021-02", "2021-02", "2021-03", "2021-03", "2021-04"],
        "y": [5.5, 4.5, 3.9, 2.0, 4.0, 1.0, 4.0],
    }
)


def hashes_of(texts):
    return MURMUR3.identify([pl.Series(texts, dtype=pl.String)])[0].hashes


def hexadecimal(hashes):
    return [f"{int(each) & 0xFFFFFFFF:08x}" for each in hashes]


def rows_by_hash():
    with (HERE / "table_t1.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["key"], float(row["value"])) for row in csv.DictReader(file)]
    by_hash = {}
    for each, (_, value) in zip(hashes_of([key for key, _ in rows]).tolist(), rows, strict=True):
        by_hash.setdefault(each, []).append(value)
    return by_hash


def sketch_of_t1(aggregate):
    return sketch(HERE / "table_t1.csv", "key", "value", size=64, aggregate=aggregate, hash="murmur3")


@pytest.mark.parametrize(
    "vector", [v for v in REFERENCE["hashes"] if v["text"]], ids=lambda v: v["text"][:20]
)
def test_hash_and_unit_equal_the_reference_to_the_bit(vector):
    hashes = hashes_of([vector["text"]])
    assert hashes.tolist() == [vector["murmur3"]]
    assert MURMUR3.unit(hashes).tolist() == [vector["unit"]]


def test_the_unit_of_the_hash_of_empty_text_equals_the_reference():
    # Empty text is no key here, so only its hash value 0 can be placed.
    assert MURMUR3.unit(np.zeros(1, dtype=np.int32)).tolist() == [0.6180339887498949]


@pytest.mark.parametrize(
    ("text", "written", "unit"),
    [
        ("2021-01", "4da33cf5", 0.34),
        ("2021-02", "bd5a7c1f", 0.89),
        ("2021-03", "16dab449", 0.34),
        ("2021-04", "26f79756", 0.47),
    ],
)
def test_hashes_are_those_of_the_papers_figure_2(text, written, unit):
    assert hexadecimal(hashes_of([text])) == [written]
    assert round(float(MURMUR3.unit(hashes_of([text]))[0]), 2) == unit


@pytest.mark.parametrize("aggregate", sorted(REFERENCE["sketch_t1"]["aggregates"]))
def test_sketch_has_the_references_keys_in_its_order(aggregate):
    expected = REFERENCE["sketch_t1"]["aggregates"][aggregate]
    found = sketch_of_t1(aggregate)
    assert found.key_hashes.tolist() == [row[0] for row in expected]
    assert found.units.tolist() == [row[1] for row in expected]
    assert found.counts.rows == REFERENCE["sketch_t1"]["rows"]
    assert not found.complete


@pytest.mark.parametrize("aggregate", ["count", "min", "max", "first", "last"])
def test_sketch_has_the_references_values_to_the_bit(aggregate):
    expected = REFERENCE["sketch_t1"]["aggregates"][aggregate]
    assert sketch_of_t1(aggregate).values.tolist() == [row[2] for row in expected]


@pytest.mark.parametrize("aggregate", ["sum", "mean"])
def test_sums_and_means_are_exact_and_near_the_references_running_ones(aggregate):
    found = sketch_of_t1(aggregate)
    rows = rows_by_hash()
    exact = [math.fsum(rows[each]) for each in found.key_hashes.tolist()]
    if aggregate == "mean":
        counts = [len(rows[each]) for each in found.key_hashes.tolist()]
        exact = [total / count for total, count in zip(exact, counts, strict=True)]
    assert found.values.tolist() == exact
    expected = np.array([row[2] for row in REFERENCE["sketch_t1"]["aggregates"][aggregate]])
    assert np.all(np.abs(found.values - expected) <= 2 * np.spacing(np.abs(expected)))


@pytest.mark.parametrize("vector", REFERENCE["vectors"], ids=lambda v: v["name"])
def test_estimators_equal_the_reference(vector):
    x, y = np.array(vector["x"], dtype=float), np.array(vector["y"], dtype=float)
    interval = fisher(Sampled(x, y, pearson(x, y)))
    names = ("pearson", "spearman", "rin", "qn", "kendall")
    found = [*(MEASURES[name].of(x, y, 0) for name in names), interval.low, interval.high]
    reference = [vector[name] for name in (*names[:-1], "kendall_tau_b")]
    ends = vector["fisher_ci95"]
    expected = [float(each) for each in (*reference, ends["lb"], ends["ub"])]
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_figure_2_shows_the_sketches_of_figure_1():
    # The caption says n = 3 but both sketches show four rows.
    left = sketch(T_X, "k", "x", size=4, hash="murmur3")
    right = sketch(T_Y, "k", "y", size=4, hash="murmur3")
    assert dict(zip(hexadecimal(left.key_hashes), left.values.tolist(), strict=True)) == {
        "4da33cf5": 6.0, "16dab449": 2.0, "26f79756": 3.0, "bac52e98": 2.0,
    }  # fmt: skip
    # 2.95 is printed as 3.0.
    assert dict(zip(hexadecimal(right.key_hashes), right.values.tolist(), strict=True)) == {
        "4da33cf5": 5.0, "16dab449": 2.5, "26f79756": 4.0, "bd5a7c1f": 2.95,
    }  # fmt: skip


@pytest.mark.parametrize("size", [3, 4])
def test_figure_2_shows_the_joined_sketch_of_figure_1(size):
    sample = join(
        sketch(T_X, "k", "x", size=size, hash="murmur3"), sketch(T_Y, "k", "y", size=size, hash="murmur3")
    )
    joined = zip(hexadecimal(sample.key_hashes), sample.x.tolist(), sample.y.tolist(), strict=True)
    assert sorted(joined) == [("16dab449", 2.0, 2.5), ("26f79756", 3.0, 4.0), ("4da33cf5", 6.0, 5.0)]


def test_the_whole_join_is_the_table_of_figure_1():
    sample = join(sketch(T_X, "k", "x"), sketch(T_Y, "k", "y"))
    assert sorted(zip(sample.x.tolist(), sample.y.tolist(), strict=True)) == [
        (2.0, 2.5), (3.0, 4.0), (4.0, 2.95), (6.0, 5.0),
    ]  # fmt: skip
    assert sample.exact
    assert sample.keys.join_size.value == 4
