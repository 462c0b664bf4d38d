"""The four rivals on a run's page are given a fair chance at numbers too, keep to their cap and see only their own rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from ldptree.baselines import BASELINES, REGRESSION_BASELINES
from ldptree.baselines.cost_complexity import MIN_SAMPLES_LEAF, GrownTree
from ldptree.baselines.sample import at_most

TREES = ["public_tree", "public_forest", "non_private"]


def waves(n: int, seed: int, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """A label that goes up and down along the first column."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4)).astype(np.float32)
    return X, 100 + 10 * np.sin(6 * X[:, 0].astype(np.float64)) + noise * rng.normal(size=n)


def test_they_are_the_counterparts_of_those_for_classes():
    assert list(REGRESSION_BASELINES) == ["constant", *list(BASELINES)[1:]]
    for name in TREES:
        a, b = REGRESSION_BASELINES[name], BASELINES[name]
        assert (a.title, a.reads, a.max_rows) == (b.title, b.reads, b.max_rows)
    assert {name for name, b in REGRESSION_BASELINES.items() if b.reads == "private"} == {"non_private"}


def test_the_constant_is_the_mean():
    X, y = waves(100, 0)
    predicted = REGRESSION_BASELINES["constant"].fit_predict(X, y, X[:7], max_rows=10, seed=0)
    np.testing.assert_array_equal(predicted, np.full(7, y.mean()))


@pytest.mark.parametrize("name", TREES)
def test_trees_learn_what_there_is_to_learn(name):
    (X, y), (test_X, test_y) = waves(2_000, 1), waves(2_000, 2, noise=0.0)
    predicted = REGRESSION_BASELINES[name].fit_predict(X, y, test_X, max_rows=2_000, seed=0)
    assert predicted.dtype == np.float64
    assert predicted.shape == test_y.shape
    assert np.mean((predicted - test_y) ** 2) < 0.01 * test_y.var()


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_labels_of_pure_noise_leave_the_root_alone_in_any_unit(unit):
    rng = np.random.default_rng(0)
    X, y = rng.random((2_000, 6)).astype(np.float32), unit * rng.normal(size=2_000)
    predicted = REGRESSION_BASELINES["public_tree"].fit_predict(X, y, X, max_rows=2_000, seed=0)
    assert np.unique(predicted).size <= 3


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_labels_chooses_no_other_tree(unit):
    (X, y), (test_X, _) = waves(600, 5, noise=5.0), waves(600, 6)
    fit = REGRESSION_BASELINES["public_tree"].fit_predict
    plain, scaled = (fit(X, y * u, test_X, max_rows=600, seed=0) / u for u in (1.0, unit))
    np.testing.assert_allclose(plain, scaled, rtol=1e-9)


@pytest.mark.parametrize("name", REGRESSION_BASELINES)
@pytest.mark.parametrize("n", [1, 3])
def test_a_handful_of_rows_and_equal_labels_are_enough_to_answer(name, n):
    X, y = waves(n, 0)
    for labels in (y, np.full(n, 3.0)):
        predicted = REGRESSION_BASELINES[name].fit_predict(X, labels, X, max_rows=100, seed=0)
        assert np.isfinite(predicted).all()


@pytest.mark.parametrize("name", TREES)
def test_rows_beyond_the_cap_are_not_looked_at(name):
    X, y = waves(400, 3)
    drawn, labels = at_most(150, X, y, seed=7)
    fit = REGRESSION_BASELINES[name].fit_predict
    np.testing.assert_array_equal(
        fit(X, y, X, max_rows=150, seed=7), fit(drawn, labels, X, max_rows=150, seed=7)
    )


@pytest.mark.parametrize("price", [0.01, 0.1, 1.0, 10.0])
def test_pruning_for_a_price_equals_scikit_learn(price):
    X, y = waves(800, 4, noise=3.0)
    grown = GrownTree.grow_on_numbers(X, y, seed=0)
    expected = DecisionTreeRegressor(min_samples_leaf=MIN_SAMPLES_LEAF, random_state=0, ccp_alpha=price).fit(
        X, y
    )
    stands = grown.prune(np.array([price]))[0]
    np.testing.assert_allclose(grown.predict(X, stands)[:, 0], expected.predict(X))
