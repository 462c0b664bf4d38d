"""DT-pub: a plain tree on the public rows alone (LPDT Table 7). Private rows are never read: 0-LDP for them, exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.baselines.dt import PlainTreeRegressor
from ldptree.errors import DataError
from ldptree.validation import checked_mask, validated

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class PublicTreeRegressor(PlainTreeRegressor):
    """`PlainTreeRegressor` on the rows that a mask calls public."""

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
