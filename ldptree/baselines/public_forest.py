"""Baseline: a random forest of 100 trees on public rows (Breiman 2001), for classes or numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldptree.baselines.sample import at_most
from ldptree.partition.label_unit import fit_in_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

N_TREES = 100
MIN_SAMPLES_LEAF = 5


def fit_predict_proba(
    X: NDArray[np.float32],
    labels: NDArray[np.integer],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    max_rows: int,
    seed: int,
) -> NDArray[np.float64]:
    """[n_test, C] mean class shares over the trees; arguments as in `Baseline`."""
    from sklearn.ensemble import RandomForestClassifier

    X, labels = at_most(max_rows, X, labels, seed=seed)
    forest = RandomForestClassifier(
        n_estimators=N_TREES, min_samples_leaf=MIN_SAMPLES_LEAF, n_jobs=2, random_state=seed
    ).fit(X, labels)
    # Two threads would add up the trees in the order in which they finish, and the last digits would change.
    forest.n_jobs = 1
    shares = np.zeros((test_X.shape[0], n_classes))
    shares[:, forest.classes_] = forest.predict_proba(test_X)
    return shares


def fit_predict(
    X: NDArray[np.float32], y: NDArray[np.float64], test_X: NDArray[np.float32], *, max_rows: int, seed: int
) -> NDArray[np.float64]:
    """[n_test] mean prediction of the trees; arguments as in `RegressionBaseline`."""
    from sklearn.ensemble import RandomForestRegressor

    X, y = at_most(max_rows, X, y, seed=seed)
    forest = RandomForestRegressor(
        n_estimators=N_TREES, min_samples_leaf=MIN_SAMPLES_LEAF, n_jobs=2, random_state=seed
    )
    fit_in_unit(forest, X, y)
    forest.n_jobs = 1  # as above
    predicted: NDArray[np.float64] = forest.predict(test_X)
    return predicted
