import polars as pl

from covary.index import OpenSegment
from covary.segmentfiles import open_segment
from covary.sketches import SketchConfig
from covary.sources import find_tables
from covary.tasks import PARTS, Settings, group_name, sketch_group


def test_a_key_of_numbers_keeps_the_text_it_was_written_in(tmp_path):
    (tmp_path / "t.csv").write_text("code,v\n1.50,1\n2.25,2.5\n3.00,4\n")
    settings = Settings(SketchConfig(), ("code",), (), str(tmp_path))
    sketch_group(0, find_tables([tmp_path])[0], settings)
    segment = OpenSegment(open_segment(tmp_path / PARTS / group_name(0)), settings.config)
    written = settings.config.scheme.identify([pl.Series(["1.50", "2.25", "3.00"])])[0].hashes
    found = segment.sketch(0)
    by_hash = dict(zip(found.key_hashes.tolist(), found.values.tolist(), strict=True))
    assert by_hash == dict(zip(written.tolist(), [1.0, 2.5, 4.0], strict=True))
