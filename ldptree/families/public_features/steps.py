"""Where the trees of a surface step: what many small trees have in common, in place of the picture of a single one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.families.public_features.surface import Surface, Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NEAR = 16
"""Thresholds in the same 1/NEAR of a feature's range count as one."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A question that trees ask alike: is the feature above about this?

    Attributes:
        feature: the column of a row.
        threshold: scaled; the mean of those of its splits, weighted by what they part.
        change: what being above adds, in the label's unit, averaged over all trees and people.
        n_trees: how many of the trees ask it.
        share: of the variance that splits of all trees bring, its own, 0 to 1.
    """

    feature: int
    threshold: float
    change: float
    n_trees: int
    share: float


def steps(surface: Surface, rows: Floats) -> tuple[Step, ...]:
    """The steps of the trees, those that bring the most variance first; none where the trees do not vary over the rows.

    By the law of total variance a tree's variance over the rows is a sum over its splits, w_l w_r / (w_l + w_r)
    (v_l - v_r)^2 with the weights and mean values of both sides.

    Args:
        surface: of which the trees are looked at.
        rows: float64 [n, d] in [0, 1], NaN where a feature is not shown.
    """
    own = surface.columns(rows).astype(np.float32)
    found: dict[tuple[int, int], list[tuple[int, float, float, float]]] = {}
    for number, tree in enumerate(surface.trees):
        for feature, threshold, part, change in _splits(tree, own):
            near = (surface.features[feature], min(int(threshold * NEAR), NEAR - 1))
            found.setdefault(near, []).append((number, threshold, part, change))
    total = sum(part for splits in found.values() for _, _, part, _ in splits)
    if total <= 0:
        return ()
    made = []
    for (feature, _), splits in found.items():
        part = sum(one[2] for one in splits)
        made.append(
            Step(
                feature=feature,
                threshold=sum(one[1] * one[2] for one in splits) / part,
                change=sum(one[3] for one in splits) / len(surface.trees),
                n_trees=len({one[0] for one in splits}),
                share=part / total,
            )
        )
    return tuple(sorted(made, key=lambda one: (-one.share, one.feature, one.threshold)))


def _splits(tree: Tree, own: NDArray[np.float32]) -> list[tuple[int, float, float, float]]:
    """Of each split that parts rows and values: its feature, threshold, part of the variance, and its rise times its weight."""
    partition = tree.partition
    held = np.bincount(partition.apply(own), minlength=partition.n_leaves) / len(own)
    cells, nodes = partition.paths()
    mass = np.bincount(nodes, weights=held[cells], minlength=partition.n_nodes)
    sums = np.bincount(nodes, weights=(held * tree.values)[cells], minlength=partition.n_nodes)
    found = []
    for node in np.flatnonzero(partition.feature >= 0).tolist():
        low, high = int(partition.left[node]), int(partition.right[node])
        if mass[low] <= 0 or mass[high] <= 0:
            continue
        rise = float(sums[high] / mass[high] - sums[low] / mass[low])
        part = float(mass[low] * mass[high] / mass[node]) * rise**2
        if part > 0:
            found.append(
                (
                    int(partition.feature[node]),
                    float(partition.threshold[node]),
                    part,
                    rise * float(mass[node]),
                )
            )
    return found
