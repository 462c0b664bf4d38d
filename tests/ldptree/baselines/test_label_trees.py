"""LabelDT and ParDT: what each sends, what each protects, and that they learn from it."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from ldptree.baselines.label_dt import LabelTreeRegressor
from ldptree.baselines.par_dt import PublicPartTreeRegressor
from ldptree.errors import ConfigError, DataError


def people(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, np.clip(X[:, 0] + (X[:, 1] > 0.5) - 1 + 0.1 * rng.standard_normal(n), -1, 1)


@pytest.mark.parametrize("kind", [LabelTreeRegressor, PublicPartTreeRegressor])
def test_they_are_scikit_learn_estimators(kind):
    for result in check_estimator(kind(8.0, random_state=0), on_fail=None, on_skip=None):
        assert result["status"] == "passed" or result["check_name"] == "check_array_api_input", result


@pytest.mark.parametrize("label", ["laplace", "optimal_label"])
def test_label_dt_learns_from_all_features_and_par_dt_from_those_that_are_shown(label):
    """A constant leaves .34; the first feature explains .08 of it, the second .25."""
    (X, y), (T, t) = people(), people(seed=1)
    every = LabelTreeRegressor(4.0, label=label, random_state=0).fit(X, y)
    assert np.mean((every.predict(T) - t) ** 2) < 0.06
    part = PublicPartTreeRegressor(4.0, private_features=[0], label=label, random_state=0).fit(X, y)
    assert 0.06 < np.mean((part.predict(T) - t) ** 2) < 0.16
    assert part.features_.tolist() == [1, 2]


def test_the_noise_of_a_label_is_its_range_over_epsilon():
    """Variance 2 (range / eps)^2, within 10 % (5 standard errors of a Laplace's at n = 50,000), seed fixed."""
    rng = np.random.default_rng(0)
    X, y = rng.random((50_000, 1)), rng.uniform(-1, 3, 50_000)
    fitted = LabelTreeRegressor(0.5, max_depth=1, label_range=(-1.0, 3.0), random_state=1).fit(X, y)
    noise = fitted.noisy_labels_ - y
    assert np.var(noise) == pytest.approx(2 * (4 / 0.5) ** 2, rel=0.1)
    assert abs(noise.mean()) < 5 * np.sqrt(128 / 50_000)


def test_labels_beyond_the_range_are_moved_to_its_end_before_they_are_sent():
    X, y = people(300)
    a, b = (
        LabelTreeRegressor(1.0, random_state=2).fit(X, labels) for labels in (y, np.where(y >= 1, 99.0, y))
    )
    np.testing.assert_array_equal(a.noisy_labels_, b.noisy_labels_)


def test_a_protected_value_decides_nothing():
    X, y = people(600)
    protects = np.random.default_rng(3).random(X.shape) < 0.5
    other = np.where(protects, np.random.default_rng(4).random(X.shape), X)
    a, b = (
        PublicPartTreeRegressor(1.0, random_state=2).fit(rows, y, protects=protects) for rows in (X, other)
    )
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_with_everything_protected_par_dt_is_a_constant_and_with_nothing_it_is_label_dt():
    X, y = people(600)
    constant = PublicPartTreeRegressor(1.0, random_state=2).fit(X, y)
    assert len(set(constant.predict(X))) == 1
    assert constant.predict(X)[0] == pytest.approx(constant.noisy_labels_.mean())
    every = PublicPartTreeRegressor(1.0, private_features=[], random_state=2).fit(X, y)
    label = LabelTreeRegressor(1.0, random_state=2).fit(X, y)
    np.testing.assert_array_equal(every.predict(X), label.predict(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"max_depth": 63}, "max_depth must be"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be"),
        ({"label": "no"}, "label must be"),
        ({"label_range": (1, 0)}, "low must be below high"),
        ({"feature_range": (2, 1)}, "low must be below high"),
    ],
)
@pytest.mark.parametrize("kind", [LabelTreeRegressor, PublicPartTreeRegressor])
def test_wrong_parameters_are_refused(kind, settings, message):
    X, y = people(30)
    with pytest.raises(ConfigError, match=message):
        kind(**settings).fit(X, y)


def test_a_wrong_mask_is_refused():
    X, y = people(30)
    with pytest.raises(DataError, match="protects is"):
        PublicPartTreeRegressor(1.0).fit(X, y, protects=np.ones((30, 2), bool))
