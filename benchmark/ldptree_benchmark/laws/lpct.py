"""The synthetic pairs of LPCT's section 6.1, and a law of four classes beside them (ours)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldptree_benchmark.rows import PRIVATE, PUBLIC, TEST, LabelledRows

Floats = NDArray[np.float64]


def draw_lpct_pair(
    seed: list[int],
    *,
    gamma: float,
    n_public: int,
    n_private: int = 10_000,
    n_test: int = 20_000,
    side: Sequence[float] = (1.0, 1.0),
) -> LabelledRows:
    """Draw from LPCT section 6.1 on [0, 1]^2. A larger gamma weakens the public law. Bayes accuracy is .787.

    `side`: both features are multiplied by one number that is drawn between these two (section 6.2.4 has 1 and 5).
    """
    rng = np.random.default_rng(seed)
    X = rng.random((n_public + n_private + n_test, 2))
    part = np.repeat([PUBLIC, PRIVATE, TEST], [n_public, n_private, n_test]).astype(np.int8)
    share = np.where(part == PUBLIC, share_public(X, gamma), share_private(X))
    y = (rng.random(len(X)) < share).astype(np.int64)
    low, high = side
    longest = float(rng.uniform(low, high))
    return LabelledRows(
        X=longest * X, y=y, part=part, n_classes=2, features=("x1", "x2"), feature_range=(0.0, longest),
        expected=share,
    )  # fmt: skip


def draw_sloped_share(
    seed: list[int],
    *,
    is_contrary: bool = False,
    n_public: int = 500,
    n_private: int = 10_000,
    n_test: int = 20_000,
) -> LabelledRows:
    """On [0, 1]^2 a label is 1 with probability .3 + .4 x1; of public people with .7 - .4 x1, where they are contrary."""
    rng = np.random.default_rng(seed)
    n = n_public + n_private + n_test
    X, part = rng.random((n, 2)), np.repeat([PUBLIC, PRIVATE, TEST], [n_public, n_private, n_test])
    share = 0.3 + 0.4 * X[:, 0]
    y = rng.random(n) < np.where(is_contrary & (part == PUBLIC), 1.0 - share, share)
    return LabelledRows(
        X=X,
        y=y.astype(np.int64),
        part=part.astype(np.int8),
        n_classes=2,
        features=("x1", "x2"),
        feature_range=(0.0, 1.0),
        expected=share,
    )


def draw_four_sectors(
    seed: list[int],
    *,
    clear: float = 0.4,
    wrong: float = 0.1,
    n_public: int = 500,
    n_private: int = 50_000,
    n_test: int = 20_000,
) -> LabelledRows:
    """Four turning sectors of [0, 1]^2, a class each; a share `wrong` of the public labels is another class.

    With the angle in turns and the radius r around the centre, the sector is floor(4 (angle + r) + 1/2) mod 4. It is the class
    with probability `clear`; otherwise the class is one of the four at random.
    """
    rng = np.random.default_rng(seed)
    n = n_public + n_private + n_test
    X, part = rng.random((n, 2)), np.repeat([PUBLIC, PRIVATE, TEST], [n_public, n_private, n_test])
    first, second = (X - 0.5).T
    turns = np.arctan2(second, first) / (2 * np.pi) + np.hypot(first, second)
    sector = np.floor(4 * turns + 0.5).astype(np.int64) % 4
    y = np.where(rng.random(n) < clear, sector, rng.integers(0, 4, n))
    is_wrong = (part == PUBLIC) & (rng.random(n) < wrong)
    y = np.where(is_wrong, (y + rng.integers(1, 4, n)) % 4, y)
    return LabelledRows(
        X=X, y=y, part=part.astype(np.int8), n_classes=4, features=("x1", "x2"), feature_range=(0.0, 1.0)
    )


def share_private(X: Floats) -> Floats:
    """eta_P with the amplitude of LPCT's Figure 4 (as printed it exceeds 1)."""
    first, second = X.T
    size = np.abs(1.5 * first - 0.5) * np.abs(1.5 * second - 0.5) * np.maximum(0, 1 - np.abs(2 * second - 1))
    return np.asarray(0.5 + np.sign(first - 1 / 3) * np.sign(second - 1 / 3) * 0.4 * size**0.1)


def share_public(X: Floats, gamma: float) -> Floats:
    """Return eta_Q, which has the sign of eta_P, weaker the larger gamma."""
    z = 2.5 * (share_private(X) - 0.5)
    return np.asarray(0.5 + 0.4 * np.sign(z) * np.abs(z) ** gamma)
