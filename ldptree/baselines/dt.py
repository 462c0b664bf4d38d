"""DT and DT-pub: plain trees on every row as it is, or on the public rows alone (LPDT 4.2 and Table 7, HistOfTree 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ldptree.errors import DataError
from ldptree.limits import MAX_DEPTH
from ldptree.partition.label_unit import fit_in_unit
from ldptree.validation import check_seed, checked_count, checked_mask, validated

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


class PlainTreeRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """DT: scikit-learn's CART with the two parameters that the papers tune.

    NOTHING IS PRIVATE: the error that privacy is measured against.

    Args:
        max_depth: 1 to 62; LPDT D.1 tries 1 to 4, HistOfTree C.1 1, 2, 4, 6, 8.
        min_samples_leaf: at least 1; HistOfTree C.1 tries 1, 10, 100.
        random_state: which of equally good splits is taken.

    Attributes:
        tree_: the fitted tree.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        max_depth: int = 4,
        min_samples_leaf: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.max_depth: Any = max_depth
        self.min_samples_leaf: Any = min_samples_leaf
        self.random_state: Any = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit rows [n, d] with labels [n]. Raises ConfigError where a parameter is wrong (a ValueError)."""
        self._check_parameters()
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=True)
        return self._grow(rows, labels)

    def predict(self, X: ArrayLike) -> Floats:
        """The mean label of each row's leaf, float64 [n]."""
        check_is_fitted(self)
        return np.asarray(self.tree_.predict(validated(self, X, dtype=np.float64, reset=False)))

    def _grow(self, X: Floats, y: Floats) -> Self:
        from sklearn.tree import DecisionTreeRegressor

        tree = DecisionTreeRegressor(
            max_depth=int(self.max_depth),
            min_samples_leaf=int(self.min_samples_leaf),
            random_state=self.random_state,
        )
        self.tree_ = fit_in_unit(tree, X, y)
        return self

    def _check_parameters(self) -> None:
        check_seed(self.random_state)
        checked_count("max_depth", self.max_depth, low=1, high=MAX_DEPTH)
        checked_count("min_samples_leaf", self.min_samples_leaf, low=1, high=2**31)


class PublicTreeRegressor(PlainTreeRegressor):
    """DT-pub: `PlainTreeRegressor` on the rows that a mask calls public. Private rows are never read: 0-LDP for them, exactly."""

    def fit(self, X: ArrayLike, y: ArrayLike, public: ArrayLike | None = None) -> Self:
        """Fit the public rows of [n, d].

        Args:
            X: numbers [n, d].
            y: labels [n].
            public: bool [n], which rows are public.

        Raises:
            ConfigError: a parameter is wrong (a ValueError).
            DataError: no row is public, or the mask is none (a ValueError).
        """
        self._check_parameters()
        rows: NDArray[Any]
        labels: NDArray[Any]
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=True)
        if public is None:
            raise DataError("public: this tree reads public rows only; say which rows are public")
        mask = checked_mask(public, len(labels), X)
        return self._grow(rows[mask], labels[mask])
