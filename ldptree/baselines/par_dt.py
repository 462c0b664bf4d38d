"""ParDT: a noisy label, and a plain tree on the public part of the rows (HistOfTree section 5 (v), C.1).

PROTECTS THE LABEL AND THE PROTECTED FEATURES: the label by eps-LDP with the whole of eps, the protected features by never
being sent. So it is eps-semi-feature LDP; with "laplace" in real arithmetic (a simulation device), with "optimal_label"
exactly.

Where holders protect different features the paper does not say what a tree is to do with a value that is not shown: here it
is a missing value, which scikit-learn's tree sends to the side where it does best. Features that nobody shows are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ldptree.baselines.label_dt import LabelTreeRegressor
from ldptree.baselines.regression_checks import scaled
from ldptree.validation import check_aligned, checked_protects, validated

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


class PublicPartTreeRegressor(LabelTreeRegressor):
    """scikit-learn's tree on noisy labels and on what is shown (see the module for what is protected).

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
