"""The measures by name: how each is computed, and how sure it can be.

Three of them score every column of an index at once. The dearer ones first have the columns ranked by one of
those, and measure the best of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from covary.arrays import Floats
from covary.errors import chosen
from covary.statistics.bootstrap import pm1
from covary.statistics.correlation import SMALLEST_SAMPLE, pearson, rin, spearman
from covary.statistics.dependence import chatterjee, distance, kendall, qn
from covary.statistics.independence import chatterjee_p_value, distance_p_value
from covary.statistics.rank_influence import Ends, kendall_ends, rin_ends, spearman_ends

SimpleMeasure = Callable[[Floats, Floats], float]


@dataclass(frozen=True, slots=True)
class Measure:
    """How a measure is computed and read."""

    of: Callable[[Floats, Floats, int], float]  # the measure of a sample, given a seed; NaN when undefined
    symbol: str  # as people write it
    words: str  # what it goes by, or where it is better than others, for --help
    scores_by: str  # that scores all columns first: itself if `moments.SWITCHES` has it, else spearman
    intervals: tuple[str, ...] = ()  # those known to hold for it, the default first
    p_value: SimpleMeasure | None = None  # its own test; without one, that of the measure that scores
    estimates: str | None = None  # what it estimates, if not itself: on a whole join that is known
    # The ends of its own "influence" interval, if not those of Pearson's r.
    influence_ends: Callable[[Floats, Floats, float, float, float], Ends] | None = None
    from_zero: bool = False  # whether values below 0 mean as little as 0


def _without_seed(measure: SimpleMeasure) -> Callable[[Floats, Floats, int], float]:
    return lambda x, y, seed: measure(x, y)


DEFAULT_MEASURE = "pearson"
OF_VALUES = ("influence", "fisher", "pm1", "hoeffding", "hoeffding-small")
MEASURES = {
    "pearson": Measure(_without_seed(pearson), "r", "", "pearson", OF_VALUES),
    "spearman": Measure(
        _without_seed(spearman),
        "ρ",
        "by ranks, where outliers must not decide",
        "spearman",
        ("influence", "fisher"),
        influence_ends=spearman_ends,
    ),
    "rin": Measure(
        _without_seed(rin),
        "rin",
        "by normal scores of ranks",
        "rin",
        ("influence", "fisher"),
        influence_ends=rin_ends,
    ),
    "qn": Measure(_without_seed(qn), "qn", "robust", "spearman"),
    "pm1": Measure(
        pm1,
        "pm1",
        "bootstrap",
        "pearson",
        ("pm1", *(name for name in OF_VALUES if name != "pm1")),
        estimates="pearson",
    ),
    "kendall": Measure(
        _without_seed(kendall),
        "τ",
        "by pairs in one order",
        "spearman",
        ("influence",),
        influence_ends=kendall_ends,
    ),
    "distance": Measure(
        _without_seed(distance), "dcor", "any dependence", "spearman", p_value=distance_p_value
    ),
    "chatterjee": Measure(
        _without_seed(chatterjee), "ξ", "a function", "spearman", p_value=chatterjee_p_value, from_zero=True
    ),
}


def measure_named(name: str) -> Measure:
    """Look a measure up by name."""
    return chosen(name, MEASURES, "measure")


def why_undefined(x: Floats, y: Floats, measure: str) -> str:
    """Say why a sample has no correlation."""
    if x.size < SMALLEST_SAMPLE:
        return f"it takes {SMALLEST_SAMPLE} shared keys and there are {x.size}"
    if x.min() == x.max() or y.min() == y.max():
        return f"a column has one value only on the {x.size:,} shared keys"
    if abs(x).max() == float("inf") or abs(y).max() == float("inf"):
        return "a number is too large"
    return f"too many values of a column are equal for {measure}, beside its largest"
