"""covary: which tables join with mine and hold a column that moves with my column, and how sure are we?"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from covary.build import build_index
    from covary.errors import CovaryError
    from covary.estimates import Estimate, estimate
    from covary.frames import sketch
    from covary.history import read_history
    from covary.hits import Hit, Hits
    from covary.integrity import check_index
    from covary.joins import JoinedSample, join
    from covary.keysets import KeySets, SetEstimate, compare_key_sets, distinct_keys
    from covary.maintenance import compact_index, remove_tables
    from covary.query import Index, open_index
    from covary.sketches import Sketch

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
    "build": ("build_index",),
    "errors": ("CovaryError",),
    "estimates": ("Estimate", "estimate"),
    "frames": ("sketch",),
    "joins": ("JoinedSample", "join"),
    "keysets": ("KeySets", "SetEstimate", "compare_key_sets", "distinct_keys"),
    "history": ("read_history",),
    "hits": ("Hit", "Hits"),
    "integrity": ("check_index",),
    "maintenance": ("compact_index", "remove_tables"),
    "query": ("Index", "open_index"),
    "sketches": ("Sketch",),
}


def __getattr__(name: str) -> _Any:
    """Import a public name when it is first asked for: `covary --help` needs none of them."""
    if name == "spark":
        return _import_module("covary.spark")
    for module, names in _HOMES.items():
        if name in names:
            found = getattr(_import_module(f"covary.{module}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'covary' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
