"""CART: our partition is scikit-learn's tree, and the same rows give the same one."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from ldptree.errors import ConfigError, DataError
from ldptree.partition import PARTITIONS, cart


def rows(n=600, d=5, seed=6):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, d)), 2).astype(np.float32)  # rounded: many values lie on thresholds
    return X, ((X[:, 0] > 0.4) ^ (rng.random(n) < 0.2)).astype(int)


def test_cells_are_the_leaves_of_scikit_learns_tree():
    X, y = rows()
    ours = cart.grow(X, y, depth=5, n_classes=2, min_samples_leaf=4)
    theirs = DecisionTreeClassifier(max_depth=5, min_samples_leaf=4, random_state=0).fit(X, y)
    more = np.concatenate([X, rows(seed=7)[0]])
    np.testing.assert_array_equal(ours.leaves[ours.apply(more)], theirs.apply(more))
    assert np.bincount(ours.apply(X)).min() >= 4


def test_the_same_rows_give_the_same_partition():
    X, y = rows()
    assert len({cart.grow(X, y, depth=4, n_classes=2).digest for _ in range(3)}) == 1


def test_one_row_or_no_depth_gives_one_cell():
    assert cart.grow(np.zeros((1, 2)), [1], depth=3, n_classes=2).n_leaves == 1
    assert cart.grow(*rows(), depth=0, n_classes=2).n_leaves == 1


def test_numbers_can_be_the_target():
    X, _ = rows()
    tree = cart.grow(X, 3.0 * X[:, 3], depth=1, n_classes=0, criterion="variance")
    assert tree.feature[0] == 3


def test_bad_input_is_refused():
    X, y = rows()
    with pytest.raises(DataError, match="max-edge"):
        cart.grow(X[:0], y[:0], depth=1, n_classes=2)
    with pytest.raises(DataError, match="classes"):
        cart.grow(X, y + 1, depth=1, n_classes=2)
    with pytest.raises(ConfigError):
        cart.grow(X, y, depth=1, n_classes=2, criterion="luck")


def test_every_way_to_cut_is_called_alike():
    X, y = rows()
    for grow in PARTITIONS.values():
        assert grow(X, y, depth=3, n_classes=2, criterion="gini", min_samples_leaf=1).max_depth <= 3
