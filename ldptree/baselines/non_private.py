"""Baseline: a plain CART on the private rows as they are. What it would be without any privacy.

A simulation device: it reads private rows as they are, so what it returns may be scored and shown by
whoever owns those rows, and is never part of a release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldptree.baselines import cost_complexity
from ldptree.baselines.sample import at_most

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def fit_predict_proba(
    X: NDArray[np.float32],
    labels: NDArray[np.integer],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    max_rows: int,
    seed: int,
) -> NDArray[np.float64]:
    """[n_test, C] class shares of the leaves; arguments as in `Baseline`, X and labels private."""
    X, labels = at_most(max_rows, X, labels, seed=seed)
    return cost_complexity.fit_predict_proba(X, labels, test_X, n_classes=n_classes, seed=seed)


def fit_predict(
    X: NDArray[np.float32], y: NDArray[np.float64], test_X: NDArray[np.float32], *, max_rows: int, seed: int
) -> NDArray[np.float64]:
    """[n_test] mean labels of the leaves; arguments as in `RegressionBaseline`, X and y private."""
    X, y = at_most(max_rows, X, y, seed=seed)
    return cost_complexity.fit_predict(X, y, test_X, seed=seed)
