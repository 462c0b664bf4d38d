"""The tree as Graphviz text: what every node tests, in raw units, and what every cell says. Drawing it is Graphviz's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ldptree.encoding import CategoricalFeature
from ldptree.models.class_tree import Model
from ldptree.models.corrected import CorrectedModel
from ldptree.models.number_tree import RegressionModel
from ldptree.partition.raw import LEFT
from ldptree.public_models.slope import COLUMN

if TYPE_CHECKING:
    from ldptree.models.tree_model import TreeModel
    from ldptree.partition.raw import RawTree


def to_dot(model: TreeModel | CorrectedModel, level: float = 0.9) -> str:
    """A directed graph, one node a node of the tree; left edges are those whose test holds.

    Of a corrected model it is the tree of corrections: each cell says what is added to the public model, +- its standard
    deviation, and its share of private people.

    Args:
        model: the model.
        level: of the interval that a cell shows; of no matter for corrections.

    Raises:
        ConfigError: `level` is not between 0 and 1.
    """
    tree = model.partition
    if isinstance(model, CorrectedModel):
        trees = "1 tree" if model.base.roots.size == 1 else f"{model.base.roots.size} trees"
        said, about = _corrections(model), f"; its public model of {trees} is not drawn"
        if found := model.corrections.slope:
            about += f"; {found.amount:.3g} ± {found.sd:.2g} times how far {COLUMN} is from a cell's mean is added, too"
    else:
        said, about = [_answers(model, level)[node] for node in tree.leaves], ""
    lines = [
        f"// The model {model.digest[:12]} of ldptree{about}.",
        "digraph tree {",
        '  node [shape=box, fontname="sans-serif"]; edge [fontname="sans-serif"];',
    ]
    for node in range(tree.n_nodes):
        if tree.feature[node] < 0:
            lines.append(f"  {node} [label={_text(said[tree.cell_of_node[node]])}, style=rounded];")
            continue
        lines.append(f"  {node} [label={_text(_test(model.raw_tree, node))}];")
        lines.append(f'  {node} -> {tree.left[node]} [label="yes"];')
        lines.append(f'  {node} -> {tree.right[node]} [label="no"];')
    return "\n".join([*lines, "}"])


def _test(raw: RawTree, node: int) -> str:
    """What a row must meet to go left."""
    feature = raw.encoding.features[raw.column[node]]
    threshold, level = float(raw.threshold[node]), int(raw.level[node])
    if math.isnan(threshold):
        return f"{feature.column} is missing"
    if level >= 0 and isinstance(feature, CategoricalFeature):
        test = f"{feature.column} is not {feature.levels[level]}"
    else:
        test = (
            f"{feature.column} is known" if threshold == math.inf else f"{feature.column} <= {threshold:.6g}"
        )
    return f"{test}, or missing" if raw.missing[node] == LEFT else test


def _answers(model: TreeModel, level: float) -> list[str]:
    """What each node says, in one or two lines."""
    if isinstance(model, RegressionModel):
        low, high = model.value_interval(level)
        return [
            f"{model.target} = {value:.5g}\n{a:.5g} to {b:.5g}"
            for value, a, b in zip(model.value, low, high, strict=True)
        ]
    assert isinstance(model, Model)
    low, high = model.share_interval(level)
    rows = np.arange(model.partition.n_nodes)
    said = zip(
        model.decision,
        model.probability[rows, model.decision],
        low[rows, model.decision],
        high[rows, model.decision],
        strict=True,
    )
    return [f"{model.target} = {model.classes[k]}\n{p:.3f} ({a:.3f} to {b:.3f})" for k, p, a, b in said]


def _corrections(model: CorrectedModel) -> list[str]:
    """What each cell says: a line an output, and the share of people."""
    found = model.corrections
    if not model.classes:
        names = [model.target]
    else:
        kept = model.classes[1:] if len(model.classes) == 2 else model.classes
        names = [f"share of {model.target} = {value}" for value in kept]
    said = []
    for added, sds, share in zip(found.correction, found.sd, found.share, strict=True):
        lines = [
            f"{name} {c:+.3g} ± {sd:.2g}" if c or sd else f"{name}: no correction"
            for name, c, sd in zip(names, added, sds, strict=True)
        ]
        said.append("\n".join([*lines, f"{share:.1%} of people"]))
    return said


def _text(text: str) -> str:
    """A quoted string of the DOT language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", "\\n")
    return f'"{escaped}"'
