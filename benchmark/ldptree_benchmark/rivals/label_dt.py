"""LabelDT and ParDT, a plain tree on exact features and a noisy label (HistOfTree section 5 (v) and (vi), C.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ldptree.coins import Words
from ldptree.families.histoftree.questions import LabelQuestion
from ldptree.limits import MAX_DEPTH, check_epsilon, label_ends
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.partition.label_unit import fit_in_unit
from ldptree.validation import (
    check_aligned,
    check_seed,
    checked_count,
    checked_protects,
    one_of,
    validated,
)
from ldptree_benchmark.rivals.noisy_regressor import NoisyRegressor, scaled, seed_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

# which of equally good splits is taken; the same as `ldptree.partition.cart`
_TIES = 0


class LabelTreeRegressor(NoisyRegressor):
    """LabelDT, scikit-learn's tree on noisy labels and on all features.

    PROTECTS THE LABEL ALONE: every feature is public. Privacy: eps-LDP of the label, the whole of eps on it; with "laplace",
    scale (label range) / eps, in real arithmetic (a simulation device), with "optimal_label" exactly. It is what HistOfTree
    is where no feature is private.

    Args:
        epsilon: the budget of each label, at most 64.
        max_depth: 0 to 62 (C.1 tries 1, 2, 4, 6, 8); 0 is a single leaf.
        min_samples_leaf: at least 1 (C.1 tries 1, 10, 100).
        label: how it is sent, one of `ldptree.mechanisms.numbers.NUMBERS`.
        label_range: (low, high); labels are clipped to it.
        feature_range: (low, high), numbers or one for each feature.
        random_state: None draws the coins from the operating system, a number makes a simulation that can be repeated.

    Attributes:
        noisy_labels_: float64 [n], what the curator has of the labels.
        tree_: the fitted tree, on scaled features.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        max_depth: int = 4,
        min_samples_leaf: int = 10,
        label: str = "laplace",
        label_range: tuple[float, float] = (-1.0, 1.0),
        feature_range: tuple[ArrayLike, ArrayLike] = (0.0, 1.0),
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.max_depth: Any = max_depth
        self.min_samples_leaf: Any = min_samples_leaf
        self.label: Any = label
        self.label_range: Any = label_range
        self.feature_range: Any = feature_range
        self.random_state: Any = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Every row [n, d] reports its label [n] once; a tree is fitted to the reports.

        Raises:
            ConfigError: a parameter is wrong (a ValueError).
        """
        self._check_parameters()
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=True)
        return self._grow(scaled(rows, self.feature_range), self._report(labels))

    def predict(self, X: ArrayLike) -> Floats:
        """The mean noisy label of each row's leaf, float64 [n]."""
        check_is_fitted(self)
        rows = validated(self, X, dtype=np.float64, reset=False)
        return self._predict(scaled(rows, self.feature_range))

    def _report(self, labels: Floats) -> Floats:
        """What the curator reads in the labels' reports, float64 [n]."""
        low, high = label_ends(self.label_range)
        question = LabelQuestion(NUMBERS[self.label].for_budget(float(self.epsilon)), low, high)
        words = Words.system() if self.random_state is None else Words.seeded(seed_of(self.random_state))
        nothing = np.empty((labels.size, 0))
        return question.decode(question.randomize(nothing, labels, nothing.astype(bool), words))

    def _grow(self, X: Floats, noisy: Floats) -> Self:
        """Fit the tree; X may have missing values."""
        from sklearn.tree import DecisionTreeRegressor

        self.noisy_labels_: Floats = noisy
        depth = int(self.max_depth)
        # scikit-learn has no depth of 0: a single leaf is a tree on a constant
        X = X if depth else np.zeros((len(X), 1))
        tree = DecisionTreeRegressor(
            max_depth=max(depth, 1), min_samples_leaf=int(self.min_samples_leaf), random_state=_TIES
        )
        self.tree_ = fit_in_unit(tree, X, noisy)
        return self

    def _predict(self, X: Floats) -> Floats:
        return np.asarray(
            self.tree_.predict(X if self.tree_.n_features_in_ == X.shape[1] else np.zeros((len(X), 1)))
        )

    def _check_parameters(self) -> None:
        check_epsilon(self.epsilon)
        check_seed(self.random_state)
        checked_count("max_depth", self.max_depth, low=0, high=MAX_DEPTH)
        checked_count("min_samples_leaf", self.min_samples_leaf, low=1, high=2**31)
        one_of("label", self.label, NUMBERS)
        label_ends(self.label_range)


class PublicPartTreeRegressor(LabelTreeRegressor):
    """ParDT, scikit-learn's tree on noisy labels and on what is shown.

    PROTECTS THE LABEL AND THE PROTECTED FEATURES: the label by eps-LDP with the whole of eps, the protected features by never
    being sent. So it is eps-semi-feature LDP; with "laplace" in real arithmetic (a simulation device), with "optimal_label"
    exactly.

    Where holders protect different features the paper does not say what a tree is to do with a value that is not shown: here it
    is a missing value, which scikit-learn's tree sends to the side where it does best. Features that nobody shows are left out.

    Args:
        epsilon, max_depth, min_samples_leaf, label, label_range, feature_range, random_state: as `LabelTreeRegressor`.
        private_features: the columns that everybody protects; None with no mask given: all.

    Attributes:
        features_: int64 [m], the columns that somebody shows.
        noisy_labels_, tree_, n_features_in_, feature_names_in_: as `LabelTreeRegressor`.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        private_features: ArrayLike | None = None,
        max_depth: int = 4,
        min_samples_leaf: int = 10,
        label: str = "laplace",
        label_range: tuple[float, float] = (-1.0, 1.0),
        feature_range: tuple[ArrayLike, ArrayLike] = (0.0, 1.0),
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            max_depth=max_depth,
            min_samples_leaf=min_samples_leaf,
            label=label,
            label_range=label_range,
            feature_range=feature_range,
            random_state=random_state,
        )
        self.private_features: Any = private_features

    def fit(self, X: ArrayLike, y: ArrayLike, protects: ArrayLike | None = None) -> Self:
        """Every row [n, d] reports its label [n] once; a tree is fitted to the reports and to what is shown.

        Args:
            X: numbers [n, d].
            y: labels [n].
            protects: bool [n, d], the mask W of values that a holder protects.

        Raises:
            ConfigError: a parameter is wrong (a ValueError).
            DataError: the mask is (a ValueError).
        """
        self._check_parameters()
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=True)
        check_aligned("protects", protects, X)
        mask = checked_protects(protects, self.private_features, rows.shape)
        self.features_: NDArray[np.int64] = np.flatnonzero(~mask.all(axis=0))
        shown = np.where(mask, np.nan, scaled(rows, self.feature_range))[:, self.features_]
        return self._grow(shown if self.features_.size else np.zeros((len(rows), 1)), self._report(labels))

    def predict(self, X: ArrayLike) -> Floats:
        """The mean noisy label of each row's leaf, float64 [n]; rows [n, d] are complete."""
        check_is_fitted(self)
        rows = validated(self, X, dtype=np.float64, reset=False)
        return self._predict(scaled(rows, self.feature_range)[:, self.features_])
