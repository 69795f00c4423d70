"""Joins on small numbers alone: 7 is a district, a grade and a customer, so the columns' names must agree."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl

from covary.arrays import Truths
from covary.columns.key_text import NORMALISERS
from covary.query.candidates import FEW_KEYS
from covary.query.open_segment import Candidates
from covary.query.stored_sketches import StoredSketches
from covary.sketching.hashing import SCHEMES, Hashes
from covary.sketching.sketch_types import Sketch

SMALL_NUMBERS = 1000
SHORTEST_WORD, LONGEST_ENDING = 3, 2
LONGEST_NAME = 200  # in characters; what follows isn't read
SAYING_LITTLE = frozenset(
    ["code", "codes", "number", "num", "nbr", "key", "index", "name", "value", "the", "and", "for"]
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")


def mark_unrelated(index: StoredSketches, query: Sketch, candidates: Candidates) -> Truths:
    """Mark joins on a few small numbers between columns whose names have no word in common."""
    unrelated = np.zeros(candidates.size, dtype=np.bool_)
    small = np.isin(query.key_hashes, _small_numbers(query.config.hash))
    few = candidates.join_sizes <= FEW_KEYS
    if query.config.normaliser == NORMALISERS["exact"] or not small.any() or not few.any():
        return unrelated
    larger = replace(query, key_hashes=query.key_hashes[~small], values=query.values[~small])
    beyond = index.score(larger).sketches if larger.size else np.empty(0, dtype=np.int64)
    doubtful = few & ~np.isin(candidates.sketches, beyond)
    names = index.columns_at(candidates.sketches[doubtful])["key"]
    agree = {name: names_agree(query.pair.key, name) for name in names.unique()}
    unrelated[doubtful] = [not agree[name] for name in names]
    return unrelated


@cache
def _small_numbers(hash_name: str) -> Hashes:
    texts = pl.Series([str(number) for number in range(SMALL_NUMBERS)])
    return SCHEMES[hash_name].identify([texts])[0].hashes


def names_agree(one: str, other: str) -> bool:
    """Whether names are equal or have a telling word in common, as "district" and "Council District"."""
    mine, theirs = _words(one), _words(other)
    if not mine or not theirs:  # "id", "#", "x": there is nothing to compare
        return one.casefold() == other.casefold()
    return any(_alike(a, b) for a in mine for b in theirs)


def _alike(one: str, other: str) -> bool:
    """Whether two words are one, but for an ending of one or two letters: "mon" and "month"."""
    shorter, longer = sorted((one, other), key=len)
    return longer.startswith(shorter) and len(longer) - len(shorter) <= LONGEST_ENDING


def _words(name: str) -> set[str]:
    words = {word.lower() for word in _WORD.findall(name[:LONGEST_NAME])}
    return {word for word in words if len(word) >= SHORTEST_WORD} - SAYING_LITTLE
