"""The partition as arrays: it checks itself, finds cells, and its text is all of it."""

import numpy as np
import pytest

from ldptree.errors import DataError
from ldptree.partition.tree import Partition


def small() -> Partition:
    """x0 <= .5 at the root; x1 <= .25 on its right."""
    return Partition.of([0, -1, 1, -1, -1], [0.5, 0, 0.25, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1])


def test_rows_go_left_at_the_threshold_and_cells_follow_the_leaves():
    tree = small()
    assert tree.leaves.tolist() == [1, 3, 4]
    assert (tree.n_nodes, tree.n_leaves, tree.max_depth) == (5, 3, 2)
    X = np.array([[0.5, 1.0], [0.6, 0.25], [0.6, 0.26]], dtype=np.float32)
    assert tree.apply(X).tolist() == [0, 1, 2]


def test_a_missing_value_has_no_cell_only_where_it_is_asked_for():
    X = np.array([[np.nan, 0], [0.1, np.nan], [0.9, np.nan]], dtype=np.float32)
    assert small().apply(X).tolist() == [-1, 0, -1]


def test_paths_hold_every_cell_with_its_ancestors_and_itself():
    cells, nodes = small().paths()
    assert list(zip(cells.tolist(), nodes.tolist(), strict=True)) == [
        (0, 0), (0, 1), (1, 0), (1, 2), (1, 3), (2, 0), (2, 2), (2, 4)
    ]  # fmt: skip


def test_every_digit_is_in_the_digest_and_no_array_can_be_written():
    tree, moved = small(), small().to_json()
    moved["threshold"][0] = float(np.nextafter(0.5, 1))
    assert Partition.from_json(moved).digest != tree.digest
    np.testing.assert_array_equal(Partition.from_json(tree.to_json()).depth, tree.depth)
    with pytest.raises(ValueError, match="read-only"):
        tree.feature[0] = 3
    assert Partition.single().apply(np.zeros((3, 1), dtype=np.float32)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "arrays",
    [
        ([0, -1], [0.5, 0], [1, -1], [-1, -1]),  # one child
        ([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [1, -1, -1]),  # one child twice
        ([0, -1, -1], [np.inf, 0, 0], [1, -1, -1], [2, -1, -1]),
        ([0, -1, -1], [0.5, 0, 0], [1, 0, -1], [2, -1, -1]),  # a leaf with a child
        ([0, 0, -1], [0.5, 0.5, 0], [1, 0, -1], [2, 2, -1]),  # a circle
        ([-1, -1], [0, 0], [-1, -1], [-1, -1]),  # two roots
        ([-2], [0], [-1], [-1]),
        ([], [], [], []),
    ],
)
def test_arrays_that_are_not_one_tree_are_refused(arrays):
    with pytest.raises(DataError):
        Partition.of(*arrays)


@pytest.mark.parametrize(
    "change", [{"feature": "x"}, {"left": [1, 2]}, {"feature": [True]}, {"extra": []}, {"left": [2**40] * 5}]
)
def test_a_damaged_text_is_refused(change):
    with pytest.raises(DataError):
        Partition.from_json(small().to_json() | change)


def test_too_narrow_rows_are_refused():
    with pytest.raises(DataError, match="column 1"):
        small().apply(np.zeros((1, 1), dtype=np.float32))
