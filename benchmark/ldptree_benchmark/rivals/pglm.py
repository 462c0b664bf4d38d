"""PGLM, locally private logistic regression by moments (Wang, Hu, Zhang, Gaboardi, Xu, JMLR 2023, Algorithm 1).

A holder with row x of {1} x [0, 1]^d (the 1 for the intercept) and label y = -1/2 or 1/2 sends x x^T and x y, each entry with
normal noise. The curator solves the least squares of the sums for w, and scales w by the c for which c times the mean of phi''(c
<x, w>) over public rows is 1, where phi' is the logistic link: Stein's lemma, for features that are about normal.

Privacy: (eps, delta)-LDP of row and label together, NOT eps-LDP, in real arithmetic (a simulation device). The noise is that of
the analytic Gaussian mechanism (Balle, Wang, ICML 2018), exact at every eps, for the two together; the paper has that of the
classical bound for each, which is larger, and holds for eps up to 2 only. Variance of a sum's entry: n times that of one report,
which grows with (d + 1)^2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.validation import checked_number
from ldptree_benchmark.rivals.noisy_classifier import NoisyClassifier, shares_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.estimators.holders import SplitRows

    Floats = NDArray[np.float64]


class PGLMClassifier(NoisyClassifier):
    """Logistic regression on locally private second moments.

    Args:
        epsilon: of each private row, above 0 and at most 64.
        delta: above 0 and below 1; None: 1 / n^2 for n private rows, as LPCT section 7.2.
        feature_range: (low, high), numbers or one for each feature; None: of the public rows, or (0, 1) without any.
        random_state: None draws the noise from fresh entropy, a number makes it repeatable.

    Attributes:
        weights_: of the intercept and the features, float64 [d + 1].
        delta_: what every private row spent beside epsilon.
        classes_: labels of the public rows.
        ledger_: what every private row spent, on what; of epsilon alone.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    _is_binary = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.delta: Any = delta
        self.feature_range: Any = feature_range
        self.random_state: Any = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.delta is not None:
            checked_number("delta", self.delta, low=0.0, high=1 - 1e-9, is_open=True)

    def _learn_from(self, rows: SplitRows, rng: np.random.Generator) -> None:
        X = with_intercept(rows.encoding.encode(rows.private_rows).astype(np.float64))
        y = shares_of(rows.private_labels, 2)[:, 1] - 0.5
        n, d = len(X), X.shape[1] - 1
        self.delta_ = 1 / max(n, 2) ** 2 if self.delta is None else float(self.delta)
        self._charge(rows, f"second moments of {d} features, with delta = {self.delta_:.3g}")
        scale = find_scale(sensitivity(d), float(self.epsilon), self.delta_) * math.sqrt(n)
        noise = rng.standard_normal((d + 1, d + 1))
        # in the geometry of matrices, where what lies beside the diagonal counts twice
        moments = X.T @ X + scale * (noise + noise.T) / 2
        slope = np.linalg.solve(moments, X.T @ y + scale * rng.standard_normal(d + 1))
        public = with_intercept(rows.encoded.astype(np.float64))
        self.weights_: Floats = find_stretch(public @ slope) * slope

    def _shares(self, rows: Floats) -> Floats:
        share = _logistic(with_intercept(rows) @ self.weights_)
        return np.column_stack([1 - share, share])


def with_intercept(X: Floats) -> Floats:
    """Rows [n, d + 1], the first column 1."""
    return np.column_stack([np.ones(len(X)), X])


def sensitivity(d: int) -> float:
    """The largest distance of what two holders send without noise, x x^T and x y together, d >= 1.

    Its square is convex in each feature, so it is largest where they are 0 or 1: all 1 for one holder and all 0 for the other,
    who has the other label: (d + 1)^2 - 1 of x x^T and (d + 4) / 4 of x y.
    """
    return math.sqrt((d + 1) ** 2 - 1 + (d + 4) / 4)


def delta_of(ratio: float, epsilon: float) -> float:
    """The least delta of Gaussian noise whose scale is `ratio` of the sensitivity (Balle, Wang 2018, Theorem 8)."""
    from scipy.special import log_ndtr, ndtr

    half = 1 / (2 * ratio)
    return float(ndtr(half - epsilon * ratio) - math.exp(epsilon + float(log_ndtr(-half - epsilon * ratio))))


def find_scale(distance: float, epsilon: float, delta: float) -> float:
    """The least scale of Gaussian noise that is (epsilon, delta)-DP for so large a sensitivity."""
    low, high = 1e-3, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if delta_of(middle, epsilon) <= delta else (middle, high)
    return high * distance


def find_stretch(linear: Floats) -> float:
    """The least c >= 1 with c times the mean of phi''(c t) over t [n] at least 1; 1 where there is none."""
    for stretch in np.geomspace(1, 1e3, 200) if linear.size else ():
        share = _logistic(stretch * linear)
        if stretch * float((share * (1 - share)).mean()) >= 1:
            return float(stretch)
    return 1.0


def _logistic(t: Floats) -> Floats:
    chance: Floats = (1 + np.tanh(t / 2)) / 2
    return chance
