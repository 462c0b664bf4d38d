"""tune = "private": nobody trains and validates, nobody reports twice, candidates share reports, and the best is found."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from ldptree.coins import Words
from ldptree.errors import BudgetError, ConfigError, DataError
from ldptree.estimators import LPCTClassifier, LPDTRegressor, holders
from ldptree.estimators.tuning.candidates import draw_groups
from ldptree.estimators.tuning.choice import choose_candidate
from ldptree.estimators.tuning.losses import PublicLosses, SquaredError
from ldptree.estimators.tuning.questions import AllErrors, Difference
from ldptree.estimators.tuning.reports import CHOICES, collect_reports
from ldptree.inference.algorithm_2 import PaperOptions
from ldptree.protocol.ledger import Charge, Ledger, RowRange


def draw(n, seed=0, **settings):
    return draw_groups(
        n, coins=np.random.default_rng(seed), **{"n_training": 1, "validation_share": 0.2} | settings
    )


@pytest.mark.parametrize("n_training", [1, 2, 5])
@pytest.mark.parametrize("n", [10, 11, 1000])
def test_nobody_is_in_two_groups_and_everybody_in_one(n, n_training):
    groups = draw(n, n_training=n_training)
    parts = [groups.rows(part) for part in (*groups.training, groups.validation)]
    assert all(part.size for part in parts)
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    assert groups.validation[1] - groups.validation[0] == round(n * 0.2)
    sizes = [b - a for a, b in groups.training]
    assert max(sizes) - min(sizes) <= 1


def test_the_split_is_drawn_by_public_coins_alone():
    one, again, other = (draw(500, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.order, again.order)
    assert (one.order != other.order).any()


@pytest.mark.parametrize(("n", "share", "n_training"), [(4, 0.2, 1), (10, 0.9, 2), (10, 0.95, 1)])
def test_too_few_rows_to_divide_are_refused(n, share, n_training):
    with pytest.raises(DataError, match="set tune = None"):
        draw(n, n_training=n_training, validation_share=share)


# the ledger of validation holders


def report_once(question, ledger):
    words = Words.seeded(np.random.SeedSequence(20261121))
    return collect_reports(question, np.zeros((40, 3)), epsilon=1.0, start=100, ledger=ledger, words=words)


def test_the_ledger_lists_what_each_validation_holder_spent():
    ledger = Ledger(cap=1.0)
    report_once(Difference.for_budget(1.0, [1.0] * 3), ledger)
    assert [(e.who.start, e.who.stop, e.epsilon, e.about) for e in ledger.entries] == [
        (100, 120, 1.0, "tuning, difference: candidate 1 less candidate 0"),
        (120, 140, 1.0, "tuning, difference: candidate 2 less candidate 0"),
    ]


def test_the_ledger_refuses_a_holder_who_answers_about_two_models():
    """The planted fault: the same holders are asked about another candidate, with all of epsilon again."""

    class Twice(Difference):
        def assign(self, n):
            return np.full(n, 2, dtype=np.int64)

    ledger, question = Ledger(cap=1.0), Difference.for_budget(1.0, [1.0] * 3)
    report_once(question, ledger)
    with pytest.raises(BudgetError, match="candidate 2 less candidate 0"):
        report_once(Twice(question.ranges, question.mechanism), ledger)


def test_the_ledger_refuses_a_holder_who_trained():
    ledger = Ledger(cap=1.0)
    rows = RowRange(source="private rows", start=0, stop=101)
    ledger.spend(Charge(question="training", epsilon=1.0, who=rows, about="round 1"))
    with pytest.raises(BudgetError, match="round 1"):
        report_once(Difference.for_budget(1.0, [1.0] * 3), ledger)


def test_the_papers_noise_is_refused_for_what_it_spends():
    ledger = Ledger(cap=1.0)
    with pytest.raises(ConfigError, match=r"spends epsilon 1\.73"):
        report_once(AllErrors.as_printed(1.0, [1.0] * 3), ledger)
    assert not len(ledger)


# the choice


def choose_by(losses, *, first_like=None, ledger=None, choice="auto", epsilon=2.0):
    k = losses.shape[1]
    trained = SimpleNamespace(
        candidates=[{"depth": j} for j in range(k)],
        first_like=np.arange(k) if first_like is None else np.array(first_like),
        n_training=[100] * k,
        groups=SimpleNamespace(validation=(0, len(losses))),
    )
    return choose_candidate(
        trained,
        PublicLosses(losses[:50], 1.0, [0.0] + [1.0] * (k - 1)),
        losses,
        choice=choice,
        epsilon=epsilon,
        ledger=Ledger(cap=epsilon) if ledger is None else ledger,
        seeds=np.arange(4),
    )


@pytest.mark.parametrize("choice", CHOICES)
def test_the_best_candidate_is_found_where_reports_can_tell(choice):
    losses = np.random.default_rng(0).random((20_000, 4)) * [1.0, 0.9, 0.2, 0.8]
    found = choose_by(losses, choice=choice, epsilon=4.0)
    assert found.chosen == 2
    assert found.chosen_candidate == {"depth": 2}
    assert found.epsilon <= 4.0
    assert found.n_validation == 20_000
    assert "> " in repr(found)


def test_equal_models_are_asked_about_once_and_judged_alike():
    losses = np.random.default_rng(0).random((3000, 4))
    losses[:, 3] = losses[:, 1]
    ledger = Ledger(cap=2.0)
    found = choose_by(losses, first_like=[0, 1, 2, 1], ledger=ledger)
    assert found.value[3] == found.value[1]
    assert len(ledger) <= 3
    assert sum(len(entry.who) for entry in ledger.entries) == 3000


def test_nobody_is_asked_where_all_candidates_are_one_model():
    ledger = Ledger(cap=2.0)
    found = choose_by(np.random.default_rng(0).random((500, 3)), first_like=[0, 0, 0], ledger=ledger)
    assert (found.chosen, found.epsilon, found.n_validation, len(ledger)) == (0, 0.0, 0, 0)


def test_a_label_out_of_range_counts_as_its_end():
    model = SimpleNamespace(predict=lambda X: X[:, 0])
    errors = SquaredError(0.0, 1.0).measure(
        model, np.array([[0.0], [0.5], [1.0]]), np.array([9.0, -9.0, 9.0])
    )
    assert errors.tolist() == [1.0, 0.25, 0.0]


# the estimators

KINDS = [LPDTRegressor, LPCTClassifier]


def people(n=1600, n_public=150, seed=0):
    """The label follows both features; public rows come first."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, X[:, 0] + 2 * (X[:, 1] > 0.5) + rng.normal(0, 0.1, n), np.arange(n) < n_public


