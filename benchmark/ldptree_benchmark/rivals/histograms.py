"""Private histograms with t bins on each of d features, and Laplace noise on a cell's indicator and label.

Berrett and Butucea 2019 (classes), Berrett, Gyorfi and Walk 2021 (numbers, as LPDT D.1 and HistOfTree C.1 use it). A holder
with row x and label y sends, for every cell A, W_A = 1[x in A] + (4 / eps) Lap and Z_A = y 1[x in A] + (4 M / eps) Lap, abs(y)
<= M. Another row or label changes the W by at most 2 in L1 and the Z by at most 2 M, so each half is eps/2-LDP and
the report eps-LDP, in real arithmetic. A SIMULATION DEVICE: noise in floating point leaks (Mironov 2012), so no
client may send this; `fit` draws the sums of n reports directly, by their exact law.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ldptree.errors import ConfigError
from ldptree.limits import MAX_BINS, check_epsilon, is_number, label_ends
from ldptree.partition.product import Histogram
from ldptree.validation import check_seed, checked_number, validated
from ldptree_benchmark.rivals.noisy_classifier import NoisyClassifier, shares_of
from ldptree_benchmark.rivals.noisy_regressor import NoisyRegressor, scaled, seed_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.estimators.holders import SplitRows

    Floats = NDArray[np.float64]

MAX_CELLS = 2**24
BYTES_A_CELL = 48
"""Bytes of a cell as measured, for two sums and the draws they are made of."""


class PHISTRegressor(NoisyRegressor):
    """PHIST, the private histogram of Berrett, Gyorfi and Walk (EJS 15, 2021), as LPDT D.1 compares it, and HistOfTree
    C.1 as Hist (t bins, threshold zeta), where every feature and the label are private whatever holders show.

    A cell predicts Z / W, or 0 where W is below a threshold. APHIST (Gyorfi and Kroll 2022, as LPDT D.1 has it) takes the average
    of W, as a probability, and of the cell's volume in its place. Privacy: eps-LDP of row and label together, in real arithmetic
    (a simulation device). Noise variance of a cell: 32 n / eps^2 of W, M^2 times that of Z.

    Args:
        epsilon: the budget of each row, above 0 and at most 64.
        bins: t, bins on each feature: 1 / h in LPDT.
        threshold: a cell whose estimated probability is below it predicts 0.
        is_adjusted: whether it is APHIST.
        label_range: (low, high); labels are clipped to it, and M is the larger absolute end.
        feature_range: (low, high), numbers or one for each feature; rows are clipped to it.
        random_state: None draws the noise from fresh entropy, a number makes it repeatable.

    Attributes:
        values_: prediction of each cell, float64 [t^d].
        histogram_: the cells.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bins: int = 2,
        threshold: float = 0.01,
        is_adjusted: bool = False,
        label_range: tuple[float, float] = (-1.0, 1.0),
        feature_range: tuple[ArrayLike, ArrayLike] = (0.0, 1.0),
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.bins: Any = bins
        self.threshold: Any = threshold
        self.is_adjusted: Any = is_adjusted
        self.label_range: Any = label_range
        self.feature_range: Any = feature_range
        self.random_state: Any = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Every row reports once, and the sums of the reports are drawn.

        Args:
            X: numbers [n, d].
            y: labels [n].

        Raises:
            ConfigError: a parameter is wrong, or t^d cells are too many (a ValueError).
        """
        self._check_parameters()
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=True)
        cells, labels = self._placed(rows, labels)
        n, k = labels.size, self.histogram_.n_cells
        generator = np.random.default_rng(seed_of(self.random_state))
        marginal, joint = (
            np.bincount(cells, weights=values, minlength=k) + laplace_sums(n, k, scale, generator)
            for values, scale in zip((np.ones(n), labels), self._scales(), strict=True)
        )
        probability = (marginal / n + 1 / k) / 2 if self.is_adjusted else marginal / n
        self.values_: Floats = share_of(joint / n, probability, float(self.threshold))
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """The prediction of each row's cell, float64 [n]."""
        check_is_fitted(self)
        rows = validated(self, X, dtype=np.float64, reset=False)
        return np.asarray(self.values_[self.histogram_.apply(scaled(rows, self.feature_range))])

    def answers(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
        """What a report is without its noise, float64 [n, 2 t^d] (W, then Z), and the noise's scales [2 t^d]."""
        self._check_parameters()
        rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        cells, labels = self._placed(rows, labels)
        k = self.histogram_.n_cells
        is_in = (cells[:, None] == np.arange(k)).astype(np.float64)
        return np.hstack([is_in, is_in * labels[:, None]]), np.repeat(self._scales(), k)

    def _check_parameters(self) -> None:
        check_epsilon(self.epsilon)
        check_seed(self.random_state)
        checked_number("threshold", self.threshold, low=0.0, high=1.0)
        label_ends(self.label_range)
        if not is_number(self.bins, whole=True) or not 1 <= self.bins <= MAX_BINS:
            raise ConfigError(f"bins must be a whole number from 1 to {MAX_BINS}, got {self.bins!r}")

    def _scales(self) -> tuple[float, float]:
        """Laplace scales of W and of Z."""
        scale = 4.0 / float(self.epsilon)
        return scale, scale * max(map(abs, label_ends(self.label_range)))

    def _placed(self, X: Floats, y: Floats) -> tuple[NDArray[np.int64], Floats]:
        """Each row's cell, and the labels clipped."""
        d = X.shape[1]
        check_cells(type(self).__name__, int(self.bins), d)
        self.histogram_ = Histogram(tuple(range(d)), int(self.bins))
        cells = self.histogram_.apply(scaled(X, self.feature_range))
        return cells, np.clip(y, *label_ends(self.label_range))


class PHISTClassifier(NoisyClassifier):
    """PHIST for two classes, as LPCT section 7.2 compares it: the labels are the numbers 0 and 1, the report is that of
    `PHISTRegressor`, and a cell has class 1 where its share is above 1/2. Public rows say the ranges alone.

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


def share_of(total: Floats, probability: Floats, threshold: float) -> Floats:
    """total / probability, and 0 where the probability is below the threshold (or not above 0)."""
    is_kept = (probability >= threshold) & (probability > 0)
    return np.where(is_kept, total / np.where(is_kept, probability, 1.0), 0.0)


def laplace_sums(n: int, size: int, scale: float, generator: np.random.Generator) -> Floats:
    """Draw sums of n Laplace variables each, float64 [size], as scale (G1 - G2) with both Gamma(n, 1), exactly."""
    difference: Floats = generator.gamma(n, size=size) - generator.gamma(n, size=size)
    return scale * difference


def check_cells(name: str, bins: int, d: int) -> None:
    """Raise ConfigError if t^d cells are above `MAX_CELLS`, with the size and the largest t that fits."""
    if d * math.log(bins) <= math.log(MAX_CELLS) + 1e-9:
        return
    digits = d * math.log10(bins)
    # an integer of thousands of digits is no float, and nothing that anyone would read
    memory = digits + math.log10(BYTES_A_CELL / 2**30)
    fits = next(t for t in range(bins, 0, -1) if d * math.log(t) <= math.log(MAX_CELLS) + 1e-9)
    raise ConfigError(
        f"{name}: {bins} bins on each of {d} features are {bins}^{d} = 1e{digits:.1f} cells, about 1e{memory:.1f} GiB; "
        f"at most {MAX_CELLS:,} are kept. The most that fit here: bins = {fits}"
    )
