"""Baselines of a run, in which plain learners use public rows alone, or private rows without noise.

Each is one function, for classes and for numbers: with `n_classes` = 0 the labels are numbers. Those on public rows never
read a private label. The one on private rows is what a plain tree would be without any privacy, a simulation device: what it
returns may be scored and shown by whoever owns those rows, and is never part of a release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ldptree.baselines.cost_complexity import fit_pruned_tree
from ldptree.partition.label_unit import fit_in_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Label = TypeVar("Label", bound=np.generic)

N_TREES = 100
MIN_SAMPLES_LEAF = 5


def predict_constant(
    X: NDArray[np.float32],
    labels: NDArray[Any],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    max_rows: int,
    seed: int,
) -> Floats:
    """The class shares of all rows, [n_test, C] the same for every row, or their mean label, [n_test]."""
    if not n_classes:
        return np.full(test_X.shape[0], labels.mean())
    shares = np.bincount(labels, minlength=n_classes) / labels.size
    return np.tile(shares, (test_X.shape[0], 1))


def predict_by_tree(
    X: NDArray[np.float32],
    labels: NDArray[Any],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    max_rows: int,
    seed: int,
) -> Floats:
    """Class shares, [n_test, C], or mean labels, [n_test], of the leaves of a CART, pruned by cross-validated cost complexity."""
    X, labels = draw_at_most(max_rows, X, labels, seed=seed)
    return fit_pruned_tree(X, labels, test_X, n_classes=n_classes, seed=seed)


def predict_by_forest(
    X: NDArray[np.float32],
    labels: NDArray[Any],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    max_rows: int,
    seed: int,
) -> Floats:
    """Class shares, [n_test, C], or mean labels, [n_test], averaged over the trees of a random forest (Breiman 2001)."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    X, labels = draw_at_most(max_rows, X, labels, seed=seed)
    kind = RandomForestClassifier if n_classes else RandomForestRegressor
    forest = kind(n_estimators=N_TREES, min_samples_leaf=MIN_SAMPLES_LEAF, n_jobs=2, random_state=seed)
    if n_classes:
        forest.fit(X, labels)
    else:
        fit_in_unit(forest, X, labels)
    # Two threads would add up the trees in the order in which they finish, and the last digits would change.
    forest.n_jobs = 1
    if not n_classes:
        predicted: Floats = forest.predict(test_X)
        return predicted
    shares = np.zeros((test_X.shape[0], n_classes))
    shares[:, forest.classes_] = forest.predict_proba(test_X)
    return shares


def draw_at_most(
    max_rows: int, X: NDArray[np.float32], labels: NDArray[Label], *, seed: int
) -> tuple[NDArray[np.float32], NDArray[Label]]:
    """All rows, or `max_rows` of them drawn without replacement, in their old order."""
    if labels.size <= max_rows:
        return X, labels
    drawn = np.sort(np.random.default_rng(seed).choice(labels.size, max_rows, replace=False))
    return X[drawn], labels[drawn]
