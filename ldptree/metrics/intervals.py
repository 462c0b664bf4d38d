"""Intervals of an accuracy over test rows. The scores themselves are in `scores`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Z_95 = 1.959963984540054


def accuracy_interval(n_right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of an accuracy of n_right in n rows (Wilson 1927). n = 0 gives (0, 1)."""
    if n == 0:
        return (0.0, 1.0)
    share, z2 = n_right / n, Z_95**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # Rounding must not push an end past the share itself, where every row or none is right.
    return (max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0))


def paired_lead(ours: NDArray[np.bool_], other: NDArray[np.bool_]) -> tuple[float, float]:
    """95 % interval of accuracy(ours) - accuracy(other) where both answered the same rows, bool [n] each.

    n = 0 gives (-1, 1).
    """
    difference = ours.astype(np.float64) - other.astype(np.float64)
    if difference.size == 0:
        return (-1.0, 1.0)
    half = Z_95 * float(difference.std()) / math.sqrt(difference.size)
    mean = float(difference.mean())
    return (mean - half, mean + half)
