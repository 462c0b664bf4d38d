"""Laws of numbers that all people share, LPDT's synthetic model, and one with any kind of noise in labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import ConfigError
from ldptree_benchmark.rows import PRIVATE, PUBLIC, TEST, LabelledRows

Floats = NDArray[np.float64]
NOISE: dict[str, Callable[[np.random.Generator, Floats], Floats]] = {
    "normal": lambda rng, expected: rng.normal(size=len(expected)),
    "laplace": lambda rng, expected: rng.laplace(size=len(expected)),
    "t2": lambda rng, expected: rng.standard_t(2, size=len(expected)),
    "exponential": lambda rng, expected: rng.exponential(size=len(expected)) - 1.0,
    "classes": lambda rng, expected: (rng.random(len(expected)) < expected / 4) * 4.0 - expected,
}
"""What a label is away from what is expected, which lies within 0 and 4; of "classes" it is 0 or 4."""


def draw_lpdt_sine(
    seed: list[int], *, n_public: int = 2_000, n_private: int = 6_000, n_test: int = 2_000
) -> LabelledRows:
    """Draw Y = sin(16 X) + N(0, 1), X ~ N(.5, .025), a variance, in [0, 1] (LPDT 4.1). Labels are -5 to 5."""
    rng = np.random.default_rng(seed)
    part = np.repeat([PUBLIC, PRIVATE, TEST], [n_public, n_private, n_test]).astype(np.int8)
    X = np.clip(rng.normal(0.5, 0.025**0.5, (len(part), 1)), 0.0, 1.0)
    expected = np.sin(16 * X[:, 0])
    y = np.clip(expected + rng.normal(size=len(part)), -5.0, 5.0)
    return LabelledRows(
        X=X,
        y=y,
        part=part,
        n_classes=0,
        features=("x",),
        label_range=(-5.0, 5.0),
        feature_range=(0.0, 1.0),
        expected=expected,
    )


def draw_steps(
    seed: list[int], *, noise: str, n_public: int = 1_000, n_private: int = 10_000, n_test: int = 2_000
) -> LabelledRows:
    """Draw labels near .5, 1.5, 2.5 or 3.5, by two normal columns' signs. Raises ConfigError for other noise."""
    if noise not in NOISE:
        raise ConfigError(f"law steps: noise {noise} is not known; there are: {', '.join(NOISE)}")
    rng = np.random.default_rng(seed)
    part = np.repeat([PUBLIC, PRIVATE, TEST], [n_public, n_private, n_test]).astype(np.int8)
    X = rng.normal(size=(len(part), 4))
    expected = 0.5 + (X[:, 0] > 0) + 2.0 * (X[:, 1] > 0)
    y = expected + NOISE[noise](rng, expected)
    names = tuple(f"x{j}" for j in range(1, 5))
    return LabelledRows(X=X, y=y, part=part, n_classes=0, features=names, expected=expected)
