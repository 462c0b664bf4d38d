"""Trees for rows that hide features. A split is scored by those who show its feature (HistOfTree Algorithm 1).

The labels are noisy reports, so that growing looks at nothing private. A row that protects the feature of a split takes no
further part below it. Where nobody protects anything, "max-edge" is `max_edge` and "cart" is `cart`.

Scores of a split with n0 and n1 rows, noisy variances g0 and g1: "printed" is Algorithm 1's g0 + g1, the smallest wins;
"weighted" is the drop of the sum of squares, n0 n1 / (n0 + n1) (mean0 - mean1)^2, the largest wins. Where all candidates
see the same rows the second is CART's rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.errors import ConfigError, DataError
from ldptree.partition.cart import grow_cart
from ldptree.partition.label_unit import centre_of, unit_of
from ldptree.partition.tree import LEAF, Partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

SPLITS = ("max-edge", "cart")
CRITERIA = ("weighted", "printed")
# relative differences of scores below this are equal in exact arithmetic
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class _Rows:
    """The shown values, and the noisy labels."""

    X: NDArray[np.float32]
    protects: Mask
    y: Floats


def grow_masked_tree(
    X: Floats,
    protects: Mask,
    y: Floats,
    *,
    features: Sequence[int],
    depth: int,
    splits: str,
    criterion: str = "weighted",
    min_samples_leaf: int = 1,
) -> Partition:
    """The tree on these features of [0, 1]^d.

    Args:
        X: float64 [n, d] scaled; what stands where a value is protected is not looked at.
        protects: bool [n, d].
        y: float64 [n], noisy labels.
        features: the columns that may be split, increasing; none gives a single cell.
        depth: the deepest a leaf may lie.
        splits: "max-edge", midpoints of the longest edges, or "cart", free split points.
        criterion: "printed" or "weighted" (the module); "cart" is always weighted.
        min_samples_leaf: fewest rows that show the feature on either side of a split; other splits are no
            candidates. With 0, "max-edge" goes on where no row is left (of equals the first feature): midpoints need none.

    Raises:
        ConfigError: a name is not known, depth or min_samples_leaf negative, or "cart" with min_samples_leaf below 1.
        DataError: the shapes differ.
    """
    if splits not in SPLITS or criterion not in CRITERIA:
        raise ConfigError(f'splits "{splits}", criterion "{criterion}": known are {SPLITS} and {CRITERIA}')
    if depth < 0 or min_samples_leaf < (splits == "cart"):
        raise ConfigError(f'depth {depth}, min_samples_leaf {min_samples_leaf}: too small for "{splits}"')
    if X.shape != protects.shape or y.shape != X.shape[:1]:
        raise DataError(f"rows of shape {X.shape}, a mask of {protects.shape}, labels of {y.shape}")
    if depth == 0 or not features:
        return Partition.single()
    shows = ~protects[:, list(features)].all(axis=1)
    X, protects, y = X[shows], protects[shows], y[shows]
    rows = _Rows(np.asarray(X, dtype=np.float32), protects, np.asarray(y, dtype=np.float64))
    if splits == "max-edge":
        return _max_edge(rows, np.asarray(features), depth, criterion, min_samples_leaf)
    if protects[:, list(features)].any() or not len(y):
        return _cart(rows, np.asarray(features), depth, min_samples_leaf)
    tree = grow_cart(
        rows.X[:, list(features)],
        (y - centre_of(y)) / unit_of(y),
        depth=depth,
        n_classes=0,
        criterion="variance",
        min_samples_leaf=min_samples_leaf,
    )
    is_leaf = tree.feature == LEAF
    feature = np.where(is_leaf, LEAF, np.asarray(features)[tree.feature])
    return Partition.of(feature, tree.threshold, tree.left, tree.right)


class _Growing:
    """The arrays of a tree while it grows."""

    def __init__(self) -> None:
        self.feature, self.threshold, self.left, self.right = [LEAF], [0.0], [LEAF], [LEAF]

    def split(self, node: int, feature: int, threshold: float) -> tuple[int, int]:
        children = len(self.feature), len(self.feature) + 1
        self.feature[node], self.threshold[node] = feature, threshold
        self.left[node], self.right[node] = children
        for array, empty in ((self.feature, LEAF), (self.left, LEAF), (self.right, LEAF)):
            array += [empty, empty]
        self.threshold += [0.0, 0.0]
        return children

    def partition(self) -> Partition:
        return Partition.of(self.feature, self.threshold, self.left, self.right)


def _max_edge(
    rows: _Rows, features: NDArray[np.int64], depth: int, criterion: str, min_samples_leaf: int
) -> Partition:
    tree = _Growing()
    corner, halvings = np.zeros(features.size), np.zeros(features.size, dtype=np.int64)
    level = [(0, np.arange(rows.y.size), corner, halvings)]
    for _ in range(depth):
        below = []
        for node, who, low, halved in level:
            longest = np.flatnonzero(halved == halved.min())
            middles = low[longest] + 0.5 ** (halved.min() + 1)
            best = _best_middle(rows, who, features[longest], middles, criterion, min_samples_leaf)
            if best is None:
                continue
            split, middle = int(longest[best]), middles[best]
            feature = int(features[split])
            # float64: numpy would round a plain float to the rows' float32, and move rows that lie on the edge
            threshold = np.nextafter(np.float64(middle), -np.inf)
            children = tree.split(node, feature, float(threshold))
            shown = who[~rows.protects[who, feature]]
            is_left = rows.X[shown, feature] <= threshold
            deeper, moved = halved.copy(), low.copy()
            deeper[split] += 1
            moved[split] = middle
            below += [
                (children[0], shown[is_left], low, deeper),
                (children[1], shown[~is_left], moved, deeper),
            ]
        level = below
    return tree.partition()


def _best_middle(
    rows: _Rows,
    who: NDArray[np.int64],
    features: NDArray[np.int64],
    middles: Floats,
    criterion: str,
    min_samples_leaf: int,
) -> int | None:
    """Return the edge to cut; None where every cut leaves a side with too few rows."""
    shown = ~rows.protects[np.ix_(who, features)]
    is_left = shown & (rows.X[np.ix_(who, features)] < middles)
    # centred, so that differences of sums of squares keep their digits
    y = rows.y[who] - (rows.y[who].mean() if who.size else 0.0)
    powers = np.stack([np.ones_like(y), y, y**2])
    left, right = powers @ is_left, powers @ (shown & ~is_left)
    fits = np.minimum(left[0], right[0]) >= min_samples_leaf
    if not fits.any():
        return None
    if criterion == "printed":
        score = _variance(left) + _variance(right)
    else:
        means = [sums[1] / np.maximum(sums[0], 1) for sums in (left, right)]
        score = -left[0] * right[0] / np.maximum(left[0] + right[0], 1) * (means[0] - means[1]) ** 2
    score = np.where(fits, score, np.inf)
    best = float(score.min())
    return int(np.flatnonzero(score <= best + _TIE * max(abs(best), 1e-300))[0])


def _variance(sums: Floats) -> Floats:
    """Of parts with these sums of (1, y, y^2), [3, parts]; 0 where a part is empty."""
    n = np.maximum(sums[0], 1)
    variance: Floats = np.maximum(sums[2] / n - (sums[1] / n) ** 2, 0.0)
    return variance


def _cart(rows: _Rows, features: NDArray[np.int64], depth: int, min_samples_leaf: int) -> Partition:
    tree = _Growing()
    level = [(0, np.arange(rows.y.size))]
    for _ in range(depth):
        below = []
        for node, who in level:
            gain, feature, threshold = _best_cut(rows, who, features, min_samples_leaf)
            if gain <= 0:
                continue
            children = tree.split(node, feature, threshold)
            shown = who[~rows.protects[who, feature]]
            is_left = rows.X[shown, feature] <= threshold
            below += [(children[0], shown[is_left]), (children[1], shown[~is_left])]
        level = below
    return tree.partition()


def _best_cut(
    rows: _Rows, who: NDArray[np.int64], features: NDArray[np.int64], min_samples_leaf: int
) -> tuple[float, int, float]:
    """(drop of the sum of squares, feature, threshold) of the best cut by those who show its feature; a drop of 0 is none."""
    if who.size < 2 * min_samples_leaf:
        return 0.0, 0, 0.0
    shows = ~rows.protects[np.ix_(who, features)]
    x = np.where(shows, rows.X[np.ix_(who, features)], np.inf)
    # those who show a feature come first in its column
    order = np.argsort(x, axis=0, kind="stable")
    x, shows, y = np.take_along_axis(x, order, 0), np.take_along_axis(shows, order, 0), rows.y[who][order]
    n = shows.sum(axis=0)
    centred = np.where(shows, y - np.where(shows, y, 0.0).sum(axis=0) / np.maximum(n, 1), 0.0)
    sums = np.cumsum(centred, axis=0)[:-1]
    n_left = np.arange(1, who.size)[:, None]
    n_right = n - n_left
    can_cut = (np.minimum(n_left, n_right) >= min_samples_leaf) & (x[1:] > x[:-1])
    # the centred sums of both sides are opposite: n0 n1 / n (mean0 - mean1)^2 = S^2 n / (n0 n1)
    gains = np.where(can_cut, sums**2 * n / (n_left * np.maximum(n_right, 1)), 0.0)
    at = gains.argmax(axis=0)
    column = int(gains[at, np.arange(features.size)].argmax())
    row = int(at[column])
    low, high = float(x[row, column]), float(x[row + 1, column])
    middle = float(np.float32(low / 2 + high / 2))
    return float(gains[row, column]), int(features[column]), middle if low <= middle < high else low
