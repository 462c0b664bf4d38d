"""Measure how far the public rows of a cell can be trusted, where a tree chose its cells for the labels of the same rows.

What sets two such cells apart is partly their rows' chance: their means are less sure than their rows say. By how much is
measured on public rows held out, and no private row is looked at.

What lives here: the folds and the measure. What does not: what a sum of labels or a count of classes is weighed with
(`weighting`), and the summaries of a label that is a number (`public_labels`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.inference.pruning import smooth_values
from ldptree.inference.weighting import Evidence, PrivateSums, PublicSums, gather_evidence, weigh_by_lam

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.partition.tree import Partition

    Floats = NDArray[np.float64]
    Grow = Callable[[NDArray[np.float32], Any], Partition]

FOLDS = 5
INFLATIONS = (1.0, 2.0, 4.0, 8.0, 16.0)
HALF_AN_ERROR = 0.5
MANY_BYTES = 2**27
"""Of public rows, from which on one fold is grown at a time."""


@dataclass(frozen=True, eq=False)
class Fold:
    """A tree grown without a fold of the public rows.

    Attributes:
        tree: the partition that the other rows give.
        rest: bool [n], the other rows.
        rest_cells: [others] where they fall.
        cells: [held out] where the fold's rows fall.
    """

    tree: Partition
    rest: NDArray[np.bool_]
    rest_cells: NDArray[np.int32]
    cells: NDArray[np.int32]

    def summed(self, values: Floats) -> tuple[Floats, Floats]:
        """Rows of each cell of the tree and the sums of their values [n], of the other rows alone."""
        size = self.tree.n_leaves
        count = np.bincount(self.rest_cells, minlength=size).astype(np.float64)
        return count, np.bincount(self.rest_cells, weights=values[self.rest], minlength=size).astype(
            np.float64
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Target:
    """The quantity whose mean cells are to say.

    Attributes:
        values: float64 [n], one a public row.
        variance: of one of them within a cell.
        units: (centre, scale) in which a fold's others, whose values it is given, make a margin.
    """

    values: Floats
    variance: float
    units: Callable[[Floats], tuple[float, float]]


def make_folds(
    X: NDArray[np.float32],
    y: NDArray[np.generic],
    grow: Grow,
) -> list[Fold]:
    """`FOLDS` of scaled public rows X [n, d] with labels y [n]; none where rows are too few. `grow` makes a partition of rows."""
    if y.size < 2 * FOLDS:
        return []
    fold = np.random.default_rng(0).permutation(np.arange(y.size) % FOLDS)

    def without(k: int) -> Fold:
        rest = fold != k
        tree = grow(X[rest], y[rest])
        cells = tree.apply(X)
        return Fold(tree, rest, cells[rest], cells[~rest])

    # Growing a CART holds no lock, but the rows of a fold are a copy.
    with ThreadPoolExecutor(2 if X.nbytes < MANY_BYTES else 1) as pool:
        return list(pool.map(without, range(FOLDS)))


def variance_inflation(folds: Sequence[Fold], targets: Sequence[Target]) -> float:
    """By how much the variance of public cells' means is more than their rows say, one of `INFLATIONS`, by cross-validation.

    The smoothed public tree is made of the other folds with each factor; taken is the smallest whose squared error on rows held
    out, of all targets together, is not more than half a standard error above the least. 1 without folds.
    """
    if not folds:
        return 1.0
    errors = np.sum([_held_out_errors(folds, target) for target in targets], axis=0)
    above = errors - errors[errors.mean(axis=1).argmin()]
    allowed = HALF_AN_ERROR * above.std(axis=1) / errors.shape[1] ** 0.5
    return INFLATIONS[int(np.flatnonzero(above.mean(axis=1) <= allowed)[0])]


def class_variance_inflation(
    kind: str, X: NDArray[np.float32], y: NDArray[np.integer], n_classes: int, grow: Grow
) -> float:
    """`variance_inflation` of cells that a partition of this kind chooses for classes y [n], 0 .. n_classes - 1, of scaled
    public rows X [n, d]; 1 where it chooses them for no label ("max-edge", "random-edge"). `grow` makes one of rows.
    """
    if kind != "cart":
        return 1.0
    targets = [
        Target(
            values=(y == k).astype(np.float64),
            variance=(1.0 - 1.0 / n_classes) / n_classes,
            units=lambda _: (1.0 / n_classes, 1.0),
        )
        for k in ([1] if n_classes == 2 else range(n_classes))
    ]
    return variance_inflation(make_folds(X, y, grow), targets)


def public_evidence(tree: Partition, count: Floats, margin: Floats, variance: float) -> Evidence:
    """Public rows [cells] alone, the sums of their margins, and the variance of one within a cell."""
    nobody = np.zeros(count.size)
    return gather_evidence(
        tree,
        PrivateSums(margin=nobody, count=count, margin_noise=nobody, count_noise=nobody),
        PublicSums(margin=margin, count=count),
        n_private=float(count.sum()),
        label_variance=variance,
        empty_cell_estimate=0.0,
    )


def _held_out_errors(folds: Sequence[Fold], target: Target) -> Floats:
    """[inflations, public rows] squared errors of the smoothed public tree, each row held out."""
    errors = []
    by = np.array(INFLATIONS)[:, None]
    for fold in folds:
        count, total = fold.summed(target.values)
        centre, scale = target.units(target.values[fold.rest])
        evidence = public_evidence(
            fold.tree, count, (total - centre * count) / scale, target.variance / scale**2
        )
        public = weigh_by_lam(evidence, math.inf)
        theta, _ = smooth_values(evidence, np.tile(public.theta, (by.size, 1)), by * public.variance)
        predicted = theta[:, fold.tree.leaves[fold.cells]]
        errors.append((centre + scale * predicted - target.values[~fold.rest]) ** 2)
    return np.concatenate(errors, axis=1)
