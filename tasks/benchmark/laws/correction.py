"""Laws whose private labels differ from public ones in a known way: what a correction should find."""

from __future__ import annotations

import numpy as np

from tasks.benchmark.rows import PRIVATE, PUBLIC, TEST, LabelledRows


def draw_hidden_column(
    seed: list[int],
    *,
    n_public: int = 2_000,
    n_private: int = 10_000,
    n_test: int = 20_000,
    size: float = 1.5,
) -> LabelledRows:
    """Public labels depend on x1 and x2; private ones also on x3, which public labels ignore, by a logit of +-size."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_public + n_private + n_test, 5))
    part = np.repeat([PUBLIC, PRIVATE, TEST], [n_public, n_private, n_test]).astype(np.int8)
    logit = 3.0 * (X[:, 0] - 0.5) + 2.0 * (X[:, 1] - 0.5)
    logit += np.where(part == PUBLIC, 0.0, np.where(X[:, 2] > 0.5, size, -size))
    y = (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int64)
    return LabelledRows(X=X, y=y, part=part, n_classes=2, features=tuple(f"x{j}" for j in range(1, 6)))


def draw_shifted_number(
    seed: list[int],
    *,
    n_public: int = 500,
    n_private: int = 10_000,
    n_test: int = 5_000,
    shift: float = 0.0,
) -> LabelledRows:
    """Friedman's first law (1991) with noise of sd 1; private labels are higher by `shift` where x3 > 1/2."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_public + n_private + n_test, 6))
    part = np.repeat([PUBLIC, PRIVATE, TEST], [n_public, n_private, n_test]).astype(np.int8)
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    y += np.where((part != PUBLIC) & (X[:, 2] > 0.5), shift, 0.0) + rng.normal(size=len(X))
    names = tuple(f"x{j}" for j in range(1, 7))
    return LabelledRows(X=X, y=y, part=part, n_classes=0, features=names, label_range=(-10.0, 40.0))
