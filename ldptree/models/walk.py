"""Rows taken down many trees, the values at their leaves added up: by numpy alone, and compiled for many rows.

What lives here: the two walks, and how many rows go at once. What does not: the trees (`ensemble`). Both add tree after tree, so
that the sums are the same to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ldptree.compiled import compiled

LEAF = -1
FEW_ROWS = 16
"""So few rows are left to numpy: a device has them sooner than numba is imported."""
MOST_ROWS = 4096
"""Rows of a block, enough for most leaves of a tree to get some."""
BLOCK_BYTES = 2**20
"""A block's tested columns, which should stay in the cache."""
_STEPS_AT_ONCE = 8

Floats = NDArray[np.float64]


def sum_few(
    block: NDArray[np.float32],
    feature: NDArray[np.int32],
    limit: NDArray[np.float32],
    child: NDArray[np.int32],
    value: Floats,
    roots: NDArray[np.int32],
    offset: Floats,
) -> Floats:
    """Offset and values added up, float64 [rows, outputs]: numpy takes one step of all rows in all trees at once.

    Args:
        block: [rows, d], no value missing.
        feature, limit: [nodes], right is x > limit; feature -1 at a leaf.
        child: [nodes, 2].
        value: [nodes, outputs].
        roots: [trees].
        offset: [outputs].
    """
    n, d = block.shape
    flat, below = block.ravel(), child.ravel()
    leaves, start = np.tile(roots, n), np.repeat(np.arange(n) * d, roots.size)
    walking = np.flatnonzero(feature[leaves] != LEAF)
    while walking.size:
        node, row = leaves[walking], start[walking]
        for _ in range(_STEPS_AT_ONCE):
            tested = feature[node]
            is_above = flat[row + tested] > limit[node]
            node = np.where(tested == LEAF, node, below[2 * node + is_above])
        leaves[walking] = node
        walking = walking[feature[node] != LEAF]
    # accumulate adds one after the other, as the compiled walk does; a plain sum pairs its terms
    terms = np.concatenate([np.tile(offset, (n, 1, 1)), value[leaves].reshape(n, roots.size, -1)], axis=1)
    sums: Floats = np.add.accumulate(terms, axis=1)[:, -1]
    return sums


@compiled
def add_up(columns, feature, limit, child, value, roots, sums):  # type: ignore[no-untyped-def]
    """Add the values at the leaves of a block's rows to sums [rows, outputs], tree after tree.

    Args as of `sum_few`, but columns [tested columns, rows], to which `feature` refers; at most 65,536 rows.
    """
    # Rows go down a tree together: at a node their list is parted in two, from one buffer to the other, without a branch that
    # depends on a value. Only nodes that some row reaches are visited, and a row takes as many steps as its own leaf is deep.
    # Unsigned places spare a check for negative ones.
    n_rows, n_outputs, one = sums.shape[0], sums.shape[1], np.uint64(1)
    lists = np.empty((2, n_rows), dtype=np.uint16)
    todo = np.empty((n_rows, 4), dtype=np.int64)
    for tree in range(roots.size):
        for i in range(n_rows):
            lists[0, i] = i
        todo[0, 0], todo[0, 1], todo[0, 2], todo[0, 3] = roots[tree], 0, n_rows, 0
        n_todo = 1
        while n_todo:
            n_todo -= 1
            node, side = todo[n_todo, 0], todo[n_todo, 3]
            first, last = todo[n_todo, 1], todo[n_todo, 2]
            while feature[node] >= 0:
                column, threshold = columns[feature[node]], limit[node]
                here, there = lists[side, first:last], lists[1 - side, first:last]
                to_left, from_right = np.uint64(0), np.uint64(last - first)
                for i in range(last - first):
                    row = here[i]
                    goes_right = np.uint64(column[row] > threshold)
                    there[to_left] = row
                    there[from_right - one] = row
                    to_left += one - goes_right
                    from_right -= goes_right
                side = 1 - side
                middle = first + np.int64(to_left)
                if middle == first:
                    node = child[node, 1]
                    continue
                if middle < last:
                    todo[n_todo, 0], todo[n_todo, 3] = child[node, 1], side
                    todo[n_todo, 1], todo[n_todo, 2] = middle, last
                    n_todo += 1
                node, last = child[node, 0], middle
            here = lists[side, first:last]
            for i in range(last - first):
                row = here[i]
                for output in range(n_outputs):
                    sums[row, output] += value[node, output]
