"""The scaler of public rows: no private value moves its range."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from ldptree.errors import ConfigError, DataError
from ldptree.estimators import PublicRangeScaler


def test_private_rows_do_not_move_the_range():
    rng = np.random.default_rng(0)
    X, public = rng.normal(size=(200, 3)), rng.random(200) < 0.3
    one = PublicRangeScaler().fit(X, public=public)
    X[~public] *= 100
    two = PublicRangeScaler().fit(X, public=public)
    np.testing.assert_array_equal(one.low_, two.low_)
    np.testing.assert_array_equal(one.transform(X), two.transform(X))
    scaled = two.transform(X)
    assert (scaled.min(), scaled.max()) == (0.0, 1.0)
    np.testing.assert_allclose(scaled[public].min(axis=0), 0)


def test_without_public_rows_the_range_is_the_one_that_is_given():
    X = np.array([[5.0, 1.0], [20.0, -1.0]])
    np.testing.assert_allclose(
        PublicRangeScaler(feature_range=([0, -2], [10, 2])).fit_transform(X), [[0.5, 0.75], [1.0, 0.25]]
    )
    np.testing.assert_allclose(
        PublicRangeScaler(feature_range=np.array([0.0, 40.0])).fit_transform(X)[:, 0], [0.125, 0.5]
    )
    for wrong in ((), 0, [(0, 10), (-2, 2), (0, 1)]):
        with pytest.raises(ConfigError, match="feature_range must be"):
            PublicRangeScaler(feature_range=wrong).fit(X)
    with pytest.raises(ConfigError, match="swap"):
        PublicRangeScaler(feature_range=(1, 0)).fit(X)
    with pytest.raises(DataError, match="mask"):
        PublicRangeScaler().fit(X, public=[0])


@pytest.mark.parametrize(
    "pairs", [[(1, 5), (2, 9)], [[1, 5], [2, 9]], ((1, 5), (2, 9)), np.array([[1, 5], [2, 9]])]
)
def test_a_pair_for_each_of_two_features_is_not_taken_for_lows_and_highs(pairs):
    X = np.array([[1.0, 2.0], [5.0, 9.0]])
    with pytest.raises(ConfigError, match="all lows, then all highs"):
        PublicRangeScaler(feature_range=pairs).fit(X)
    for ends in (([1, 2], [5, 9]), (np.array([1, 2]), np.array([5, 9]))):
        np.testing.assert_array_equal(
            PublicRangeScaler(feature_range=ends).fit_transform(X), [[0, 0], [1, 1]]
        )


@pytest.mark.parametrize("wrong", [{"public": [0]}, {"X": [[1.7e308, 0.0], [-1.7e308, 1.0]]}])
def test_a_refused_fit_leaves_no_range(wrong):
    X = np.array([[5.0, 1.0], [20.0, -1.0]])
    fit = {"X": X, "public": [True, True]} | wrong
    for scaler in (PublicRangeScaler(), PublicRangeScaler().fit(X, public=[True, True])):
        with pytest.raises(DataError):
            scaler.fit(**fit)
        with pytest.raises(NotFittedError):
            scaler.transform(X)
