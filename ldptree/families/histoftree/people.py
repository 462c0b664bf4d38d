"""Rows that stand for the people of a HistOfTree: what they show as it is; for what they protect, a point of a cell drawn by the
released counts among those they could be in. It looks at nothing but what is shown and the released model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldptree.partition.tree import LEAF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.histoftree.model import HistOfTreeModel
    from ldptree.partition.tree import Partition

    Floats = NDArray[np.float64]

AT_ONCE = 2**22
"""Holders times cells that are written out at a time."""


def people(model: HistOfTreeModel, values: Floats, protects: NDArray[np.bool_], *, seed: int = 0) -> Floats:
    """Complete rows float64 [n, d] in [0, 1].

    Where a feature is protected, the middle of the drawn cell along it.

    Args:
        model: the released model.
        values: float64 [n, d], what is shown; not looked at where it is protected.
        protects: bool [n, d].
        seed: of the draws.
    """
    rng, product = np.random.default_rng(seed), model.partition
    size = max(1, AT_ONCE // product.n_cells)
    cells = np.concatenate(
        [
            _drawn(model, values[at : at + size], protects[at : at + size], rng)
            for at in range(0, len(values), size)
        ]
    )
    bins, leaves = np.divmod(cells, product.tree.n_leaves)
    histogram = product.histogram
    inside = _middles(product.tree, values.shape[1])[leaves]
    digits = bins[:, None] // histogram.places % histogram.bins
    inside[:, list(histogram.features)] = (digits + 0.5) / histogram.bins
    return np.where(protects, inside, values)


def _drawn(
    model: HistOfTreeModel, values: Floats, protects: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.int64]:
    """A cell each, int64 [m], by the shares of the cells that are possible; evenly where these are all 0."""
    possible = model.partition.candidates(values, protects).matrix()
    weights = possible * model.shares
    empty = weights.sum(axis=1) <= 0
    weights[empty] = possible[empty]
    ends = np.cumsum(weights, axis=1)
    return np.asarray((ends <= (rng.random(len(ends)) * ends[:, -1])[:, None]).sum(axis=1), dtype=np.int64)


def _middles(tree: Partition, d: int) -> Floats:
    """The middle of each leaf's box in [0, 1]^d, float64 [leaves, d]."""
    low, high = np.zeros((tree.n_nodes, d)), np.ones((tree.n_nodes, d))
    for node in range(1, tree.n_nodes):  # parents come first
        above = tree.parent[node]
        low[node], high[node] = low[above], high[above]
        feature, threshold = tree.feature[above], tree.threshold[above]
        if tree.left[above] == node:
            high[node, feature] = min(high[node, feature], threshold)
        else:
            low[node, feature] = max(low[node, feature], threshold)
    middles: Floats = (low + high)[tree.feature == LEAF] / 2
    return middles
