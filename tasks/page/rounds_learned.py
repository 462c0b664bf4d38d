"""From the model of a run in rounds to the facts of its page: the curves, the tree, the trees.

Everything is taken of the released model and of what is shown; nobody's protected value is at hand here. The arithmetic is in
`ldptree.models.curves` and `public_features.steps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.encoding import Encoding
from ldptree.families.histoftree import HistOfTreeModel
from ldptree.families.public_features import PublicFeatureModel
from ldptree.families.public_features.steps import steps
from ldptree.models.curves import MOST_PEOPLE, Along, evenly, is_heard
from ldptree.models.effects import Piece
from ldptree.partition.product import Product
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition
from tasks.page.number_facts import CurveFacts, PieceFacts
from tasks.page.places import Names, class_name, path_words, shares_below
from tasks.page.rounds_facts import BoxFacts, ShownNode, StepOfTrees, SurfaceFacts
from tasks.page.rounds_places import asked, places_of

Floats = NDArray[np.float64]

TOLD_DEPTH, TOLD_BOXES, TOLD_STEPS = 7, 12, 6


@dataclass(frozen=True)
class _Tested:
    """HistOfTree's tree, as `places` speaks of one."""

    encoding: Encoding
    partition: Partition
    raw_tree: RawTree


def curves_of(along: Along, encoding: Encoding, names: Names) -> tuple[CurveFacts, ...]:
    """The curves, with columns and levels as the page has them."""
    found = []
    for curve in along.curves:
        column = encoding.features[curve.feature].column
        found.append(
            CurveFacts(
                column=column.replace("_", " "),
                strength=curve.strength,
                is_smooth=curve.is_smooth,
                in_noise=curve.in_noise,
                pieces=tuple(
                    PieceFacts(
                        name=_name(column, one.piece, names),
                        low=one.piece.low,
                        high=one.piece.high,
                        value=one.value,
                        sd=None,
                    )
                    for one in curve.readings
                ),
            )
        )
    return tuple(found)


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
    heard = _by_leaf(is_heard(model), product)

    def boxes(leaf: int) -> tuple[BoxFacts, ...]:
        largest = np.sort(np.argsort(-shares[:, leaf], kind="stable")[:TOLD_BOXES])
        return tuple(
            BoxFacts(
                place=places(cell),
                share=float(shares[cell, leaf]),
                value=float(values[cell, leaf]),
                is_heard=bool(heard[cell, leaf]),
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
            is_heard=bool(heard[0, leaf]) if is_leaf and not is_binned else True,
            boxes=boxes(leaf) if is_leaf and is_binned else (),
            children=tuple(node_facts(int(child)) for child in children),
        )

    return node_facts(0)


def surface_of(model: PublicFeatureModel, encoding: Encoding, visible: Floats, names: Names) -> SurfaceFacts:
    """The line and what the trees on top of it say; `visible` float64 [n, d], NaN where protected."""
    surface, rows = model.surface, evenly(visible, MOST_PEOPLE)
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


def _by_leaf(per_cell: NDArray[Any], product: Product) -> NDArray[Any]:
    return per_cell.reshape(product.histogram.n_cells, product.tree.n_leaves)


def _name(column: str, piece: Piece, names: Names) -> str:
    if piece.is_missing:
        return "missing"
    return "" if piece.level is None else class_name(column, piece.level, names)
