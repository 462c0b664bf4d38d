"""Max-edge: the longest edge is halved, the best score wins, and no data is needed."""

import numpy as np
import pytest

from ldptree.errors import ConfigError, DataError
from ldptree.partition import max_edge


def empty(d):
    return np.empty((0, d), dtype=np.float32), np.empty(0, dtype=np.int64)


def test_with_no_rows_the_cells_are_equal_boxes_cut_along_the_smallest_index():
    tree = max_edge.grow(*empty(2), depth=4, n_classes=2)
    assert tree.n_leaves == 16
    assert tree.feature[tree.depth == 0].tolist() == [0]
    assert set(tree.feature[tree.depth == 1]) == {1}
    grid = (np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(-1, 2) / 4).astype(np.float32)
    corners, inside = tree.apply(grid), tree.apply(grid + np.float32(0.2499))
    assert len(set(corners.tolist())) == 16
    np.testing.assert_array_equal(corners, inside)


def test_a_point_on_the_midpoint_goes_right():
    tree = max_edge.grow(*empty(1), depth=1, n_classes=2)
    X = np.array([[np.nextafter(np.float32(0.5), np.float32(0))], [0.5]], dtype=np.float32)
    assert tree.apply(X).tolist() == [0, 1]


@pytest.mark.parametrize("criterion", ["gini", "entropy", "variance"])
def test_the_informative_edge_is_cut_first(criterion):
    rng = np.random.default_rng(3)
    X = rng.random((400, 3)).astype(np.float32)
    tree = max_edge.grow(X, (X[:, 2] > 0.5).astype(int), depth=1, n_classes=2, criterion=criterion)
    assert tree.feature[0] == 2


@pytest.mark.parametrize("criterion", ["gini", "entropy", "variance"])
def test_edges_of_equal_score_are_cut_by_the_smallest_index(criterion):
    rng = np.random.default_rng(4)
    x = rng.random(333).astype(np.float32)
    y = (rng.random(333) < 0.3 + 0.3 * (x > 0.5)).astype(int)
    # columns 1 to 3 part the rows alike, up to which side is called left
    X = np.stack([rng.random(333).astype(np.float32), 1 - x, x, 1 - x], axis=1)
    assert max_edge.grow(X, y, depth=1, n_classes=2, criterion=criterion).feature[0] == 1


def test_an_edge_is_cut_again_only_when_all_are_as_short():
    rng = np.random.default_rng(5)
    X = rng.random((500, 3)).astype(np.float32)
    tree = max_edge.grow(X, (X[:, 0] > 0.25).astype(int), depth=6, n_classes=2)
    for leaf in tree.leaves:
        seen, node = [], leaf
        while node != 0:
            node = tree.parent[node]
            seen.append(int(tree.feature[node]))
        assert sorted(seen) == [0, 0, 1, 1, 2, 2]


def test_growth_stops_where_it_is_asked_to():
    X = np.full((10, 2), 0.1, dtype=np.float32)
    y = np.zeros(10, dtype=int)
    assert max_edge.grow(X, y, depth=3, n_classes=2).n_leaves == 8
    assert max_edge.grow(X, y, depth=3, n_classes=2, stop_empty=True).n_leaves == 4
    assert max_edge.grow(X, y, depth=3, n_classes=2, min_samples_leaf=1).n_leaves == 1


def test_bad_settings_are_refused():
    with pytest.raises(ConfigError):
        max_edge.grow(*empty(2), depth=-1, n_classes=2)
    with pytest.raises(ConfigError):
        max_edge.grow(*empty(2), depth=1, n_classes=2, criterion="luck")
    with pytest.raises(DataError):
        max_edge.grow(np.array([[np.nan]]), [0], depth=1, n_classes=2)
