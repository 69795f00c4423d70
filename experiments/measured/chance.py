"""How much chance is among the columns that survive 5 %: queries against columns of which most are noise."""

from pathlib import Path

import numpy as np

from covary.statistics.moments import Moments, moments_of
from covary.statistics.significance import benjamini_hochberg, benjamini_yekutieli, p_values, quick_p_values
from experiments.writing import between_marks, table

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "chance.md"
SEED, QUERIES, COLUMNS, RELATED, LEVEL = 1, 200, 1_000, 20, 0.05
SIZES = (16, 32, 256, 1024)
SHAPES = {
    "normal": lambda z: z,
    "lognormal": np.exp,
    # Which half is as good as random, yet decided by the number itself.
    "lognormal, half zeros": lambda z: np.where(z % 0.02 < 0.01, 0.0, np.exp(z)),
    "heavy, symmetric": lambda z: np.sinh(1.2 * z),
    "one in twenty": lambda z: (z > 1.645).astype(float),
    "half and half": lambda z: (z > 0).astype(float),
}
TESTS = {
    "Student's t, BH": lambda m: benjamini_hochberg(quick_p_values(m.correlation, m.size)),
    "covary, BH": lambda m: benjamini_hochberg(p_values(m)),
    "covary, BY": lambda m: benjamini_yekutieli(p_values(m)),
}


def discoveries(shape: str, size: int, seed: int) -> dict[str, tuple[float, float]]:
    """Of one query: the share of chance among the survivors, and of the related columns that survive."""
    rng = np.random.default_rng([SEED, size, seed])
    x = rng.normal(size=size)
    strength = np.zeros(COLUMNS)
    strength[:RELATED] = rng.uniform(0.2, 0.9, RELATED)
    noise = rng.normal(size=(COLUMNS, size))
    columns = SHAPES[shape](strength[:, None] * x + np.sqrt(1 - strength**2)[:, None] * noise)
    query = SHAPES[shape](x)
    moments = Moments(*np.concatenate([moments_of(query, column) for column in columns], axis=1))
    found = {}
    for name, test in TESTS.items():
        survives = test(moments) <= LEVEL
        chance = survives[RELATED:].sum() / max(survives.sum(), 1)
        found[name] = float(chance), float(survives[:RELATED].mean())
    return found


def main() -> None:
    """Ask many queries of each kind, and put the table into docs/measured/chance.md."""
    rows = []
    for shape in SHAPES:
        for size in SIZES:
            asked = [discoveries(shape, size, seed) for seed in range(QUERIES)]
            cells = []
            for name in TESTS:
                chance, power = np.mean([answer[name] for answer in asked], axis=0)
                cells.append(f"{chance:.1%} ({power:.0%})")
            rows.append((shape, size, *cells))
            print(*rows[-1], flush=True)
    between_marks(PAGE, "chance", table(("columns", "n", *TESTS), rows))
