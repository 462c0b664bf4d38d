"""Keep long lists of hashes in order, find which of others are in them, and add a list."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
MANY = 1 << 16


def merge(ordered: Hashes, more: Hashes) -> Hashes:
    """Merge two sorted lists with a stable sort, which merges the two runs that it finds."""
    if not len(ordered):
        return more
    return np.sort(np.concatenate([ordered, more]), kind="stable")


def place_in(ordered: Hashes, hashes: Hashes) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return where each hash first stands in a sorted list, and whether it is there, [n]."""
    if not len(ordered):
        return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), bool)
    at = np.minimum(_search(ordered, hashes, "left"), len(ordered) - 1)
    return at, ordered[at] == hashes


def _search(ordered: Hashes, values: Hashes, side: Literal["left", "right"]) -> NDArray[np.int64]:
    """`np.searchsorted`, which walks long lists many times faster in their own order."""
    if len(ordered) < MANY or np.all(values[1:] >= values[:-1]):
        return np.searchsorted(ordered, values, side)
    order = np.argsort(values)
    places = np.empty(len(values), np.int64)
    places[order] = np.searchsorted(ordered, values[order], side)
    return places
