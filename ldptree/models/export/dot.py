"""The tree as Graphviz text: what every node tests, in raw units, and what every cell says. Drawing it is Graphviz's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ldptree.encoding import CategoricalFeature
from ldptree.partition.raw import LEFT, RIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldptree.models.corrected import CorrectedModel
    from ldptree.models.tree import TreeModel
    from ldptree.partition.raw import RawTree


def to_dot(model: TreeModel[Any] | CorrectedModel, labels: Sequence[str], about: str = "") -> str:
    """A directed graph, one node a node of the tree; left edges are those whose test holds.

    Args:
        model: what has the tree.
        labels: the text of each cell.
        about: what the first line says besides the model's digest.
    """
    tree = model.partition
    lines = [
        f"// The model {model.digest[:12]} of ldptree{about}.",
        "digraph tree {",
        '  node [shape=box, fontname="sans-serif"]; edge [fontname="sans-serif"];',
    ]
    for node in range(tree.n_nodes):
        if tree.feature[node] < 0:
            lines.append(f"  {node} [label={_text(labels[tree.cell_of_node[node]])}, style=rounded];")
            continue
        lines.append(f"  {node} [label={_text(name_branches(model.raw_tree, node)[0])}];")
        lines.append(f'  {node} -> {tree.left[node]} [label="yes"];')
        lines.append(f'  {node} -> {tree.right[node]} [label="no"];')
    return "\n".join([*lines, "}"])


def name_branches(raw: RawTree, node: int) -> tuple[str, str]:
    """What rows that go left and right of an inner node are like, in raw units."""
    feature = raw.encoding.features[raw.column[node]]
    threshold, level = float(raw.threshold[node]), int(raw.level[node])
    column, missing = feature.column, f"{feature.column} is missing"
    if math.isnan(threshold):
        return missing, f"{column} is known"
    if level >= 0 and isinstance(feature, CategoricalFeature):
        names = f"{column} is not {feature.levels[level]}", f"{column} is {feature.levels[level]}"
    elif threshold == math.inf:
        names = f"{column} is known", missing
    else:
        names = f"{column} <= {threshold:.6g}", f"{column} > {threshold:.6g}"
    left, right = names
    if raw.missing[node] == LEFT:
        left = f"{left}, or missing"
    elif raw.missing[node] == RIGHT and right != missing:
        right = f"{right}, or missing"
    return left, right


def _text(text: str) -> str:
    """A quoted string of the DOT language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", "\\n")
    return f'"{escaped}"'
