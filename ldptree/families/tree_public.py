"""The evidence of public rows about a numeric label, in each cell that reports are asked about and below the cells.

A tree chose its cells for the labels of the same rows, so what its own rows say of its errors is too little: what is left within
cells is measured on rows held out, as is how sure their means are (`public_trust`).

Reports carry few cells: in a joint report every cell adds its noise to what is known of all people together. A tree of public
rows is worth more cells than that. So the tree that holders are asked about is its top, and what is learned there moves the
parts below all alike: a part's mean is that of its cell, and how far the public rows say that it lies from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.inference.pruning import smooth_tree
from ldptree.inference.public_trust import Fold, Target, make_folds, public_evidence, variance_inflation
from ldptree.inference.weighting import roll_up, weigh_by_lam
from ldptree.partition.tree import LEAF, Partition

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.inference.depth import NumberDepths
    from ldptree.models.tree import NumberTree

    Floats = NDArray[np.float64]

Grow = Callable[..., Partition]
"""The tree of these rows X [n, d] and labels [n], no deeper than its keyword `depth`."""


SMALLEST = 1e-6
"""Least part of the variance of all labels that a cell has within it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicLabels:
    """The public rows' evidence about their labels.

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
        parts = make_folds(X, labels, grow)
        residual = float(np.clip(_held_out_variance(parts, labels), SMALLEST * variance, variance))
        return cls(
            count=count,
            total=total,
            mean=float(labels.mean()),
            sd=variance**0.5,
            residual_variance=residual,
            inflation=variance_inflation(parts, [Target(values=labels, variance=residual, units=_units)]),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; "finer" only where there is such a tree."""
        plain = _plain_fields(self)
        if self.finer is None:
            del plain["finer"]
        else:
            plain["finer"] = _plain_fields(self.finer) | {"partition": self.finer.partition.to_json()}
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        finer = data.get("finer")
        if finer is not None:
            finer = Finer(**(_read_arrays(finer) | {"partition": Partition.from_json(finer["partition"])}))
        return cls(**(_read_arrays(data) | {"finer": finer}))


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


def _plain_fields(value: PublicLabels | Finer) -> dict[str, Any]:
    plain = {each.name: getattr(value, each.name) for each in fields(value)}
    return {name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in plain.items()}


def _read_arrays(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: np.array(part, dtype=np.float64) if isinstance(part, list) else part
        for name, part in data.items()
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class Finer:
    """The public rows' evidence on a finer tree than reports are asked about.

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
        partition = attach_subtrees(asked, X, y, grow, depth)
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
        smoothed = smooth_tree(evidence, weigh_by_lam(evidence, math.inf))
        return cls(
            partition=partition,
            count=known.count,
            total=known.total,
            mean=known.mean + scale * smoothed.theta[partition.leaves],
            mean_sd=scale * np.sqrt(smoothed.variance),
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
    """Summarise scaled public rows X [n, d] with labels y [n] in the cells of `asked`, and below where it has to go deeper."""
    known = PublicLabels.of(asked, X, y, label_range, partial(grow, depth=depths.asked))
    if depths.whole <= depths.asked:
        return known
    return replace(known, finer=Finer.of(asked, X, y, label_range, grow=grow, depth=depths.whole))


def attach_subtrees(asked: Partition, X: NDArray[np.float32], y: Floats, grow: Grow, depth: int) -> Partition:
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


def refined(model: NumberTree, finer: Finer) -> NumberTree:
    """The model on the finer tree.

    A part has its cell's discrepancy, noise and share of evidence, and of its private count and sum the share that public rows
    have there. Its value is the cell's, moved by how far its smoothed public mean lies from the cell's. The doubts of the two
    are added, as if they were independent, which is a little too much: part of the second is what the first has already.
    """
    tree, n_asked = finer.partition, model.partition.n_nodes
    above = tree.nodes_above(n_asked)
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
