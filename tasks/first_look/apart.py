"""Find values that may stand for "missing". They are repeated, and stand apart from all others of their column."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

MOST = 4
"""Such values at either end of a column."""
FEWEST = 5
"""Rows in which such a value is; and of all rows `SHARE`, or `SPIKE` times as many as of a usual value."""
SHARE = 0.01
SPIKE = 5
FEWEST_OTHERS = 3
"""Different other values."""
WIDER = 3
"""Such a gap is more than so many times as wide as the widest between other values."""


def values_apart(numbers: ArrayLike) -> dict[float, int]:
    """Return the values of a column [n] at its ends that stand apart, and in how many rows each is.

    Negative values below others of which none is negative stand apart by less: by a gap, or by being much more frequent.
    """
    values, counts = np.unique(np.asarray(numbers, dtype=np.float64), return_counts=True)
    enough = max(FEWEST, min(SHARE * counts.sum(), SPIKE * float(np.median(counts)))) if len(values) else 0
    ends = sorted(product(range(MOST + 1), repeat=2), key=sum, reverse=True)
    for low, high in ends:
        body = slice(low, len(values) - high)
        others = values[body]
        if len(others) < FEWEST_OTHERS or low + high == 0:
            continue
        apart = np.r_[0:low, len(values) - high : len(values)]
        if counts[apart].min() < enough:
            continue
        gaps = np.diff(others)
        below = others[0] - values[low - 1] if low else np.inf
        above = values[len(values) - high] - others[-1] if high else np.inf
        is_far_below = below > WIDER * gaps.max()
        if low and values[low - 1] < 0 <= others[0]:
            usual = float(np.median(counts[body][:FEWEST]))
            is_far_below |= below >= 2 * np.median(gaps) or counts[:low].min() >= SPIKE * usual
        if is_far_below and above > WIDER * gaps.max():
            return {float(values[i]): int(counts[i]) for i in apart}
    return {}
