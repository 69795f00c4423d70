"""What a sketch is (paper, section 3): its settings, the sketch of some rows, the finished sketch."""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from numbers import Integral

from covary.arrays import Floats
from covary.columns.key_text import NORMALISERS
from covary.errors import SketchError, chosen
from covary.sketching.aggregate import AGGREGATES, States
from covary.sketching.hashing import SCHEMES, Hashes, HashScheme

DEFAULT_SIZE = 1024
SMALLEST_ROOM = 32

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class SketchConfig:
    """The settings of a sketch; two sketches can be compared when all but the aggregates are equal."""

    size: int = DEFAULT_SIZE
    aggregates: tuple[str, ...] = ("mean",)
    hash: str = "xxhash64"
    normaliser: str = NORMALISERS["canonical"]

    def __post_init__(self) -> None:
        if not isinstance(self.size, Integral) or self.size < 3:
            raise SketchError(f"a sketch needs room for at least 3 keys, not {self.size!r}")
        if not self.aggregates:
            raise SketchError(f"name an aggregate: {', '.join(AGGREGATES)}")
        for name in self.aggregates:
            chosen(name, AGGREGATES, "aggregate")
        chosen(self.hash, SCHEMES, "hash")

    @property
    def scheme(self) -> HashScheme:
        """The hash functions behind the name."""
        return SCHEMES[self.hash]

    def room(self, depth: int) -> int:
        """How many keys a sketch holds that is so many granularities coarser than the finest.

        Half as many each time: of the usual size, all of them take no more than twice the finest's room.
        """
        return max(self.size >> depth, min(self.size, SMALLEST_ROOM))

    @property
    def states(self) -> frozenset[str]:
        """The states that the aggregates need."""
        return frozenset[str]().union(*(AGGREGATES[name].states for name in self.aggregates))


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """A key and a number column of one table.

    Attributes:
        table: the table.
        key: the column that joins; several are written with a comma in between.
        value: the column of numbers.
        granularity: what times in the key were rounded down to: "moment" (nothing), "hour", "day", "week",
            "month", "quarter" or "year"; "" for a key without times.
    """

    table: str
    key: str
    value: str
    granularity: str = ""


@dataclass(frozen=True, slots=True)
class Counts:
    """What was seen, what was dropped, and the range of the numbers."""

    rows: int
    null_keys: int
    null_values: int
    not_finite: int
    minimum: float
    maximum: float

    @property
    def kept_rows(self) -> int:
        """Rows that have a key and a number."""
        return self.rows - self.null_keys - self.null_values - self.not_finite

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.rows + other.rows,
            self.null_keys + other.null_keys,
            self.null_values + other.null_values,
            self.not_finite + other.not_finite,
            min(self.minimum, other.minimum),
            max(self.maximum, other.maximum),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """The sketch of some rows of a table: its n smallest keys in h_u order, with states that merge."""

    pair: ColumnPair
    hashes: Hashes
    states: States
    counts: Counts
    complete: bool
    room: int


@dataclass(frozen=True, eq=False)
class Sketch:
    """A finished sketch of ⟨key, number⟩: the n smallest keys in h_u order, one number for each.

    How many rows stood behind a key is forgotten.
    """

    pair: ColumnPair
    aggregate: str
    config: SketchConfig
    key_hashes: Hashes
    values: Floats
    counts: Counts
    complete: bool

    @property
    def size(self) -> int:
        """How many keys the sketch holds."""
        return int(self.key_hashes.size)

    @cached_property
    def units(self) -> Floats:
        """The h_u of each key."""
        return self.config.scheme.unit(self.key_hashes)

    @property
    def reach(self) -> float:
        """The largest h_u of a key in the sketch."""
        return float(self.units[-1]) if self.size else 0.0

    @property
    def threshold(self) -> float:
        """The h_u at which keys were cut off; 1 when none was."""
        return 1.0 if self.complete else self.reach

    @property
    def value_range(self) -> Range:
        """Bounds of the numbers of all keys, also of those that were cut off."""
        held = (float(self.values.min()), float(self.values.max())) if self.size else (inf, -inf)
        if self.complete:
            return held
        # Of keys that were cut off only the column's own range is known. Every key held has a row at least;
        # at most the rest belongs to one key that was cut.
        rows = float(max(1, self.counts.kept_rows - self.size))
        least, most = AGGREGATES[self.aggregate].bounds(self.counts.minimum, self.counts.maximum, rows)
        return min(held[0], least), max(held[1], most)
