"""The public model that reports correct, as plain arrays, with answers, out-of-fold errors, and its doubt.

How it is fitted is in `fit`, the arrays are in `ldptree.models.ensemble`, what is done about its errors in
`ldptree.families.correction`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.models.ensemble import LEAF, Ensemble
from ldptree.partition.tree import Partition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.public_models.smoothed_tree import SmoothedTree

    Floats = NDArray[np.float64]
    Rows = NDArray[np.float32]


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicModel:
    """A public model with M outputs, which are a number, the share of class 1, or a share for each of more classes.

    Attributes:
        ensemble: what is published; its values are the rounded ones.
        errors: float64 [n, M], label less the answer of a model that the row had no part in; public rows that no such model
            is there for are left out, so n may be below the number of public rows, or 0.
        smoothed: for base "tree", the M smoothed trees that know how unsure they are; else none.
        n_classes: C, 0 where the label is a number.
    """

    ensemble: Ensemble
    errors: Floats
    smoothed: tuple[SmoothedTree, ...] = ()
    n_classes: int = 0

    @property
    def n_outputs(self) -> int:
        """M."""
        return n_outputs(self.n_classes)

    def answers(self, X: Rows) -> Floats:
        """float64 [n, M] of encoded rows [n, d], no value missing."""
        return answers(self.ensemble, X, self.n_classes)

    @property
    def top(self) -> Callable[[int], Partition] | None:
        """The one smoothed tree cut off at a depth, where there is exactly one."""
        if len(self.smoothed) != 1:
            return None
        partition = self.smoothed[0].partition
        return lambda depth: top_of(partition, depth)

    def own_variance(self, partition: Partition, X: Rows) -> Floats:
        """Posterior variance of the mean error in each cell, float64 [L, M]; 0 for a base that does not know its own.

        Args:
            partition: the collection tree.
            X: the public rows [n, d] that the base was fitted on.
        """
        variances = np.zeros((partition.n_leaves, self.n_outputs))
        for output, tree in enumerate(self.smoothed):
            variance = tree.variance_of_means(tree.partition.apply(X), partition.apply(X), partition.n_leaves)
            variances[:, output] = np.where(np.isnan(variance), np.nanmax(variance), variance)
        return variances


def n_outputs(n_classes: int) -> int:
    """M for C classes, or 0 for a number."""
    return n_classes if n_classes > 2 else 1


def answers(ensemble: Ensemble, X: Rows, n_classes: int) -> Floats:
    """Return float64 [n, M] of encoded rows, where two shares give the one of class 1 (see `PublicModel`)."""
    predicted: Floats = ensemble.predict(X)
    return predicted[:, 1:] if n_classes == 2 and predicted.shape[1] == 2 else predicted


def indicators(y: NDArray[Any], n_classes: int) -> Floats:
    """Return the targets of the outputs, float64 [n, M], which are numbers, or 0 and 1 for class 1 or for every class.

    NaN for a class below 0, one that is not declared.
    """
    if not n_classes:
        return np.asarray(y, dtype=np.float64)[:, None]
    codes = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    indicated: Floats = (np.asarray(y)[:, None] == codes).astype(np.float64)
    indicated[np.asarray(y) < 0] = np.nan
    return indicated


def constant(value: Floats, n_classes: int) -> PublicModel:
    """The public model where there are no public rows; value [M]."""
    leaf = np.array([LEAF])
    tree = (leaf, np.zeros(1), leaf, leaf, np.asarray(value, dtype=np.float64)[None])
    empty = np.empty((0, n_outputs(n_classes)))
    return PublicModel(
        ensemble=Ensemble.of_trees([tree], np.zeros(len(value))), errors=empty, n_classes=n_classes
    )


def top_of(partition: Partition, depth: int) -> Partition:
    """The partition without what lies below a depth."""
    kept = np.flatnonzero(partition.depth <= depth)
    place = np.full(partition.n_nodes + 1, LEAF, dtype=np.int32)
    place[kept] = np.arange(kept.size)
    is_leaf = (partition.feature[kept] == LEAF) | (partition.depth[kept] == depth)
    arrays: list[NDArray[Any]] = [
        partition.feature,
        partition.threshold,
        place[partition.left],
        place[partition.right],
    ]
    return Partition.of(*(np.where(is_leaf, 0.0 if k == 1 else LEAF, a[kept]) for k, a in enumerate(arrays)))
