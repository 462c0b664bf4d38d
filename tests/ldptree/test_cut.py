"""A tree cut back answers as its ancestors do, and costs no report."""

import numpy as np
import pytest

from ldptree.estimators import LPCTClassifier, LPDTRegressor
from ldptree.models import read_model
from ldptree.models.tree import speakers
from ldptree.partition import PARTITIONS
from ldptree.partition.tree import LEAF


def people(n=3000, n_public=200):
    rng = np.random.default_rng(0)
    X = rng.random((n, 2))
    return X, X[:, 0] + (X[:, 1] > 0.5) + rng.normal(0, 0.1, n), np.arange(n) < n_public


def fitted(kind, **settings):
    X, y, public = people()
    y = y if kind is LPDTRegressor else (y > 1).astype(int)
    return kind(8.0, depth=5, random_state=0, **settings).fit(X, y, public=public).model_


@pytest.mark.parametrize("kind", [LPDTRegressor, LPCTClassifier])
def test_below_the_cut_everybody_hears_what_the_node_above_says(kind):
    model = fitted(kind)
    for depth in range(6):
        shallow, tree = model.truncate(depth=depth), model.partition
        for node in range(tree.n_nodes):
            at = node
            while tree.depth[at] > depth:
                at = tree.parent[at]
            assert shallow.answers[node] == model.answers[at]
            assert shallow.decided_at[node] == model.decided_at[at]
    assert model.truncate(depth=5).digest == model.digest


def test_a_cut_model_is_a_model_that_can_be_released():
    for model in (fitted(LPCTClassifier), fitted(LPDTRegressor)):
        shallow = model.truncate(depth=2, min_rows=10)
        assert read_model(shallow.to_json()).digest == shallow.digest


@pytest.mark.parametrize(("depth", "min_rows"), [(5, 20), (3, 1), (4, 9), (0, 1)])
def test_it_is_the_tree_that_max_edge_would_have_grown(depth, min_rows):
    rng = np.random.default_rng(3)
    X, y = rng.random((150, 2)).astype(np.float32) ** 2, rng.random(150)
    settings = {"n_classes": 2, "criterion": "variance"}
    deep = PARTITIONS["max-edge"](X, y, depth=5, min_samples_leaf=1, **settings)
    grown = PARTITIONS["max-edge"](X, y, depth=depth, min_samples_leaf=min_rows, **settings)
    rows = np.zeros(deep.n_nodes, np.int64)
    cells, nodes = deep.paths()
    np.add.at(rows, nodes, np.bincount(deep.apply(X), minlength=deep.n_leaves)[cells])
    speaker = speakers(deep, rows, depth=depth, min_rows=min_rows)
    of_row = speaker[deep.leaves[deep.apply(X)]]
    assert len(np.unique(speaker[deep.feature == LEAF])) == grown.n_leaves
    # the same rows together
    assert len(set(zip(of_row.tolist(), grown.apply(X).tolist(), strict=True))) == len(
        np.unique(grown.apply(X))
    )
