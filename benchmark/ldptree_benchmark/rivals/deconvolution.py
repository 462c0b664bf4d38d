"""DECONV, deconvolution kernel regression of noisy rows (Farokhi, Scientific Reports 10, 2020), as LPDT D.1 compares it.

A holder adds Laplace noise to every feature and to the label, and sends them. The curator smooths by a Gaussian kernel K of
bandwidth h, from which the noise is taken out: for Laplace noise of scale b in one feature that is K(u) - (b / h)^2 K''(u). Its
mean over the noise is K at the row itself.

Privacy: LPDT does not say how epsilon is shared. Here features and label have half of it each, so a feature's noise has scale
2 d / eps on [0, 1] and the label's 2 (high - low) / eps, and the report is eps-LDP, in real arithmetic. A SIMULATION DEVICE:
noise in floating point leaks. Weights may be negative, and what divides them may be near 0: the answers have no bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ldptree.limits import check_epsilon, label_ends
from ldptree.validation import check_seed, checked_number, validated
from ldptree_benchmark.rivals.noisy_regressor import NoisyRegressor, scaled, seed_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ldptree_benchmark.rivals.noisy_regressor import Floats

NUMBERS_AT_ONCE = 2**21
"""Weights that are kept at once."""


class DeconvolutionRegressor(NoisyRegressor):
    """Kernel regression on rows with Laplace noise.

    Args:
        epsilon: the budget of each row, above 0 and at most 64.
        bandwidth: h, on features of [0, 1]. LPDT tries .02 to 5.
        label_range: (low, high); labels are clipped to it.
        feature_range: (low, high), numbers or one for each feature; rows are clipped to it.
        random_state: None draws the noise from fresh entropy, a number makes it repeatable.

    Attributes:
        reports_: what the curator holds, float64 [n, d + 1], scaled features and the label last.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bandwidth: float = 5.0,
        label_range: tuple[float, float] = (-1.0, 1.0),
        feature_range: tuple[ArrayLike, ArrayLike] = (0.0, 1.0),
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.bandwidth: Any = bandwidth
        self.label_range: Any = label_range
        self.feature_range: Any = feature_range
        self.random_state: Any = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Every row [n, d] with its label [n] reports once. Raises ConfigError: a parameter is wrong (a ValueError)."""
        check_epsilon(self.epsilon)
        check_seed(self.random_state)
        checked_number("bandwidth", self.bandwidth, low=0.0, high=1e6, is_open=True)
        ends = label_ends(self.label_range)
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=True)
        sent = np.column_stack([scaled(rows, self.feature_range), np.clip(labels, *ends)])
        noise = np.random.default_rng(seed_of(self.random_state)).laplace(size=sent.shape)
        self.reports_: Floats = sent + noise * self.scales(rows.shape[1])
        return self

    def scales(self, d: int) -> Floats:
        """Laplace scales of the features and of the label, float64 [d + 1]."""
        low, high = label_ends(self.label_range)
        return np.append(np.full(d, float(d)), high - low) * 2 / float(self.epsilon)

    def predict(self, X: ArrayLike) -> Floats:
        """The kernel's weighted mean of labels at each row, float64 [n]; 0 where the weights add up to 0."""
        check_is_fitted(self)
        rows = scaled(validated(self, X, dtype=np.float64, reset=False), self.feature_range)
        step = max(1, NUMBERS_AT_ONCE // len(self.reports_))
        return np.concatenate([self._average(rows[i : i + step]) for i in range(0, len(rows), step)])

    def _average(self, rows: Floats) -> Floats:
        """Of rows [m, d]. Weights are products over features, so their logarithms are added, and the largest becomes 1."""
        d, h = rows.shape[1], float(self.bandwidth)
        ratio = (self.scales(d)[0] / h) ** 2
        size, sign = np.zeros((2, len(rows), len(self.reports_)))
        for j in range(d):
            square = ((rows[:, [j]] - self.reports_[:, j]) / h) ** 2
            factor = 1 + ratio * (1 - square)
            with np.errstate(divide="ignore"):
                size += np.log(np.abs(factor)) - square / 2
            sign += factor < 0
        weights = np.exp(size - size.max(axis=1, keepdims=True)) * (1 - 2 * (sign % 2))
        total, label = weights.sum(axis=1), weights @ self.reports_[:, -1]
        average: Floats = np.divide(label, total, out=np.zeros(len(rows)), where=total != 0)
        return average
