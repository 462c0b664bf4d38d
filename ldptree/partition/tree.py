"""The partition of [0, 1]^d as arrays. Says what a tree is, not how it is grown.

Growing lives beside this file (max_edge, cart); a partition put into the units of the raw data is in raw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree import serialize
from ldptree.compiled import compiled
from ldptree.errors import DataError

LEAF = -1


@dataclass(frozen=True, eq=False)
class Partition:
    """A binary tree whose leaves are the cells; read-only arrays, one entry a node, node 0 the root.

    A row goes left where `x[feature] <= threshold`. Parents come before their children, so one pass forward
    visits parents first and one pass backward visits children first. Cell `j` is the leaf `leaves[j]`.

    Attributes:
        feature: int32 [nodes], the column a node tests; -1 at a leaf.
        threshold: float64 [nodes], finite; 0 at a leaf.
        left, right, parent: int32 [nodes], node ids; -1 where there is none.
        depth: int32 [nodes], 0 at the root.

    Raises:
        DataError: the arrays are not one tree.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    parent: NDArray[np.int32]
    depth: NDArray[np.int32]

    def __post_init__(self) -> None:
        for name in ("feature", "threshold", "left", "right", "parent", "depth"):
            kind = np.float64 if name == "threshold" else np.int32
            array = np.array(getattr(self, name), dtype=kind)
            if array.ndim != 1 or array.size != np.size(self.feature) or not array.size:
                raise DataError(
                    f"partition: {name} has shape {array.shape}; every array is [nodes], nodes >= 1"
                )
            if name == "threshold":
                array[self.feature == LEAF] = 0.0
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        self._check()

    def _check(self) -> None:
        inner = np.flatnonzero(self.feature != LEAF)
        leaves = self.feature == LEAF
        if (self.feature < LEAF).any() or not np.isfinite(self.threshold).all():
            raise DataError("partition: features are -1 (leaf) or a column index, thresholds are finite")
        if (self.left[leaves] != LEAF).any() or (self.right[leaves] != LEAF).any():
            raise DataError("partition: a leaf has children")
        children = np.concatenate([self.left[inner], self.right[inner]])
        parents = np.concatenate([inner, inner])
        if not np.array_equal(np.sort(children), np.arange(1, self.n_nodes)):
            raise DataError("partition: every node but the root must be the child of exactly one node")
        if (children <= parents).any():
            raise DataError("partition: a child comes before its parent")
        if self.parent[0] != LEAF or (self.parent[children] != parents).any():
            raise DataError("partition: parent does not agree with left and right")
        if self.depth[0] != 0 or (self.depth[children] != self.depth[parents] + 1).any():
            raise DataError("partition: depth does not agree with parent")

    @classmethod
    def of(cls, feature: ArrayLike, threshold: ArrayLike, left: ArrayLike, right: ArrayLike) -> Self:
        """The partition with these four arrays; parents and depths follow from them."""
        feature, left, right = (np.asarray(a, dtype=np.int32) for a in (feature, left, right))
        parent = np.full(feature.size, LEAF, dtype=np.int32)
        depth = np.zeros(feature.size, dtype=np.int32)
        for node in np.flatnonzero(feature != LEAF):
            for child in (left[node], right[node]):
                if not node < child < feature.size:
                    raise DataError(f"partition: node {node} has child {child} of {feature.size} nodes")
                parent[child] = node
                depth[child] = depth[node] + 1
        return cls(feature, np.asarray(threshold, dtype=np.float64), left, right, parent, depth)

    @classmethod
    def single(cls) -> Self:
        """The partition of one cell."""
        return cls.of([LEAF], [0.0], [LEAF], [LEAF])

    @property
    def n_nodes(self) -> int:
        """Inner nodes and leaves."""
        return int(self.feature.size)

    @property
    def n_leaves(self) -> int:
        """Cells."""
        return int(self.leaves.size)

    @cached_property
    def leaves(self) -> NDArray[np.int32]:
        """Return node ids of the leaves, ascending, int32 [cells]. Cell j is leaf leaves[j]."""
        return _read_only(np.flatnonzero(self.feature == LEAF).astype(np.int32))

    @cached_property
    def cell_of_node(self) -> NDArray[np.int32]:
        """The cell of each leaf, int32 [nodes]; -1 at inner nodes."""
        cell = np.full(self.n_nodes, -1, dtype=np.int32)
        cell[self.leaves] = np.arange(self.n_leaves, dtype=np.int32)
        return _read_only(cell)

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.depth.max())

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the tests and their order, the same on every machine."""
        sha = hashlib.sha256(b"ldptree partition 1")
        for array, kind in (
            (self.feature, "<i4"),
            (self.threshold, "<f8"),
            (self.left, "<i4"),
            (self.right, "<i4"),
        ):
            sha.update((array + 0).astype(kind).tobytes())  # + 0 turns -0.0 into 0.0
        return sha.hexdigest()

    def apply(self, X: NDArray[np.float32]) -> NDArray[np.int32]:
        """The cell of each row.

        Args:
            X: float32 [n, d], as `Encoding.encode` gives it (other types are converted to float32 first).

        Returns:
            int32 [n] cells; -1 where a test meets a missing value (NaN).

        Raises:
            DataError: X has fewer columns than the tests need.
        """
        X = np.ascontiguousarray(X, dtype=np.float32)
        if X.ndim != 2 or X.shape[1] <= self.feature.max():
            raise DataError(f"partition: rows have shape {X.shape}, tests need column {self.feature.max()}")
        cells = np.empty(X.shape[0], dtype=np.int32)
        _walk(X, self.feature, self.threshold, self.left, self.right, self.cell_of_node, cells)
        return cells

    def class_counts(self, X: NDArray[np.float32], y: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
        """Rows [n, d] with classes y [n] in each cell, int64 [cells, classes]; n may be 0."""
        values = self.apply(X).astype(np.int64) * n_classes + y
        size = self.n_leaves * n_classes
        return np.bincount(values, minlength=size).reshape(self.n_leaves, n_classes)

    def paths(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Every pair of a cell and one of its ancestors or itself, as (cells int32 [m], nodes int32 [m]).

        Sorted by cell, then by node: a cell's root comes first, its leaf last.
        """
        cells, nodes = [], []
        at = self.leaves.copy()
        cell = np.arange(self.n_leaves, dtype=np.int32)
        while at.size:
            cells.append(cell)
            nodes.append(at)
            at = self.parent[at]
            cell, at = cell[at != LEAF], at[at != LEAF]
        all_cells, all_nodes = np.concatenate(cells), np.concatenate(nodes)
        order = np.lexsort((all_nodes, all_cells))
        return all_cells[order], all_nodes[order]

    def nodes_above(self, n_top: int) -> NDArray[np.int32]:
        """Return int32 [nodes], a node's number among the first `n_top`, a tree, or that of its cell there."""
        above = np.arange(self.n_nodes, dtype=np.int32)
        for node in range(n_top, self.n_nodes):  # parents come first
            above[node] = above[self.parent[node]]
        return above

    def to_json(self) -> dict[str, Any]:
        """Plain lists, from which `from_json` makes a partition with the same digest."""
        return {name: getattr(self, name).tolist() for name in ("feature", "threshold", "left", "right")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The partition `to_json` wrote.

        Raises:
            DataError: a field is absent, unknown or not a list of numbers, or the lists are not one tree.
        """
        names = ("feature", "threshold", "left", "right")
        if not isinstance(data, Mapping) or set(data) != set(names):
            raise DataError(f"partition: expected exactly the fields {', '.join(names)}")
        kinds = (np.int32, np.float64, np.int32, np.int32)
        arrays = [
            serialize.numbers(data[name], kind, "partition", name)
            for name, kind in zip(names, kinds, strict=True)
        ]
        if any(array.shape != (arrays[0].size,) for array in arrays):
            raise DataError(f"partition: {', '.join(names)} must be lists of one length")
        return cls.of(*arrays)


def _read_only(array: NDArray[np.int32]) -> NDArray[np.int32]:
    array.setflags(write=False)
    return array


@compiled
def _walk(X, feature, threshold, left, right, cell_of_node, cells):  # type: ignore[no-untyped-def]
    for row in range(X.shape[0]):
        node = 0
        while feature[node] >= 0:
            x = X[row, feature[node]]
            if np.isnan(x):
                break
            node = left[node] if x <= threshold[node] else right[node]
        cells[row] = cell_of_node[node]  # -1 where the walk stopped at an inner node
