"""KRR, k-ary randomised response of features, Laplace noise on labels, then a tree (HistOfTree 5 (iv), C.1).

Not kernel ridge regression: the paper's KRR is k-generalised randomised response. A protected value is the number of
its bin, of k equal ones, answered by `ldptree.mechanisms.oracles.grr` (integer coins); the curator reads it as the bin's middle.
Values that are shown stay as they are. The label gets Laplace noise on its range: floating point, so the whole is A
SIMULATION DEVICE.

The paper says neither how eps is shared between the protected values nor what is done to the label. Here a holder who protects
s values spends eps / (s + 1) on each and on the label, and the report is eps-semi-feature-LDP (in real arithmetic).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ldptree.coins import Words
from ldptree.limits import MAX_DEPTH, check_epsilon, label_ends
from ldptree.mechanisms.oracles.grr import Grr
from ldptree.partition.label_unit import fit_in_unit
from ldptree.validation import (
    check_aligned,
    check_seed,
    checked_count,
    checked_protects,
    validated,
)
from ldptree_benchmark.rivals.noisy_regressor import NoisyRegressor, scaled, seed_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

MAX_BINS = 254


class KaryResponseRegressor(NoisyRegressor):
    """A tree on rows whose protected values went through randomised response.

    Args:
        epsilon: the budget of each holder, above 0 and at most 64.
        bins: k, 2 to 254.
        max_depth, min_samples_leaf: of the tree.
        private_features: the columns that everybody protects; None with no mask given: all.
        label_range: (low, high); labels are clipped to it.
        feature_range: (low, high), numbers or one for each feature; rows are clipped to it.
        random_state: None draws the coins from the operating system, a number makes a simulation that can be repeated.

    Attributes:
        reports_: what the curator holds, float64 [n, d + 1]: shown values, middles of reported bins, and the label last.
        tree_: the fitted tree, on scaled features.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bins: int = 2,
        max_depth: int = 4,
        min_samples_leaf: int = 1,
        private_features: ArrayLike | None = None,
        label_range: tuple[float, float] = (-1.0, 1.0),
        feature_range: tuple[ArrayLike, ArrayLike] = (0.0, 1.0),
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.bins: Any = bins
        self.max_depth: Any = max_depth
        self.min_samples_leaf: Any = min_samples_leaf
        self.private_features: Any = private_features
        self.label_range: Any = label_range
        self.feature_range: Any = feature_range
        self.random_state: Any = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, protects: ArrayLike | None = None) -> Self:
        """Every row reports once, and a tree is fitted to the reports.

        Args:
            X: numbers [n, d].
            y: labels [n].
            protects: bool [n, d], the mask W of values that a holder protects.

        Raises:
            ConfigError: a parameter is wrong (a ValueError).
            DataError: the mask is (a ValueError).
        """
        from sklearn.tree import DecisionTreeRegressor

        self._check_parameters()
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=True)
        check_aligned("protects", protects, X)
        mask = checked_protects(protects, self.private_features, rows.shape)
        seed = seed_of(self.random_state)
        self.reports_: Floats = self.randomize(rows, labels, mask, seed)
        tree = DecisionTreeRegressor(
            max_depth=int(self.max_depth),
            min_samples_leaf=int(self.min_samples_leaf),
            random_state=int(seed.generate_state(1)[0]),
        )
        self.tree_ = fit_in_unit(tree, self.reports_[:, :-1], self.reports_[:, -1])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """The tree's value at each row, float64 [n]."""
        check_is_fitted(self)
        rows = validated(self, X, dtype=np.float64, reset=False)
        return np.asarray(self.tree_.predict(scaled(rows, self.feature_range)))

    def epsilon_each(self, protects: Mask) -> Floats:
        """Return what each holder spends on the label, and on each value that they protect, float64 [n]."""
        return np.asarray(float(self.epsilon) / (protects.sum(axis=1) + 1))

    def label_scales(self, protects: Mask) -> Floats:
        """Laplace scale of each holder's label, float64 [n]."""
        low, high = label_ends(self.label_range)
        return np.asarray((high - low) / self.epsilon_each(protects))

    def randomize(self, X: Floats, y: Floats, protects: Mask, seed: np.random.SeedSequence) -> Floats:
        """One report a holder as the curator reads it, float64 [n, d + 1]."""
        k = int(self.bins)
        words = Words.system() if self.random_state is None else Words.seeded(seed)
        reported = scaled(X, self.feature_range)
        bins = np.minimum((reported * k).astype(np.int64), k - 1)
        epsilons = self.epsilon_each(protects)
        for epsilon in np.unique(epsilons[protects.any(axis=1)]):
            oracle = Grr.for_values(float(epsilon), k)
            holder, feature = np.nonzero(protects & (epsilons == epsilon)[:, None])
            answers = oracle.randomize(bins[holder, feature], words)
            reported[holder, feature] = (answers + 0.5) / k
        noise = words.generator().laplace(size=len(y)) * self.label_scales(protects)
        return np.column_stack([reported, np.clip(y, *label_ends(self.label_range)) + noise])

    def _check_parameters(self) -> None:
        check_epsilon(self.epsilon)
        check_seed(self.random_state)
        checked_count("bins", self.bins, low=2, high=MAX_BINS)
        checked_count("max_depth", self.max_depth, low=1, high=MAX_DEPTH)
        checked_count("min_samples_leaf", self.min_samples_leaf, low=1, high=2**31)
        label_ends(self.label_range)
