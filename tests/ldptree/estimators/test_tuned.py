"""tune = "private": candidates share reports where they can, nobody is asked twice, and nothing changes without it."""

import numpy as np
import pytest
from sklearn.base import clone

from ldptree.errors import ConfigError, DataError
from ldptree.estimators import LPCTClassifier, LPDTRegressor, holders, lpdt
from ldptree.estimators.tuning.choice import CHOICES
from ldptree.inference.algorithm_2 import PaperOptions


def people(n=2500, n_public=150, seed=0):
    """The label follows both features; public rows come first."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, X[:, 0] + 2 * (X[:, 1] > 0.5) + rng.normal(0, 0.1, n), np.arange(n) < n_public


def fit(kind, epsilon=4.0, n=2500, public=True, **settings):
    X, y, mask = people(n)
    y = y if kind is LPDTRegressor else (y > 1.5).astype(int)
    model = kind(epsilon, **{"tune": "private", "random_state": 1} | settings)
    return model.fit(X, y, public=mask if public else None)


KINDS = [LPDTRegressor, LPCTClassifier]


@pytest.mark.parametrize("mechanism", CHOICES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_candidate_that_is_far_better_is_found(kind, mechanism):
    fitted = fit(kind, 8.0, candidates=[{"depth": 0}, {"depth": 4}], tune_mechanism=mechanism)
    assert fitted.tuning_.chosen == 1
    X, y, _ = people(1000, seed=2)
    assert fitted.score(X, y if kind is LPDTRegressor else y > 1.5) > 0.85
    assert fitted.tuning_.mechanism == mechanism or mechanism == "auto"


@pytest.mark.parametrize("kind", KINDS)
def test_each_private_row_spends_epsilon_once_on_training_or_on_validation(kind):
    settings = [{}, {"depth": 1}, {"mechanism": "grr"}, {"partition": "max-edge"}, {"prune": "none"}]
    fitted = fit(kind, candidates=settings, validation_share=0.25)
    entries = fitted.ledger_.entries
    covered = np.concatenate([np.arange(e.who.start, e.who.stop) for e in entries])
    assert sorted(covered.tolist()) == list(range(2350))
    assert fitted.ledger_.largest_spend().epsilon == 4.0
    trained = [e for e in entries if e.about.startswith("round 1")]
    validated = [e for e in entries if e.about.startswith("tuning, ")]
    # one report for the first two and the last, one for each of the others
    assert len(trained) == 3
    assert len(trained) + len(validated) == len(entries)
    assert sum(len(e.who) for e in validated) == fitted.tuning_.n_validation == round(0.25 * 2350)
    assert fitted.tuning_.n_training.tolist() == [587, 587, 587, 588, 587]


def test_who_trains_never_validates_and_private_values_do_not_move_the_split(monkeypatch):
    """Rows are known by a value of their own; those that report and those whose errors are asked for are told apart."""
    trained, validated = [], []
    respond_with, errors = lpdt.respond_with, LPDTRegressor._errors

    def record(X, *rest, **settings):
        trained[-1].update(X[:, 0].tolist())
        return respond_with(X, *rest, **settings)

    def measure(self, model, X, y):
        validated[-1].update(X[:, 0].tolist())
        return errors(self, model, X, y)

    monkeypatch.setattr(lpdt, "respond_with", record)
    monkeypatch.setattr(LPDTRegressor, "_errors", measure)
    X, y, mask = people(800)
    for labels in (y, np.where(mask, y, y[::-1])):
        trained.append(set())
        validated.append(set())
        model = LPDTRegressor(2.0, tune="private", random_state=1, candidates=[{}, {"partition": "max-edge"}])
        model.fit(X, labels, public=mask)
        validated[-1] -= set(X[mask, 0].tolist())
        assert not trained[-1] & validated[-1]
        assert len(trained[-1]) + len(validated[-1]) == 650
    assert trained[0] == trained[1]
    assert validated[0] == validated[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_usual_candidates_share_one_report(kind):
    for public in (True, False):
        fitted = fit(kind, public=public)
        assert sum(e.about.startswith("round 1") for e in fitted.ledger_.entries) == 1
        assert len(fitted.tuning_.candidates) >= 3
        assert fitted.tuning_.candidates[0] == {}
        assert len(set(map(str, fitted.tuning_.candidates))) == len(fitted.tuning_.candidates)
        assert fitted.model_.protocol_digest == fitted.protocol_.digest


@pytest.mark.parametrize("kind", KINDS)
def test_the_chosen_settings_are_those_of_the_model(kind):
    other = {"lam": 0.0, "prune": "none"}
    fitted = fit(kind, candidates=[{"depth": 0, "mechanism": "grr"}, other], epsilon=8.0)
    assert fitted.tuning_.chosen_candidate == other
    assert (fitted.model_.lam, fitted.model_.prune) == (0.0, "none")
    assert fitted.totals_.n_private == fitted.tuning_.n_training[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_repeats_and_the_operating_systems_coins_do_not(kind):
    one, again, other = fit(kind), fit(kind), fit(kind, random_state=None)
    assert one.model_.digest == again.model_.digest
    np.testing.assert_array_equal(one.tuning_.value, again.tuning_.value)
    assert one.model_.digest != other.model_.digest
    assert one.tuning_.value.tolist() != other.tuning_.value.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_without_tuning_there_is_none(kind):
    fitted = fit(kind)
    fitted.set_params(tune=None)
    X, y, mask = people()
    fitted.fit(X, y if kind is LPDTRegressor else (y > 1.5).astype(int), public=mask)
    assert fitted.tuning_ is None
    assert len(fitted.ledger_) == 1
    assert fitted.totals_.n_private == 2350


def test_groups_that_are_asked_the_same_have_coins_of_their_own(monkeypatch):
    """Two groups whose questions have one digest (the same tree, by two names of one partition) get other words."""
    seen = []
    words_of = holders.words_of

    def record(protocol, seeds):
        seen.append(words_of(protocol, seeds).block(4).tolist())
        return words_of(protocol, seeds)

    monkeypatch.setattr(holders, "words_of", record)
    X, y, _ = people()
    LPCTClassifier(
        1.0, tune="private", random_state=0, candidates=[{"partition": "cart"}, {"partition": "max-edge"}]
    ).fit(X, y > 1.5)
    assert len(seen) == 2
    assert seen[0] != seen[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tune": "public"}, "tune must be one of 'private', or None, got 'public'"),
        ({"tune": None, "candidates": [{}, {}]}, 'set tune = "private"'),
        ({"tune_mechanism": "diference"}, "did you mean 'difference'"),
        ({"validation_share": 0}, "validation_share must be a number above 0 and below 1, got 0"),
        ({"validation_share": True}, "validation_share must be"),
        ({"validation_share": 1.5}, "validation_share must be"),
        ({"candidates": {"depth": 1}}, "a list of dicts"),
        ({"candidates": [{"depth": 1}]}, "1 of them; there must be 2 to 64"),
        (
            {"candidates": [{}, {"depths": 1}]},
            r"candidates\[1\]: a parameter must be one of .* did you mean 'depth'",
        ),
        ({"candidates": [{}, {"epsilon": 1}]}, r"candidates\[1\]: a parameter must be one of"),
        ({"candidates": [{}, {"depth": -1}]}, r"candidates\[1\]: depth must be"),
        ({"candidates": [{"lam": "great"}, {}]}, r"candidates\[0\]: lam must be one of"),
        ({"candidates": [{"rule": "ratio"}, {}]}, r"candidates\[0\]: .*ratio"),
    ],
)
def test_bad_input_has_one_clear_message(kind, settings, message):
    with pytest.raises(ConfigError, match=message):
        fit(kind, **settings)


def test_algorithm_2_is_no_candidate():
    for settings in ({"prune": "paper"}, {"candidates": [{}, {"prune": PaperOptions()}]}):
        with pytest.raises(ConfigError, match="asks holders twice"):
            fit(LPCTClassifier, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_too_few_people_to_divide(kind):
    X, y, _ = people(12)
    labels = y if kind is LPDTRegressor else (np.arange(12) % 2)
    with pytest.raises(DataError, match="set tune = None"):
        kind(1.0, tune="private", validation_share=0.1).fit(X, labels, public=np.arange(12) < 4)
    with pytest.raises(DataError, match="nobody is left to report"):
        kind(1.0, tune="private").fit(X, labels, public=np.ones(12, bool))


def test_parameters_are_kept_as_given():
    candidates = [{}, {"depth": 2}]
    model = LPDTRegressor(1.0, tune="private", candidates=candidates)
    assert model.get_params()["candidates"] is candidates
    assert clone(model).candidates == candidates
