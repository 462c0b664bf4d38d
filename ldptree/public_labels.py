"""What public rows say of a label that is a number: summaries of each cell, and how far to trust them.

A tree chose its cells for the labels of the same rows, so what its own rows say of its errors is too little: both measures of
that here are taken on rows held out, and look at public rows alone. What is made of it with private totals is in
`fit_numbers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.pruning import smooth
from ldptree.weighting import fixed, gather

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.partition.tree import Partition

    Floats = NDArray[np.float64]

FOLDS = 5
INFLATIONS = (1.0, 2.0, 4.0, 8.0, 16.0)
HALF_AN_ERROR = 0.5
SMALLEST = 1e-6
"""Of the variance of all labels: what one within a cell has at least."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicLabels:
    """What the public rows say of their labels.

    Attributes:
        count: float64 [L], rows of each cell.
        total: float64 [L], sum of their labels.
        mean: of all of them; the middle of the range where there are none.
        sd: standard deviation of all of them; half the range where there are none, or all are equal.
        residual_variance: of one label within a cell.
        inflation: how many times that over its rows a cell's public mean is off by (`_inflation`).
    """

    count: Floats
    total: Floats
    mean: float
    sd: float
    residual_variance: float
    inflation: float = 1.0

    @classmethod
    def of(
        cls,
        partition: Partition,
        X: NDArray[np.float32],
        y: ArrayLike,
        label_range: tuple[float, float],
        grow: Callable[[NDArray[np.float32], Floats], Partition],
    ) -> PublicLabels:
        """Summaries of scaled public rows X [n, d] with labels y [n]; n may be 0.

        `grow` makes the partition of other rows: a tree fits its own rows too well, so what is left within cells is measured
        on rows held out (`_held_out_variance`).
        """
        labels = np.asarray(y, dtype=np.float64)
        low, high = label_range
        n_cells = partition.n_leaves
        if labels.size == 0:
            nothing, half = np.zeros(n_cells), (high - low) / 2
            return cls(
                count=nothing, total=nothing, mean=(low + high) / 2, sd=half, residual_variance=half**2
            )
        cells = partition.apply(X)
        count = np.bincount(cells, minlength=n_cells).astype(np.float64)
        total = np.bincount(cells, weights=labels, minlength=n_cells).astype(np.float64)
        variance = float(labels.var()) or (high - low) ** 2 / 4
        folds = _folds(X, labels, grow)
        residual = float(np.clip(_held_out_variance(folds, labels), SMALLEST * variance, variance))
        return cls(
            count=count,
            total=total,
            mean=float(labels.mean()),
            sd=variance**0.5,
            residual_variance=residual,
            inflation=_inflation(folds, residual),
        )


@dataclass(frozen=True, eq=False)
class _Fold:
    """A tree grown without a fold of the public rows: the others' summaries, and the fold's rows.

    Attributes:
        tree: the partition that the other rows give.
        count, total: [cells] of the other rows.
        centre, sd: of their labels.
        cells, labels: [held out] where the fold's rows fall, and their labels.
    """

    tree: Partition
    count: Floats
    total: Floats
    centre: float
    sd: float
    cells: NDArray[np.int32]
    labels: Floats


def _folds(
    X: NDArray[np.float32], y: Floats, grow: Callable[[NDArray[np.float32], Floats], Partition]
) -> list[_Fold]:
    """`FOLDS` of them; none where rows are too few."""
    if y.size < 2 * FOLDS:
        return []
    fold = np.random.default_rng(0).permutation(np.arange(y.size) % FOLDS)
    found = []
    for k in range(FOLDS):
        rest = fold != k
        tree = grow(X[rest], y[rest])
        cells = tree.apply(X[rest])
        count = np.bincount(cells, minlength=tree.n_leaves).astype(np.float64)
        total = np.bincount(cells, weights=y[rest], minlength=tree.n_leaves).astype(np.float64)
        centre, sd = float(y[rest].mean()), float(y[rest].std())
        found.append(_Fold(tree, count, total, centre, sd, tree.apply(X[~rest]), y[~rest]))
    return found


def _held_out_variance(folds: list[_Fold], y: Floats) -> float:
    """Variance of one label within a cell, by cross-validation; of all labels where rows are too few.

    A label held out differs from the mean of its cell's n rows by variance (1 + 1/n), and by what the tree has wrong there,
    which counts as well. It is what lets a tree be too deep: measured by the tree's own rows, its cells look sure of
    themselves (abalone at depth 8, 417 public rows: MSE 7.9, and 6.1 so).
    """
    if not folds:
        return float(y.var())
    squares = 0.0
    for fold in folds:
        safe = np.maximum(fold.count, 1)
        mean = np.where(fold.count > 0, fold.total / safe, fold.centre)
        error = (fold.labels - mean[fold.cells]) ** 2 / (1 + 1 / safe[fold.cells])
        squares += float(error.sum())
    return squares / y.size


def _inflation(folds: list[_Fold], residual: float) -> float:
    """By how much the means of public cells are less sure than their rows say, one of `INFLATIONS`, by cross-validation.

    A tree chose its cells for the labels of the same rows: what sets two cells apart is partly their rows' chance. The smoothed
    public tree is made of the other folds with each factor; taken is the smallest whose squared error on rows held out is
    not more than half a standard error above the least.
    """
    if not folds:
        return 1.0
    errors = np.array([_held_out_errors(folds, factor * residual) for factor in INFLATIONS])
    above = errors - errors[errors.mean(axis=1).argmin()]
    allowed = HALF_AN_ERROR * above.std(axis=1) / errors.shape[1] ** 0.5
    return INFLATIONS[int(np.flatnonzero(above.mean(axis=1) <= allowed)[0])]


def _held_out_errors(folds: list[_Fold], residual: float) -> Floats:
    """[public rows] squared errors of the smoothed public tree, each row held out."""
    errors = []
    for fold in folds:
        scale = 2.0 * fold.sd or 1.0
        nobody = np.zeros(fold.count.size)
        evidence = gather(
            fold.tree,
            private_margin=nobody,
            private_count=fold.count,
            margin_noise=nobody,
            mass_noise=nobody,
            public_margin=(fold.total - fold.centre * fold.count) / scale,
            public_count=fold.count,
            n_private=float(fold.count.sum()),
            label_variance=residual / scale**2,
            theta_of_nobody=0.0,
        )
        theta = smooth(evidence, fixed(evidence, math.inf)).theta[fold.tree.leaves]
        errors.append((fold.centre + scale * theta[fold.cells] - fold.labels) ** 2)
    return np.concatenate(errors)
