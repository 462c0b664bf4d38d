"""The blend: its linear part is trees, its weights are honest and even where rows are few, and it is no worse than its parts."""

import joblib
import numpy as np
import pytest
from first_fast import first_fast

from ldptree.errors import ConfigError
from ldptree.estimators import CorrectionRegressor
from ldptree.models.corrected import shares_of
from ldptree.models.ensemble import Ensemble
from ldptree.public_models import blend as public_blend
from ldptree.public_models.blend import FEWEST_ROWS, fit_blend, weigh
from ldptree.public_models.fit import fit_public
from ldptree.public_models.linear import STEPS, Linear, StepTransform

pytestmark = pytest.mark.usefixtures("few_trees")


def rows(n=300, seed=0, *, line=3.0, step=0.0, noise=0.3, high=1.0):
    """Labels line x0 + step [x1 > .5] + noise; x0 in [0, high], x2 is constant, x3 is 0 or 1."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4)).astype(np.float32)
    X[:, 0] *= high
    X[:, 2], X[:, 3] = 0.25, X[:, 3] > 0.7
    return X, line * X[:, 0] + step * (X[:, 1] > 0.5) + X[:, 3] + noise * rng.normal(size=n)


def test_the_linear_part_is_the_same_function_as_trees():
    X, y = rows()
    fresh = rows(2000, seed=1)[0]
    linear = Linear.fit(X, y)
    whole = Ensemble.of_trees(linear.trees(), np.array([linear.offset]))
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


def test_boosting_without_columns_that_no_leaf_is_large_enough_for_is_the_same():
    X, y = rows(200)
    X = np.hstack([(np.arange(200) < 4)[:, None], X, (np.arange(200) < 5)[:, None]]).astype(np.float32)
    boosting = next(model for model in public_blend.MODELS if model.name == "boosting of small trees")
    assert boosting.min_samples_leaf == 5
    sample = public_blend.PublicSample(X, y[:, None], False, 10**6)
    learned, fresh = boosting.learn(sample), X[::-1] + np.float32(0.01)
    ours = Ensemble.of_trees(learned.trees, learned.offset).predict(fresh)
    assert boosting._columns(X).tolist() == [0, 1, 2, 4, 5], "of a rare value the first column alone"
    assert np.allclose(ours[:, 0], boosting._fit(X, y).predict(fresh), atol=1e-6)
    held_out = sample.answer_held_out(lambda X, Y, others: boosting._fit(X, Y[:, 0]).predict(others)[:, None])
    assert np.array_equal(learned.held_out, held_out)


def test_weights_are_shares_that_find_the_better_model_and_are_even_where_rows_are_few():
    rng = np.random.default_rng(0)
    wanted = rng.normal(size=(1000, 1))
    good, bad = wanted + rng.normal(0, 0.1, (1000, 1)), wanted + rng.normal(0, 1.0, (1000, 1))
    assert weigh(np.stack([bad, good, bad]), wanted).tolist() == [0, 1, 0]
    assert weigh(np.stack([bad, wanted]), wanted).tolist() == [0, 1]
    alike = np.stack([wanted + rng.normal(0, 0.3, (1000, 1)) for _ in range(4)])
    many, few = weigh(alike, wanted), weigh(alike[:, :12], wanted[:12])
    for w in (many, few):
        assert w.sum() == pytest.approx(1, abs=1e-12)
        assert ((w == 0) | (w >= 0.029)).all()
    assert np.abs(many - 0.25).max() < 0.05
    worse = np.stack([alike[0], wanted + 1.3 * (alike[1] - wanted)])
    assert weigh(worse[:, :12], wanted[:12]).min() > 0.2


def test_of_many_rows_the_weights_are_found_on_some_and_the_models_fitted_on_all(monkeypatch):
    X, y = rows(400)
    Y = y[:, None]
    monkeypatch.setattr(public_blend, "MOST_WEIGHED_ON", 100)
    found = fit_blend(X, Y, is_class=False, max_bytes=2**20)
    assert found.errors.shape == (100, 1)
    few = fit_blend(X[:100], Y[:100], is_class=False, max_bytes=2**20)
    fresh, labels = rows(3000, seed=1)
    error, of_few = (np.mean((one.ensemble.predict(fresh)[:, 0] - labels) ** 2) for one in (found, few))
    assert error < of_few


@pytest.mark.parametrize("n_classes", first_fast(3, 2))
def test_a_blend_of_classes_is_better_than_a_forest(n_classes):
    """Log loss on 3,000 fresh rows, shares kept within .01 and 1."""
    X, y = rows(300, noise=1.0)
    fresh, labels = rows(3000, seed=1, noise=1.0)
    cuts = np.quantile(y, np.arange(1, n_classes) / n_classes)
    codes, wanted = np.digitize(y, cuts), np.digitize(labels, cuts)

    def log_loss(base):
        shares = fit_public(base, X, codes, n_classes=n_classes).answers(fresh)
        shares = shares_of(shares)
        return -np.mean(np.log(np.clip(shares[np.arange(3000), wanted], 0.01, 1)))

    assert log_loss("blend") < log_loss("forest")


def test_a_class_that_no_public_row_has_gets_no_share():
    X, y = rows(100)
    shares = fit_public("blend", X, 2 * (y > y.mean()).astype(int), n_classes=4).answers(X)
    assert np.abs(shares[:, [1, 3]]).max() == 0
    assert np.abs(shares.sum(axis=1) - 1).max() < 0.1


def test_a_blend_is_the_same_on_any_number_of_cores_and_its_text_gives_it_back():
    X, y = rows(60)
    digests = set()
    for n_jobs in (1, 3):
        with joblib.parallel_config(backend="threading", n_jobs=n_jobs):
            found = fit_public("blend", X, y).ensemble
            digests |= {found.digest, Ensemble.from_json(found.to_json()).digest}
    assert len(digests) == 1


def mse(base, X, y, fresh):
    return np.mean((fresh[1] - fit_public(base, X, y).answers(fresh[0])[:, 0]) ** 2)


@pytest.mark.slow
def test_a_line_is_followed_where_a_forest_has_steps_and_steps_are_not_worse():
    """Noise .09. Beyond a line a tenth less error than the forest's; where all is steps at most a tenth more."""
    for line, step, most in ((3.0, 1.0, 0.9), (0.0, 2.0, 1.1)):
        X, y = rows(200, line=line, step=step)
        fresh = rows(2000, seed=1, line=line, step=step)
        assert mse("blend", X, y, fresh) < most * mse("forest", X, y, fresh)


