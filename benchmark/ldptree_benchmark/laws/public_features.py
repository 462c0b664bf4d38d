"""Laws for learners that know which features are public, from HistOfTree's section 5.1, and three of ours.

There are no public rows. Held-back rows have the mean of their label, without noise: the mean squared error is the excess over
Bayes. Features lie in [0, 1], and that is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import ConfigError
from ldptree_benchmark.masks import Mask, align_mask, thin_mask_by_power
from ldptree_benchmark.rows import PRIVATE, TEST, LabelledRows

Floats = NDArray[np.float64]
KNOWN = (-5.0, 8.0)
"""A wide range of labels with noise N(0, 1), read from no label."""
RANGES = ("known", "mean", "sample")


def draw_sines(
    seed: list[int],
    *,
    n_private: int = 10_000,
    n_test: int = 10_000,
    private: int | None = None,
    gamma: float | None = None,
    labels: str = "known",
) -> LabelledRows:
    """Draw from HistOfTree, section 5.1, y = sin(x1) + sin(x2) + sin(x5) + N(0, 1) on [0, 1]^5.

    Args:
        seed: of the draw.
        n_private, n_test: how many rows.
        private: everybody protects the first so many features; or
        gamma: W_gamma.
        labels: the range of labels is "known", that of their "mean" (to which labels are clipped) or that of the "sample".

    Raises ConfigError: neither or both of private and gamma, or another word for labels.
    """
    if (private is None) == (gamma is None):
        raise ConfigError("law sines: give one of private and gamma")
    if labels not in RANGES:
        raise ConfigError(f"law sines: labels = {labels}: one of {', '.join(RANGES)}")
    n = n_private + n_test
    protects = align_mask(n, 5, private or 0) if gamma is None else thin_mask_by_power(n_private, 5, gamma)
    if gamma is not None:
        protects = np.vstack([protects, np.zeros((n_test, 5), dtype=np.bool_)])
    rows = _draw(np.random.default_rng(seed), sum_sines, n_private, protects)
    if labels == "known":
        return rows
    sample = rows.of(PRIVATE).y
    ends = (0.0, 3 * math.sin(1.0)) if labels == "mean" else (float(sample.min()), float(sample.max()))
    return replace(rows, label_range=ends)


def draw_interaction(
    seed: list[int], *, n_private: int = 10_000, n_test: int = 10_000, private: int = 1
) -> LabelledRows:
    """Draw y = 2 1[x1 > 1/2] 1[x4 > 1/2] + sin(x2) + sin(x5) + N(0, 1), where the effect of x1 depends on x4."""
    protects = align_mask(n_private + n_test, 5, private)
    return _draw(np.random.default_rng(seed), mean_interaction, n_private, protects)


def draw_two_levels(
    seed: list[int], *, n_private: int = 10_000, n_test: int = 10_000, share: float = 0.5
) -> LabelledRows:
    """y = 4 x1 + N(0, 1), x1 private and 1 for a share of people, else 0; x2 says nothing."""
    rng = np.random.default_rng(seed)
    n = n_private + n_test
    X = np.column_stack([(rng.random(n) < share).astype(np.float64), rng.random(n)])
    return _label(rng, X, 4 * X[:, 0], 1.0, n_private, align_mask(n, 2, 1), (-5.0, 12.0))


def draw_useless(
    seed: list[int], *, n_private: int = 5_000, n_test: int = 10_000, useless: int = 7
) -> LabelledRows:
    """y = 3 x1 + 2 1[x2 > 3/4] + N(0, .7), x1 to x3 public; up to seven private columns of no use follow, six of which are the
    levels of a category and one is a skewed number.
    """
    rng = np.random.default_rng(seed)
    n = n_private + n_test
    X = rng.random((n, 3))
    levels = np.eye(6)[rng.choice(6, n, p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01])]
    more = np.column_stack([levels, np.minimum(rng.lognormal(0, 1, n) / 30, 1.0)])[:, :useless]
    mean = 3 * X[:, 0] + 2 * (X[:, 1] > 0.75)
    protects = np.broadcast_to(np.arange(3 + more.shape[1]) >= 3, (n, 3 + more.shape[1])).copy()
    return _label(rng, np.column_stack([X, more]), mean, 0.7, n_private, protects, (-2.0, 10.0))


def sum_sines(X: Floats) -> Floats:
    """The mean label of section 5.1, float64 [n], of rows [n, 5]."""
    return np.asarray(np.sin(X[:, 0]) + np.sin(X[:, 1]) + np.sin(X[:, 4]))


def mean_interaction(X: Floats) -> Floats:
    """The mean label where x1 matters only beside a large x4, float64 [n], of rows [n, 5]."""
    return np.asarray(2.0 * ((X[:, 0] > 0.5) & (X[:, 3] > 0.5)) + np.sin(X[:, 1]) + np.sin(X[:, 4]))


def _draw(
    rng: np.random.Generator, mean: Callable[[Floats], Floats], n_private: int, protects: Mask
) -> LabelledRows:
    X = rng.random(protects.shape)
    return _label(rng, X, mean(X), 1.0, n_private, protects, KNOWN)


def _label(
    rng: np.random.Generator, X: Floats, mean: Floats, noise: float, n_private: int, protects: Mask,
    label_range: tuple[float, float],
) -> LabelledRows:  # fmt: skip
    n, d = X.shape
    part = np.where(np.arange(n) < n_private, PRIVATE, TEST).astype(np.int8)
    y = mean + np.where(part == PRIVATE, rng.normal(0.0, noise, n), 0.0)
    return LabelledRows(
        X=X, y=y, part=part, n_classes=0, features=tuple(f"x{j}" for j in range(1, d + 1)), label_range=label_range,
        feature_range=(0.0, 1.0), protects=protects,
    )  # fmt: skip
