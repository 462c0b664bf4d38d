"""Trees on what is shown: protected values decide nothing, and the corners are the trees that are known."""

import numpy as np
import pytest

from ldptree.errors import ConfigError, DataError
from ldptree.partition.cart import grow_cart
from ldptree.partition.masked import grow_masked_tree
from ldptree.partition.max_edge import grow_max_edge

ALL = (0, 1, 2, 3)


def people(n=800, seed=0, share=0.3):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 4)), 3)
    y = np.sin(5 * X[:, 1]) + 2 * (X[:, 2] > 0.6) + rng.laplace(size=n)
    return X, rng.random((n, 4)) < share, y


@pytest.mark.parametrize("splits", ["max-edge", "cart"])
@pytest.mark.parametrize("criterion", ["weighted", "printed"])
def test_protected_values_decide_nothing(splits, criterion):
    X, protects, y = people()
    other = np.where(protects, np.random.default_rng(1).random(X.shape), X)
    trees = [
        grow_masked_tree(rows, protects, y, features=ALL, depth=5, splits=splits, criterion=criterion).digest
        for rows in (X, other, np.where(protects, np.nan, X))
    ]
    assert len(set(trees)) == 1


@pytest.mark.parametrize("splits", ["max-edge", "cart"])
def test_where_the_first_rows_protect_everything_the_tree_is_grown_on_the_others(splits):
    X, _, y = people()
    protects = np.repeat(np.arange(800)[:, None] < 600, 4, axis=1)
    found = grow_masked_tree(X, protects, y, features=ALL, depth=5, splits=splits, min_samples_leaf=3)
    public = grow_masked_tree(
        X[600:], protects[600:], y[600:], features=ALL, depth=5, splits=splits, min_samples_leaf=3
    )
    assert found.digest == public.digest
    assert found.n_leaves > 4


def test_with_nothing_protected_the_trees_are_lpdts():
    X, _, y = people()
    nothing = np.zeros_like(X, dtype=bool)
    X32 = X.astype(np.float32)
    edges = grow_max_edge(X32, y, depth=6, n_classes=0, criterion="variance", min_samples_leaf=1)
    assert grow_masked_tree(X, nothing, y, features=ALL, depth=6, splits="max-edge").digest == edges.digest
    free = grow_cart(X32, y, depth=6, n_classes=0, criterion="variance", min_samples_leaf=5)
    assert (
        grow_masked_tree(X, nothing, y, features=ALL, depth=6, splits="cart", min_samples_leaf=5).digest
        == free.digest
    )


def test_the_masked_cart_cuts_where_scikit_learn_does():
    """One row that shows an unimportant feature only takes the other code, and has no other effect."""
    X, _, y = people(seed=3)
    protects = np.zeros_like(X, dtype=bool)
    protects[0, :3] = True
    ours = grow_masked_tree(X, protects, y, features=ALL, depth=4, splits="cart", min_samples_leaf=5)
    theirs = grow_cart(
        X[1:].astype(np.float32), y[1:], depth=4, n_classes=0, criterion="variance", min_samples_leaf=5
    )
    boxes = [
        {tuple(np.flatnonzero(tree.apply(X.astype(np.float32)) == cell)) for cell in range(tree.n_leaves)}
        for tree in (ours, theirs)
    ]
    assert boxes[0] == boxes[1]


def test_the_printed_criterion_adds_variances_as_algorithm_1_does():
    X, protects, y = people(seed=5)
    tree = grow_masked_tree(X, protects, y, features=ALL, depth=1, splits="max-edge", criterion="printed")
    scores = []
    for feature in ALL:
        shown = ~protects[:, feature]
        sides = (y[shown & (X[:, feature] < 0.5)], y[shown & (X[:, feature] >= 0.5)])
        scores.append(sum(side.var() for side in sides))
    assert tree.feature[0] == int(np.argmin(scores))
    assert tree.threshold[0] == np.nextafter(0.5, -np.inf)


def test_only_the_longest_edges_and_only_the_features_named_are_cut():
    X, protects, y = people()
    tree = grow_masked_tree(X, protects, y, features=(1, 3), depth=4, splits="max-edge", min_samples_leaf=0)
    assert set(tree.feature[tree.feature >= 0].tolist()) == {1, 3}
    assert tree.n_leaves == 16
    for leaf in tree.leaves:
        seen = []
        node = int(leaf)
        while (node := int(tree.parent[node])) >= 0:
            seen.append(int(tree.feature[node]))
        assert sorted(seen) == [1, 1, 3, 3]


@pytest.mark.parametrize("splits", ["max-edge", "cart"])
def test_no_side_of_a_split_has_fewer_rows_that_show_it(splits):
    X, protects, y = people(300)
    tree = grow_masked_tree(X, protects, y, features=ALL, depth=8, splits=splits, min_samples_leaf=20)
    kept = {0: np.arange(300)}
    for node in np.flatnonzero(tree.feature >= 0):
        feature = tree.feature[node]
        who = kept[node][~protects[kept[node], feature]]
        is_left = X[who, feature].astype(np.float32) <= tree.threshold[node]
        kept[tree.left[node]], kept[tree.right[node]] = who[is_left], who[~is_left]
        assert min(is_left.sum(), (~is_left).sum()) >= 20
    assert tree.n_leaves > 3


def test_wrong_settings_are_refused():
    X, protects, y = people(20)
    with pytest.raises(ConfigError, match="known are"):
        grow_masked_tree(X, protects, y, features=ALL, depth=2, splits="gini")
    with pytest.raises(ConfigError, match="too small"):
        grow_masked_tree(X, protects, y, features=ALL, depth=2, splits="cart", min_samples_leaf=0)
    with pytest.raises(DataError, match="mask"):
        grow_masked_tree(X, protects[:, :2], y, features=ALL, depth=2, splits="cart")