def test_a_blend_fits_into_its_limit_or_is_refused_with_its_size():
    X, y = rows(150)
    limit = fit_public("blend", X, y).ensemble.n_bytes * 2 // 3
    assert fit_public("blend", X, y, max_bytes=limit).ensemble.n_bytes <= limit
    with pytest.raises(ConfigError, match=r"bytes in a protocol .* at most 900"):
        fit_public("blend", X, y, max_bytes=900)


@pytest.mark.slow
def test_of_many_classes_a_blend_goes_without_boosting_where_that_does_not_fit():
    X, y = rows(300, noise=1.0)
    Y = np.eye(12)[np.digitize(y, np.quantile(y, np.linspace(0, 1, 13)[1:-1]))]
    whole = fit_blend(X, Y, is_class=True, max_bytes=2**26)
    boosted = [name for name, weight in whole.weights.items() if "boosting" in name and weight]
    assert boosted
    small = fit_blend(X, Y, is_class=True, max_bytes=2**18)
    assert small.ensemble.n_bytes <= 2**18
    assert sum(small.weights[name] > 0 for name in boosted) < len(boosted)
    assert sum(small.weights.values()) == pytest.approx(1.0)
    assert small.errors.shape == Y.shape


def test_few_rows_give_a_forest():
    X, y = rows(FEWEST_ROWS - 1)
    assert fit_public("blend", X, y).ensemble.digest == fit_public("forest", X, y).ensemble.digest


def test_the_estimator_corrects_a_blend():
    """A shift of .4 in the private labels, eps 2, 3,000 holders: the mean error left is below .1 (5 sd of the reports' noise)."""
    (Q, yq), (P, yp), (T, yt) = rows(100), rows(3000, seed=1), rows(2000, seed=2)
    model = CorrectionRegressor(2.0, base="blend", random_state=0)
    model.fit(np.vstack([Q, P]), np.concatenate([yq, yp + 0.4]), public=np.arange(3100) < 100)
    assert abs(np.mean(yt + 0.4 - model.predict(T))) < 0.1
