"""Below the cells that reports are asked about: the public rows part them further, and give each part its shape.

Reports carry few cells: in a joint report every cell adds its noise to what is known of all people together. A tree of public
rows is worth more cells than that. So the tree that holders are asked about is its top, and what is learned there moves the
parts below all alike: a part's mean is that of its cell, and how far the public rows say that it lies from it.

What lives here: the finer tree, the smoothed public means on it, and `refined`, which hangs them below a fitted model. What
does not: how deep either tree is (`tuning.number_depths`), and what is learned in the cells asked about (`fit_numbers`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.families.public_labels import PublicLabels
from ldptree.inference.pruning import smooth
from ldptree.inference.public_trust import public_evidence
from ldptree.inference.weighting import fixed, roll_up
from ldptree.partition.tree import LEAF, Partition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.inference.depth import NumberDepths
    from ldptree.models.tree import NumberTree

    Floats = NDArray[np.float64]

Grow = Callable[..., Partition]
"""The tree of these rows X [n, d] and labels [n], no deeper than its keyword `depth`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Finer:
    """What public rows say on a finer tree than reports are asked about.

    Attributes:
        partition: that tree, F leaves; its first nodes are those of the tree asked about, numbered alike.
        count: float64 [F], public rows of each leaf.
        total: float64 [F], sum of their labels.
        mean: float64 [F], smoothed mean of the labels of each leaf.
        mean_sd: float64 [nodes], standard deviation of the smoothed mean of each node.
        residual_variance: of one label within a leaf.
    """

    partition: Partition
    count: Floats
    total: Floats
    mean: Floats
    mean_sd: Floats
    residual_variance: float

    @classmethod
    def of(
        cls,
        asked: Partition,
        X: NDArray[np.float32],
        y: Floats,
        label_range: tuple[float, float],
        *,
        grow: Grow,
        depth: int,
    ) -> Finer | None:
        """From scaled public rows X [n, d] with labels y [n]; None where they part no cell of `asked` further.

        Args:
            asked: the tree that reports are asked about.
            X, y: public rows; n may be 0.
            label_range: that of the private labels.
            grow: makes a tree.
            depth: of the finer tree.
        """
        partition = grafted(asked, X, y, grow, depth)
        if partition.n_nodes == asked.n_nodes:
            return None
        known = PublicLabels.of(partition, X, y, label_range, partial(grow, depth=depth))
        scale = 2.0 * known.sd
        evidence = public_evidence(
            partition,
            known.count,
            (known.total - known.mean * known.count) / scale,
            known.inflation * known.residual_variance / scale**2,
        )
        found = smooth(evidence, fixed(evidence, math.inf))
        return cls(
            partition=partition,
            count=known.count,
            total=known.total,
            mean=known.mean + scale * found.theta[partition.leaves],
            mean_sd=scale * np.sqrt(found.variance),
            residual_variance=known.residual_variance,
        )


def public_labels(
    asked: Partition,
    X: NDArray[np.float32],
    y: Floats,
    label_range: tuple[float, float],
    *,
    grow: Grow,
    depths: NumberDepths,
) -> PublicLabels:
    """What scaled public rows X [n, d] with labels y [n] say of the cells of `asked`, and below where it has to go deeper."""
    known = PublicLabels.of(asked, X, y, label_range, partial(grow, depth=depths.asked))
    if depths.whole <= depths.asked:
        return known
    return replace(known, finer=Finer.of(asked, X, y, label_range, grow=grow, depth=depths.whole))


def grafted(asked: Partition, X: NDArray[np.float32], y: Floats, grow: Grow, depth: int) -> Partition:
    """The tree `asked`, its nodes numbered as they were, with a tree of its own rows grown in each cell, down to `depth`."""
    tests = {name: list(getattr(asked, name)) for name in ("feature", "threshold", "left", "right")}
    cells = asked.apply(X)
    for cell, node in enumerate(asked.leaves.tolist()):
        rows, more = cells == cell, depth - int(asked.depth[node])
        if more < 1 or not rows.any():
            continue
        part = grow(X[rows], y[rows], depth=more)
        # The part's root is the cell itself; its other nodes come behind all that there are.
        ids = np.append(node, len(tests["feature"]) + np.arange(part.n_nodes - 1))
        for own, at in enumerate(ids.tolist()):
            is_leaf = part.feature[own] == LEAF
            values = {
                "feature": part.feature[own],
                "threshold": part.threshold[own],
                "left": LEAF if is_leaf else ids[part.left[own]],
                "right": LEAF if is_leaf else ids[part.right[own]],
            }
            for name, value in values.items():
                if own:
                    tests[name].append(value)
                else:
                    tests[name][at] = value
    return Partition.of(tests["feature"], tests["threshold"], tests["left"], tests["right"])


def asked_nodes(partition: Partition, n_asked: int) -> NDArray[np.int32]:
    """int32 [nodes], the node of the tree asked about that each lies in: its own, or that of the cell above it.

    Args:
        partition: a finer tree.
        n_asked: nodes of the tree asked about.
    """
    found = np.arange(partition.n_nodes, dtype=np.int32)
    for node in range(n_asked, partition.n_nodes):  # parents come first
        found[node] = found[partition.parent[node]]
    return found


def refined(model: NumberTree, finer: Finer) -> NumberTree:
    """The model on the finer tree.

    A part has its cell's discrepancy, noise and share of evidence, and of its private count and sum the share that public rows
    have there. Its value is the cell's, moved by how far its smoothed public mean lies from the cell's. The doubts of the two
    are added, as if they were independent, which is a little too much: part of the second is what the first has already.
    """
    tree, n_asked = finer.partition, model.partition.n_nodes
    above = asked_nodes(tree, n_asked)
    is_part = np.arange(tree.n_nodes) >= n_asked
    below = tree.paths()
    rows = roll_up(below, finer.count, tree.n_nodes)
    mean = np.divide(
        roll_up(below, finer.count * finer.mean, tree.n_nodes),
        rows,
        out=np.zeros(tree.n_nodes),
        where=rows > 0,
    )
    share = np.divide(rows, rows[above], out=np.ones(tree.n_nodes), where=is_part & (rows[above] > 0))

    def of_cell(per_node: NDArray[Any]) -> NDArray[Any]:
        return per_node[above]

    def column(per_node: NDArray[Any]) -> NDArray[Any]:
        return per_node[:, None]

    return replace(
        model,
        partition=tree,
        label=replace(model.label, sd=finer.residual_variance**0.5),
        decision=of_cell(model.decision),
        probability=of_cell(model.probability),
        estimate=np.clip(
            of_cell(model.estimate) + column(np.where(is_part, mean - mean[above], 0.0)), *model.label.range
        ),
        estimate_sd=np.hypot(of_cell(model.estimate_sd), column(np.where(is_part, finer.mean_sd, 0.0))),
        noise_sd=of_cell(model.noise_sd),
        discrepancy=of_cell(model.discrepancy),
        discrepancy_sd=of_cell(model.discrepancy_sd),
        private_share=of_cell(model.private_share),
        private_total=of_cell(model.private_total) * column(share),
        public_total=np.stack([np.rint(rows), roll_up(below, finer.total, tree.n_nodes)], axis=1),
        decided_at=np.where(is_part, np.arange(tree.n_nodes), of_cell(model.decided_at)).astype(np.int32),
    )
