"""Every baseline, over the registry: it is given a fair chance, keeps to its cap and sees only its own rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ldptree.baselines import BASELINES, select_baselines
from ldptree.baselines.public import MIN_SAMPLES_LEAF, GrownTree, draw_at_most

CONSTANTS = {"majority", "constant"}
ON_PAGES = [
    *(pytest.param("classes", name, id=f"classes-{name}") for name in select_baselines(2)),
    *(pytest.param("numbers", name, id=f"numbers-{name}") for name in select_baselines(0)),
]
TREES = [case for case in ON_PAGES if case.values[1] not in CONSTANTS]


@pytest.fixture(autouse=True)
def small_forests(monkeypatch):
    """What is promised of forests holds of ten trees as of a hundred."""
    monkeypatch.setattr("ldptree.baselines.public.N_TREES", 10)


@dataclass(frozen=True)
class Rows:
    """Rows, labels, and a baseline's answers: shares of two classes, or numbers."""

    label: str

    def draw(self, n, seed, *, noise=True):
        """Class 1 in every other fifth of the first column, a fifth of labels flipped; or a wave along it."""
        rng = np.random.default_rng(seed)
        X = rng.random((n, 4)).astype(np.float32)
        if self.label == "numbers":
            return X, 100 + 10 * np.sin(6 * X[:, 0].astype(np.float64)) + 0.5 * noise * rng.normal(size=n)
        y = (X[:, 0] * 5).astype(int) % 2
        return X, np.where(rng.random(n) < 0.2 * noise, 1 - y, y)

    def answers(self, name, X, y, test_X, *, max_rows, seed=0):
        n_classes = 2 if self.label == "classes" else 0
        return BASELINES[name].fit_predict(X, y, test_X, n_classes=n_classes, max_rows=max_rows, seed=seed)


@pytest.mark.parametrize(("label", "name"), TREES)
def test_trees_learn_what_there_is_to_learn(label, name):
    rows = Rows(label)
    (X, y), (test_X, test_y) = rows.draw(2_000, 1), rows.draw(2_000, 2, noise=False)
    found = rows.answers(name, X, y, test_X, max_rows=2_000)
    if label == "classes":
        assert (found.argmax(axis=1) == test_y).mean() > 0.93
        return
    assert (found.dtype, found.shape) == (np.float64, test_y.shape)
    assert np.mean((found - test_y) ** 2) < 0.01 * test_y.var()


@pytest.mark.parametrize(("label", "name"), ON_PAGES)
@pytest.mark.parametrize("n", [1, 3])
def test_a_handful_of_rows_and_equal_labels_are_enough_to_answer(label, name, n):
    rows = Rows(label)
    X, y = rows.draw(n, 0)
    for labels in (y, np.full(n, y[0])):
        assert np.isfinite(rows.answers(name, X, labels, X, max_rows=100)).all()


@pytest.mark.parametrize(("label", "name"), TREES)
def test_rows_beyond_the_cap_are_not_looked_at(label, name):
    rows = Rows(label)
    X, y = rows.draw(400, 3)
    drawn, labels = draw_at_most(150, X, y, seed=7)
    assert drawn.shape == (150, 4)
    np.testing.assert_array_equal(
        rows.answers(name, X, y, X, max_rows=150, seed=7),
        rows.answers(name, drawn, labels, X, max_rows=150, seed=7),
    )


def test_the_caps_and_what_is_read_are_stated_and_the_same_for_classes_and_numbers():
    trees = ["public_tree", "public_forest", "non_private"]
    assert [list(select_baselines(n)) for n in (2, 0)] == [["majority", *trees], ["constant", *trees]]
    assert {name for name, baseline in BASELINES.items() if baseline.reads == "private"} == {"non_private"}
    assert BASELINES["public_forest"].max_rows == BASELINES["public_tree"].max_rows == 20_000
    assert BASELINES["non_private"].max_rows == 100_000
    capped = {name: baseline.describe_cap(300_000, 1_000) for name, baseline in BASELINES.items()}
    assert capped == {
        "majority": "",
        "constant": "",
        "public_tree": "fitted on 1,000 of 300,000 public rows",
        "public_forest": "fitted on 1,000 of 300,000 public rows",
        "non_private": "fitted on about 1,000 of 300,000 private rows",
    }
    assert not any(baseline.describe_cap(1_000, 1_000) for baseline in BASELINES.values())


@pytest.mark.parametrize("name", select_baselines(2))
def test_shares_sum_to_one_even_for_a_class_nobody_has(name):
    X, y = Rows("classes").draw(300, 0)
    shares = BASELINES[name].fit_predict(X, y, X[:50], n_classes=3, max_rows=200, seed=0)
    assert shares.shape == (50, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares[:, 2], 0.0)


def test_the_constant_is_the_mean():
    X, y = Rows("numbers").draw(100, 0)
    predicted = BASELINES["constant"].fit_predict(X, y, X[:7], n_classes=0, max_rows=10, seed=0)
    np.testing.assert_array_equal(predicted, np.full(7, y.mean()))


def test_labels_of_pure_noise_leave_the_root_alone():
    rng = np.random.default_rng(0)
    X, y = rng.random((2_000, 6)).astype(np.float32), (rng.random(2_000) < 0.25).astype(int)
    shares = Rows("classes").answers("public_tree", X, y, X, max_rows=2_000)
    assert (shares.argmax(axis=1) == 0).mean() > 0.95


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_numbers_of_pure_noise_leave_the_root_alone_in_any_unit(unit):
    rng = np.random.default_rng(0)
    X, y = rng.random((2_000, 6)).astype(np.float32), unit * rng.normal(size=2_000)
    assert np.unique(Rows("numbers").answers("public_tree", X, y, X, max_rows=2_000)).size <= 3


@pytest.mark.parametrize("price", [0.0005, 0.002, 0.01, 0.05])
def test_pruning_for_a_price_equals_scikit_learn(price):
    X, y = Rows("classes").draw(800, 4)
    settings = {"min_samples_leaf": MIN_SAMPLES_LEAF, "random_state": 0}
    grown = GrownTree.grow(X, y, 2, seed=0)
    expected = DecisionTreeClassifier(ccp_alpha=price, **settings).fit(X, y)
    found = grown.predict(X, price)
    np.testing.assert_allclose(found, expected.predict_proba(X))
    y = Rows("numbers").draw(800, 4)[1] + 3 * np.random.default_rng(8).normal(size=800)
    price *= 200  # 0.1 to 10, of a variance instead of an impurity
    grown = GrownTree.grow(X, y, 0, seed=0)
    expected = DecisionTreeRegressor(ccp_alpha=price, **settings).fit(X, y)
    found = grown.predict(X, price)[:, 0]
    np.testing.assert_allclose(found, expected.predict(X))
