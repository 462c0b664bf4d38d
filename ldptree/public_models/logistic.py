"""A logistic regression whose columns are stairs, so that it is a list of trees like any other public model.

The log odds of class k are offset_k + sum_j slope_jk s_j(x_j), with the stairs s_j of `linear`. Where public
rows are few, or of one corner, it is often better than sums of shares are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.models.ensemble import LEAF, Ensemble, rounded
from ldptree.public_models.linear import StepTransform, tree_of_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rows = NDArray[np.float32]

STRENGTHS = (0.01, 0.1, 1.0)
"""Inverse penalties of slopes, for columns of variance 1; the best by held-out answers is taken."""
FOLDS = 5
MOST_ROWS = 10_000
"""Rows it is fitted on where there are more, as many as have a say in the choice of a public model."""
_SEED = 0


@dataclass(frozen=True, eq=False)
class Logistic:
    """The regression as trees.

    Attributes:
        ensemble: with log odds as values.
        held_out: float64 [n, C], shares of the rows by models that they had no part in.
        y: int [n], the classes of these rows.
    """

    ensemble: Ensemble
    held_out: Floats
    y: NDArray[Any]


def fit_logistic(X: Rows, y: NDArray[Any], n_classes: int) -> Logistic | None:
    """Fit it on encoded public rows [n, d] with class indices [n]; None where a class has too few rows to hold some out."""
    some = np.sort(np.random.default_rng(_SEED).permutation(len(y))[:MOST_ROWS])
    X, y = X[some], y[some]
    if np.bincount(y, minlength=n_classes).min() < FOLDS:
        return None
    from sklearn.model_selection import StratifiedKFold
    from threadpoolctl import threadpool_limits

    folds = [*StratifiedKFold(FOLDS, shuffle=True, random_state=_SEED).split(X, y)]
    held_out = np.zeros((len(STRENGTHS), len(y), n_classes))
    with threadpool_limits(1, "blas"):
        for fitted_on, others in folds:
            stairs = StepTransform.of(X[fitted_on])
            for at, strength in enumerate(STRENGTHS):
                model = _regression(strength).fit(stairs(X[fitted_on]), y[fitted_on])
                held_out[at, others] = model.predict_proba(stairs(X[others]))
        losses = -np.log(np.maximum(held_out[:, np.arange(len(y)), y], 1e-12)).mean(axis=1)
        best = int(np.argmin(np.round(losses, 6)))
        stairs = StepTransform.of(X)
        scaler, model = (step for _, step in _regression(STRENGTHS[best]).fit(stairs(X), y).steps)
    slopes = model.coef_ / scaler.scale_
    offset = model.intercept_ - slopes @ scaler.mean_
    trees = [
        tree_of_steps(column, limits, values[:, None] * slopes[:, column])
        for column, (limits, values) in enumerate(zip(stairs.limits, stairs.values, strict=True))
        if limits.size
    ]
    leaf = np.array([LEAF])
    trees = trees or [(leaf, np.zeros(1), leaf, leaf, np.zeros((1, offset.size)))]
    link = "logistic" if n_classes == 2 else "softmax"
    return Logistic(Ensemble.of_trees(trees, rounded(offset), link), held_out[best], y)


def _regression(strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000, tol=1e-3))
