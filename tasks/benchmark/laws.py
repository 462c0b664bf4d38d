"""Data sets that are drawn anew for each repetition: the laws of the papers' experiments. The same seed, the same draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import ConfigError
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


LAWS: dict[str, Callable[..., LabelledRows]] = {
    "lpct-pair": draw_lpct_pair,
    "hidden-column": draw_hidden_column,
    "shifted-number": draw_shifted_number,
}
"""Every law by its name."""


def law_of(name: str) -> Callable[..., LabelledRows]:
    """A law by its name. Raises ConfigError."""
    if name not in LAWS:
        raise ConfigError(f"law: {name} is not known; there are: {', '.join(LAWS)}")
    return LAWS[name]


def draw_law(name: str, parameters: dict[str, Any], seed: list[int]) -> LabelledRows:
    """One draw of a law. Raises ConfigError: it is not known, or it has no such parameter."""
    law = law_of(name)
    try:
        return law(seed, **parameters)
    except TypeError as fault:
        raise ConfigError(f"law {name}: {str(fault).split(') ')[-1]}") from None
