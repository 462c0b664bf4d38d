"""CorrectionClassifier and CorrectionRegressor: what is private is seen through one report each, and nothing else."""

import json
import pickle

import numpy as np
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.utils.estimator_checks import check_estimator

from ldptree.coins import Words
from ldptree.errors import ConfigError, DataError
from ldptree.estimators.correction import CorrectionClassifier, CorrectionRegressor
from ldptree.models.corrected import CorrectedModel, shares_of
from ldptree.public_models.fit import BASES


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


@pytest.mark.parametrize("kind", [CorrectionClassifier, CorrectionRegressor])
def test_they_are_scikit_learn_estimators(kind):
    """Every check passes but the one of array API inputs, which scikit-learn itself skips."""
    for result in check_estimator(kind(8.0, random_state=0), on_fail=None, on_skip=None):
        assert result["status"] == "passed" or result["check_name"] == "check_array_api_input", result


@pytest.mark.parametrize("base", BASES)
def test_a_number_is_mended_whatever_the_base(base):
    X, y, public = people()
    fitted = quick(CorrectionRegressor, base=base).fit(X, y, public=public)
    X, y, _ = people(seed=1, n_public=0)
    alone = np.mean((fitted.model_.public_answers(X)[:, 0] - y) ** 2)
    assert np.mean((fitted.predict(X) - y) ** 2) < 0.85 * alone
    assert fitted.says_ == fitted.corrections_.says
    assert "wrong on private people" in fitted.says_
    low, high = fitted.predict_interval(X)
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
    (protocol,) = fitted.protocols_
    n_outputs = 1 if n_classes == 2 else n_classes
    assert protocol.n_outputs == len(fitted.totals_) == n_outputs
    assert sum(totals.n_private for totals in fitted.totals_) == (~public).sum()
    assert fitted.corrections_.mean[-1] > 0.05  # private people are in higher classes
    alone = shares_of(fitted.model_.public_answers(X)).argmax(axis=1)
    assert fitted.score(X[~public], y[~public]) > np.mean(alone[~public] == y[~public])


def test_private_rows_change_nothing_that_is_published():
    """Neither base, plan nor protocols: private rows permuted, poisoned, or of a label that nobody declared."""
    for kind, n_classes in ((CorrectionRegressor, 0), (CorrectionClassifier, 3)):
        X, y, public = people(1500, n_classes=n_classes)
        one = quick(kind).fit(X, y, public=public)
        for change in ("permuted", "poisoned"):
            other, labels = X.copy(), y.copy()
            if change == "permuted":
                order = np.random.default_rng(3).permutation((~public).sum())
                other[~public], labels[~public] = X[~public][order], y[~public][order]
            else:
                other[~public], labels[~public] = 1e6 * X[~public] - 7, 99
            two = quick(kind).fit(other, labels, public=public)
            assert two.base_.ensemble.digest == one.base_.ensemble.digest
            assert [p.digest for p in two.protocols_] == [p.digest for p in one.protocols_]
            assert two.plan_.range == one.plan_.range
            np.testing.assert_array_equal(two.plan_.own_variance, one.plan_.own_variance)
        assert any((a.counts != b.counts).any() for a, b in zip(one.totals_, two.totals_, strict=True))


@pytest.mark.parametrize("epsilon", [0.7, 3.0])
@pytest.mark.parametrize("mechanism", ["grr", "oue"])
def test_a_whole_report_is_one_value_of_an_oracle_that_keeps_its_epsilon(epsilon, mechanism):
    """The integers in use spend at most the claim; and no output of 200,000 reports of either of two values is more than
    e^epsilon times as likely under one (5 % of sampling error allowed, over 8 standard deviations).
    """
    X, y, public = people(800)
    fitted = quick(CorrectionRegressor, epsilon=epsilon, mechanism=mechanism, depth=0, label_levels=2)
    (protocol,) = fitted.fit(X, y, public=public).protocols_
    words = Words.seeded(np.random.SeedSequence(0))
    values = protocol.values(X[~public], np.linspace(-9, 9, (~public).sum()), words=words)
    # the residual and its cell are one value of the alphabet: nothing else enters a report
    assert set(np.unique(values)) <= set(range(protocol.mechanism.n_values))
    assert protocol.epsilon_exact <= epsilon
    counts = []
    for value in (0, 1):
        reports = protocol.mechanism.randomize(np.full(200_000, value), words)
        packed = protocol.mechanism.pack(reports)
        codes = packed.astype(np.int64) @ 256 ** np.arange(packed.shape[1])
        counts.append(np.bincount(codes, minlength=256))
    seen = counts[0] + counts[1] > 40_000
    ratios = counts[0][seen] / counts[1][seen]
    assert max(ratios.max(), 1 / ratios.min()) <= 1.05 * np.exp(epsilon)


