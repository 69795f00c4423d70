"""Collections of tables with the truth about their joins, computed by others; as an index of sketches.

A collection is a folder of gzipped CSV tables with `pairs.csv`, the ⟨table, key, value⟩ pairs to sketch, and
beside the folder `FOLDER.truth.parquet`: for each query every joinable candidate, the exact size of the join
and its Pearson correlation.
"""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from covary.columns.key_text import NORMALISERS
from covary.index.table_records import TableRecord
from covary.query.open_segment import Candidates
from covary.sketching.kernel import finish, sketch_rows
from covary.sketching.key_columns import exact_key
from covary.sketching.sketch_types import Sketch, SketchConfig
from experiments.indexes import write_index

PAIR = ["table", "key", "value"]


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One query of a collection: its sketch, the candidates found for it, and the truth about each."""

    sketch: Sketch
    candidates: Candidates
    truth: np.ndarray  # |r| of the whole join; 0 where it has none
    containment: np.ndarray  # exact


class Lake:
    """A collection opened for experiments."""

    def __init__(self, folder: Path, size: int, hash_name: str = "murmur3") -> None:
        self.name = folder.name
        self.config = SketchConfig(size, ("mean",), hash_name, NORMALISERS["exact"])
        self._truth = pl.read_parquet(folder.with_name(f"{folder.name}.truth.parquet"))
        self._place = TemporaryDirectory()
        tables = [self._sketch(folder, name, pairs) for (name,), pairs in _pairs(folder).group_by("table")]
        listed = [(TableRecord(name, ""), made) for name, made in tables]
        self.index = write_index(listed, self.config, Path(self._place.name, "index"))
        sketches = (self.index.sketch_at(number) for number in range(self.index.sketch_count))
        self._numbers = {(s.pair.table, s.pair.key, s.pair.value): n for n, s in enumerate(sketches)}

    def _sketch(self, folder: Path, name: str, pairs: pl.DataFrame) -> tuple[str, list[Sketch]]:
        rows = pl.read_csv(folder / f"{name}.csv.gz", infer_schema=False)
        rows = rows.rename(
            lambda column: column.replace('""', '"')
        )  # which Polars leaves doubled in a header
        values = pairs["value"].unique().to_list()
        numbers = {value: rows[value].cast(pl.Float64, strict=False) for value in values}
        wanted = set(pairs.select("key", "value").iter_rows())
        made = finish(
            sketch_rows(rows, list(map(exact_key, pairs["key"].unique())), numbers, self.config, name),
            self.config,
        )
        return name, [each for each in made if each.size and (each.pair.key, each.pair.value) in wanted]

    def questions(self, least: int = 3) -> list[Question]:
        """Ask every query of the truth; candidates are those that share at least so many sampled keys."""
        left, right = ([f"{side}_{name}" for name in PAIR] for side in ("left", "right"))
        asked = []
        for pair, rows in self._truth.group_by(left, maintain_order=True):
            sketch = self.index.sketch_at(self._numbers[pair])
            numbers = np.array([self._numbers.get(each, -1) for each in rows.select(right).iter_rows()])
            scored = self.index.score(sketch)
            scored = scored.only((scored.sample_sizes >= least) & np.isin(scored.sketches, numbers))
            places = _places(numbers, scored.sketches)
            truth = np.abs(np.nan_to_num(rows["pearson"].to_numpy()))[places]
            shares = (rows["join_size"] / rows["left_distinct"]).to_numpy()[places]
            asked.append(Question(sketch, scored, truth, shares))
        return asked


def _pairs(folder: Path) -> pl.DataFrame:
    return pl.read_csv(folder / "pairs.csv", infer_schema=False).select(PAIR)


def _places(numbers: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    order = np.argsort(numbers)
    return order[np.searchsorted(numbers[order], wanted)]
