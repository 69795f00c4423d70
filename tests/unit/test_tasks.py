from datetime import date, timedelta

import numpy as np
import polars as pl
import pyarrow as pa

from covary import plans
from covary.keys import NORMALISERS
from covary.opensegment import OpenSegment
from covary.plans import PARTS, Settings, group_name, plan, table_name
from covary.segmentfiles import open_segment
from covary.sketches import SketchConfig
from covary.sources import find_tables
from covary.tasks import merge_chunks, sketch_chunk, sketch_group


def test_a_key_of_numbers_keeps_the_text_it_was_written_in(tmp_path):
    (tmp_path / "t.csv").write_text("code,v\n1.50,1\n2.25,2.5\n3.00,4\n")
    exact = SketchConfig(normaliser=NORMALISERS["exact"])
    settings = Settings(exact, ("code",), (), str(tmp_path))
    sketch_group(0, find_tables([tmp_path])[0], settings)
    segment = OpenSegment(open_segment(tmp_path / PARTS / group_name(0)), settings.config)
    written = settings.config.scheme.identify([pl.Series(["1.50", "2.25", "3.00"])])[0].hashes
    found = segment.sketch(0)
    by_hash = dict(zip(found.key_hashes.tolist(), found.values.tolist(), strict=True))
    assert by_hash == dict(zip(written.tolist(), [1.0, 2.5, 4.0], strict=True))


def test_a_table_in_chunks_gives_the_sketches_and_notes_of_the_whole(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    days = [date(2011, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 1000, 4000)]
    costs = [f"${1000 + cost:,}" for cost in rng.integers(0, 10**6, 4000)]
    costs[17], costs[3999], costs[2000] = "13-21", "s", "N/A"
    (tmp_path / "tables").mkdir()
    rows = {"day": [f"{d.month}/{d.day}/{d.year}" for d in days], "zip": rng.integers(501, 600, 4000)}
    frame = pl.DataFrame(rows | {"cost": costs}).with_columns(pl.format("00{}", pl.col("zip")).alias("zip"))
    frame.write_csv(tmp_path / "tables" / "t.csv")
    tables = find_tables([tmp_path / "tables"])[0]
    settings = Settings(SketchConfig(64, ("mean", "first")), ("day", "zip", "zip,day"), (), str(tmp_path))
    sketch_group(0, tables, settings)
    monkeypatch.setattr(plans, "CHUNK_BYTES", 20_000)
    (large,) = plan(tables, settings).large
    assert len(large.chunks) > 3
    partials = pa.Table.from_batches(
        [sketch_chunk(0, large, chunk, settings) for chunk in large.chunks[::-1]]
    )
    merge_chunks(0, large, partials, settings)
    whole, merged = (open_segment(tmp_path / PARTS / name) for name in (group_name(0), table_name(0)))
    assert merged.sketches.equals(whole.sketches)
    assert set(merged.sketches["granularity"]) == {"", "day", "week", "month", "quarter", "year"}
    for name in ("values.value", "keys.hash", "members.entry"):
        assert merged.arrays[name].tolist() == whole.arrays[name].tolist()
    notes = [
        {column["name"]: column for column in segment.tables["columns"][0]} for segment in (whole, merged)
    ]
    assert notes[0]["cost"] == notes[1]["cost"]
    cost = notes[0]["cost"]
    assert (cost["missing"], cost["not_understood"], cost["not_understood_examples"]) == (2, 1, ["13-21"])
    assert notes[0]["day"]["keys"] == ["day", "zip,day"]
