"""What a user of a rival regressor can get wrong, and how its rows, labels and coins are prepared.

What lives here: the class they share, and checks shared by the rivals of the regression papers. What does not: any
rival (one file each), and the checks they share with the estimators (`ldptree.estimators.checks`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from ldptree.errors import ConfigError, DataError
from ldptree.estimators.checks import checked_range, is_number
from ldptree.limits import MAX_EPSILON, MIN_EPSILON

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]


class NoisyRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn regressor that learns from noisy reports."""

    random_state: Any

    def __sklearn_tags__(self) -> Any:
        """Scores are poor on few rows, and never the same twice without a seed."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags


def checked_epsilon(epsilon: Any) -> float:
    """The budget of a private row. Raises ConfigError."""
    if not is_number(epsilon) or not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise ConfigError(
            f"epsilon must be a number from {MIN_EPSILON:g} to {MAX_EPSILON:g}, got {epsilon!r}"
        )
    return float(epsilon)


def checked_number(parameter: str, value: Any, *, low: float, high: float, is_open: bool = False) -> float:
    """A number from low (or above it, where the range is open) to high. Raises ConfigError."""
    if not is_number(value) or not low <= value <= high or (is_open and value == low):
        start = f"above {low:g} and at most" if is_open else f"from {low:g} to"
        raise ConfigError(f"{parameter} must be a number {start} {high:g}, got {value!r}")
    return float(value)


def checked_count(parameter: str, value: Any, *, low: int, high: int) -> int:
    """A whole number in low .. high. Raises ConfigError."""
    if not is_number(value, whole=True) or not low <= value <= high:
        raise ConfigError(f"{parameter} must be a whole number from {low} to {high}, got {value!r}")
    return int(value)


def checked_label_range(label_range: Any) -> tuple[float, float]:
    """(low, high) of a label, low below high. Raises ConfigError."""
    ends = label_range if isinstance(label_range, tuple | list) else ()
    if len(ends) != 2 or not all(is_number(end) for end in ends) or not ends[0] < ends[1]:
        raise ConfigError(f"label_range must be (low, high) with low below high, got {label_range!r}")
    return float(ends[0]), float(ends[1])


def scaled(X: Floats, feature_range: tuple[ArrayLike, ArrayLike]) -> Floats:
    """Rows [n, d] to [0, 1]^d by a range that is known beforehand; what lies outside is moved to its border.

    Raises:
        ConfigError: the range is of another size, or not from a low to a high end.
    """
    low, high = checked_range(feature_range, X.shape[1])
    return np.clip((X - low) / (high - low), 0.0, 1.0)


def checked_protects(protects: ArrayLike | None, private_features: Any, shape: tuple[int, int]) -> Mask:
    """The mask W, bool [n, d], of the values each holder protects: given itself, or the same columns for everybody.

    Raises:
        ConfigError: both are given, or a column is not one.
        DataError: the mask is of another shape, or not boolean.
    """
    n, d = shape
    if protects is not None:
        if private_features is not None:
            raise ConfigError("private_features and protects: give one of them, columns or a mask")
        mask = np.asarray(protects)
        if mask.dtype != bool or mask.shape != (n, d):
            raise DataError(
                f"protects is {mask.dtype} of shape {mask.shape}; one True (protected) or False for each of {n} x {d} values"
            )
        return mask
    columns = range(d) if private_features is None else private_features
    mask = np.zeros((n, d), dtype=bool)
    for column in columns:
        mask[:, checked_count("private_features: a column", column, low=0, high=d - 1)] = True
    return mask


def seed_of(random_state: Any) -> np.random.SeedSequence:
    """Entropy of the operating system for None; otherwise the seed of a simulation that can be repeated."""
    from sklearn.utils import check_random_state

    if random_state is None:
        return np.random.SeedSequence()
    return np.random.SeedSequence(check_random_state(random_state).randint(2**31, size=4).tolist())
