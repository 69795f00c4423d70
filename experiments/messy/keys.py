"""What the keys of tables denote, and at which grain, if they are times."""

from collections.abc import Callable
from dataclasses import dataclass

GRAINS = ("moment", "hour", "day", "month", "quarter", "year")  # finest first
Write = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Domain:
    """What keys denote, which there are, and the ways to write them."""

    name: str
    keys: tuple[str, ...]
    styles: dict[str, Write]
    columns: tuple[str, ...]  # what its columns are called
    grain: str = ""  # of a time
    typed: Callable[[str], object] | None = None  # as Parquet may hold it
    meets: bool = True  # whether columns in different styles are expected to join

    @property
    def label(self) -> str:
        return self.grain or self.name


def coarsened(key: str, grain: str) -> str:
    """Write the time that a true key denotes at a grain that is no finer than its own."""
    if grain == "quarter":
        return key if "Q" in key else f"{key[:4]}-Q{(int(key[5:7]) + 2) // 3}"
    return key[: {"moment": 19, "hour": 13, "day": 10, "month": 7, "year": 4}.get(grain, len(key))]


def coarser(left: str, right: str) -> str:
    """The coarser of two grains; "" where there is no time."""
    return max(left, right, key=GRAINS.index) if left and right else ""
