"""DECONV: noisy rows and labels, and a kernel that undoes the noise (Farokhi, Scientific Reports 2020).

A holder sends each feature (scaled to [0, 1]) plus Laplace noise of scale b = (d + 1) / eps, and the label plus that
times the length of its range: each number is eps / (d + 1)-LDP, the report eps-LDP in real arithmetic. A SIMULATION
DEVICE: floating-point noise. The curator predicts sum_i y~_i prod_j L((x_j - x~_ij) / h) / sum_i prod_j L(...), a
Nadaraya-Watson estimate with the kernel whose mean over the noise is the normal kernel K's: for Laplace noise L(u) =
K(u) (1 - (b / h)^2 (u^2 - 1)) (Stefanski and Carroll 1990). L has both signs and so has the denominator: predictions
have no bound, and none is imposed (LPDT prints errors up to 1e10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ldptree.baselines.noisy_regressor import NoisyRegressor, scaled, seed_of
from ldptree.limits import label_ends
from ldptree.validation import check_seed, checked_epsilon, checked_number, validated

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_PAIRS_AT_ONCE = 2**21
# features multiplied before a logarithm is taken: with h = 0.001, 10^4 features and eps = 1e-6 a factor is about 10^54
_FACTORS_AT_ONCE = 4


class DeconvolutionRegressor(NoisyRegressor):
    """Nadaraya-Watson regression on locally private rows, deconvolved.

    Args:
        epsilon: the budget of each row, above 0 and at most 64.
        bandwidth: h on the scaled features, 0.001 to 1,000.
        label_range: (low, high); labels are clipped to it.
        feature_range: (low, high), numbers or one for each feature; rows are clipped to it.
        random_state: None draws the noise from fresh entropy, a number makes it repeatable.

    Attributes:
        reports_: what the holders sent, float64 [n, d + 1], the label last.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bandwidth: float = 0.5,
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
        """Every row reports once; the reports are the model.

        Args:
            X: numbers [n, d].
            y: labels [n].

        Raises:
            ConfigError: a parameter is wrong (a ValueError).
        """
        self._check_parameters()
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=True)
        answers, scales = self.answers(rows, labels)
        noise = np.random.default_rng(seed_of(self.random_state)).laplace(size=answers.shape)
        self.reports_: Floats = answers + scales * noise
        return self

    def answers(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
        """What a report is without its noise, float64 [n, d + 1], and the noise's scales [d + 1]."""
        self._check_parameters()
        rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        low, high = label_ends(self.label_range)
        d = rows.shape[1]
        scales = np.append(np.ones(d), high - low) * (d + 1) / float(self.epsilon)
        return np.column_stack([scaled(rows, self.feature_range), np.clip(labels, low, high)]), scales

    def predict(self, X: ArrayLike) -> Floats:
        """The estimate at each row, float64 [n], without any bound."""
        check_is_fitted(self)
        rows = scaled(validated(self, X, dtype=np.float64, reset=False), self.feature_range)
        step = max(1, _PAIRS_AT_ONCE // len(self.reports_))
        return np.concatenate([self._at(rows[i : i + step]) for i in range(0, len(rows), step)])

    def _at(self, points: Floats) -> Floats:
        """The estimate at points [m, d]; weights are relative to the largest, as their product has no float's range."""
        h, d = float(self.bandwidth), points.shape[1]
        noise = ((d + 1) / float(self.epsilon) / h) ** 2
        log_size = np.zeros((len(points), len(self.reports_)))
        product = np.ones_like(log_size)
        for j in range(d):
            squared = ((points[:, j, None] - self.reports_[None, :, j]) / h) ** 2
            log_size -= squared / 2
            squared -= 1
            squared *= -noise
            squared += 1
            product *= squared
            if j % _FACTORS_AT_ONCE == _FACTORS_AT_ONCE - 1 or j == d - 1:
                # exactly 0 is a weight of 0
                with np.errstate(divide="ignore"):
                    log_size += np.log(np.abs(product))
                product = np.sign(product)
        largest = log_size.max(axis=1, keepdims=True)
        weights = product * np.exp(log_size - np.where(np.isfinite(largest), largest, 0.0))
        total = weights.sum(axis=1)
        # 0 / 0 = 0, as the papers have it
        estimate: Floats = np.where(
            total != 0, weights @ self.reports_[:, -1] / np.where(total != 0, total, 1.0), 0.0
        )
        return estimate

    def _check_parameters(self) -> None:
        checked_epsilon(self.epsilon)
        check_seed(self.random_state)
        checked_number("bandwidth", self.bandwidth, low=1e-3, high=1e3)
        label_ends(self.label_range)
