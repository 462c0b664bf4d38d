"""The CART partition (Breiman 1984), which LPCT uses on real data ("criterion reduction", section 7.2).

scikit-learn grows the tree on public rows; here it is only asked and converted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.errors import ConfigError, DataError
from ldptree.partition.tree import LEAF, Partition

# which of equally good splits is taken; scikit-learn draws it
_TIES = 0


def grow_cart(
    X: NDArray[np.float32],
    y: ArrayLike,
    *,
    depth: int,
    n_classes: int,
    criterion: str = "gini",
    min_samples_leaf: int = 1,
) -> Partition:
    """The partition of a CART grown on public rows; the same rows give the same partition.

    Args:
        X: float32 [n, d] public rows, n >= 1.
        y: [n] classes 0 .. n_classes - 1, or numbers where criterion is "variance".
        depth: the deepest a leaf may lie.
        n_classes: number of classes (of no matter for "variance").
        criterion: "gini", "entropy" or "variance".
        min_samples_leaf: fewest public rows in a cell, at least 1.

    Raises:
        ConfigError: depth is negative, min_samples_leaf below 1, or the criterion unknown.
        DataError: no public row, no column, a missing value, or a class out of range.
    """
    X = np.asarray(X, dtype=np.float32)
    y = np.asarray(y)
    if depth < 0 or min_samples_leaf < 1:
        raise ConfigError(f"depth = {depth}, min_samples_leaf = {min_samples_leaf}: must be at least 0 and 1")
    if X.ndim != 2 or 0 in X.shape or np.isnan(X).any():
        raise DataError(
            'cart: public rows must be [n, d], n and d >= 1, with no missing value; "max-edge" needs no rows'
        )
    if depth == 0:
        return Partition.single()
    tree = _tree(criterion, depth, min_samples_leaf, n_classes, y).fit(X, y).tree_
    is_leaf = tree.children_left == LEAF
    return Partition.of(
        np.where(is_leaf, LEAF, tree.feature),
        np.where(is_leaf, 0.0, tree.threshold),
        tree.children_left,
        tree.children_right,
    )


def _tree(criterion: str, depth: int, min_samples_leaf: int, n_classes: int, y: NDArray[np.generic]) -> Any:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    settings = {"max_depth": depth, "min_samples_leaf": min_samples_leaf, "random_state": _TIES}
    if criterion == "variance":
        return DecisionTreeRegressor(criterion="squared_error", **settings)
    if criterion not in ("gini", "entropy"):
        raise ConfigError(f'criterion = "{criterion}": must be gini, entropy or variance')
    if y.size and not 0 <= y.min() <= y.max() < n_classes:
        raise DataError(f"cart: classes must be in 0 .. {n_classes - 1}")
    return DecisionTreeClassifier(criterion=criterion, **settings)
