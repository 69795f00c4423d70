"""covary: which tables join with mine and hold a column that moves with my column, and how sure are we?"""

from covary.build import build_index
from covary.errors import CovaryError
from covary.frames import sketch
from covary.join import JoinedSample, join
from covary.query import Estimate, Hit, Hits, Index, estimate, open_index
from covary.sketch import Sketch

__version__ = "0.1.0"

__all__ = [
    "CovaryError",
    "Estimate",
    "Hit",
    "Hits",
    "Index",
    "JoinedSample",
    "Sketch",
    "__version__",
    "build_index",
    "estimate",
    "join",
    "open_index",
    "sketch",
]
