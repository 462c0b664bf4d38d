"""CorrectionClassifier and CorrectionRegressor: what is private is seen through one report each, and nothing else."""

import numpy as np
import pytest
from seeded_words import words
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from ldptree.errors import ConfigError, DataError
from ldptree.estimators.correction import CorrectionClassifier, CorrectionRegressor
from ldptree.models.corrected import shares_of
from ldptree.public_models import BASES

pytestmark = pytest.mark.usefixtures("few_trees")


def people(n=4000, n_public=250, seed=0, n_classes=0, shift=1.0):
    """Numbers or classes; private ones are higher where the third column is above one half."""
    rng = np.random.default_rng(seed)
    X, public = rng.random((n, 3)), rng.permutation(n) < n_public
    y = 2 * (X[:, 0] > 0.5) + X[:, 1] + np.where(public, 0, shift * (X[:, 2] > 0.5))
    y = y + 0.4 * rng.normal(size=n)
    if n_classes:
        y = np.digitize(y, np.quantile(y[public], np.arange(1, n_classes) / n_classes))
    return X, y, public


def quick(kind, **settings):
    settings = {"base": "tree", "random_state": 0} | settings
    return kind(settings.pop("epsilon", 4.0), **settings)


@pytest.mark.parametrize("base", BASES)
def test_a_number_is_mended_whatever_the_base(base):
    X, y, public = people()
    fitted = quick(CorrectionRegressor, base=base).fit(X, y, public=public)
    X, y, _ = people(seed=1, n_public=0)
    alone = np.mean((fitted.model_.public_answers(X)[:, 0] - y) ** 2)
    assert np.mean((fitted.predict(X) - y) ** 2) < 0.85 * alone
    assert fitted.says_ == fitted.corrections_.says_of(())
    assert "wrong on private people" in fitted.says_
    low, high = fitted.mean_interval(X)
    assert ((low <= fitted.predict(X)) & (fitted.predict(X) <= high)).all()


@pytest.mark.parametrize(("base", "n_classes"), [("tree", 4), ("boosting", 2)])
def test_classes_are_mended_and_shares_stay_shares(base, n_classes):
    X, y, public = people(8000, n_classes=n_classes, shift=2.0)
    fitted = quick(CorrectionClassifier, base=base).fit(X, y, public=public)
    share = fitted.predict_proba(X)
    assert share.shape == (8000, n_classes)
    assert share.min() >= 0
    np.testing.assert_allclose(share.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.predict(X), share.argmax(axis=1))
    protocol = fitted.protocols_[-1]
    n_outputs = 1 if n_classes == 2 else n_classes
    assert protocol.n_outputs == len(fitted.totals_) == n_outputs
    asked = protocol.respondents((~public).sum())
    assert sum(totals.n_private for totals in fitted.totals_) == len(asked)
    assert fitted.corrections_.mean[-1] > 0.05  # private people are in higher classes
    alone = shares_of(fitted.model_.public_answers(X)).argmax(axis=1)
    assert fitted.score(X[~public], y[~public]) > np.mean(alone[~public] == y[~public])


@pytest.mark.parametrize(("mechanism", "epsilon"), [("grr", 0.7), ("oue", 3.0)])
def test_a_whole_report_is_one_value_of_an_oracle_that_keeps_its_epsilon(epsilon, mechanism):
    """The residual and its cell are one value of the alphabet: nothing else enters a report."""
    X, y, public = people(800)
    fitted = quick(CorrectionRegressor, epsilon=epsilon, mechanism=mechanism, depth=0, label_levels=2)
    (protocol,) = fitted.fit(X, y, public=public).protocols_
    values = protocol.values(X[~public], np.linspace(-9, 9, (~public).sum()), words=words(0))
    assert set(np.unique(values)) <= set(range(protocol.mechanism.n_values))
    assert protocol.epsilon_exact <= epsilon


@pytest.mark.parametrize(
    "fitted", [RandomForestClassifier(9, random_state=0), HistGradientBoostingClassifier(max_iter=20)]
)
def test_a_fitted_model_is_taken_as_it_is(fitted):
    X, y, public = people(2500, n_classes=3)
    words = np.array(["a", "b", "c"])[y]
    fitted.fit(X[public], words[public])
    found = quick(CorrectionClassifier, base=fitted).fit(X, words, public=public)
    np.testing.assert_allclose(found.model_.public_answers(X), fitted.predict_proba(X), atol=1e-5)
    assert found.classes_.tolist() == ["a", "b", "c"]
    no_rows = quick(CorrectionClassifier, base=fitted).fit(X[~public], words[~public])
    np.testing.assert_allclose(no_rows.model_.public_answers(X), fitted.predict_proba(X), atol=1e-5)
    frozen = quick(CorrectionClassifier, base=FrozenEstimator(fitted))
    assert clone(frozen).fit(X, words, public=public).model_.digest == found.model_.digest


@pytest.mark.parametrize("kind", [CorrectionRegressor, CorrectionClassifier])
def test_without_public_rows_a_constant_is_mended_and_nothing_said_of_a_public_model(kind):
    X, y, _ = people(4000, 300)
    y = (y > 2).astype(int) if kind is CorrectionClassifier else y
    fitted = kind(4.0, random_state=0, feature_range=(0, 1)).fit(X, y)
    assert fitted.base_.ensemble.n_nodes == 1
    assert fitted.score(X, y) > (0.7 if kind is CorrectionClassifier else -1)
    assert fitted.model_.n_public == 0
    assert fitted.says_.startswith("There are no public rows. ")
    assert "public model" not in fitted.says_
    # where labels follow from what everybody shows a contrast is not worth asking
    rows = np.random.default_rng(3).random((120, 2)) * [40.0, 3.0]
    labels = (rows[:, 0] > 20).astype(int) if kind is CorrectionClassifier else rows[:, 0]
    some = kind(8.0, random_state=0).fit(rows, labels, public=np.arange(120) < 40)
    assert "public model" in some.says_


@pytest.mark.parametrize(
    ("base", "said"),
    [
        (LogisticRegression(), "LogisticRegression is not fitted"),
        (RandomForestRegressor(), "not fitted"),
    ],
)
def test_a_base_that_is_not_fitted_is_refused(base, said):
    X, y, public = people(300, 60)
    with pytest.raises((ConfigError, DataError), match=said):
        quick(CorrectionRegressor, base=base).fit(X, y, public=public)


def test_a_fitted_model_of_other_classes_is_refused():
    X, y, public = people(300, 60, n_classes=3)
    fitted = RandomForestClassifier(3).fit(X[y < 2], y[y < 2])
    with pytest.raises(DataError, match="does not know"):
        quick(CorrectionClassifier, base=fitted).fit(X, y, public=public)
