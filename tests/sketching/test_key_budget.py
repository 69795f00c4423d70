import numpy as np
import polars as pl

from covary.columns.key_text import NORMALISERS
from covary.columns.profile import choose_columns, profile_columns
from covary.index.reason_words import explain_left_out
from covary.index.segment_files import open_segment
from covary.index.table_records import read_records
from covary.pipeline.plan import PARTS, TaskSettings, group_name
from covary.pipeline.tasks import sketch_group
from covary.sketching.key_budget import Budget
from covary.sketching.key_choice import decide_keys
from covary.sketching.roles import LeftOut, decide_roles
from covary.sketching.sketch_types import SketchConfig
from covary.tables.discover import find_tables

CONFIG = SketchConfig()


def wide(columns, rows=30):
    rng = np.random.default_rng(1)
    kinds = [lambda: [f"k{each}" for each in rng.integers(0, 25, rows)], lambda: range(1000, 1000 + rows)]
    cells = {
        f"c{number}": kinds[number % 50]() if number % 50 < 2 else rng.integers(0, 99, rows)
        for number in range(columns)
    }
    return pl.DataFrame({name: pl.Series(list(each)) for name, each in cells.items()})


def best_key_of(rows):
    """The key that is kept where there is room for one alone."""
    profiles = profile_columns(rows)
    names, numbers = choose_columns(profiles, "t")
    keys = decide_keys([(name,) for name in names], rows, profiles, NORMALISERS["canonical"])
    (best,) = Budget(rows, profiles, CONFIG).choose_keys(keys, numbers, 1, named=False)
    return best.name


def test_the_index_of_a_wide_table_is_in_proportion_and_says_what_was_left_out(tmp_path):
    wide(2000).write_csv(tmp_path / "wide.csv")
    settings = TaskSettings(CONFIG, (), (), str(tmp_path))
    sketch_group(0, find_tables([tmp_path / "wide.csv"])[0], settings)
    written = tmp_path / PARTS / group_name(0)
    assert sum(file.stat().st_size for file in written.iterdir()) < 3 << 20
    segment = open_segment(written)
    assert 1900 < segment.sketch_count < 12_000
    (record,) = read_records(segment.tables)
    of_keys, *_ = record.left_out
    assert "of 80 key columns were left out" in of_keys
    assert "--key" in of_keys
    unused = [column for column in record.columns if "left out" in column.reason]
    assert len(unused) == int(of_keys.split()[0])
    assert not any(column.role for column in unused)


def test_what_is_left_out_does_not_depend_on_the_order_of_the_rows():
    rows = wide(1000)
    one, other = (decide_roles(each, "t", CONFIG)[0] for each in (rows, rows.reverse()))
    assert one.left_out
    assert [key.name for key in one.keys] == [key.name for key in other.keys]


def test_times_are_kept_before_codes_and_codes_before_row_numbers_and_long_text():
    rng = np.random.default_rng(2)
    rows = pl.DataFrame(
        {
            "sort": pl.Series(range(1, 101)),
            "flag": ["yes", "no"] * 50,
            "told": [f"{word} " * 12 for word in rng.integers(10**6, 10**7, 100)],
            "gaps": [f"g{n}" if n % 2 else None for n in range(100)],
            "code": [f"a{n}" for n in rng.integers(0, 60, 100)],
            "day": pl.date_range(pl.date(2013, 1, 1), pl.date(2013, 4, 10), eager=True),
            "x": rng.normal(size=100),
        }
    )
    order = []
    while rows.width > 1:
        order.append(best_key_of(rows))
        rows = rows.drop(order[-1])
    assert order == ["day", "code", "gaps", "sort", "told", "flag"]


def test_an_ordinary_table_is_sketched_on_all_its_keys():
    rng = np.random.default_rng(3)
    texts = {f"text_{n}": [f"t{each}" for each in rng.integers(0, 40 + n, 150)] for n in range(10)}
    rows = pl.DataFrame(texts | {f"x{n}": rng.normal(size=150) for n in range(40)})
    roles, _ = decide_roles(rows, "t", CONFIG)
    assert roles.left_out == ()
    assert {f"text_{n}" for n in range(10)} <= {key.name for key in roles.keys}


def test_the_keys_that_a_person_names_are_sketched():
    rows = wide(1000)
    named = [f"c{number}" for number in range(0, 1000, 50)]
    roles, _ = decide_roles(rows, "t", CONFIG, wanted_keys=named)
    assert [key.name for key in roles.keys] == named
    assert len(roles.numbers) == 960
    assert roles.left_out == ()


def test_numbers_are_left_out_where_one_key_is_too_much_those_with_gaps_first():
    rng = np.random.default_rng(4)
    gaps = {f"gaps_{n}": pl.Series([None] * 50 + [1.5] * 50) for n in range(300)}
    full = {f"full_{n}": pl.Series(rng.normal(size=100)) for n in range(300)}
    rows = pl.DataFrame({"code": [f"a{n}" for n in range(100)]} | gaps | full)
    profiles = profile_columns(rows)
    names, numbers = choose_columns(profiles, "t")
    (key,) = decide_keys([(name,) for name in names], rows, profiles, NORMALISERS["canonical"])
    kept = Budget(rows, profiles, CONFIG).choose_numbers([key], numbers, 400_000)
    assert 350 < len(kept) < 600
    assert set(kept) > set(full)
    assert kept == [name for name in numbers if name in set(kept)]


def test_of_named_keys_there_are_as_many_as_memory_has_room_for_in_their_order(monkeypatch):
    monkeypatch.setattr("covary.sketching.roles.MOST_BYTES", 1 << 20)
    named = [f"c{number}" for number in range(950, -1, -50)]
    roles, _ = decide_roles(wide(1000), "t", CONFIG, wanted_keys=named)
    kept = [key.name for key in roles.keys]
    assert 0 < len(kept) < 10
    assert kept == named[: len(kept)]
    assert roles.left_out == (LeftOut("key columns", 20 - len(kept), 20, are_named=True),)
    assert explain_left_out(roles.left_out[0]) == (
        f"{20 - len(kept)} of 20 key columns were left out to keep the index in proportion: "
        "name fewer keys or numbers"
    )
