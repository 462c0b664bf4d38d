"""The common part of regressors on noisy reports, with their class and the preparation of rows and coins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from ldptree.validation import Noisy, checked_range

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]


class NoisyRegressor(Noisy, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn regressor that learns from noisy reports."""


def scaled(X: Floats, feature_range: tuple[ArrayLike, ArrayLike]) -> Floats:
    """Rows [n, d] to [0, 1]^d by a range that is known beforehand; what lies outside is moved to its border.

    Raises:
        ConfigError: the range is of another size, or not from a low to a high end.
    """
    low, high = checked_range(feature_range, X.shape[1])
    return np.clip((X - low) / (high - low), 0.0, 1.0)


def seed_of(random_state: Any) -> np.random.SeedSequence:
    """Entropy of the operating system for None; otherwise the seed of a simulation that can be repeated."""
    from sklearn.utils import check_random_state

    if random_state is None:
        return np.random.SeedSequence()
    return np.random.SeedSequence(check_random_state(random_state).randint(2**31, size=4).tolist())
