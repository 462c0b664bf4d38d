"""What a fitted tree of numbers says along one column: which columns carry its answer, and the curve along one of them.

What lives here: arithmetic on a released tree and weights of its cells; no row is looked at, so it costs no privacy. What does
not: where values and weights come from (`regression`), and how a curve is drawn.

Strength: by the law of total variance the variance of the answers over the cells is a sum over splits, w_l w_r / (w_l + w_r)
(v_l - v_r)^2 with the weights and mean answers of both sides; a column's strength is its splits' share of that. Curve: the
partial dependence of Friedman (Annals of Statistics 2001, section 8.2), for a tree without rows: a value walks down the tree, at
tests of other columns both ways, in proportion to the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ldptree.encoding import Level, NumericFeature
from ldptree.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.partition.raw import RawTree

    Floats = NDArray[np.float64]

EMPTY = 1e-9
"""Of all weight, what a cell counts at least: below a side that holds nobody, cells then count alike."""
NOTHING = 1e-6
"""A column with a smaller share of the variance is left out."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Values of one column that the tree takes alike; exactly one of these holds.

    Attributes:
        low, high: the numbers above low up to high, ends of the public range included; None where it is no stretch.
        level: a level of a category; None where it is none.
        is_other: every level that the tree does not ask for.
        is_missing: a missing value.
    """

    low: float | None = None
    high: float | None = None
    level: Level | None = None
    is_other: bool = False
    is_missing: bool = False


def strengths(tree: RawTree, values: ArrayLike, weights: ArrayLike) -> dict[str, float]:
    """Of every column that the answers vary along, its share of their variance, the strongest first; shares add up to 1.

    Args:
        tree: the tree in raw units.
        values: float [cells], what is answered.
        weights: float [cells], none negative, with a positive sum.

    Raises:
        DataError: values or weights do not fit the tree.
    """
    partition = tree.partition
    v, w = _checked(tree, values), _positive(tree, weights)
    mass = _sums(tree, w)
    mean = _sums(tree, w * v) / mass
    found: dict[str, float] = {}
    for node in np.flatnonzero(partition.feature >= 0):
        left, right = int(partition.left[node]), int(partition.right[node])
        part = mass[left] * mass[right] / mass[node] * (mean[left] - mean[right]) ** 2
        column = tree.encoding.columns[tree.column[node]]
        found[column] = found.get(column, 0.0) + float(part)
    total = sum(found.values())
    # Answers that are equal but for the last digit of a sum do not vary.
    if total <= float(np.abs(v).max()) ** 2 * 1e-24:
        return {}
    shares = {column: part / total for column, part in found.items() if part > NOTHING * total}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def dependence(
    tree: RawTree, column: str, weights: ArrayLike, values: Mapping[str, ArrayLike]
) -> tuple[list[Piece], dict[str, Floats]]:
    """The curve along one column: its pieces, and for each of `values` the average over the cells that a piece can reach.

    The average of standard deviations bounds the standard deviation of the average from above, whatever the errors of the
    cells have in common.

    Args:
        tree: the tree in raw units.
        column: a raw column that the tree tests.
        weights: float [cells], as of `strengths`: how the other columns are spread.
        values: arrays [cells] by name.

    Returns:
        The pieces, numbers from low to high and categories in the encoding's order, and arrays [pieces] by the same names.

    Raises:
        DataError: the tree does not test the column, or an array does not fit.
    """
    if column not in tree.columns_used:
        raise DataError(f'effects: the tree does not test a column "{column}"')
    stacked = np.stack([_checked(tree, array) for array in values.values()], axis=1)
    at = tree.encoding.columns.index(column)
    parts = _parts(tree, _positive(tree, weights))
    probes = _probes(tree, at)
    averages = np.stack([_reach(tree, at, x, parts) @ stacked for _, x in probes])
    return [piece for piece, _ in probes], dict(zip(values, averages.T, strict=True))


def _probes(tree: RawTree, at: int) -> list[tuple[Piece, float]]:
    """The pieces of a column, each with a raw value that lies in it."""
    feature, tests = tree.encoding.features[at], tree.column == at
    missing = [(Piece(is_missing=True), np.nan)]
    if isinstance(feature, NumericFeature):
        cuts = np.unique(tree.threshold[tests & np.isfinite(tree.threshold)])
        inner = cuts[(cuts >= feature.minimum) & (cuts < feature.maximum)].tolist()
        ends = [feature.minimum, *inner, feature.maximum]
        stretches = [(Piece(low=low, high=high), high) for low, high in pairwise(ends)]
        return stretches + (missing if feature.indicator else [])
    asked = np.unique(tree.level[tests & (tree.level >= 0)]).tolist()
    named = [(Piece(level=feature.levels[j]), float(j)) for j in asked]
    other = [(Piece(is_other=True), -1.0)] if len(asked) < len(feature.levels) else []
    return named + other + (missing if feature.missing_level else [])


def _reach(tree: RawTree, at: int, x: float, parts: Floats) -> Floats:
    """Of which cells the answer to value x of a column is an average, and with what weights: [cells], adding up to 1."""
    partition = tree.partition
    share = parts.copy()
    asking = np.flatnonzero(tree.column == at)
    goes_left = _goes_left(tree, asking, x)
    share[partition.left[asking]], share[partition.right[asking]] = goes_left, ~goes_left
    for depth in range(1, partition.max_depth + 1):
        nodes = np.flatnonzero(partition.depth == depth)
        share[nodes] *= share[partition.parent[nodes]]
    reached: Floats = share[partition.leaves]
    return reached


def _goes_left(tree: RawTree, nodes: NDArray[np.int64], x: float) -> NDArray[np.bool_]:
    """As `partition.raw` walks, with one value for all nodes."""
    if np.isnan(x):
        return np.asarray(tree.missing[nodes] == 1)
    level = tree.level[nodes]
    return np.where(level >= 0, level != x, x <= tree.threshold[nodes])


def _parts(tree: RawTree, weights: Floats) -> Floats:
    """Of the weight of its parent, what each node holds, [nodes]; 1 at the root."""
    mass, parent = _sums(tree, weights), tree.partition.parent
    return np.where(parent >= 0, mass / mass[np.maximum(parent, 0)], 1.0)


def _sums(tree: RawTree, per_cell: Floats) -> Floats:
    cells, nodes = tree.partition.paths()
    return np.bincount(nodes, weights=per_cell[cells], minlength=tree.partition.n_nodes).astype(np.float64)


def _checked(tree: RawTree, values: ArrayLike) -> Floats:
    v = np.asarray(values, dtype=np.float64)
    if v.shape != (tree.partition.n_leaves,) or not np.isfinite(v).all():
        raise DataError(
            f"effects: expected {tree.partition.n_leaves} finite numbers, one a cell, got shape {v.shape}"
        )
    return v


def _positive(tree: RawTree, weights: ArrayLike) -> Floats:
    w = _checked(tree, weights)
    if w.min() < 0 or w.sum() <= 0:
        raise DataError("effects: weights of cells must not be negative, and not all be zero")
    shares: Floats = np.maximum(w / w.sum(), EMPTY)
    return shares
