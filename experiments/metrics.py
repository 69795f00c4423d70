"""How good an order is: average precision and discounted gain, against the exact correlations."""

import numpy as np

METRICS = ("MAP(r>.75)", "MAP(r>.5)", "nDCG@5", "nDCG@10")
EXACT = "jc-exact"


def average_precision(relevant: np.ndarray) -> float:
    """Of a ranked list; NaN when nothing in it is relevant."""
    if not relevant.any():
        return float("nan")
    found = np.cumsum(relevant) / np.arange(1, relevant.size + 1)
    return float(found[relevant].mean())


def gain(truth: np.ndarray, count: int) -> float:
    """Normalised discounted cumulative gain of the first so many; NaN when there is nothing to gain."""
    discounts = 1 / np.log2(np.arange(min(count, truth.size)) + 2)
    best = float(np.sort(truth)[::-1][:count] @ discounts)
    return float(truth[:count] @ discounts) / best if best > 0 else float("nan")


def metrics_of(truth: np.ndarray, scores: np.ndarray, ties: np.ndarray) -> list[float]:
    """Order the true |r| by scores, equal ones by a number, and measure the order by all four metrics."""
    ordered = truth[np.lexsort((ties, -np.nan_to_num(scores, nan=-np.inf)))]
    return [
        average_precision(ordered > 0.75),
        average_precision(ordered > 0.5),
        gain(ordered, 5),
        gain(ordered, 10),
    ]
