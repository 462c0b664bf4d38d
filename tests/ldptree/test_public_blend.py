"""The blend: its linear part is trees, its weight is honest, and it follows lines that a forest does not."""

import numpy as np
import pytest

from ldptree.errors import ConfigError
from ldptree.estimators import CorrectionRegressor
from ldptree.models.ensemble import Ensemble
from ldptree.public_models.blend import FEWEST_ROWS, STEPS, Linear, StepTransform, blended, weigh
from ldptree.public_models.fit import fit_public
from ldptree.public_models.model import n_bytes

pytestmark = pytest.mark.slow


def rows(n=300, seed=0, *, line=3.0, step=0.0, noise=0.3, high=1.0):
    """Labels line x0 + step [x1 > .5] + noise; x0 in [0, high], x2 is constant, x3 is 0 or 1."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4)).astype(np.float32)
    X[:, 0] *= high
    X[:, 2], X[:, 3] = 0.25, X[:, 3] > 0.7
    return X, line * X[:, 0] + step * (X[:, 1] > 0.5) + X[:, 3] + noise * rng.normal(size=n)


def by_mean(X, y, n_trees):
    """A forest of one leaf."""
    leaf = np.array([-1])
    return Ensemble.of_trees([(leaf, np.zeros(1), leaf, leaf, np.array([[y.mean()]]))], np.zeros(1))


def test_the_linear_part_is_the_same_function_as_trees():
    X, y = rows()
    fresh = rows(2000, seed=1)[0]
    linear = Linear.fit(X, y)
    whole = Ensemble.of_trees(linear.trees(1.0), np.array([linear.offset]))
    for at in (X, fresh, np.zeros((1, 4), np.float32), np.ones((1, 4), np.float32)):
        assert np.allclose(whole.predict(at)[:, 0], linear(at), atol=1e-5)
    assert whole.feature.max() == 3
    assert not (whole.feature == 2).any(), "a column with one value has no tree"


def test_a_column_has_as_many_steps_as_values_and_not_too_many():
    X = rows(5000)[0]
    stairs = StepTransform.of(X)
    steps = [values.size for values in stairs.values]
    assert steps[0] <= 2 * STEPS
    assert steps[2:] == [1, 2]
    assert all(not np.isin(limits, X[:, j].astype(float)).any() for j, limits in enumerate(stairs.limits))
    assert np.abs(stairs(X)[:, 0] - X[:, 0]).max() < 1 / STEPS
    assert (np.diff(stairs(np.sort(X, axis=0))[:, 0]) >= 0).all()


def test_nothing_but_a_line_gives_all_weight_to_the_line_and_no_line_none():
    """With forests that know the mean alone, w is that of the least squares: 1 for a line, at most .1 for noise."""
    X, y = rows(noise=0.01)
    assert weigh(X, y, by_mean).weight > 0.99
    assert weigh(X, np.random.default_rng(3).normal(size=len(y)), by_mean).weight <= 0.1


def test_a_blend_of_weight_0_is_the_forest_and_of_weight_1_has_no_forest_on_the_labels():
    X, y = rows()
    assert blended(X, y, 0.0, 7, by_mean).digest == by_mean(X, y, 7).digest
    whole = blended(X, y, 1.0, 7, by_mean)
    linear = Linear.fit(X, y)
    assert np.allclose(whole.predict(X)[:, 0], linear(X) + (y - linear(X)).mean(), atol=1e-5)


def mse(base, X, y, fresh):
    return np.mean((fresh[1] - fit_public(base, X, y).answers(fresh[0])[:, 0]) ** 2)


def test_a_line_is_followed_where_a_forest_has_steps_and_steps_are_not_worse():
    """Noise .09. Beyond a line a tenth less error than the forest's; where all is steps at most a tenth more."""
    for line, step, most in ((3.0, 1.0, 0.9), (0.0, 2.0, 1.1)):
        X, y = rows(200, line=line, step=step)
        fresh = rows(2000, seed=1, line=line, step=step)
        assert mse("blend", X, y, fresh) < most * mse("forest", X, y, fresh)


def test_the_same_rows_give_the_same_model_and_its_text_gives_it_back():
    X, y = rows(40)
    first, second = (fit_public("blend", X, y).ensemble for _ in range(2))
    assert first.digest == second.digest
    assert Ensemble.from_json(first.to_json()).digest == first.digest


def test_a_blend_fits_into_its_limit_or_is_refused_with_its_size():
    X, y = rows(150)
    limit = n_bytes(fit_public("blend", X, y).ensemble) * 2 // 3
    assert n_bytes(fit_public("blend", X, y, max_bytes=limit).ensemble) <= limit
    with pytest.raises(ConfigError, match=r"bytes in a protocol .* at most 900"):
        fit_public("blend", X, y, max_bytes=900)


def test_few_rows_give_a_forest_and_classes_are_refused():
    X, y = rows(FEWEST_ROWS - 1)
    assert fit_public("blend", X, y).ensemble.digest == fit_public("forest", X, y).ensemble.digest
    with pytest.raises(
        ConfigError, match='a label that is a number; for classes take "forest", "boosting" or "tree"'
    ):
        fit_public("blend", X, (y > 1).astype(int), n_classes=2)


def test_the_estimator_mends_a_blend():
    """A shift of .4 in the private labels, eps 2, 3,000 holders: the mean error left is below .1 (5 sd of the reports' noise)."""
    (Q, yq), (P, yp), (T, yt) = rows(100), rows(3000, seed=1), rows(2000, seed=2)
    model = CorrectionRegressor(2.0, base="blend", random_state=0)
    model.fit(np.vstack([Q, P]), np.concatenate([yq, yp + 0.4]), public=np.arange(3100) < 100)
    assert abs(np.mean(yt + 0.4 - model.predict(T))) < 0.1
