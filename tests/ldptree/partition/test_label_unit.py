"""Trees depend neither on the unit of a label, however small, nor on where it counts from; ordinary labels stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from ldptree.baselines.public import GrownTree, predict_by_forest
from ldptree.errors import ConfigError
from ldptree.estimators import CorrectionRegressor, LPDTRegressor
from ldptree.families.public_features.surface import fit_surface
from ldptree.partition.label_unit import FAR, centre_of, fit_in_unit, in_range_of_one, unit_of
from ldptree.partition.masked import grow_masked_tree
from ldptree.public_models import BASES
from ldptree.public_models.fit import fit_public

SMALL = 2.0**-40
"""About 10^-12; a power of two, so that no label is rounded to another one."""


def rows(n=300):
    rng = np.random.default_rng(3)
    X = rng.random((n, 3)).astype(np.float32)
    return X, 3 * (X[:, 0] > 0.5) + X[:, 1] + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize("unit", [SMALL, 2.0**70])
@pytest.mark.parametrize(
    "base", [pytest.param(b, marks=() if b == "tree" else pytest.mark.slow) for b in BASES]
)
def test_a_public_model_is_the_same_in_any_unit(base, unit):
    X, y = rows()
    ours, theirs = fit_public(base, X, y), fit_public(base, X, y * unit)
    assert theirs.ensemble.n_nodes > ours.ensemble.roots.size
    for name in ("feature", "threshold", "left", "right"):
        np.testing.assert_array_equal(getattr(theirs.ensemble, name), getattr(ours.ensemble, name))
    np.testing.assert_allclose(theirs.answers(X) / unit, ours.answers(X), rtol=0, atol=1e-5)
    np.testing.assert_allclose(theirs.errors / unit, ours.errors, rtol=0, atol=1e-5)
    for one, other in zip(ours.smoothed, theirs.smoothed, strict=True):
        assert (other.noise, other.step, other.decay) == (one.noise * unit**2, one.step, one.decay)
        np.testing.assert_array_equal(other.variance, one.variance * unit**2)


def test_what_rounding_leaves_of_labels_is_nothing_in_their_unit():
    X, y = rows()
    rest = 1e-12 * np.sin(9 * y)
    for scale in (1.0, SMALL):
        tree = fit_in_unit(DecisionTreeRegressor(), X, scale * rest, unit_of(scale * y))
        assert tree.tree_.node_count == 1
    assert fit_in_unit(DecisionTreeRegressor(), X, rest).tree_.node_count > 100


def test_baselines_and_their_prices_are_the_same_in_any_unit():
    X, y = rows()
    said = predict_by_forest(X, y, X, n_classes=0, max_rows=1000, seed=0)
    small = predict_by_forest(X, y * SMALL, X, n_classes=0, max_rows=1000, seed=0)
    np.testing.assert_array_equal(small, said * SMALL)
    tree, other = (GrownTree.grow(X, labels, 0, 0) for labels in (y, y * SMALL))
    np.testing.assert_array_equal(other.values, tree.values * SMALL)
    np.testing.assert_array_equal(other.cost, tree.cost * SMALL**2)
    np.testing.assert_allclose(other.prices(), tree.prices() * SMALL**2)


def test_trees_on_reports_are_the_same_in_any_unit():
    X, y = rows()
    trees = [
        grow_masked_tree(
            X.astype(float), np.zeros(X.shape, bool), labels, features=range(3), depth=4, splits="cart"
        )
        for labels in (y, y * SMALL)
    ]
    assert trees[0].n_leaves > 4
    assert trees[0].digest == trees[1].digest
    whole, small = (
        fit_surface(X.astype(float), (0, 1, 2), unit * y, spread=unit**2 * y.var(), seed=1)
        for unit in (1.0, SMALL)
    )
    assert [t.partition.digest for t in small.trees] == [t.partition.digest for t in whole.trees]
    assert max(t.partition.n_leaves for t in whole.trees) > 4


@pytest.mark.parametrize("scale", [2e-3, 0.1, 1.0, 1e3, 1e12])
def test_labels_of_an_ordinary_range_are_left_as_they_are(scale):
    assert unit_of(scale * np.array([3.0, 2.5, 4.0])) == 1.0


@pytest.mark.parametrize("values", [[], [5.0], [5.0, 5.0], [0.0, 1e-300], [-1.7e308, 1e300], [0.0, 5e-324]])
def test_any_labels_have_a_unit(values):
    y = np.array(values)
    assert np.isfinite(y / unit_of(y)).all()
    assert np.ptp([0.0, *(in_range_of_one(y) - in_range_of_one(y).min(initial=np.inf))]) <= 2


EPOCH = 1.7e9
"""Seconds from 1970 to 2023, to which labels of some hours are added; as float32 they would be rounded to 128 seconds."""


def test_labels_far_from_0_are_counted_from_their_centre_exactly_and_others_from_0():
    y = rows()[1]
    for labels in (y, y + FAR / 2, y[:0], y[:1] + EPOCH, np.full(9, EPOCH)):
        assert centre_of(labels) == 0.0
    for far in (y + EPOCH, y - EPOCH):
        centre = centre_of(far)
        assert abs(centre - far).max() < 10
        np.testing.assert_array_equal((far - centre) + centre, far)


@pytest.mark.parametrize(
    "base", [pytest.param(b, marks=() if b == "tree" else pytest.mark.slow) for b in BASES]
)
def test_a_public_model_of_labels_far_from_0_is_the_same_moved(base):
    X, y = rows()
    y = np.round(1800 * y)  # whole seconds, so that adding the epoch rounds nothing
    near, far = fit_public(base, X, y), fit_public(base, X, y + EPOCH)
    # A linear part leaves rests that differ in their last digits, and a forest of these may cut elsewhere.
    most = 200 if base == "blend" else 5
    np.testing.assert_allclose(far.answers(X) - EPOCH, near.answers(X), rtol=0, atol=most)
    np.testing.assert_allclose(far.errors, near.errors, rtol=0, atol=most)


def test_trees_of_scikit_learn_and_their_values_are_the_same_far_from_0():
    X, y = rows()
    y = np.round(1800 * y)
    near, far = (fit_in_unit(DecisionTreeRegressor(min_samples_leaf=5), X, y + by) for by in (0.0, EPOCH))
    np.testing.assert_array_equal(far.tree_.threshold, near.tree_.threshold)
    np.testing.assert_allclose(far.predict(X) - EPOCH, near.predict(X), rtol=0, atol=1e-3)
    np.testing.assert_allclose(
        in_range_of_one(y + EPOCH), in_range_of_one(y) - in_range_of_one(y).mean(), atol=1
    )


@pytest.mark.parametrize(
    "model",
    [LPDTRegressor(4.0, depth=3, random_state=0), CorrectionRegressor(4.0, base="tree", random_state=0)],
)
def test_an_estimator_loses_nothing_of_labels_far_from_0(model):
    X, y = rows(1500)
    y, public = np.round(1800 * y), np.arange(1500) < 500
    near, far = (model.fit(X, y + by, public).predict(X) - by for by in (0.0, EPOCH))
    np.testing.assert_allclose(far, near, rtol=0, atol=300)
    assert np.mean((far - y) ** 2) < 1.05 * np.mean((near - y) ** 2)


@pytest.mark.parametrize("unit", [1e200, 1e307, 1e-200, 1e-310])
def test_a_mended_model_refuses_labels_whose_squares_are_no_floats_in_words(unit):
    X, y = rows()
    with pytest.raises(ConfigError, match="choose another unit for the label"):
        CorrectionRegressor(2.0, base="tree", random_state=0).fit(X, y * unit, np.arange(300) < 100)
