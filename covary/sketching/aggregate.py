"""Fold the rows of one key into one number.

What is kept of some rows is a state, a partial result such as a sum: states of parts of a table merge, in any
order, to the same bits as if the rows had come together.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from covary.arrays import Array, Floats, Integers, Truths

Groups = npt.NDArray[np.intp]
States = dict[str, Array]  # by name a number per key: integers for counts and limbs, else floats

# A float sum depends on the order of its terms; a sum of integers does not. So each number is split exactly
# into limbs, digits of 30 bits: "limb:0" counts ones, "limb:1" counts 2^30, "limb:-1" counts 2^-30, ..., and
# sums are kept per limb: most columns need one to three. 2^33 rows fit under one key.
LIMB_BITS = 30
LIMB = "limb:"
FAR_EXPONENT = 900  # beyond this a power of two may leave a double's range
FAR_SCALE = 100
NO_ROW = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows by key: which key each row belongs to, and how many keys there are."""

    groups: Groups
    count: int

    def sort(self) -> tuple[Groups, Groups]:
        """Return the rows key by key, each key's in their order, and where among them each key begins."""
        by_key = np.argsort(self.groups, kind="stable")
        return by_key, np.searchsorted(self.groups[by_key], np.arange(self.count))


def fold_rows(values: Floats, keys: Grouped, rows: Integers, needed: frozenset[str]) -> States:
    """Fold rows into the states that are `needed` beside the count, one per column and key.

    `values` are columns x rows, NaN where one is missing; `rows` their numbers in the table, ascending.
    """
    present = ~np.isnan(values)
    cells = keys.groups + keys.count * np.arange(values.shape[0])[:, None]
    if present.all():  # every column counts the same
        alike = np.bincount(keys.groups, minlength=keys.count)
        states: States = {"count": np.broadcast_to(alike, (values.shape[0], keys.count))}
    else:
        states = {"count": _add_up(present, cells, keys)}
    if "sum" in needed:
        for limb, digits in _split_into_limbs(np.where(present, values, 0.0)):
            states[f"{LIMB}{limb}"] = _add_up(digits, cells, keys)
    if needed - {"sum"}:
        states |= _fold_ordered(values, present, keys, rows, needed)
    return states


def _add_up(numbers: Array, cells: Groups, keys: Grouped) -> Integers:
    shape = (numbers.shape[0], keys.count)
    total = np.bincount(cells.ravel(), weights=numbers.ravel(), minlength=shape[0] * shape[1])
    return total.astype(np.int64).reshape(shape)  # exact: at most 2^21 rows of 30 bits stay below 2^53


def _split_into_limbs(values: Floats) -> Iterator[tuple[int, Floats]]:
    limb = int(np.frexp(np.abs(values).max(initial=0.0))[1]) // LIMB_BITS
    rest = values
    while True:
        digits = np.trunc(_scale_by_power_of_two(rest, -LIMB_BITS * limb))
        yield limb, digits
        rest = rest - _scale_by_power_of_two(digits, LIMB_BITS * limb)
        if not rest.any():
            return
        limb -= 1


def _scale_by_power_of_two(numbers: Array, exponent: int) -> Floats:
    near = abs(exponent) < FAR_EXPONENT
    return numbers * 2.0**exponent if near else np.ldexp(numbers, exponent)


def _fold_ordered(
    values: Floats, present: Truths, keys: Grouped, rows: Integers, needed: frozenset[str]
) -> States:
    by_key, starts = keys.sort()
    values, present, rows = values[:, by_key], present[:, by_key], rows[by_key]
    positions = np.arange(rows.size)
    states: States = {}
    if "min" in needed:
        states["min"] = np.fmin.reduceat(values, starts, axis=1)
    if "max" in needed:
        states["max"] = np.fmax.reduceat(values, starts, axis=1)
    if "first" in needed:
        at = np.minimum.reduceat(np.where(present, positions, rows.size - 1), starts, axis=1)
        states |= {"first": np.take_along_axis(values, at, axis=1), "first_row": rows[at]}
    if "last" in needed:
        at = np.maximum.reduceat(np.where(present, positions, 0), starts, axis=1)
        states |= {"last": np.take_along_axis(values, at, axis=1), "last_row": rows[at]}
    return states


def concatenate(parts: Sequence[States]) -> States:
    """Put the states of several sets of keys one after the other."""
    return {name: np.concatenate(arrays, axis=-1) for name, arrays in _align(parts)}


def stack(columns: Sequence[States]) -> States:
    """Put the states of several columns with the same keys one below the other."""
    return {name: np.stack(arrays) for name, arrays in _align(columns)}


