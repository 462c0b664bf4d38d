"""The rows a baseline learns from where there are more than its cap."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Label = TypeVar("Label", bound=np.generic)


def at_most(
    max_rows: int, X: NDArray[np.float32], labels: NDArray[Label], *, seed: int
) -> tuple[NDArray[np.float32], NDArray[Label]]:
    """All rows, or `max_rows` of them drawn without replacement, in their old order."""
    if labels.size <= max_rows:
        return X, labels
    drawn = np.sort(np.random.default_rng(seed).choice(labels.size, max_rows, replace=False))
    return X[drawn], labels[drawn]
