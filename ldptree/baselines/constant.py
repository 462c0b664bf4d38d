"""Baseline: everyone has the mean label of the public rows; private labels are never read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fit_predict(
    X: NDArray[np.float32], y: NDArray[np.float64], test_X: NDArray[np.float32], *, max_rows: int, seed: int
) -> NDArray[np.float64]:
    """[n_test] the public mean, the same for every row; arguments as in `RegressionBaseline`."""
    return np.full(test_X.shape[0], y.mean())
