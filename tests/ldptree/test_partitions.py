"""Every way to cut public rows into cells, over the registry: what all promise, then what each does."""

import json

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import ConfigError, DataError
from ldptree.partition import PARTITIONS, Partition
from ldptree.partition.cart import grow_cart
from ldptree.partition.max_edge import grow_max_edge
from ldptree.partition.raw import RawTree

LABELS = {"classes": ("gini", 2), "more classes": ("entropy", 3), "numbers": ("variance", 0)}
LOOKS_AT_ROWS = ["cart", "max-edge"]
ENCODING = Encoding(
    (
        NumericFeature("a", -3.0, 90.0, fill=4.0, indicator=True),
        NumericFeature("b", 0.1, 0.7),
        CategoricalFeature("c", ("p", "q", "r"), missing_level=True),
    )
)


def public_rows(n=600, seed=0):
    """Rows in raw units with missing values, the same encoded, and a column that the labels follow."""
    rng = np.random.default_rng(seed)
    raw = np.stack(
        [rng.integers(-3, 91, n), rng.uniform(0.1, 0.7, n).round(2), rng.integers(-1, 3, n)], axis=1
    ).astype(float)
    raw[rng.random(n) < 0.1, 0] = np.nan
    return raw, ENCODING.encode(raw), (raw[:, 1] > 0.4) ^ (rng.random(n) < 0.2)


def grown(kind, label="classes", *, n=600, depth=4, min_samples_leaf=1, seed=0):
    """The rows, encoded rows and partition of a kind for a label."""
    raw, X, is_high = public_rows(n, seed)
    criterion, n_classes = LABELS[label]
    y = is_high * 0.5 if label == "numbers" else is_high.astype(int)
    tree = PARTITIONS[kind](
        X, y, depth=depth, n_classes=n_classes, criterion=criterion, min_samples_leaf=min_samples_leaf
    )
    return raw, X, tree


@pytest.mark.parametrize("kind", PARTITIONS)
@pytest.mark.parametrize("label", LABELS)
def test_every_row_has_the_same_cell_in_raw_units_as_encoded(kind, label):
    raw, X, tree = grown(kind, label)
    more, more_X, _ = public_rows(seed=1)
    in_raw_units = RawTree.of(tree, ENCODING)
    np.testing.assert_array_equal(in_raw_units.apply(raw), tree.apply(X))
    np.testing.assert_array_equal(in_raw_units.apply(more), tree.apply(more_X))
    assert tree.n_leaves > 4


@pytest.mark.parametrize("kind", PARTITIONS)
@pytest.mark.parametrize("label", LABELS)
def test_the_same_rows_give_the_same_partition_and_its_text_is_all_of_it(kind, label):
    tree = grown(kind, label)[2]
    assert grown(kind, label)[2].digest == tree.digest
    assert Partition.from_json(json.loads(json.dumps(tree.to_json()))).digest == tree.digest


@pytest.mark.parametrize("kind", PARTITIONS)
def test_the_rows_of_a_node_are_those_of_the_cells_below_it(kind):
    _, X, tree = grown(kind)
    sizes = np.bincount(tree.apply(X), minlength=tree.n_leaves)
    of_nodes = np.zeros(tree.n_nodes, dtype=int)
    cells, nodes = tree.paths()
    np.add.at(of_nodes, nodes, sizes[cells])
    assert of_nodes[0] == len(X)
    inner = np.flatnonzero(tree.feature >= 0)
    np.testing.assert_array_equal(of_nodes[inner], of_nodes[tree.left[inner]] + of_nodes[tree.right[inner]])
    np.testing.assert_array_equal(of_nodes[tree.leaves], sizes)


@pytest.mark.parametrize("kind", PARTITIONS)
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_no_cell_lies_deeper_than_asked_nor_holds_fewer_rows(kind, depth):
    _, X, tree = grown(kind, depth=depth, min_samples_leaf=20)
    assert tree.max_depth <= depth
    assert (depth > 0) == (tree.n_leaves > 1)
    assert np.bincount(tree.apply(X), minlength=tree.n_leaves).min() >= 20


@pytest.mark.parametrize("kind", LOOKS_AT_ROWS)
def test_the_first_cut_is_along_the_column_that_the_labels_follow(kind):
    for label in LABELS:
        assert ENCODING.columns[1] == "b"
        assert RawTree.of(grown(kind, label, depth=1)[2], ENCODING).columns_used == ("b",)


