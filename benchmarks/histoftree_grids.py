"""The grids of HistOfTree's paper (C.1), of its trees and of ours, and the best of one, picked on test rows as the paper did."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.families.histoftree import BIAS_WEIGHTS, BIN_SHIFTS

Floats = NDArray[np.float64]
Setting = Mapping[str, Any]

PAPER: Setting = {"label": "laplace"}
"""The label's noise in the paper, and in every setting that names no other."""
DEPTHS, BINS, LABEL_SHARES = (1, 2, 4, 6), (1, 2, 3), (0.5, 0.7, 0.9)
"""The paper's grid (C.1). What it calls rho is the label's share; `rho` of the estimator is the cell's."""
TREE_DEPTHS, TREE_LEAVES = (1, 2, 4, 6, 8), (1, 10, 100)
MIN_LEAF = 10
"""Of HistOfTree's trees: the paper does not say one."""


def grid(**fixed: Any) -> list[Setting]:
    """HistOfTree's grid."""
    return [
        {"p": p, "t": t, "rho": 1 - share, "min_samples_leaf": MIN_LEAF, **fixed}
        for p, t, share in itertools.product(DEPTHS, BINS, LABEL_SHARES)
    ]


def adaptive_grid(**fixed: Any) -> list[Setting]:
    """AdHistOfTree's grid: the constant, t*, and the split of epsilon."""
    return [
        {"bias_weight": b, "t_shift": shift, "rho": 1 - share, "min_samples_leaf": MIN_LEAF, **fixed}
        for b, shift, share in itertools.product(BIAS_WEIGHTS, BIN_SHIFTS, LABEL_SHARES)
    ]


def tree_grid(**fixed: Any) -> list[Setting]:
    """The grid of ParDT, LabelDT and DT."""
    return [
        {"max_depth": depth, "min_samples_leaf": leaf, **fixed}
        for depth, leaf in itertools.product(TREE_DEPTHS, TREE_LEAVES)
    ]


def best(scores: Iterable[Floats]) -> tuple[float, int]:
    """The least mean of a grid's scores, each [runs], and where it is."""
    means = [float(np.mean(score)) for score in scores]
    return min(means), int(np.argmin(means))
