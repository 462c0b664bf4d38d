"""Laws whose private labels differ from public ones in a known way, which a correction should find."""

from __future__ import annotations

import numpy as np

from ldptree.errors import ConfigError
from ldptree_benchmark.rows import PRIVATE, PUBLIC, TEST, LabelledRows

EVERYBODY = "everybody"


def draw_hidden_column(
    seed: list[int],
    *,
    n_public: int = 2_000,
    n_private: int = 10_000,
    n_test: int = 20_000,
    size: float = 1.5,
    second: float = 0.0,
    turned: float = 0.0,
) -> LabelledRows:
    """Public labels depend on x1 and x2; private ones also on x3 and x4, which public labels ignore, by logits of +-size and
    +-second, and of +-turned, + where both are in the same half.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((n_public + n_private + n_test, 5))
    part = np.repeat([PUBLIC, PRIVATE, TEST], [n_public, n_private, n_test]).astype(np.int8)
    logit = 3.0 * (X[:, 0] - 0.5) + 2.0 * (X[:, 1] - 0.5)
    for column, by in ((2, size), (3, second)):
        logit += np.where(part == PUBLIC, 0.0, np.where(X[:, column] > 0.5, by, -by))
    is_same = (X[:, 2] > 0.5) == (X[:, 3] > 0.5)
    logit += np.where(part == PUBLIC, 0.0, np.where(is_same, turned, -turned))
    expected = 1.0 / (1.0 + np.exp(-logit))
    y = (rng.random(len(X)) < expected).astype(np.int64)
    names = tuple(f"x{j}" for j in range(1, 6))
    return LabelledRows(X=X, y=y, part=part, n_classes=2, features=names, expected=expected)


def draw_shifted_number(
    seed: list[int],
    *,
    n_public: int = 500,
    n_private: int = 10_000,
    n_test: int = 5_000,
    shift: float = 0.0,
    where: str = "x3",
    corner: float = 1.0,
) -> LabelledRows:
    """Friedman's first law (1991) of x1 to x5 with noise of sd 1; private labels are higher by `shift` where a column, which may
    be x6, is above 1/2, or those of "everybody". Public rows have an x4 below `corner`. Raises ConfigError: no such column.
    """
    names = tuple(f"x{j}" for j in range(1, 7))
    if where not in (*names, EVERYBODY):
        raise ConfigError(f"law shifted-number: where = {where}: one of {', '.join((*names, EVERYBODY))}")
    rng = np.random.default_rng(seed)
    X = rng.random((n_public + n_private + n_test, 6))
    part = np.repeat([PUBLIC, PRIVATE, TEST], [n_public, n_private, n_test]).astype(np.int8)
    X[part == PUBLIC, 3] *= corner
    expected = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    is_shifted = (part != PUBLIC) & (X[:, names.index(where)] > 0.5 if where in names else True)
    expected += np.where(is_shifted, shift, 0.0)
    y = expected + rng.normal(size=len(X))
    return LabelledRows(
        X=X, y=y, part=part, n_classes=0, features=names, label_range=(-10.0, 40.0), expected=expected
    )
