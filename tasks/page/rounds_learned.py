"""From the model of a run in rounds to the facts of its page: which features carry its answers, the curves, the tree, the trees.

Everything is taken of the released model and of what is shown; nobody's protected value is at hand here. The arithmetic is in
`ldptree.function_effects`, `histoftree.people`, `public_features.people` and `public_features.steps`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.effects import Piece
from ldptree.encoding import CategoricalFeature, Encoding
from ldptree.function_effects import averages, columns_of, pieces_of, stretches_held, variance_shares
from ldptree.histoftree import HistOfTreeModel
from ldptree.histoftree.people import people as people_of_cells
from ldptree.partition.product import Product
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition
from ldptree.public_features import PublicFeatureModel
from ldptree.public_features.people import people as people_of_ranks
from ldptree.public_features.steps import steps
from ldptree.rounds import Shown
from ldptree.shown_model import ShownModel
from tasks.page.number_facts import CurveFacts, PieceFacts
from tasks.page.places import Names, class_name, path_words, shares_below
from tasks.page.rounds_facts import BoxFacts, ShownNode, StepOfTrees, SurfaceFacts
from tasks.page.rounds_places import asked, places_of

Floats = NDArray[np.float64]

CURVES = 2
WORTH_A_CURVE = 0.005
"""A feature with a smaller share of the variance has no curve."""
MOST_PEOPLE, FEWEST_PEOPLE, MOST_PEOPLE_CELLS = 2_000, 50, 2**27
"""People that strengths and curves are taken over; people times cells."""
TOLD_DEPTH, TOLD_BOXES, TOLD_STEPS = 7, 12, 6
HEARD = 2.0
"""A count that is so many standard deviations of its noise."""


@dataclass(frozen=True)
class Learned:
    """What a model says along its features.

    strengths   of each raw column, its share of the variance of the answers.
    curves      along the strongest.
    n_averaged  people over whom both are taken.
    """

    strengths: tuple[float, ...]
    curves: tuple[CurveFacts, ...]
    n_averaged: int


@dataclass(frozen=True)
class _Tested:
    """HistOfTree's tree, as `places` speaks of one."""

    encoding: Encoding
    partition: Partition
    raw_tree: RawTree


def learned_of(model: ShownModel, shown: Shown, names: Names) -> Learned:
    """Strengths and curves, over people who show what holders show; what those protect is drawn from the model."""
    encoding, groups = model.encoding, columns_of(model.encoding)
    rows = _people(model, shown)
    strengths = variance_shares(model.inner.predict, rows, groups)
    strongest = [j for j in np.argsort(-strengths, kind="stable").tolist() if strengths[j] > WORTH_A_CURVE]
    curves = []
    for j in strongest[:CURVES]:
        feature = encoding.features[j]
        cuts, is_smooth = _cuts(model.inner, groups[j][0], rows)
        pieces, probes = pieces_of(feature, cuts)
        values = averages(model.inner.predict, rows, groups[j], probes)
        guesses = averages(_is_guess(model.inner), rows, groups[j], probes)
        curves.append(
            CurveFacts(
                column=feature.column.replace("_", " "),
                strength=min(float(strengths[j]), 1.0),
                is_smooth=is_smooth,
                in_noise=float(guesses.max()),
                pieces=tuple(
                    PieceFacts(
                        name=_name(feature.column, piece, names),
                        low=piece.low,
                        high=piece.high,
                        value=float(value),
                    )
                    for piece, value in zip(pieces, values, strict=True)
                ),
            )
        )
    return Learned(tuple(strengths.tolist()), tuple(curves), len(rows))