def test_every_row_spends_its_epsilon_once():
    X, y, public = people(1500, n_classes=3)
    fitted = quick(CorrectionClassifier).fit(X, y, public=public)
    asked = sorted((e.who.start, e.who.stop) for e in fitted.ledger_.entries)
    assert [a[0] for a in asked[1:]] == [a[1] for a in asked[:-1]]
    assert (asked[0][0], asked[-1][1]) == (0, 1250)
    assert fitted.ledger_.largest_spend().epsilon == 4.0


@pytest.mark.parametrize("kind", [CorrectionRegressor, CorrectionClassifier])
def test_without_public_rows_a_constant_is_mended(kind):
    X, y, _ = people(4000, 0)
    y = (y > 2).astype(int) if kind is CorrectionClassifier else y
    fitted = kind(4.0, random_state=0, feature_range=(0, 1)).fit(X, y)
    assert fitted.base_.ensemble.n_nodes == 1
    assert fitted.score(X, y) > (0.7 if kind is CorrectionClassifier else -1)
    assert fitted.model_.n_public == 0


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


def test_the_model_is_kept_as_json_and_anything_else_is_refused():
    for kind, n_classes in ((CorrectionRegressor, 0), (CorrectionClassifier, 2), (CorrectionClassifier, 3)):
        X, y, public = people(1200, n_classes=n_classes)
        model = quick(kind).fit(X, y, public=public).model_
        text = model.to_json()
        again = CorrectedModel.from_json(text)
        assert again.digest == model.digest
        assert again.to_json() == text
        np.testing.assert_array_equal(again.answers(X), model.answers(X))
    holes = X.copy()
    holes[0, 1] = np.nan
    np.testing.assert_array_equal(model.answers(holes)[0], model.default)
    data = json.loads(text)
    for damage in ({"sd": None}, {"more": 1}, {"version": 2}, {"epsilon": 9.0}):
        with pytest.raises(DataError, match="corrected model"):
            CorrectedModel.from_json(json.dumps(data | damage))
    with pytest.raises(DataError, match="not JSON"):
        CorrectedModel.from_json(text[:-5])


def test_frames_searches_and_pickles():
    X, y, public = people(1200, n_classes=2)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    fitted = quick(CorrectionClassifier).fit(frame, y, public=public)
    assert fitted.model_.encoding.columns == ("a", "b", "c")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(frame), fitted.predict(frame))
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = quick(CorrectionClassifier).set_fit_request(public=True)
        assert cross_validate(estimator, X, y, params={"public": public}, cv=2)["test_score"].min() > 0.6
        search = GridSearchCV(estimator, {"depth": [1, 2]}, cv=2).fit(X, y, public=public)
        assert search.best_params_["depth"] in (1, 2)


@pytest.mark.parametrize("random_state", [0, None])
def test_a_seeded_simulation_repeats_and_coins_of_the_system_do_not(random_state):
    X, y, public = people(800)
    one, two = (
        quick(CorrectionRegressor, random_state=random_state).fit(X, y, public=public) for _ in range(2)
    )
    is_same = (one.totals_[0].counts == two.totals_[0].counts).all()
    assert bool(is_same) is (random_state == 0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epsilon": 0.0}, "above 0"),
        ({"base": "florest"}, "did you mean 'forest'"),
        ({"base": LogisticRegression()}, "a public model is a fitted scikit-learn tree"),
        ({"base": RandomForestRegressor()}, "not fitted"),
        ({"mechanism": "laplace"}, "mechanism must be one of"),
        ({"partition": "carts"}, "did you mean 'cart'"),
        ({"depth": -1}, "depth must be"),
        ({"label_levels": 1}, "whole number from 2"),
        ({"residual_range": 0}, "residual_range must be"),
        ({"residual_range": "wide"}, "residual_range must be"),
        ({"max_protocol_bytes": 0}, "max_protocol_bytes"),
        ({"max_protocol_bytes": 200}, "leave no room for a public model"),
        ({"max_protocol_bytes": 1000}, "bytes in a protocol"),
    ],
)
def test_what_is_wrong_is_said(settings, said):
    X, y, public = people(300, 60)
    with pytest.raises((ConfigError, DataError), match=said):
        quick(CorrectionRegressor, **settings).fit(X, y, public=public)


def test_rows_that_do_not_fit_are_refused():
    X, y, public = people(300, 60, n_classes=3)
    with pytest.raises(DataError, match="nobody is left"):
        quick(CorrectionClassifier).fit(X, y, public=np.ones(300, dtype=bool))
    fitted = RandomForestClassifier(3).fit(X[y < 2], y[y < 2])
    with pytest.raises(DataError, match="does not know"):
        quick(CorrectionClassifier, base=fitted).fit(X, y, public=public)
    with pytest.raises(NotFittedError):
        quick(CorrectionClassifier).predict(X)