def fit(kind, epsilon=4.0, public=True, **settings):
    X, y, mask = people()
    y = y if kind is LPDTRegressor else (y > 1.5).astype(int)
    model = kind(epsilon, **{"tune": "private", "random_state": 1} | settings)
    return model.fit(X, y, public=mask if public else None)


@pytest.fixture(scope="module", params=KINDS)
def usual(request):
    """Tuned with the usual candidates, at an epsilon that leaves them different models."""
    return fit(request.param, 1.0)


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
    assert sorted(covered.tolist()) == list(range(1450))
    assert fitted.ledger_.largest_spend().epsilon == 4.0
    trained = [e for e in entries if e.about.startswith("round 1")]
    validated = [e for e in entries if e.about.startswith("tuning, ")]
    # one report for the first two and the last, one for each of the others
    assert len(trained) == 3
    assert len(trained) + len(validated) == len(entries)
    assert sum(len(e.who) for e in validated) == fitted.tuning_.n_validation == round(0.25 * 1450)
    assert fitted.tuning_.n_training.tolist() == [362, 362, 363, 363, 362]


def test_who_trains_never_validates_and_private_values_do_not_move_the_split(monkeypatch):
    """RowRange are known by a value of their own: those that report, and those whose errors are measured."""
    trained, validated = [], []
    respond_with, measure_loss = holders.respond_with, SquaredError.measure

    def record(X, *rest, **settings):
        trained[-1].update(X[:, 0].tolist())
        return respond_with(X, *rest, **settings)

    def measure(self, model, X, y):
        validated[-1].update(X[:, 0].tolist())
        return measure_loss(self, model, X, y)

    monkeypatch.setattr(holders, "respond_with", record)
    monkeypatch.setattr(SquaredError, "measure", measure)
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


def test_the_usual_candidates_share_one_report(usual):
    for fitted in (usual, fit(type(usual), public=False)):
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


def test_a_seed_repeats_and_the_operating_systems_coins_do_not(usual):
    again, other = fit(type(usual), 1.0), fit(type(usual), 1.0, random_state=None)
    assert usual.model_.digest == again.model_.digest
    np.testing.assert_array_equal(usual.tuning_.value, again.tuning_.value)
    assert usual.model_.digest != other.model_.digest
    assert usual.tuning_.value.tolist() != other.tuning_.value.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_without_tuning_there_is_none(kind):
    fitted = fit(kind, tune=None)
    assert fitted.tuning_ is None
    assert len(fitted.ledger_) == 1
    assert fitted.totals_.n_private == 1450


def test_groups_with_the_same_question_have_coins_of_their_own(monkeypatch):
    """Two groups whose questions have one digest (the same tree, by two names of one partition) get other words."""
    seen = []
    words_of = holders.words_of

    def record(protocol, seeds):
        seen.append(words_of(protocol, seeds).block(4).tolist())
        return words_of(protocol, seeds)

    monkeypatch.setattr(holders, "words_of", record)
    fit(LPCTClassifier, candidates=[{"partition": "cart"}, {"partition": "max-edge"}], public=False)
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
