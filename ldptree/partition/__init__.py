"""Partitions of the feature space into cells, from public rows. One kind, one file; one line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ldptree.partition.cart import grow_cart
from ldptree.partition.label_unit import in_range_of_one
from ldptree.partition.max_edge import grow_max_edge, grow_random_edge
from ldptree.partition.tree import Partition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PARTITIONS: dict[str, Callable[..., Partition]] = {
    "cart": grow_cart,
    "max-edge": grow_max_edge,
    "random-edge": grow_random_edge,
}


def grow_partition(
    X: NDArray[np.float32],
    y: NDArray[np.int64] | NDArray[np.float64],
    *,
    kind: str,
    depth: int,
    n_classes: int,
    criterion: str = "gini",
    min_samples_leaf: int = 1,
    stop_empty: bool = False,
    seed: int = 0,
) -> Partition:
    """Grow the partition that settings ask for, on scaled public rows [n, d].

    Args:
        X, y: public rows and classes, or numbers where criterion is "variance"; none for the edges only.
        kind: one of `PARTITIONS`; "cart" without public rows is "max-edge".
        depth: the deepest a cell may lie.
        n_classes: C (ignored for "variance").
        criterion: what a cut is scored by: "gini", "entropy" or "variance".
        min_samples_leaf: fewest public rows in a cell, where above 1.
        stop_empty: where edges are cut, a cell with no public row stays whole. Mechanisms that add noise to every cell need
            this, as in the papers: such a cell would hold nothing but noise (`grow_max_edge` has the figures).
        seed: of the public coins of "random-edge".

    Raises:
        ConfigError, DataError: as the partitions.
    """
    if criterion == "variance":
        y = in_range_of_one(y)
    if kind == "cart" and len(X):
        return grow_cart(
            X, y, depth=depth, n_classes=n_classes, criterion=criterion, min_samples_leaf=min_samples_leaf
        )
    more: dict[str, Any] = {"seed": seed} if kind == "random-edge" else {"criterion": criterion}
    return PARTITIONS["max-edge" if kind == "cart" else kind](
        X,
        y,
        depth=depth,
        n_classes=n_classes,
        min_samples_leaf=min_samples_leaf if min_samples_leaf > 1 else 0,
        stop_empty=stop_empty and len(X) > 0,
        **more,
    )


__all__ = ["PARTITIONS", "Partition", "grow_partition"]
