"""Take a fitted model that adds up over columns, in numbers or in log odds, as one stair a column.

Linear and logistic regressions are such models, also behind scalers. As a list of trees, what carries, checks, runs and exports a
forest does so here. A stair has `STEPS` even steps over the range of its column, each with the model's answer in its middle: an
answer is off by at most 1 / (2 `STEPS`) of what each column moves it by. Rows beyond the range are moved to its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.models.ensemble import Ensemble, rounded
from ldptree.public_models.linear import tree_of_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEPS = 128
MOST_OFF = 0.05
"""Of a share, or of the spread of a model's numbers, how far stairs may be off on rows anywhere in the range."""
_TRIED = 500


def take_additive(fitted: Any, encoding: Encoding) -> Ensemble | None:
    """The stairs of a fitted scikit-learn model on the raw numeric columns of an encoding; None where it does not add up.

    Raises:
        DataError: it is not fitted, or some columns are categories.
    """
    name, n_columns = type(fitted).__name__, getattr(fitted, "n_features_in_", 0)
    if not n_columns:
        raise DataError(f"base: {name} is not fitted; fit it on public rows first")
    low, high = _ends(encoding)
    if low.size < n_columns:
        raise DataError(
            f"base: {name} takes numbers, and some of the columns are categories; take a model of trees"
        )
    at_low, trees = _scores(fitted, low[None])[0], []
    for column in range(n_columns):
        rows = np.tile(low, (STEPS, 1))
        rows[:, column] += (np.arange(STEPS) + 0.5) / STEPS * (high - low)[column]
        trees.append(tree_of_steps(column, np.arange(1, STEPS) / STEPS, _scores(fitted, rows) - at_low))
    trees = [tree for tree in trees if tree[4].any()] or trees[:1]
    link = "identity" if not hasattr(fitted, "classes_") else "logistic" if at_low.size == 1 else "softmax"
    stairs = Ensemble.of_trees(trees, rounded(at_low), link)
    rows = low + np.random.default_rng(0).random((_TRIED, n_columns)) * (high - low)
    wanted = fitted.predict_proba(rows) if link != "identity" else _scores(fitted, rows)
    off = float(np.abs(stairs.predict(encoding.encode(rows)) - wanted).max())
    is_sum = off <= MOST_OFF * (1.0 if link != "identity" else max(float(np.ptp(wanted)), 1e-300))
    return stairs if is_sum else None


def raw_rows(encoding: Encoding, X: NDArray[np.float32]) -> Floats:
    """float64 [n, d], the numbers behind encoded rows of numeric columns; of those beyond the range, its ends."""
    low, high = _ends(encoding)
    return np.asarray(low + X * (high - low))


def _ends(encoding: Encoding) -> tuple[Floats, Floats]:
    """The ranges of the numeric columns."""
    features = [feature for feature in encoding.features if isinstance(feature, NumericFeature)]
    return np.array([f.minimum for f in features]), np.array([f.maximum for f in features])


def _scores(fitted: Any, rows: Floats) -> Floats:
    """What adds up of a model's answers to raw rows, its numbers or log odds, [n, outputs]."""
    if not hasattr(fitted, "classes_"):
        scores = fitted.predict(rows)
    elif not hasattr(fitted, "predict_proba"):
        raise DataError(f"base: {type(fitted).__name__} has no shares of classes (predict_proba)")
    elif hasattr(fitted, "decision_function"):
        scores = fitted.decision_function(rows)
    else:
        scores = np.log(np.maximum(fitted.predict_proba(rows), 1e-300))
        scores = scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores
    return np.asarray(scores, dtype=np.float64).reshape(len(rows), -1)
