"""covary: which tables join with mine and hold a column that moves with my column, and how sure are we?"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from covary.build.update import build_index
    from covary.build.upkeep import compact_index, remove_tables
    from covary.errors import CovaryError
    from covary.index.check import check_index
    from covary.index.history import read_history
    from covary.query.ask import Index, open_index
    from covary.query.hits import Hit, Hits
    from covary.sketching.sketch_table import sketch
    from covary.sketching.sketch_types import Sketch
    from covary.statistics.estimate import Estimate, estimate
    from covary.statistics.join import JoinedSample, join
    from covary.statistics.key_sets import KeySets, SetEstimate, compare_key_sets, distinct_keys

__version__ = "0.2.0"

__all__ = [
    "CovaryError",
    "Estimate",
    "Hit",
    "Hits",
    "Index",
    "JoinedSample",
    "KeySets",
    "SetEstimate",
    "Sketch",
    "__version__",
    "build_index",
    "check_index",
    "compact_index",
    "compare_key_sets",
    "distinct_keys",
    "estimate",
    "join",
    "open_index",
    "read_history",
    "remove_tables",
    "sketch",
]

_HOMES = {
    "build.update": ("build_index",),
    "errors": ("CovaryError",),
    "statistics.estimate": ("Estimate", "estimate"),
    "sketching.sketch_table": ("sketch",),
    "statistics.join": ("JoinedSample", "join"),
    "statistics.key_sets": ("KeySets", "SetEstimate", "compare_key_sets", "distinct_keys"),
    "index.history": ("read_history",),
    "query.hits": ("Hit", "Hits"),
    "index.check": ("check_index",),
    "build.upkeep": ("compact_index", "remove_tables"),
    "query.ask": ("Index", "open_index"),
    "sketching.sketch_types": ("Sketch",),
}


def __getattr__(name: str) -> _Any:
    """Import a public name when it is first asked for: `covary --help` needs none of them."""
    if name == "spark":
        return _import_module("covary.spark")
    for module, names in _HOMES.items():
        if name in names:
            globals()[name] = getattr(_import_module(f"covary.{module}"), name)
            return globals()[name]
    raise AttributeError(f"module 'covary' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
