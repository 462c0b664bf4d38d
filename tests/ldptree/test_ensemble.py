"""Additive trees as arrays: the same answers as scikit-learn's, the same model after JSON, and nothing malformed is taken."""

import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ldptree.errors import DataError
from ldptree.models import ensemble
from ldptree.models.ensemble import BLOCK_BYTES, LEAF, Ensemble, add_up, from_sklearn

MODELS = [
    (DecisionTreeRegressor(max_depth=6), 0),
    (RandomForestRegressor(7, random_state=0), 0),
    (HistGradientBoostingRegressor(max_iter=9), 0),
    (DecisionTreeClassifier(max_depth=5), 3),
    (RandomForestClassifier(7, random_state=0), 2),
    (ExtraTreesClassifier(7, random_state=0), 3),
    (HistGradientBoostingClassifier(max_iter=9), 2),
    (HistGradientBoostingClassifier(max_iter=9), 3),
]


def rows(n_classes, n=1300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4)).astype(np.float32)
    y = 100 * X[:, 0] * X[:, 1] + rng.normal(size=n)
    return X, np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes)) if n_classes else y


@pytest.mark.parametrize(("model", "n_classes"), MODELS)
def test_a_scikit_learn_model_answers_alike_as_arrays_and_after_json(model, n_classes):
    X, y = rows(n_classes)
    model.fit(X[:300], y[:300])
    expected = model.predict_proba(X) if n_classes else model.predict(X)[:, None]
    found = from_sklearn(model)
    # values are published with 7 significant digits
    np.testing.assert_allclose(found.predict(X), expected, atol=1e-5 * np.abs(expected).max())
    again = Ensemble.from_json(found.to_json())
    assert again.digest == found.digest
    np.testing.assert_array_equal(again.predict(X), found.predict(X))


def walked_one_by_one(model, X):
    """Offset and values added up as the class promises it: row by row, tree after tree, in float64."""
    sums = np.tile(model.offset, (len(X), 1))
    for row, x in enumerate(X):
        for root in model.roots:
            node = root
            while model.feature[node] != LEAF:
                is_above = float(x[model.feature[node]]) > model.threshold[node]
                node = (model.right if is_above else model.left)[node]
            sums[row] += model.value[node]
    return sums


def of_sklearn(model, n_classes):
    X, y = rows(n_classes)
    found = from_sklearn(model.fit(X[:300], y[:300]))
    # values on a threshold and beside it are where a walk goes wrong first
    at = found.threshold[found.feature == 1].astype(np.float32)
    X[: at.size, 1], X[at.size : 2 * at.size, 1] = at[:400], np.nextafter(at[:400], np.float32(2))
    return found, X


@pytest.mark.parametrize(
    ("model", "n_classes", "blocks"),
    [(*model, {}) for model in MODELS]
    + [(*model, blocks) for model in MODELS[4:6] for blocks in ({"MOST_ROWS": 37}, {"BLOCK_BYTES": 2000})],
)
def test_however_the_trees_are_walked_the_answers_are_the_same_bits(model, n_classes, blocks, monkeypatch):
    found, X = of_sklearn(model, n_classes)
    for name, value in blocks.items():
        monkeypatch.setattr(ensemble, name, value)
    expected = found._linked(walked_one_by_one(found, X))
    assert np.array_equal(found.predict(X), expected)  # compiled
    assert np.array_equal(np.vstack([found.predict(X[k : k + 5]) for k in range(0, 200, 5)]), expected[:200])
    monkeypatch.setitem(sys.modules, "numba", None)  # a device
    assert np.array_equal(found.predict(X), expected)
    assert np.array_equal(found.predict(np.asfortranarray(X, dtype=np.float64)), expected)


def test_the_compiled_walk_is_right_as_plain_python_too():
    found, X = of_sklearn(RandomForestRegressor(3, random_state=0), 0)
    used, feature = found._tested
    sums = np.tile(found.offset, (60, 1))
    columns = np.ascontiguousarray(X[:60, used].T)
    _, limit, child = found._steps
    add_up.__wrapped__(columns, feature, limit, child, found.value, found.roots, sums)
    assert np.array_equal(sums, walked_one_by_one(found, X[:60]))


