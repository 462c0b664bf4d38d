"""What a model of HistOfTree says of itself: its tree, the cells of its histogram in every leaf, and its partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.encoding import Encoding, NumericFeature
from ldptree.models.curves import is_heard
from ldptree.models.description import (
    Cell,
    Condition,
    Description,
    Estimate,
    Evidence,
    Names,
    Statement,
    average_below,
    build_tree,
    find_conditions,
    name_columns,
    name_level,
    share_below,
)
from ldptree.models.effects import columns_of
from ldptree.partition.raw import RawTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.histoftree.model import HistOfTreeModel
    from ldptree.partition.product import Product

DEEPEST, MOST_CELLS = 7, 400


def describe_histogram(
    model: HistOfTreeModel, encoding: Encoding, target: str, evidence: Evidence
) -> Description:
    """The tree with the average over each leaf's histogram, and the cells that hold most people."""
    product = model.partition
    tree, names = product.tree, evidence.names
    raw = RawTree.of(tree, encoding)
    shares, values = _by_leaf(model.shares, product), _by_leaf(model.value, product)
    of_leaf = (np.maximum(shares, 1e-9) * values).sum(axis=0) / np.maximum(shares, 1e-9).sum(axis=0)
    average = average_below(tree, shares.sum(axis=0), of_leaf[:, None])[:, 0]
    held = share_below(tree, shares.sum(axis=0))
    heard = _by_leaf(is_heard(model), product)
    leaves = tree.leaves
    order = np.argsort(-shares.ravel(), kind="stable")[:MOST_CELLS]
    root = build_tree(
        tree,
        raw,
        names,
        held,
        [[Estimate(value=float(average[node]))] for node in range(tree.n_nodes)],
        deepest=DEEPEST,
    )
    cells = tuple(
        Cell(
            path=(
                *find_conditions(tree, raw, int(leaves[at % tree.n_leaves]), names),
                *_find_bins(product, encoding, names, at // tree.n_leaves),
            ),
            share=float(shares.ravel()[at]),
            rests_on="private" if heard.ravel()[at] else "noise",
            estimates=(Estimate(value=float(values.ravel()[at])),),
        )
        for at in np.sort(order).tolist()
    )
    columns = name_columns(encoding)
    binned = ", ".join(columns[j] for j in product.histogram.features)
    shown = evidence.shown
    answers = model.predict(np.where(shown.protects, 0.5, shown.values))
    return Description(
        figure="number",
        predicts=(float(answers.min()), float(answers.max())),
        outputs=(target,),
        tree=None if product.n_cells == 1 else root,
        cells=cells,
        statements=(
            Statement(
                kind="partition",
                about=binned,
                figures={
                    "bins": float(product.histogram.bins),
                    "depth": float(tree.max_depth),
                    "cells": float(product.n_cells),
                },
            ),
        ),
    )


def _find_bins(product: Product, encoding: Encoding, names: Names, cell: int) -> tuple[Condition, ...]:
    """Where a cell of the histogram lies, one condition a feature."""
    histogram = product.histogram
    columns = [(j, place) for j, group in enumerate(columns_of(encoding)) for place in range(len(group))]
    digits = cell // histogram.places % histogram.bins
    return tuple(
        _find_bin(encoding, *columns[column], int(digit), histogram.bins, names)
        for column, digit in zip(histogram.features, digits, strict=True)
    )


def _find_bin(encoding: Encoding, at: int, place: int, digit: int, bins: int, names: Names) -> Condition:
    feature = encoding.features[at]
    if not isinstance(feature, NumericFeature) or place > 0:
        # a mark is 0 or 1, the lowest bin or the highest; where it is not known, the middle
        if 0 < digit < bins - 1:
            return Condition(column=feature.column)
        return find_mark(encoding, at, place, names, is_so=digit > 0)
    width = feature.maximum - feature.minimum
    low, high = (feature.minimum + k / bins * width for k in (digit, digit + 1))
    return Condition(
        column=feature.column,
        low=None if digit == 0 else low,
        high=None if digit == bins - 1 and digit > 0 else high,
        is_about=True,
    )


def find_mark(encoding: Encoding, at: int, place: int, names: Names, *, is_so: bool = True) -> Condition:
    """What an encoded column that is 0 or 1 says of its raw column."""
    feature = encoding.features[at]
    if isinstance(feature, NumericFeature) or place >= len(feature.levels):
        return Condition(column=feature.column, is_not=not is_so)
    level = name_level(feature.column, feature.levels[place], names)
    return Condition(column=feature.column, levels=(level,), is_not=not is_so)


def _by_leaf(per_cell: NDArray[Any], product: Product) -> NDArray[Any]:
    return per_cell.reshape(product.histogram.n_cells, product.tree.n_leaves)
