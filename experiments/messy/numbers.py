"""How tables write numbers."""

from collections.abc import Callable
from dataclasses import dataclass, field

MARKS = ("N/A", "-", "..", "s", "*", "<15", "null", "#REF!", "")
NUMBER_NAMES = (
    "score rate", "Total Cohort Num", "NUMBER OF CLASSES", "pct_change", "Median Income", "avg wait",
    "n_stores", "Population", "AMOUNT", "revenue", "Development Cost", "total_sales", "acres", "Density",
    "mean depth", "volume", "Per Capita", "index_value", "Gross Rent", "load",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """A way to write numbers, and how large they are in columns written so."""

    write: Callable[[float], str]
    level: float
    spread: float
    rounded: Callable[[float], float] = field(default=lambda number: round(number, 2))


def _thousands(number: float, digits: int, comma: str, point: str) -> str:
    return f"{number:,.{digits}f}".translate(str.maketrans({",": comma, ".": point}))


def _compact(number: float) -> str:
    return f"{number / 1e6:g}M" if number >= 1e6 else f"{number / 1e3:g}K"


def _tenth(number: float) -> float:
    return round(number, 1)


def _to_whole(number: float) -> float:
    return float(round(number))


STYLES = {
    "1234.56": NumberStyle("{:.2f}".format, 20, 30),
    "1234": NumberStyle("{:.0f}".format, 300, 60, _to_whole),
    "1,234": NumberStyle("{:,.0f}".format, 1500, 300, _to_whole),
    "$1,234.50 ": NumberStyle("${:,.2f} ".format, 1500, 300),
    "63.90%": NumberStyle("{:.2f}%".format, 50, 10),
    "(1,200)": NumberStyle(lambda n: f"({-n:,.0f})" if n < 0 else f"{n:,.0f}", 0, 1200, _to_whole),
    "1.234E+05": NumberStyle("{:.3E}".format, 2e5, 5e4, lambda n: float(f"{n:.3E}")),
    "5.3 km": NumberStyle("{:.1f} km".format, 50, 10, _tenth),
    "12.50 kg ": NumberStyle("{:.2f} kg ".format, 50, 10),
    "1.2K/3M": NumberStyle(_compact, 1.5e6, 3e5, lambda n: round(n, -4)),
    "−12.5": NumberStyle(lambda n: f"{n:.1f}".replace("-", "−"), 0, 20, _tenth),
    "1.234,50": NumberStyle(lambda n: _thousands(n, 2, ".", ","), 1500, 300),
    "1 234,5": NumberStyle(lambda n: _thousands(n, 1, " ", ","), 1500, 300, _tenth),
    "1234,56": NumberStyle(lambda n: f"{n:.2f}".replace(".", ","), 1500, 300),
    "€ 1.234,50": NumberStyle(lambda n: f"€ {_thousands(n, 2, '.', ',')}", 1500, 300),
}
EUROPEAN = ("1.234,50", "1 234,5", "1234,56", "€ 1.234,50", "1234")