def tree_of(model: HistOfTreeModel, encoding: Encoding, names: Names) -> ShownNode | None:
    """The root of the tree with a histogram at every leaf; None where there is one cell.

    At an inner node, and below `TOLD_DEPTH`, the average over the cells below, weighted by their estimated shares.
    """
    product = model.partition
    if product.n_cells == 1:
        return None
    tree, shares, values = product.tree, _by_leaf(model.shares, product), _by_leaf(model.value, product)
    said = _Tested(encoding, tree, RawTree.of(tree, encoding))
    # a leaf that the noise left with no share still counts a little: its parent needs an average
    weights = np.maximum(shares, 1e-9)
    of_leaf = weights.sum(axis=0)
    cells, nodes = tree.paths()
    below = np.bincount(nodes, minlength=tree.n_nodes)
    mass = np.bincount(nodes, weights=of_leaf[cells], minlength=tree.n_nodes)
    sums = np.bincount(nodes, weights=(weights * values).sum(axis=0)[cells], minlength=tree.n_nodes)
    held = shares_below(tree, shares.sum(axis=0))
    places = places_of(product, encoding, names)
    is_heard = _by_leaf(_is_heard(model), product)

    def boxes(leaf: int) -> tuple[BoxFacts, ...]:
        largest = np.sort(np.argsort(-shares[:, leaf], kind="stable")[:TOLD_BOXES])
        return tuple(
            BoxFacts(
                place=places(cell),
                share=float(shares[cell, leaf]),
                value=float(values[cell, leaf]),
                is_heard=bool(is_heard[cell, leaf]),
            )
            for cell in largest.tolist()
        )

    def node_facts(node: int) -> ShownNode:
        is_leaf = tree.feature[node] < 0
        leaf, is_binned = int(tree.cell_of_node[node]), product.histogram.n_cells > 1
        children = () if is_leaf or tree.depth[node] >= TOLD_DEPTH else (tree.left[node], tree.right[node])
        return ShownNode(
            condition="" if node == 0 else ", ".join(path_words(said, node, names, only_last=True)),
            cells=int(below[node]) * product.histogram.n_cells,
            share_private=float(held[node]),
            value=float(sums[node] / mass[node]),
            is_heard=bool(is_heard[0, leaf]) if is_leaf and not is_binned else True,
            boxes=boxes(leaf) if is_leaf and is_binned else (),
            children=tuple(node_facts(int(child)) for child in children),
        )

    return node_facts(0)


def surface_of(model: PublicFeatureModel, encoding: Encoding, visible: Floats, names: Names) -> SurfaceFacts:
    """The line and what the trees on top of it say; `visible` float64 [n, d], NaN where protected."""
    surface, rows = model.surface, _evenly(visible, MOST_PEOPLE)
    own = surface.columns(rows)
    line = (own - surface.stand_ins) @ surface.slopes
    whole = surface(rows)
    return SurfaceFacts(
        n_trees=len(surface.trees),
        line_sd=float(line.std()),
        trees_sd=float((whole - line).std()) if surface.trees else 0.0,
        steps=tuple(
            StepOfTrees(
                asks=asked(one, encoding, names), n_trees=one.n_trees, change=one.change, share=one.share
            )
            for one in steps(surface, rows)[:TOLD_STEPS]
        ),
    )


def _is_heard(model: HistOfTreeModel) -> NDArray[np.bool_]:
    """Cells whose count stands out of its noise, bool [cells]."""
    return np.asarray(model.count > HEARD * model.count_sd)


def _is_guess(model: HistOfTreeModel | PublicFeatureModel) -> Callable[[Floats], Floats]:
    """Of rows, 1 where the answer is that of a cell that does not stand out of the noise, otherwise 0."""
    if isinstance(model, PublicFeatureModel):
        return lambda rows: np.zeros(len(rows))
    is_heard = _is_heard(model)
    return lambda rows: np.asarray(~is_heard[model.cells(rows)], dtype=np.float64)


def _people(model: ShownModel, shown: Shown) -> Floats:
    """Rows that stand for the holders, float64 [n, d]: every one where they are few, otherwise evenly chosen."""
    inner = model.inner
    if isinstance(inner, HistOfTreeModel):
        most = int(np.clip(MOST_PEOPLE_CELLS // inner.partition.n_cells, FEWEST_PEOPLE, MOST_PEOPLE))
        values, protects = _evenly(shown.values, most), _evenly(shown.protects, most)
        return people_of_cells(inner, values, protects)
    values, protects = _evenly(shown.values, MOST_PEOPLE), _evenly(shown.protects, MOST_PEOPLE)
    groups = zip(model.encoding.features, columns_of(model.encoding), strict=True)
    one_hot = [columns for feature, columns in groups if isinstance(feature, CategoricalFeature)]
    return people_of_ranks(inner, values, protects, one_hot=one_hot)


def _evenly(rows: NDArray[Any], most: int) -> NDArray[Any]:
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64))]


def _cuts(model: HistOfTreeModel | PublicFeatureModel, column: int, rows: Floats) -> tuple[Floats, bool]:
    """Ends of the stretches along an encoded column, in [0, 1], and whether the function varies within them."""
    if isinstance(model, PublicFeatureModel):
        return stretches_held(rows[:, column]), True
    histogram, tree = model.partition.histogram, model.partition.tree
    if column in histogram.features:
        return np.arange(histogram.bins + 1) / histogram.bins, False
    cuts = np.unique(tree.threshold[tree.feature == column])
    return np.array([0.0, *cuts[(cuts > 0) & (cuts < 1)], 1.0]), False


def _by_leaf(per_cell: NDArray[Any], product: Product) -> NDArray[Any]:
    return per_cell.reshape(product.histogram.n_cells, product.tree.n_leaves)


def _name(column: str, piece: Piece, names: Names) -> str:
    if piece.is_missing:
        return "missing"
    return "" if piece.level is None else class_name(column, piece.level, names)
