"""More plain learners on public rows alone, which other people would fit and a run goes without.

Each is one function, for classes and for numbers: with `n_classes` = 0 the labels are numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.baselines.public import draw_at_most

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def predict_by_boosting(
    X: NDArray[np.float32],
    labels: NDArray[Any],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    max_rows: int,
    seed: int,
) -> Floats:
    """Class shares, [n_test, C], or numbers, [n_test], of scikit-learn's histogram boosting with its defaults."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    X, labels = draw_at_most(max_rows, X, labels, seed=seed)
    kind = HistGradientBoostingClassifier if n_classes else HistGradientBoostingRegressor
    return _answer(kind(random_state=seed), X, labels, test_X, n_classes)


def predict_by_line(
    X: NDArray[np.float32],
    labels: NDArray[Any],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    max_rows: int,
    seed: int,
) -> Floats:
    """Class shares, [n_test, C], of a logistic regression, or numbers, [n_test], of a ridge one, on standardised columns."""
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, labels = draw_at_most(max_rows, X, labels, seed=seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000) if n_classes else RidgeCV())
    return _answer(model, X, labels, test_X, n_classes)


def _answer(
    model: Any, X: NDArray[np.float32], labels: NDArray[Any], test_X: NDArray[np.float32], n_classes: int
) -> Floats:
    """Fit a scikit-learn model and answer; a class without a row gets no share, and where one class alone has rows, all of it."""
    if not n_classes:
        numbers: Floats = np.asarray(model.fit(X, labels).predict(test_X), dtype=np.float64)
        return numbers
    seen = np.unique(labels)
    shares = np.zeros((len(test_X), n_classes))
    shares[:, seen] = 1.0 if len(seen) == 1 else model.fit(X, labels).predict_proba(test_X)
    return shares
