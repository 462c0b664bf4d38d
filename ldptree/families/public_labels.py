"""What public rows say of a label that is a number: summaries of each cell, and how far to trust them.

A tree chose its cells for the labels of the same rows, so what its own rows say of its errors is too little: what is left within
cells is measured on rows held out, as is how sure their means are (`public_trust`); both look at public rows alone. What is made
of it with private totals is in `fit_numbers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.inference.public_trust import Fold, Target, folds, inflation

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.families.finer import Finer
    from ldptree.partition.tree import Partition

    Floats = NDArray[np.float64]

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
        inflation: how many times that over its rows a cell's public mean is off by (`public_trust.inflation`).
        finer: what they say below the cells that reports are asked about; None: nothing.
    """

    count: Floats
    total: Floats
    mean: float
    sd: float
    residual_variance: float
    inflation: float = 1.0
    finer: Finer | None = None

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
        parts = folds(X, labels, grow)
        residual = float(np.clip(_held_out_variance(parts, labels), SMALLEST * variance, variance))
        return cls(
            count=count,
            total=total,
            mean=float(labels.mean()),
            sd=variance**0.5,
            residual_variance=residual,
            inflation=inflation(parts, [Target(values=labels, variance=residual, units=_units)]),
        )


def _units(labels: Floats) -> tuple[float, float]:
    return float(labels.mean()), 2.0 * float(labels.std()) or 1.0


def _held_out_variance(folds: Sequence[Fold], y: Floats) -> float:
    """Variance of one label within a cell, by cross-validation; of all labels where rows are too few.

    A label held out differs from the mean of its cell's n rows by variance (1 + 1/n), and by what the tree has wrong there,
    which counts as well. It is what lets a tree be too deep: measured by the tree's own rows, its cells look sure of
    themselves (abalone at depth 8, 417 public rows: MSE 7.9, and 6.1 so).
    """
    if not folds:
        return float(y.var())
    squares = 0.0
    for fold in folds:
        count, total = fold.summed(y)
        safe = np.maximum(count, 1)
        mean = np.where(count > 0, total / safe, float(y[fold.rest].mean()))
        error = (y[~fold.rest] - mean[fold.cells]) ** 2 / (1 + 1 / safe[fold.cells])
        squares += float(error.sum())
    return squares / y.size
