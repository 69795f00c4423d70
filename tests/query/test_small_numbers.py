from functools import partial

import numpy as np
import polars as pl
import pytest

import covary
from covary.query.small_numbers import names_agree

build_index = partial(covary.build_index, runner="process")


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("district", "Council District", True),
        ("customer_id", "CustomerID", True),
        ("customer_id", "district", False),
        ("mon", "month", True),
        ("id", "ID", True),
        ("id", "no", False),
        ("grade_code", "ward_code", False),
    ],
)
def test_names_agree_when_they_have_a_telling_word_in_common(one, other, agree):
    assert names_agree(one, other) is agree
    assert names_agree(other, one) is agree


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("small"), np.random.default_rng(1)
    numbers = [str(number) for number in range(1, 52)]
    pl.DataFrame({"Council District": numbers, "v": rng.normal(size=51)}).write_csv(folder / "districts.csv")
    ids = [str(number) for number in range(1, 401)]
    pl.DataFrame({"customer_id": ids, "v": rng.normal(size=400)}).write_csv(folder / "customers.csv")
    return build_index(folder, into=folder / "i.covary", keys=["Council District", "customer_id"])


def asked(index, name, count, **more):
    query = pl.DataFrame({name: [str(number) for number in range(1, count + 1)], "x": np.arange(count) % 7})
    return index.query(query, name, "x", **more)


def test_small_numbers_under_another_name_are_hidden_and_counted(index):
    hits = asked(index, "customer_id", 300)
    assert ([hit.table for hit in hits], hits.unrelated, hits.shown_of) == (["customers"], 1, 1)
    shown = asked(index, "customer_id", 300, small_numbers=True)
    assert ({hit.table for hit in shown}, shown.unrelated) == ({"customers", "districts"}, 0)


def test_small_numbers_under_the_same_name_are_shown(index):
    hits = asked(index, "district", 51)
    assert [hit.table for hit in hits] == ["districts"]
    assert hits.unrelated == 1


def test_many_small_numbers_are_shown_whatever_their_name(index):
    assert {hit.table for hit in asked(index, "whatever", 300)} == {"customers"}
