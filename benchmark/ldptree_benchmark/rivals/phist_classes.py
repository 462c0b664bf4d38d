"""PHIST for two classes, the private histogram of Berrett and Butucea (NeurIPS 2019), as LPCT section 7.2 compares it.

The labels are the numbers 0 and 1, the report is that of `PHISTRegressor`, and a cell has class 1 where its share is above 1/2.
Privacy: eps-LDP of row and label together, in real arithmetic (a simulation device). Public rows say the ranges alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree_benchmark.rivals.histograms import PHISTRegressor
from ldptree_benchmark.rivals.noisy_classifier import NoisyClassifier, shares_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.estimators.holders import SplitRows

    Floats = NDArray[np.float64]


class PHISTClassifier(NoisyClassifier):
    """Locally private classification on t^d equal cubes.

    Args:
        epsilon: the budget of each private row, above 0 and at most 64.
        bins: t, bins on each feature, which LPCT picks among 1 to 6 on test rows; None: (n eps^2)^(1 / (2 d + 2)), rounded, for n
            private rows, the rate of Berrett and Butucea for a smoothness of 1.
        threshold: a cell whose estimated probability is below it, or not above 0, has the first class.
        feature_range: (low, high), numbers or one for each feature; None: of the public rows, or (0, 1) without any.
        random_state: None draws the noise from fresh entropy, a number makes it repeatable.

    Attributes:
        histogram_: the fitted `PHISTRegressor`.
        classes_: labels of the public rows.
        ledger_: what every private row spent, on what.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    _is_binary = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bins: int | None = None,
        threshold: float = 0.0,
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.bins: Any = bins
        self.threshold: Any = threshold
        self.feature_range: Any = feature_range
        self.random_state: Any = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._histogram(1 if self.bins is None else self.bins, 0)._check_parameters()

    def _histogram(self, bins: Any, seed: int) -> PHISTRegressor:
        return PHISTRegressor(
            self.epsilon, bins=bins, threshold=self.threshold, label_range=(0.0, 1.0), random_state=seed
        )

    def _learn_from(self, rows: SplitRows, rng: np.random.Generator) -> None:
        X = rows.encoding.encode(rows.private_rows).astype(np.float64)
        bins = self.bins
        if bins is None:
            bins = max(1, round((len(X) * float(self.epsilon) ** 2) ** (1 / (2 * X.shape[1] + 2))))
        histogram = self._histogram(bins, int(rng.integers(2**32)))
        self._charge(rows, f"cell and label of a histogram of {bins}^{X.shape[1]} cells")
        self.histogram_ = histogram.fit(X, shares_of(rows.private_labels, 2)[:, 1])

    def _shares(self, rows: Floats) -> Floats:
        share = np.clip(self.histogram_.predict(rows), 0.0, 1.0)
        return np.column_stack([1 - share, share])
