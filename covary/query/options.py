"""The options of a query: each is defined once, here, with its default and with what it does in words.

`Index.query`, `covary.spark` and the command line read this; the engine gets all of them as one value. To add
an option, add a field to QueryOptions, name it in GivenOptions, and use it where the query is answered.
Whatever takes long to import is imported when it is needed: `covary --help` loads this.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from covary.errors import CovaryError

if TYPE_CHECKING:
    from covary.statistics.estimate import HowToMeasure

DEFAULT_LEVEL = 0.05  # share of chance among the columns that are said to survive
Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Option:
    """How an option is explained."""

    words: str  # {measures}, {rankers}, {intervals} and {aggregates} stand for what can be chosen
    value: str = "NAME"  # what its value is called; "" for a flag
    none_means: str = ""  # what holds where it is None
    at_least: int | None = None  # the smallest whole number that it can be


def _option(default: Any, words: str, value: str = "NAME", none_means: str = "", **more: int) -> Any:
    return field(default=default, metadata={"option": Option(words, value, none_means, **more)})


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What a person may choose about a query, checked."""

    by: str | None = _option(
        None,
        "Join times by hour, day, week, month, quarter or year.",
        none_means="the finest that both sides have",
    )
    aggregate: str = _option("mean", "How rows of one key become one number: {aggregates}.")
    top: int = _option(10, "How many columns to show.", "N", at_least=1)
    measure: str = _option("pearson", "How columns are said to move together: {measures}.")
    rank: str = _option("finite-population", "What orders the hits: {rankers}.")
    interval: str | None = _option(
        None, "{intervals}. Not every measure has each.", none_means="influence; pm1 for pm1"
    )
    confidence: float = _option(0.95, "How often intervals hold the join's own correlation.", "SHARE")
    max_q: float | None = _option(
        None, "Show only hits of at most this q: the share of chance among them, such as 0.05.", "Q"
    )
    correction: str = _option(
        "bh",
        "Which q: bh (Benjamini-Hochberg), or by (Benjamini-Yekutieli: holds however the columns depend on "
        "each other, and lets fewer through).",
    )
    null: bool = _option(
        False, "Ask again with your numbers shuffled, and show the hits of chance beside the real.", ""
    )
    # On fewer keys, columns that have nothing to do with each other often look alike.
    min_sample: int = _option(10, "Hide columns that share fewer sampled keys.", "N", at_least=0)
    retrieve: int | None = _option(
        None,
        "Rank only the N columns with the largest overlap (the paper's way: 100).",
        "N",
        none_means="all",
        at_least=1,
    )
    shortlist: int = _option(
        200,
        "How many columns a dearer measure measures: the best by pearson (pm1) or spearman (the rest).",
        "N",
        at_least=1,
    )
    include_own: bool = _option(False, "Show the columns of the queried table itself, too.", "")
    small_numbers: bool = _option(
        False, "Show columns that share only numbers below 1,000 under another name, too.", ""
    )
    explain: bool = _option(False, "Say of each hit how its keys met yours, with examples.", "")
    seed: int = _option(0, "Of shuffling, resampling and random ranking.", "N")

    def __post_init__(self) -> None:
        from covary.statistics.ranking import ranker_named
        from covary.statistics.significance import correction_named

        for name, option in explained_options():
            number, least = getattr(self, name), option.at_least
            if least is None or (number is None and option.none_means):
                continue
            if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
                flag = f"--{name.replace('_', '-')}"
                raise CovaryError(
                    f"{name} ({flag}) must be a whole number of at least {least}, not {number!r}"
                )
        ranker = ranker_named(self.rank)
        correction_named(self.correction)
        if self.max_q is not None and not (isinstance(self.max_q, Real) and 0 < self.max_q <= 1):
            raise CovaryError(f"the largest q (--max-q) must be above 0 and at most 1, not {self.max_q!r}")
        if ranker.of_pearson and self.how.definition.scores_by != "pearson":
            raise CovaryError(f"{self.rank} ranks by Pearson's r: use --measure pearson, or another --rank")

    @property
    def how(self) -> "HowToMeasure":
        """How a column is measured, checked."""
        from covary.statistics.estimate import HowToMeasure

        return HowToMeasure(self.measure, self.interval, self.confidence, self.seed)

    @property
    def level(self) -> float:
        """The share of chance up to which columns are said to survive."""
        return DEFAULT_LEVEL if self.max_q is None else float(self.max_q)

    @property
    def fewest_keys(self) -> int:
        """The fewest shared keys that a hit may rest on."""
        from covary.statistics.correlation import SMALLEST_SAMPLE

        return max(self.min_sample, SMALLEST_SAMPLE)


class GivenOptions(TypedDict, total=False):
    """The fields of QueryOptions as a caller may give them, so that editors and mypy know them."""

    by: str | None
    aggregate: str
    top: int
    measure: str
    rank: str
    interval: str | None
    confidence: float
    max_q: float | None
    correction: str
    null: bool
    min_sample: int
    retrieve: int | None
    shortlist: int
    include_own: bool
    small_numbers: bool
    explain: bool
    seed: int


def explained_options() -> Iterator[tuple[str, Option]]:
    """Return every option by name, as it is explained."""
    return ((each.name, each.metadata["option"]) for each in fields(QueryOptions))


def option_parameters() -> list[inspect.Parameter]:
    """Return the options as parameters of a function: their types and defaults."""
    return [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )
        for each in fields(QueryOptions)
    ]


def name_keywords(function: Callable[..., object], named: Sequence[inspect.Parameter]) -> None:
    """Let the signature of a function name what it takes as **keywords, before its other keywords."""
    own = inspect.signature(function)
    before = [each for each in own.parameters.values() if each.kind < each.KEYWORD_ONLY]
    after = [each for each in own.parameters.values() if each.kind is each.KEYWORD_ONLY]
    function.__dict__["__signature__"] = own.replace(parameters=[*before, *named, *after])


def explain_options(method: Function) -> Function:
    """Name the options of a query in the signature of a method that takes them, and in its docstring."""
    name_keywords(method, option_parameters())
    indent = " " * 12
    lines = (
        f"{indent}{name}: {fill_in_choices(option.words)}"
        + (f" None: {option.none_means}." if option.none_means else "")
        for name, option in explained_options()
    )
    if method.__doc__:  # python -OO leaves none
        method.__doc__ = method.__doc__.replace(f"{indent}options: QueryOptions.", "\n".join(lines))
    return method


def fill_in_choices(words: str) -> str:
    """Write what can be chosen in place of {measures} and the like; this loads all that it can be."""
    if "{" not in words:
        return words
    from covary.sketching.aggregate import AGGREGATES
    from covary.statistics.intervals import INTERVALS
    from covary.statistics.measures import MEASURES
    from covary.statistics.ranking import RANKERS

    def listed(choices: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} ({each.words})" if each.words else name for name, each in choices.items())

    return words.format(
        measures=listed(MEASURES),
        rankers=listed(RANKERS),
        intervals=listed(INTERVALS),
        aggregates=", ".join(AGGREGATES),
    )
