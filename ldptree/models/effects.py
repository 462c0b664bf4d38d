"""Find the columns that carry a fitted answer, and the curve along one, of a tree or of a function over rows.

A tree (`tree_importance`, `tree_dependence`): arithmetic on a released tree and weights of its cells; no row is looked at, so it
costs no privacy. By the law of total variance the variance of the answers over the cells is a sum over splits,
w_l w_r / (w_l + w_r) (v_l - v_r)^2 with the weights and mean answers of both sides; a column's importance is its splits' share of
that. For the curve a value walks down the tree, at tests of other columns both ways, in proportion to the weights.

Any function (`importance`, `partial_dependence`): each answer less their mean is parted among the features by Shapley values over
the rows (Strumbelj and Kononenko, Knowledge and Information Systems 2014), which part an interaction between its features; a
feature's share is the covariance of its part with the answers, over their variance (Li et al., J. Physical Chemistry A 2010). So
shares add up to 1 over rows as they are, however dependent.

Curves are partial dependences (Friedman, Annals of Statistics 2001, section 8.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ldptree.encoding import Encoding, Feature, Level, NumericFeature, scale
from ldptree.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.partition.raw import RawTree

    Floats = NDArray[np.float64]
    Answers = Callable[[Floats], Floats]

EMPTY = 1e-9
"""Least part of all weight that a cell counts. Below a side that holds nobody, cells then count alike."""
NOTHING = 1e-6
"""A column with a smaller share of the variance is left out."""
EVALUATIONS, FEWEST_ORDERS, MOST_ORDERS = 400, 6, 40
"""Orders are tried until the rows were answered about so many times, within these bounds."""
GRID, STRETCHES = 200, 32
"""Ends of a curve are multiples of 1 / GRID of the range; a function that is no staircase is read in so many stretches."""
FEWEST_BEYOND, SHARE_BEYOND = 10, 0.01
"""A curve ends where fewer people than this, or a smaller share, lie beyond."""


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


def tree_importance(tree: RawTree, values: ArrayLike, weights: ArrayLike) -> dict[str, float]:
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
    gains: dict[str, float] = {}
    for node in np.flatnonzero(partition.feature >= 0):
        left, right = int(partition.left[node]), int(partition.right[node])
        part = mass[left] * mass[right] / mass[node] * (mean[left] - mean[right]) ** 2
        column = tree.encoding.columns[tree.column[node]]
        gains[column] = gains.get(column, 0.0) + float(part)
    total = sum(gains.values())
    # Answers that are equal but for the last digit of a sum do not vary.
    if total <= float(np.abs(v).max()) ** 2 * 1e-24:
        return {}
    shares = {column: part / total for column, part in gains.items() if part > NOTHING * total}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def tree_dependence(
    tree: RawTree, column: str, weights: ArrayLike, values: Mapping[str, ArrayLike]
) -> tuple[list[Piece], dict[str, Floats]]:
    """Return the pieces of a column's curve, and for each the averages of `values` over cells in reach.

    The average of standard deviations bounds the standard deviation of the average from above, whatever the errors of the
    cells have in common.

    Args:
        tree: the tree in raw units.
        column: a raw column that the tree tests.
        weights: float [cells], as of `tree_importance`: how the other columns are spread.
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
    """Return the weights of the cells whose average answers value x of a column, [cells], adding up to 1."""
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


def columns_of(encoding: Encoding) -> list[tuple[int, ...]]:
    """The encoded columns of every raw column."""
    columns, at = [], 0
    for feature in encoding.features:
        columns.append(tuple(range(at, at + len(feature.names))))
        at += len(feature.names)
    return columns


