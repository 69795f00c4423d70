"""Tables that write the same facts in many ways: they hold what their truth says, and are judged by it."""

import unicodedata
from collections import namedtuple

import numpy as np
import pandas as pd
import polars as pl
import pytest

from experiments.messy.domains import DOMAINS
from experiments.messy.judging import EXPECTED, FALSE, FEWEST, MISTAKABLE, TRUE, judge
from experiments.messy.report import parts_of
from experiments.messy.run import PAGE, evaluate
from experiments.messy.tables import write_collection
from experiments.messy.truth import means, meeting
from experiments.writing import part_of

Hit = namedtuple("Hit", "table key value sample_size exact correlation granularity", defaults=("",))
LAYOUTS = {"csv, BOM": "utf-8-sig", "csv, cp1252": "cp1252"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    return folder, write_collection(folder, seed=1, tables_per_domain=2)


def cells_of(folder, table):
    if table.layout == "parquet":
        return pl.read_parquet(folder / table.file).to_pandas()
    delimiter = ";" if table.layout == "csv, semicolons" else ","
    for encoding in (LAYOUTS.get(table.layout, "utf-8"), "utf-8"):
        try:
            return pd.read_csv(
                folder / table.file, sep=delimiter, dtype=str, encoding=encoding, keep_default_na=False
            )
        except UnicodeDecodeError:
            continue
    raise AssertionError(table.file)


def number_in(text):
    """Read a number by rules of our own; NaN for a mark of absence."""
    bare = text.strip().replace("−", "-").removesuffix("%").removesuffix("km").removesuffix("kg").strip("$€ ")
    bare = f"-{bare[1:-1]}" if bare.startswith("(") else bare
    times = {"K": 1e3, "M": 1e6}.get(bare[-1:], 1)
    bare = bare.rstrip("KM")
    if "," in bare and len(bare) - bare.rindex(",") < 4:  # a decimal comma
        bare = bare.replace(".", "").replace(",", ".")
    try:
        return float(bare.replace(",", "").replace(" ", "")) * times
    except ValueError:
        return np.nan


def test_the_same_seed_writes_the_same_bytes(made, tmp_path):
    folder, truth = made
    again = write_collection(tmp_path / "again", seed=1, tables_per_domain=2)
    other = write_collection(tmp_path / "other", seed=2, tables_per_domain=2)
    assert len(truth.tables) == len(list(folder.iterdir())) == 44
    assert [table.name for table in again.tables] == [table.name for table in truth.tables]
    text = [table.file for table in truth.tables if table.layout != "parquet"]
    assert all((folder / file).read_bytes() == (tmp_path / "again" / file).read_bytes() for file in text)
    assert any(
        a.numbers[0].values.size != b.numbers[0].values.size
        for a, b in zip(truth.tables, other.tables, strict=True)
    )


def test_the_numbers_written_are_the_true_ones(made):
    folder, truth = made
    for table in truth.tables:
        cells = cells_of(folder, table)
        assert set(cells.columns) == {*table.identifiers, *(column.name for column in table.numbers)}
        for column in table.numbers:
            written = cells[column.name]
            read = written.to_numpy(float) if column.style == "typed" else written.map(number_in).to_numpy()
            assert read == pytest.approx(column.values, rel=1e-12, nan_ok=True), (table.name, column)


@pytest.mark.parametrize(
    ("style", "form"),
    [
        ("1/5/2013", "%m/%d/%Y"),
        ("05.01.2013", "%d.%m.%Y"),
        ("05/01/2013, day first", "%d/%m/%Y"),
        ("5 Jan 2013", "%d %b %Y"),
        ("Jan 5, 2013", "%b %d, %Y"),
        ("05-Jan-13", "%d-%b-%y"),
        ("20130105", "%Y%m%d"),
    ],
)
def test_days_are_written_as_their_style_says(style, form):
    days = DOMAINS["day"].keys
    written = pd.Series([DOMAINS["day"].styles[style](day) for day in days])
    assert pd.to_datetime(written, format=form).dt.strftime("%Y-%m-%d").tolist() == list(days)


def test_hours_are_written_as_their_style_says():
    hours = DOMAINS["hour"].keys
    for style, form in (("1/5/2013 7:00 AM", "%m/%d/%Y %I:%M %p"), ("2013-01-05T07:00:00Z", None)):
        written = pd.Series([DOMAINS["hour"].styles[style](hour) for hour in hours])
        read = pd.to_datetime(written, format=form or "ISO8601")
        assert read.dt.strftime("%Y-%m-%dT%H").tolist() == list(hours)


def test_no_style_writes_two_keys_alike():
    for label, domain in DOMAINS.items():
        for style, write in domain.styles.items():
            texts = {unicodedata.normalize("NFC", write(key)) for key in domain.keys}
            assert len(texts) == len(domain.keys), (label, style)


def test_keys_meet_at_the_coarser_grain_as_pandas_joins_them(made):
    _, truth = made
    hours = next(table for table in truth.tables if table.label == "hour")
    days = next(table for table in truth.tables if table.label == "day")
    met = meeting(hours.key, days.key)
    assert met.grains == ("day",)
    frames = [
        pd.DataFrame(
            {"day": pd.to_datetime(list(table.key[0].keys)).floor("D"), "x": table.numbers[0].values}
        )
        .dropna()
        .groupby("day")
        .mean()
        for table in (hours, days)
    ]
    joined = frames[0].join(frames[1], rsuffix=" of days", how="inner")
    ours = [
        means(side, met.grains, table.numbers[0]) for side, table in ((met.left, hours), (met.right, days))
    ]
    shared = sorted(set(ours[0]) & set(ours[1]))
    assert [day.strftime("%Y-%m-%d") for day in joined.index] == shared
    assert joined["x"].tolist() == pytest.approx([ours[0][day] for day in shared])
    assert joined["x of days"].tolist() == pytest.approx([ours[1][day] for day in shared])


def test_composites_meet_in_either_order(made):
    _, truth = made
    left, right = (table for table in truth.tables if table.label == "day+zip")
    met = meeting(left.key, right.key[::-1])
    assert [column.domain for column in met.right] == [column.domain for column in left.key]
    assert met.shared > 100
    assert meeting(left.key, right.key[:1]) is None


def test_hits_are_judged_by_what_their_keys_denote(made):
    _, truth = made
    by_label = {}
    for table in truth.tables:
        by_label.setdefault(table.label, []).append(table)
    asked, other = by_label["district"]
    customers, phones = by_label["customer"][0], by_label["phone"][0]

    def hit(table, columns, size=20):
        return Hit(table.name, ",".join(c.name for c in columns), table.numbers[0].name, size, False, 0.5)

    number = Hit(other.name, other.numbers[0].name, "x", 4, False, 0.5)
    hits = [hit(other, other.key), hit(customers, customers.key), hit(phones, phones.key, 5), number]
    joins = judge(asked, asked.key, asked.numbers[0], hits, truth)
    verdicts = {(join.table, join.joined): join.verdict for join in joins if join.found}
    assert verdicts == {
        (other.name, other.key[0].name): EXPECTED,
        (customers.name, customers.key[0].name): MISTAKABLE,
        (phones.name, phones.key[0].name): FALSE,
        (other.name, other.numbers[0].name): FALSE,
    }
    first, second = by_label["moment"]
    worded = Hit(second.name, f"day of {second.key[0].name}", second.numbers[0].name, 9, False, 0.5)
    found = [join for join in judge(first, first.key, first.numbers[0], [worded], truth) if join.found]
    assert [(join.joined, join.verdict) for join in found] == [(second.key[0].name, TRUE)]


def test_a_correlation_is_only_compared_at_the_granularity_of_the_truth(made):
    _, truth = made
    asked, other = (table for table in truth.tables if table.label == "day")
    key, number = other.key[0].name, other.numbers[0].name

    def truth_for(granularity):
        hit = Hit(other.name, key, number, 20, True, 0.5, granularity)
        joins = judge(asked, asked.key, asked.numbers[0], [hit], truth)
        return [join.truth for join in joins if join.found]

    assert truth_for("week") == [None]
    assert truth_for("day") != [None]


def test_a_collection_is_indexed_asked_and_reported(tmp_path, spark):
    truth = write_collection(tmp_path / "tables", seed=3, tables_per_domain=2)
    outcome = evaluate(tmp_path / "index", tmp_path / "tables", truth, spark)
    assert (outcome.tables, outcome.questions) == (44, 60)
    assert len(outcome.reading.numbers) == sum(len(table.numbers) for table in truth.tables)
    expected = outcome.expected(FEWEST)
    assert any(join.found for join in expected)
    assert {join.kind for join in expected} == {"key", "part", "code"}
    parts = parts_of(outcome)
    at_default, at_fewest = (
        parts["summary"].index(f"true joins found, whole keys, min_sample {least}") for least in (10, 3)
    )
    assert at_default < at_fewest
    assert all(part_of(PAGE, f"{name} {part}") for name in ("generated", "real") for part in parts)
