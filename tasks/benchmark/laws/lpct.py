"""The synthetic pairs of LPCT's section 6.1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.benchmark.rows import PRIVATE, PUBLIC, TEST, LabelledRows

Floats = NDArray[np.float64]


def draw_lpct_pair(
    seed: list[int], *, gamma: float, n_public: int, n_private: int = 10_000, n_test: int = 20_000
) -> LabelledRows:
    """LPCT section 6.1 on [0, 1]^2: the public law has the same sign, weaker the larger gamma; Bayes accuracy .787."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_public + n_private + n_test, 2))
    part = np.repeat([PUBLIC, PRIVATE, TEST], [n_public, n_private, n_test]).astype(np.int8)
    share = np.where(part == PUBLIC, share_public(X, gamma), share_private(X))
    y = (rng.random(len(X)) < share).astype(np.int64)
    return LabelledRows(X=X, y=y, part=part, n_classes=2, features=("x1", "x2"))


def share_private(X: Floats) -> Floats:
    """eta_P with the amplitude of LPCT's Figure 4 (as printed it exceeds 1)."""
    first, second = X.T
    size = np.abs(1.5 * first - 0.5) * np.abs(1.5 * second - 0.5) * np.maximum(0, 1 - np.abs(2 * second - 1))
    return np.asarray(0.5 + np.sign(first - 1 / 3) * np.sign(second - 1 / 3) * 0.4 * size**0.1)


def share_public(X: Floats, gamma: float) -> Floats:
    """eta_Q: the sign of eta_P, weaker the larger gamma."""
    z = 2.5 * (share_private(X) - 0.5)
    return np.asarray(0.5 + 0.4 * np.sign(z) * np.abs(z) ** gamma)
