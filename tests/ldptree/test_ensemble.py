"""Additive trees as arrays: the same answers as scikit-learn's, the same model after JSON, and nothing malformed is taken."""

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

from ldptree.ensemble import Ensemble, from_sklearn
from ldptree.errors import DataError

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
