"""A classifier of one flat vector of weights, linear or with one hidden layer of rectified neurons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEPS = 100
"""Of the search for a minimum, at most."""


@dataclass(frozen=True)
class Network:
    """Shares of classes by softmax, where the first class has the constant output 0; two classes are logistic regression.

    Attributes:
        n_features, n_classes: d, C.
        n_hidden: neurons between; 0: a linear model.
    """

    n_features: int
    n_classes: int
    n_hidden: int = 0

    @property
    def size(self) -> int:
        """Number of weights."""
        return sum(rows * columns for rows, columns in self._shapes)

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        outputs = self.n_classes - 1
        if not self.n_hidden:
            return [(self.n_features, outputs), (1, outputs)]
        return [(self.n_features, self.n_hidden), (1, self.n_hidden), (self.n_hidden, outputs), (1, outputs)]

    def split(self, weights: Floats) -> list[Floats]:
        """Matrix and intercept of each layer, as views."""
        layers, start = [], 0
        for rows, columns in self._shapes:
            layers.append(weights[start : start + rows * columns].reshape(rows, columns))
            start += rows * columns
        return layers

    def start(self, rng: np.random.Generator) -> Floats:
        """Return first weights, 0, or for a hidden layer uniform by inputs and outputs (Glorot, Bengio 2010)."""
        weights = np.zeros(self.size)
        if self.n_hidden:
            for layer in self.split(weights)[::2]:
                most = np.sqrt(6 / sum(layer.shape))
                layer[:] = rng.uniform(-most, most, layer.shape)
        return weights

    def shares(self, layers: list[Floats], X: Floats) -> Floats:
        """Shares of the classes, [n, C], of rows [n, d]."""
        return self._answer(layers, X)[1]

    def loss(self, shares: Floats, targets: Floats) -> float:
        """Mean cross-entropy."""
        return -float((targets * np.log(np.maximum(shares, 1e-300))).sum(axis=1).mean())

    def gradient(self, layers: list[Floats], X: Floats, targets: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of the mean loss over rows [n, d] whose classes have the shares `targets` [n, C], [size],
        and the shares answered.
        """
        hidden, shares = self._answer(layers, X)
        away = (shares - targets)[:, 1:] / len(X)
        parts = [hidden.T @ away, away.sum(axis=0)]
        if self.n_hidden:
            inner = (away @ layers[2].T) * (hidden > 0)
            parts = [X.T @ inner, inner.sum(axis=0), *parts]
        return np.concatenate([part.ravel() for part in parts]), shares

    def minimise(self, X: Floats, targets: Floats, start: Floats) -> Floats:
        """Weights of least mean loss, with a ridge of one row's worth, so that there is a minimum."""
        from scipy.optimize import minimize

        ridge = 1 / len(X)

        def measure(weights: Floats) -> tuple[float, Floats]:
            slope, shares = self.gradient(self.split(weights), X, targets)
            return self.loss(shares, targets) + ridge / 2 * float(weights @ weights), slope + ridge * weights

        minimum = minimize(measure, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
        return np.asarray(minimum.x, dtype=np.float64)

    def _answer(self, layers: list[Floats], X: Floats) -> tuple[Floats, Floats]:
        hidden = np.maximum(X @ layers[0] + layers[1], 0.0) if self.n_hidden else X
        outputs = np.zeros((len(X), self.n_classes))
        outputs[:, 1:] = hidden @ layers[-2] + layers[-1]
        outputs -= outputs.max(axis=1, keepdims=True)
        shares = np.exp(outputs)
        shares /= shares.sum(axis=1, keepdims=True)
        return hidden, shares
