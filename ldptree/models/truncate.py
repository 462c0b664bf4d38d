"""A fitted tree cut back: the nodes below the cut answer as the node they hang from. Post-processing, so it costs no privacy.

One report on a deep tree serves every shallower one: the totals of an inner node are the sums of its cells', and what was
learned of the node (weighted, smoothed over the tree) rests on all of them. What does not live here: how a node's answer
comes about (`pruning`), and which cut is best (`private_tuning`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ldptree.models.class_tree import Model
from ldptree.models.number_tree import RegressionModel
from ldptree.partition.tree import LEAF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.partition.tree import Partition

AnyModel = TypeVar("AnyModel", Model, RegressionModel)

_CLASS_ANSWERS = ("decision", "probability", "margin", "margin_sd", "decided_at")
_NUMBER_ANSWERS = ("value", "value_sd", "decided_at")


def cut(model: AnyModel, *, depth: int, min_rows: int = 1) -> AnyModel:
    """The model with no cell below `depth`, nor one with fewer than `min_rows` public rows.

    A node is not parted where either part would hold fewer. That is the tree that would have been grown so for max-edge, which
    stops at the same places; for CART a tree grown under `min_rows` may take other splits.

    Args:
        model: of classes or of numbers; its tree stays as it is, answers move.
        depth: the deepest a node may speak for itself.
        min_rows: of no matter without public rows.
    """
    rows = model.public_count if isinstance(model, RegressionModel) else model.public_total.sum(axis=1)
    speaker = speakers(model.partition, rows, depth=depth, min_rows=min_rows if rows[0] else 0)
    names = _NUMBER_ANSWERS if isinstance(model, RegressionModel) else _CLASS_ANSWERS
    moved: dict[str, Any] = {name: getattr(model, name)[speaker] for name in names}
    return replace(model, **moved)


def speakers(
    partition: Partition, rows: NDArray[np.int64], *, depth: int, min_rows: int
) -> NDArray[np.int32]:
    """The node that speaks for each node, itself or an ancestor, int32 [nodes]; rows int64 [nodes] are public ones."""
    speaker = np.arange(partition.n_nodes, dtype=np.int32)
    for node in np.flatnonzero(partition.feature != LEAF):
        children = [partition.left[node], partition.right[node]]
        is_parted = partition.depth[node] < depth and rows[children].min() >= min_rows
        if speaker[node] != node or not is_parted:
            speaker[children] = speaker[node]
    return speaker