def _align(parts: Sequence[States]) -> Iterator[tuple[str, list[Array]]]:
    for name in sorted(set().union(*parts)):
        # A limb that a part never needed is zero there.
        yield name, [part.get(name, np.zeros(part["count"].shape, np.int64)) for part in parts]


def merge_states(states: States, keys: Grouped) -> States:
    """Merge the states of a column, or of several one below the other, into one state per key."""
    by_key, starts = keys.sort()
    merge_by = {"min": np.fmin, "max": np.fmax}
    merged: States = {}
    for name, state in states.items():
        if name == "count" or name.startswith(LIMB) or name in merge_by:
            merged[name] = merge_by.get(name, np.add).reduceat(state[..., by_key], starts, axis=-1)
        elif name in ("first_row", "last_row"):
            edge = name.removesuffix("_row")
            # Where nothing was seen no row may win.
            ranked = np.where(states["count"] > 0, state if edge == "first" else -state, NO_ROW)
            at = np.lexsort((ranked, np.broadcast_to(keys.groups, state.shape)))[..., starts]
            merged |= {each: np.take_along_axis(states[each], at, axis=-1) for each in (edge, name)}
        elif name not in ("first", "last"):  # which are merged with their rows
            raise KeyError(name)
    return merged


def _add_limbs(states: States, scale: int = 0) -> Floats:
    """Add the limbs up, times 2^scale."""
    limbs = {int(name.removeprefix(LIMB)): state for name, state in states.items() if name.startswith(LIMB)}
    highest = max(limbs)
    half = 1 << (LIMB_BITS - 1)
    terms: list[Floats] = []
    carry: Integers = np.zeros(1, dtype=np.int64)
    for limb in range(min(limbs), highest + 1):
        # Carrying to the nearest gives every sum the same digits, however its terms were split.
        digits = limbs.get(limb, 0) + carry
        carry = (digits + half) >> LIMB_BITS
        digits = digits - (carry << LIMB_BITS)
        terms.append(_scale_by_power_of_two(digits, LIMB_BITS * limb + scale))
    if np.any(carry):
        terms.append(_scale_by_power_of_two(carry, LIMB_BITS * (highest + 1) + scale))
    return _add_from_the_top(terms[::-1])


def _add_from_the_top(terms: Sequence[Floats]) -> Floats:
    """Add limbs of falling size; what each addition rounds off is kept and added last.

    A limb is at most half of what the one above counts in, so a sum so far is 0 or larger than the next
    limb: what adding that rounds off is then found exactly by subtracting.
    """
    total, rounded_off = terms[0], np.zeros_like(terms[0])
    for term in terms[1:]:
        larger = total + term
        rounded_off += term - (larger - total)
        total = larger
    return total + rounded_off


def _sum_over(states: States, count: Integers | float) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        result: Floats = _add_limbs(states) / count
        if not np.isfinite(result).all():  # the sum is beyond a double's range: its share need not be
            scaled = np.ldexp(_add_limbs(states, -FAR_SCALE) / count, FAR_SCALE)
            result = np.where(np.isfinite(result), result, scaled)
    return result


def _within(low: float, high: float, rows: float) -> tuple[float, float]:
    return low, high


@dataclass(frozen=True, slots=True)
class Aggregate:
    """How the rows of a key become one number."""

    states: frozenset[str]  # needed beside the count
    finish: Callable[[States], Floats]
    words: str  # as a passive: "averaged"
    # Between what its value lies for up to so many rows of numbers between a lowest and a highest.
    bounds: Callable[[float, float, float], tuple[float, float]]


# Adding 0 turns -0 into 0: which of the two a minimum finds depends on the order of the rows.
AGGREGATES = {
    "mean": Aggregate(
        frozenset({"sum"}), lambda states: _sum_over(states, states["count"]), "averaged", _within
    ),
    "sum": Aggregate(
        frozenset({"sum"}),
        lambda states: _sum_over(states, 1.0),
        "summed",
        lambda low, high, rows: (min(low, low * rows), max(high, high * rows)),
    ),
    "count": Aggregate(
        frozenset(),
        lambda states: states["count"].astype(np.float64),
        "counted",
        lambda low, high, rows: (1.0, rows),
    ),
    "min": Aggregate(frozenset({"min"}), lambda states: states["min"] + 0.0, "to the smallest", _within),
    "max": Aggregate(frozenset({"max"}), lambda states: states["max"] + 0.0, "to the largest", _within),
    "first": Aggregate(frozenset({"first"}), lambda states: states["first"], "to the first", _within),
    "last": Aggregate(frozenset({"last"}), lambda states: states["last"], "to the last", _within),
}
