"""PublicFeatureRegressor and PublicFeatureClassifier: scikit-learn estimators, one report a row, and one clear error each."""

import numpy as np
import pytest
from first_fast import first_fast
from sklearn.base import clone

from ldptree.errors import DataError
from ldptree.estimators.public_features import PublicFeatureClassifier, PublicFeatureRegressor

RANGE = (-3.0, 5.0)


def people(n=6000, seed=0):
    """Five features; the label rises with the first, which is private, and the last."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 5))
    return X, 2 * X[:, 0] + 2 * (X[:, 4] > 0.5) + 0.3 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def found():
    X, y = people()
    return PublicFeatureRegressor(4.0, private_features=[0], label_range=RANGE, random_state=1).fit(X, y)


def test_it_learns_from_public_and_private_features(found):
    T, t = people(2000, 9)
    assert found.score(T, t) > 0.75
    assert "Private features that help: x0" in found.model_.says
    # without its private feature a row is predicted from what is public
    T[:, 0] = np.nan
    assert 0.45 < found.score(T, t) < 0.75


def test_with_a_mask_of_its_own_for_every_row_it_learns_as_well():
    X, y = people()
    protects = np.random.default_rng(3).random(X.shape) < [0.8, 0.1, 0.1, 0.1, 0.2]
    found = PublicFeatureRegressor(4.0, label_range=RANGE, random_state=1).fit(X, y, protects=protects)
    T, t = people(2000, 9)
    assert found.score(T, t) > 0.7


def test_the_report_says_where_private_features_do_not_help():
    X, y = people(150)
    found = PublicFeatureRegressor(0.5, private_features=[0], label_range=RANGE, random_state=0).fit(X, y)
    assert "Private features do not help here" in found.model_.says
    assert found.model_.effects == ()
    nothing = PublicFeatureRegressor(2.0, private_features=[], label_range=RANGE, random_state=0)
    assert "No feature is protected" in nothing.fit(X, y).model_.says
    assert "label_range" in nothing.fit(*(X, 100 + 0 * y)).model_.says


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("private", [[], [0]])
@pytest.mark.parametrize("n", [2, 3, 5, 6])
def test_a_handful_of_holders_is_answered_and_learned_from(n, private):
    X, y = people(n)
    settings = {"private_features": private, "feature_range": (0, 1)}
    found = PublicFeatureRegressor(2.0, label_range=RANGE, random_state=0, **settings).fit(X, y)
    assert np.isfinite(found.predict(X)).all()
    assert found.model_.says.startswith("These reports do not tell")
    for label in (0, 1):
        kind = PublicFeatureClassifier(64.0, classes=[0, 1], random_state=label, **settings)
        assert np.isfinite(kind.fit(X, np.full(n, label)).predict_proba(X)).all()


LABELS = {
    "0 and 1": ((0, 1), lambda rng, n: (rng.random(n) < 0.2).astype(float)),
    "many are 0": (
        (0, 20),
        lambda rng, n: np.where(rng.random(n) < 0.6, 0, rng.gamma(2, 1.5, n).clip(0, 20)),
    ),
    "skewed": ((0, 10), lambda rng, n: rng.exponential(1, n).clip(0, 10)),
}


@pytest.mark.parametrize("kind", first_fast(*LABELS, fast=[k for k in LABELS if k != "skewed"]))
def test_of_labels_at_an_end_of_their_range_the_level_is_right(kind):
    """5 % of the standard deviation is about four standard errors; without the range the level is 10 % or more too low."""
    ends, draw = LABELS[kind]
    rng = np.random.default_rng(1)
    X, y = rng.random((6000, 2)), draw(rng, 6000)
    found = PublicFeatureRegressor(4.0, private_features=[], label_range=ends, random_state=1).fit(X, y)
    asked = found.rounds_[1].question
    assert ends[0] <= asked.surface.intercept - asked.half < asked.surface.intercept + asked.half <= ends[1]
    assert found.predict(X).mean() == pytest.approx(y.mean(), abs=0.05 * y.std())


def test_a_classifier_learns_declared_classes():
    X, _ = people()
    y = np.where((X[:, 0] > 0.5) ^ (np.random.default_rng(1).random(6000) < 0.1), "yes", "no")
    found = PublicFeatureClassifier(4.0, private_features=[0], classes=["no", "yes"], random_state=2).fit(
        X, y
    )
    T, _ = people(1000, 6)
    assert (found.predict(T) == np.where(T[:, 0] > 0.5, "yes", "no")).mean() > 0.9
    share = found.predict_proba(T)
    assert share.min() >= 0
    np.testing.assert_allclose(share.sum(axis=1), 1)
    assert found.rounds_[0].question.kind != "public_features_label_bins"
    with pytest.raises(DataError, match="none of the declared"):
        clone(found).set_params(classes=["no", "maybe"]).fit(X, y)


def test_only_features_that_somebody_protected_may_be_missing(found):
    T, _ = people(5)
    T[2, 3] = np.nan
    with pytest.raises(DataError, match='column "x3": NaN'):
        found.predict(T)


@pytest.mark.slow  # the programme of a number at epsilon 64
def test_reports_that_are_nearly_certain_are_learned_from():
    """The chance of a lie is below what a float tells from none."""
    X, y = people(600)
    model = PublicFeatureRegressor(64.0, private_features=[0], label_range=RANGE, random_state=0).fit(X, y)
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.5


@pytest.mark.parametrize("epsilon", first_fast(1e-6, 0.01))
def test_where_reports_say_nothing_predictions_are_near_the_middle_of_the_range(epsilon):
    """The error is about that of the middle, and not that of an end."""
    X, y = people(1000)
    errors = []
    for seed in range(3):
        found = PublicFeatureRegressor(
            epsilon, private_features=[0], label_range=(-4, 8), random_state=seed
        ).fit(X, y)
        errors.append(np.mean((found.predict(X) - y) ** 2))
    assert np.mean(errors) < 1.2 * np.mean((2.0 - y) ** 2)
    classifier = PublicFeatureClassifier(epsilon, private_features=[0], random_state=0)
    share = classifier.fit(X, (X[:, 1] > 0.5).astype(int)).predict_proba(X)
    assert share[:, 1] == pytest.approx(0.5, abs=0.05)