def test_of_a_random_edge_the_public_coins_alone_decide():
    _, X, is_high = public_rows()
    other = np.random.default_rng(5).random(X.shape).astype(np.float32)
    trees = [
        PARTITIONS["random-edge"](rows, y, depth=4, n_classes=2, seed=seed).digest
        for rows, y, seed in ((X, is_high, 1), (other, ~is_high, 1), (X, is_high, 2))
    ]
    assert trees[0] == trees[1] != trees[2]


@pytest.mark.parametrize(
    ("kind", "change", "error"),
    [
        *(
            (kind, {"X": np.full((600, 5), np.nan, dtype=np.float32)}, (DataError, ConfigError))
            for kind in PARTITIONS
        ),
        *((kind, {"depth": -1}, ConfigError) for kind in PARTITIONS),
        *((kind, {"criterion": "luck"}, ConfigError) for kind in LOOKS_AT_ROWS),
        ("cart", {"y": np.full(600, 3)}, DataError),
    ],
)
def test_bad_rows_and_settings_are_refused(kind, change, error):
    X, y = rows()
    with pytest.raises(error):
        PARTITIONS[kind](**{"X": X, "y": y, "depth": 1, "n_classes": 2} | change)


# CART


def rows(n=600, d=5, seed=6):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, d)), 2).astype(np.float32)  # rounded: many values lie on thresholds
    return X, ((X[:, 0] > 0.4) ^ (rng.random(n) < 0.2)).astype(int)


def test_cells_are_the_leaves_of_scikit_learns_tree():
    X, y = rows()
    ours = grow_cart(X, y, depth=5, n_classes=2, min_samples_leaf=4)
    theirs = DecisionTreeClassifier(max_depth=5, min_samples_leaf=4, random_state=0).fit(X, y)
    more = np.concatenate([X, rows(seed=7)[0]])
    np.testing.assert_array_equal(ours.leaves[ours.apply(more)], theirs.apply(more))
    assert np.bincount(ours.apply(X)).min() >= 4


def test_one_row_or_no_depth_gives_one_cell():
    assert grow_cart(np.zeros((1, 2)), [1], depth=3, n_classes=2).n_leaves == 1
    assert grow_cart(*rows(), depth=0, n_classes=2).n_leaves == 1
    with pytest.raises(DataError, match="max-edge"):
        grow_cart(*empty(5), depth=1, n_classes=2)


# Max-edge


def empty(d):
    return np.empty((0, d), dtype=np.float32), np.empty(0, dtype=np.int64)


def test_with_no_rows_the_cells_are_equal_boxes_cut_along_the_smallest_index():
    tree = grow_max_edge(*empty(2), depth=4, n_classes=2)
    assert tree.n_leaves == 16
    assert tree.feature[tree.depth == 0].tolist() == [0]
    assert set(tree.feature[tree.depth == 1]) == {1}
    grid = (np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(-1, 2) / 4).astype(np.float32)
    corners, inside = tree.apply(grid), tree.apply(grid + np.float32(0.2499))
    assert len(set(corners.tolist())) == 16
    np.testing.assert_array_equal(corners, inside)


def test_a_point_on_the_midpoint_goes_right():
    tree = grow_max_edge(*empty(1), depth=1, n_classes=2)
    X = np.array([[np.nextafter(np.float32(0.5), np.float32(0))], [0.5]], dtype=np.float32)
    assert tree.apply(X).tolist() == [0, 1]


def test_growth_stops_where_it_is_asked_to():
    X, y = np.full((10, 2), 0.1, dtype=np.float32), np.zeros(10, dtype=int)
    assert [
        grow_max_edge(X, y, depth=3, n_classes=2, **how).n_leaves
        for how in ({}, {"stop_empty": True}, {"min_samples_leaf": 1})
    ] == [8, 4, 1]


@pytest.mark.parametrize("criterion", ["gini", "entropy", "variance"])
def test_edges_of_equal_score_are_cut_by_the_smallest_index(criterion):
    rng = np.random.default_rng(4)
    x = rng.random(333).astype(np.float32)
    y = (rng.random(333) < 0.3 + 0.3 * (x > 0.5)).astype(int)
    # columns 1 to 3 part the rows alike, up to which side is called left
    X = np.stack([rng.random(333).astype(np.float32), 1 - x, x, 1 - x], axis=1)
    assert grow_max_edge(X, y, depth=1, n_classes=2, criterion=criterion).feature[0] == 1
