"""A scaler that looks at public rows only; scikit-learn's own would look at private ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ldptree.encoding import check_widths, scale
from ldptree.estimators.holders import column_names
from ldptree.estimators.range_warnings import warn_of_assumed_features, warn_of_clipped_features
from ldptree.validation import checked_mask, checked_range, validated

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


class PublicRangeScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Min-max scaling by the range of public rows, everything else clipped to it (LPCT section 4.3, Theorem 5).

    Args:
        feature_range: (low, high), numbers or one for each feature, in the place of the public rows' range; without public
            rows and without this, (0, 1).

    Attributes:
        low_, high_: the range, float64 [d]; where they are equal the column becomes 0.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(self, *, feature_range: tuple[ArrayLike, ArrayLike] | None = None) -> None:
        self.feature_range: Any = feature_range

    def fit(self, X: ArrayLike, y: object = None, public: ArrayLike | None = None) -> Self:
        """Learn the range of the rows that the mask `public`, bool [n], marks. No other row is looked at.

        Raises:
            ConfigError: the range is wrong (a ValueError).
            DataError: the mask is, or public rows are too far apart (a ValueError).
        """
        for learned in ("low_", "high_"):  # a fit that is refused leaves no range of an earlier one
            self.__dict__.pop(learned, None)
        rows: Floats = validated(self, X, dtype=np.float64)
        is_public = checked_mask(public, len(rows), X)
        seen = rows[is_public]
        columns = column_names(getattr(self, "feature_names_in_", None), rows.shape[1])
        if self.feature_range is not None:
            low, high = checked_range(self.feature_range, len(columns))
            warn_of_clipped_features(columns, low, high, seen)
        elif len(seen):
            low, high = seen.min(axis=0), seen.max(axis=0)
            check_widths(low, high, columns)
        else:
            low, high = checked_range((0.0, 1.0), len(columns))
            warn_of_assumed_features(columns)
        self.low_, self.high_ = low, high
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """The rows in [0, 1]^d, float64 [n, d]."""
        check_is_fitted(self, "high_")
        rows: Floats = validated(self, X, dtype=np.float64, reset=False)
        columns = [scale(rows[:, j], self.low_[j], self.high_[j]) for j in range(rows.shape[1])]
        return np.stack(columns, axis=1).astype(np.float64)