@pytest.mark.parametrize("threshold", [0.1, 0.1 + 1e-9, 0.3, -0.1, 1e-60, -1e-60, 0.0, 1e300, -1e300, 1 / 3])
def test_a_row_goes_right_exactly_where_it_is_above_the_threshold_as_published(threshold):
    tree = ([0, LEAF, LEAF], [threshold, 0, 0], [1, LEAF, LEAF], [2, LEAF, LEAF], [[0.0], [1.0], [2.0]])
    found = Ensemble.of_trees([tree], np.zeros(1))
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
    steps = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    X = np.tile(np.array([*steps, -np.inf, np.inf, 0, -1, 1], dtype=np.float32), 4)[:, None]
    expected = 1.0 + (X.astype(np.float64) > threshold)
    assert np.array_equal(found.predict(X), expected)
    assert np.array_equal(found.predict(X[:8]), expected[:8])


def test_answers_take_no_more_memory_than_a_block_beside_themselves():
    found, X = of_sklearn(RandomForestClassifier(7, random_state=0), 2)
    many = np.asfortranarray(np.tile(X, (400, 1)), dtype=np.float64)
    found.predict(many[:5000])
    tracemalloc.start()
    try:
        answers = found.predict(many)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answers.shape == (520_000, 2)
    assert peak - answers.nbytes < 3 * BLOCK_BYTES


def test_answers_to_no_rows_and_of_trees_that_ask_nothing():
    found, X = of_sklearn(HistGradientBoostingClassifier(max_iter=9), 2)
    assert found.predict(X[:0]).shape == (0, 2)
    leaf = ([LEAF], [0.0], [LEAF], [LEAF], [[0.25]])
    constant = Ensemble.of_trees([leaf, leaf], np.array([0.125]))
    for n in (1, 100):
        assert np.array_equal(constant.predict(np.zeros((n, 0))), np.full((n, 1), 0.625))


def small():
    X, y = rows(0)
    return from_sklearn(DecisionTreeRegressor(max_depth=2).fit(X, y)).to_json()


@pytest.mark.parametrize(
    "damage",
    [
        {"left": [0, 2, 5]},
        {"left": [1, 2, 99]},
        {"right": [4, 3, 3]},
        {"feature": [0, 1, -1, -1, 2, -1, 2]},
        {"feature": [-2, 1, -1, -1, 2, -1, -1]},
        {"roots": []},
        {"roots": [1]},
        {"threshold": [0.5, float("inf"), 0.5]},
        {"value": [[1.0], [2.0], [3.0]]},
        {"value": [[1.0, 2.0]] * 4},
        {"value": [["1"], [1.0], [1.0], [1.0]]},
        {"offset": []},
        {"link": "logit"},
        {"link": "softmax", "more": 1},
    ],
)
def test_what_is_no_list_of_trees_is_refused(damage):
    Ensemble.from_json(small())
    with pytest.raises(DataError, match="ensemble"):
        Ensemble.from_json(small() | damage)


def test_other_models_and_unfitted_ones_are_refused_with_their_name():
    X, y = rows(0)
    with pytest.raises(DataError, match="LinearRegression"):
        from_sklearn(LinearRegression().fit(X, y))
    with pytest.raises(DataError, match="RandomForestRegressor: not fitted"):
        from_sklearn(RandomForestRegressor())
    with pytest.raises(DataError, match="2 labels a row"):
        from_sklearn(DecisionTreeRegressor().fit(X, np.stack([y, y], axis=1)))


def test_rows_that_cannot_be_walked_are_refused():
    found = Ensemble.from_json(small())
    with pytest.raises(DataError, match="missing"):
        found.predict(np.full((2, 4), np.nan))
    with pytest.raises(DataError, match="shape"):
        found.predict(np.zeros((2, 0)))


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_boosting_on_another_scale_than_the_labels_is_refused(loss):
    X, y = np.random.default_rng(0).random((100, 2)), np.random.default_rng(1).random(100) + 0.5
    with pytest.raises(DataError, match="LogLink"):
        from_sklearn(HistGradientBoostingRegressor(loss=loss, max_iter=2).fit(X, y))