def importance(
    answers: Answers, rows: ArrayLike, groups: Sequence[tuple[int, ...]], *, seed: int = 0
) -> Floats:
    """Of each group of columns, its share of the variance of the answers, float64 [groups]; all 0 where they do not vary.

    A group whose part runs against the answers, as that of a feature may that others outweigh, has 0. An estimate from random
    orders, the same for a seed.

    Args:
        answers: the function, of rows float64 [n, d], float64 [n].
        rows: float64 [n, d]; NaN goes to the function as it is.
        groups: columns, no one twice.
        seed: of the orders.

    Raises:
        DataError: there is no row.
    """
    rows = _some(rows)
    rng, parts = np.random.default_rng(seed), np.zeros(len(groups))
    whole = answers(rows)
    centred = whole - whole.mean()
    # answers that are equal but for the last digit of a sum do not vary
    if float(centred @ centred) <= 1e-24 * float(whole @ whole):
        return parts
    wanted = int(np.clip(EVALUATIONS // max(len(groups), 1), FEWEST_ORDERS, MOST_ORDERS))
    for order in _orders(len(groups), wanted, rng):
        # from another row to the own one, a feature at a time: what each brings on the way
        others = rng.permutation(len(rows))
        at, before = rows[others], whole[others]
        for group in order:
            columns = list(groups[group])
            at[:, columns] = rows[:, columns]
            after = answers(at)
            parts[group] += centred @ (after - before)
            before = after
    parts = np.maximum(parts, 0.0)
    total = parts.sum()
    return parts / total if total > 0 else parts


def partial_dependence(
    answers: Answers, rows: ArrayLike, columns: tuple[int, ...], probes: ArrayLike
) -> Floats:
    """The answers averaged over the rows with each probe in place of their own columns, float64 [probes].

    Args:
        answers: the function, of rows float64 [n, d], float64 [n].
        rows: float64 [n, d].
        columns: the columns that are set.
        probes: float64 [probes, columns].

    Raises:
        DataError: there is no row.
    """
    at = _some(rows).copy()
    means = []
    for probe in np.asarray(probes, dtype=np.float64):
        at[:, list(columns)] = probe
        means.append(float(answers(at).mean()))
    return np.array(means)


def pieces_of(feature: Feature, cuts: ArrayLike) -> tuple[list[Piece], Floats]:
    """The pieces of a raw column, and of each the encoded values in it, float64 [pieces, columns].

    Args:
        feature: the column.
        cuts: ends of the stretches, in [0, 1] and increasing; not looked at for a category, which has a piece a level.
    """
    if not isinstance(feature, NumericFeature):
        named = [Piece(level=level) for level in feature.levels]
        missing = [Piece(is_missing=True)] if feature.missing_level else []
        return [*named, *missing], np.eye(len(feature.names))
    wide = feature.maximum - feature.minimum
    ends = np.asarray(cuts, dtype=np.float64)
    raw = (feature.minimum + ends * wide).tolist()
    pieces = [Piece(low=low, high=high) for low, high in pairwise(raw)]
    probes = np.zeros((len(pieces), len(feature.names)))
    probes[:, 0] = (ends[:-1] + ends[1:]) / 2
    if feature.indicator and feature.fill is not None:
        pieces.append(Piece(is_missing=True))
        probes = np.vstack([probes, [float(scale(feature.fill, feature.minimum, feature.maximum)), 1.0]])
    return pieces, probes


def stretches_held(values: ArrayLike) -> Floats:
    """Ends of `STRETCHES` equal stretches of [0, 1] from where the values begin to where they end but for a few.

    Args:
        values: float64 [n], NaN left out.
    """
    held = np.asarray(values, dtype=np.float64)
    held = held[~np.isnan(held)]
    beyond = max(FEWEST_BEYOND, SHARE_BEYOND * held.size)
    counts = np.bincount(np.clip((held * GRID).astype(np.int64), 0, GRID - 1), minlength=GRID)
    from_left, from_right = np.cumsum(counts), np.cumsum(counts[::-1])
    if held.size < 2 * beyond:
        return np.linspace(0.0, 1.0, STRETCHES + 1)
    first, last = int(np.argmax(from_left >= beyond)), GRID - int(np.argmax(from_right >= beyond))
    if first >= last:
        return np.linspace(0.0, 1.0, STRETCHES + 1)
    return np.linspace(first / GRID, last / GRID, STRETCHES + 1)


def _orders(n: int, n_orders: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return random orders, each followed by its reverse, as what one credits too early the other credits too late."""
    drawn = [rng.permutation(n) for _ in range((n_orders + 1) // 2)]
    return [order[::step] for order in drawn for step in (1, -1)]


def _some(rows: ArrayLike) -> Floats:
    array = np.asarray(rows, dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise DataError(f"effects: rows [n, d] with n > 0 are needed, got shape {array.shape}")
    return array
