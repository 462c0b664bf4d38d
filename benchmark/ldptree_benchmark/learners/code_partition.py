"""The partitions of LPCT's published code (github.com/Karlmyh/LPCT), which are not those of its text; the switch
"code-splits" of `lpct_printed` takes them.

The text cuts where the Gini index falls most, and stops at cells without public rows. The code takes the gain in entropy, at ten
quantiles of a feature's distinct values ("cart") or at the midpoints of the longest edges ("max-edge"). Where a side would hold
too few public rows it tries the next feature, as long as that is among the best tenth.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from ldptree.partition.tree import LEAF, Partition

Floats = NDArray[np.float64]
QUANTILES = (2 * np.arange(10) + 1) / 20


def grow_as_code(
    X: Floats, y: NDArray[np.int64], *, kind: str, depth: int, min_samples_leaf: int
) -> Partition:
    """Return the partition of the authors' code for rows [n, d] of [0, 1]^d, by "cart" or "max-edge"."""
    n, d = X.shape
    feature, threshold = [LEAF], [0.0]
    left, right = [LEAF], [LEAF]
    waiting = deque([(0, np.arange(n), np.zeros(d), np.ones(d), 0)])
    while waiting:
        node, rows, low, high, level = waiting.popleft()
        if level == depth or len(rows) < 2 * min_samples_leaf or _are_equal(X[rows], y[rows]):
            continue
        if kind == "cart":
            columns, gains, cuts = _cut_at_quantiles(X[rows], y[rows])
        else:
            columns, gains, cuts = _cut_longest_edges(X[rows], y[rows], low, high)
        best = np.argsort(-gains, kind="stable")
        best = best[gains[best] >= 0]
        for place in best[: max(1, (len(best) + 5) // 10)]:
            column, cut = int(columns[place]), float(cuts[place])
            is_right = X[rows, column] >= cut  # nothing is right of a nan
            if min(is_right.sum(), (~is_right).sum()) < max(min_samples_leaf, 1):
                continue
            feature[node], threshold[node] = column, np.nextafter(cut, -np.inf)
            for side, children in ((~is_right, left), (is_right, right)):
                lower, upper = low.copy(), high.copy()
                (upper if children is left else lower)[column] = cut
                children[node] = len(feature)
                waiting.append((len(feature), rows[side], lower, upper, level + 1))
                for values in (feature, left, right):
                    values.append(LEAF)
                threshold.append(0.0)
            break
    return Partition.of(feature, threshold, left, right)


def _are_equal(X: Floats, y: NDArray[np.int64]) -> bool:
    return bool(np.ptp(y) == 0 and (np.ptp(X, axis=0) == 0).all())


def _entropy(share: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = -(share * np.log2(share) + (1 - share) * np.log2(1 - share))
    return np.where((share <= 0) | (share >= 1), 0.0, bits)


def _gain(n_left: Floats, ones_left: Floats, n: int, ones: int) -> Floats:
    """The gain in entropy of cuts with so many rows, and ones among them, on the left."""
    n_right = n - n_left
    left = _entropy(ones_left / np.maximum(n_left, 1)) * n_left
    right = _entropy((ones - ones_left) / np.maximum(n_right, 1)) * n_right
    return np.asarray(_entropy(np.array(ones / n)) - (left + right) / n)


def _cut_at_quantiles(X: Floats, y: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Of every feature the gain of its best cut and where it lies, nan where no cut gains."""
    n, d = X.shape
    gains, cuts = np.zeros(d), np.full(d, np.nan)
    if 0 < y.sum() < n:
        order = np.argsort(X, axis=0, kind="stable")
        values = np.take_along_axis(X, order, axis=0)
        ones = np.vstack([np.zeros((1, d)), np.cumsum(y[order], axis=0)])
        for column in np.flatnonzero(values[0] < values[-1]):
            own = values[:, column]
            distinct = own[np.append(True, own[1:] != own[:-1])]
            places = np.unique(np.quantile(distinct, QUANTILES))
            n_left = np.searchsorted(own, places, side="left")
            gained = _gain(n_left.astype(np.float64), ones[n_left, column], n, int(y.sum()))
            at = int(gained.argmax())
            if gained[at] > 0:
                gains[column], cuts[column] = gained[at], places[at]
    return np.arange(d), gains, cuts


def _cut_longest_edges(
    X: Floats, y: NDArray[np.int64], low: Floats, high: Floats
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Of every longest edge the gain of its midpoint, and the midpoint."""
    size = high - low
    columns = np.flatnonzero(size == size.max())
    cuts = ((low + high) / 2)[columns]
    is_left = X[:, columns] < cuts
    n_left, ones = is_left.sum(axis=0).astype(np.float64), (y @ is_left).astype(np.float64)
    return columns, _gain(n_left, ones, len(y), int(y.sum())), cuts
