"""PSGD-L and PSGD-N, stochastic gradient descent on private reports, from a model of public rows (LPCT section 7.2,
after Lowy, Li, Huang, Razaviyayn 2023).

The curator minimises the loss on public rows, and publishes the weights. Holder after holder, in random order and each once,
takes the gradient of the loss on their own row at the weights published last, shortens it to length C, and reports it by
`PrivUnitG` with the whole epsilon; the curator takes a step against the report. Privacy: eps-LDP of row and label together, by
sequential interaction: weights are made of others' reports. In real arithmetic (a simulation device).

The authors' code reports weights and intercepts each with the whole epsilon, and gradients shorter than C as if they had length
C, for which PrivUnitG guarantees nothing; here one report has all, and a shorter gradient is turned to the sphere without bias.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.validation import checked_number
from ldptree_benchmark.rivals.gradient.network import Network
from ldptree_benchmark.rivals.gradient.privunit_g import PrivUnitG, turn_to_sphere
from ldptree_benchmark.rivals.noisy_classifier import NoisyClassifier, shares_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.estimators.holders import SplitRows

    Floats = NDArray[np.float64]

NUMBERS_AT_ONCE = 2**20
"""Normal numbers that are drawn at once."""
NEURONS = 64
"""Of a hidden layer that nobody has set, at most."""
PUBLIC_ROWS = 20_000
"""Public rows that the descent starts from, at most."""


class PSGDClassifier(NoisyClassifier):
    """The common part of both. Without a `learning_rate` a step is the one that theory has for a walk of length 1 in
    all, 1 / (G sqrt(n)) for n reports with E |report|^2 = G^2.

    Attributes:
        weights_: what is released, float64 [size].
        network_: what they mean.
        learning_rate_: the length of a step.
        classes_: labels of the public rows.
        ledger_: what every private row spent, on what.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    learning_rate: Any
    clip: Any

    @abstractmethod
    def _n_hidden(self, d: int) -> int:
        """Neurons of the hidden layer."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.learning_rate is not None:
            checked_number("learning_rate", self.learning_rate, low=0.0, high=1e6, is_open=True)
        checked_number("clip", self.clip, low=0.0, high=1e6, is_open=True)

    def _learn_from(self, rows: SplitRows, rng: np.random.Generator) -> None:
        X = rows.encoding.encode(rows.private_rows).astype(np.float64)
        targets = shares_of(rows.private_labels, self.classes_.size)
        self.network_ = Network(X.shape[1], self.classes_.size, self._n_hidden(X.shape[1]))
        weights = self.network_.start(rng)
        if rows.n_public:
            drawn = rng.permutation(rows.n_public)[:PUBLIC_ROWS]
            known = shares_of(rows.public_labels[drawn], self.classes_.size)
            weights = self.network_.minimise(rows.encoded[drawn].astype(np.float64), known, weights)
        self._charge(rows, f"one gradient of {weights.size:,} weights by PrivUnitG")
        self.weights_: Floats = self._descend(weights, X, targets, rng)

    def _descend(self, weights: Floats, X: Floats, targets: Floats, rng: np.random.Generator) -> Floats:
        mechanism, clip = PrivUnitG.for_epsilon(float(self.epsilon)), float(self.clip)
        n, size = len(X), weights.size
        theory = 1 / (clip * np.sqrt(n * mechanism.mean_square(size)))
        self.learning_rate_ = theory if self.learning_rate is None else float(self.learning_rate)
        layers, order = self.network_.split(weights), rng.permutation(n)
        step = max(1, NUMBERS_AT_ONCE // size)
        for start in range(0, n, step):
            block = order[start : start + step]
            noise = rng.standard_normal((block.size, size))
            along, coins = mechanism.draw_along(block.size, rng), rng.random(block.size)
            for row, alongside, coin, normal in zip(block, along, coins, noise, strict=True):
                at = slice(row, row + 1)
                slope, _ = self.network_.gradient(layers, X[at], targets[at])
                short = slope / max(clip, float(np.sqrt(slope @ slope)))
                report = mechanism.report(turn_to_sphere(short, coin), alongside, normal)
                weights -= self.learning_rate_ * clip * report
        return weights

    def _shares(self, rows: Floats) -> Floats:
        return self.network_.shares(self.network_.split(self.weights_), rows)


class PSGDLinearClassifier(PSGDClassifier):
    """PSGD-L, logistic regression by private gradient descent.

    Args:
        epsilon: the budget of each private row, above 0 and at most 64.
        learning_rate: of a step; None: by theory (see `PSGDClassifier`). LPCT tries 1e-5 to 1 on test rows.
        clip: C, to which gradients are shortened.
        feature_range: (low, high), numbers or one for each feature; None: of the public rows, or (0, 1) without any.
        random_state: None draws the noise from fresh entropy, a number makes it repeatable.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        learning_rate: float | None = None,
        clip: float = 1.0,
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.learning_rate: Any = learning_rate
        self.clip: Any = clip
        self.feature_range: Any = feature_range
        self.random_state: Any = random_state

    def _n_hidden(self, d: int) -> int:
        return 0


class PSGDNeuralClassifier(PSGDClassifier):
    """PSGD-N, a network of one hidden layer by private gradient descent.

    Args:
        epsilon: the budget of each private row, above 0 and at most 64.
        hidden: rectified neurons for each feature; None: 1, and 64 in all at most. LPCT tries 1/2, 1 and 2 on test rows.
        learning_rate: of a step; None: by theory (see `PSGDClassifier`). LPCT tries 1e-5 to 1 on test rows.
        clip: C, to which gradients are shortened.
        feature_range: (low, high), numbers or one for each feature; None: of the public rows, or (0, 1) without any.
        random_state: None draws the noise from fresh entropy, a number makes it repeatable.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        hidden: float | None = None,
        learning_rate: float | None = None,
        clip: float = 1.0,
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.hidden: Any = hidden
        self.learning_rate: Any = learning_rate
        self.clip: Any = clip
        self.feature_range: Any = feature_range
        self.random_state: Any = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.hidden is not None:
            checked_number("hidden", self.hidden, low=0.0, high=100.0, is_open=True)

    def _n_hidden(self, d: int) -> int:
        return min(d, NEURONS) if self.hidden is None else max(1, int(float(self.hidden) * d))
