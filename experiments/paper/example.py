"""A small folder of tables, for a run on tiny inputs."""

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl

DAYS, TABLES = 3000, 7


def write_example(folder: Path) -> Path:
    """Write tables over days, of which each holds some, the last with three rows a day."""
    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    rng = np.random.default_rng(11)
    days = np.array([str(date(2015, 1, 1) + timedelta(days=day)) for day in range(DAYS)])
    mood = rng.normal(size=DAYS)
    for number in range(TABLES):
        held = np.sort(rng.choice(DAYS, rng.integers(200, DAYS), replace=False))
        held = np.repeat(held, 3) if number == TABLES - 1 else held
        moved = mood[held] * number / (TABLES - 1) + rng.normal(size=held.size)
        columns = {"day": days[held], "a": moved, "b": rng.exponential(size=held.size)}
        pl.DataFrame(columns).write_csv(folder / f"table{number}.csv")
    return folder
