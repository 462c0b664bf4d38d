"""Rivals are given a fair chance, keep to their cap and never see what they may not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from ldptree.baselines import BASELINES
from ldptree.baselines.cost_complexity import MIN_SAMPLES_LEAF, GrownTree
from ldptree.baselines.sample import at_most


def striped(n: int, seed: int, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Class 1 in every other fifth of the first column, labels flipped with probability `noise`."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4)).astype(np.float32)
    y = (X[:, 0] * 5).astype(int) % 2
    return X, np.where(rng.random(n) < noise, 1 - y, y)


@pytest.mark.parametrize("name", BASELINES)
def test_shares_sum_to_one_even_for_a_class_nobody_has(name: str) -> None:
    X, y = striped(300, 0)
    shares = BASELINES[name].fit_predict_proba(X, y, X[:50], n_classes=3, max_rows=200, seed=0)
    assert shares.shape == (50, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares[:, 2], 0.0)


@pytest.mark.parametrize("name", ["public_tree", "public_forest", "non_private"])
def test_trees_learn_what_there_is_to_learn(name: str) -> None:
    (X, y), (test_X, test_y) = striped(2_000, 1), striped(2_000, 2, noise=0.0)
    shares = BASELINES[name].fit_predict_proba(X, y, test_X, n_classes=2, max_rows=2_000, seed=0)
    assert (shares.argmax(axis=1) == test_y).mean() > 0.93


def test_labels_of_pure_noise_leave_the_root_alone() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((2_000, 6)).astype(np.float32), (rng.random(2_000) < 0.25).astype(int)
    shares = BASELINES["public_tree"].fit_predict_proba(X, y, X, n_classes=2, max_rows=2_000, seed=0)
    assert (shares.argmax(axis=1) == 0).mean() > 0.95


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("n", [1, 3])
def test_a_handful_of_rows_is_enough_to_answer(name: str, n: int) -> None:
    X, y = striped(n, 0)
    shares = BASELINES[name].fit_predict_proba(X, y, X, n_classes=2, max_rows=100, seed=0)
    assert np.isfinite(shares).all()


@pytest.mark.parametrize("name", ["public_tree", "public_forest", "non_private"])
def test_rows_beyond_the_cap_are_not_looked_at(name: str) -> None:
    X, y = striped(400, 3)
    drawn, labels = at_most(150, X, y, seed=7)
    assert drawn.shape == (150, 4)
    fit = BASELINES[name].fit_predict_proba
    np.testing.assert_array_equal(
        fit(X, y, X, n_classes=2, max_rows=150, seed=7),
        fit(drawn, labels, X, n_classes=2, max_rows=150, seed=7),
    )


def test_the_caps_and_what_is_read_are_stated() -> None:
    assert {name for name, baseline in BASELINES.items() if baseline.reads == "private"} == {"non_private"}
    assert BASELINES["public_forest"].max_rows == BASELINES["public_tree"].max_rows == 20_000
    assert BASELINES["non_private"].max_rows == 100_000


@pytest.mark.parametrize("price", [0.0005, 0.002, 0.01, 0.05])
def test_pruning_for_a_price_equals_scikit_learn(price: float) -> None:
    X, y = striped(800, 4)
    grown = GrownTree.grow(X, y, 2, seed=0)
    expected = DecisionTreeClassifier(min_samples_leaf=MIN_SAMPLES_LEAF, random_state=0, ccp_alpha=price).fit(
        X, y
    )
    stands = grown.prune(np.array([price]))[0]
    np.testing.assert_allclose(grown.predict(X, stands), expected.predict_proba(X))
