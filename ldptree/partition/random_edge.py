"""The random max-edge partition (Cai, Ma, Dong, Yang 2023; LPCT-R of LPCT section 6.1), which draws one of the longest
edges of a cell at random and cuts it in the middle. No row is looked at, and the coins are public.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.partition.max_edge import grow_max_edge
from ldptree.partition.tree import Partition


def grow_random_edge(
    X: NDArray[np.float32],
    y: ArrayLike,
    *,
    depth: int,
    n_classes: int,
    criterion: str = "gini",
    seed: int = 0,
    stop_empty: bool = False,
    min_samples_leaf: int = 0,
) -> Partition:
    """The random max-edge partition of [0, 1]^d.

    Args:
        X: float32 [n, d] public rows, n may be 0; they decide nothing but where growing stops.
        y: not looked at.
        depth: the deepest a leaf may lie.
        n_classes, criterion: not looked at.
        seed: of the public coins.
        stop_empty: a cell with no public row stays whole.
        min_samples_leaf: as in `max_edge`.

    Raises:
        ConfigError: depth is negative, or the cells would not fit into memory.
        DataError: X has no columns, or a missing value.
    """
    return grow_max_edge(
        X,
        y,
        depth=depth,
        n_classes=n_classes,
        criterion="random",
        min_samples_leaf=min_samples_leaf,
        stop_empty=stop_empty,
        seed=seed,
    )
