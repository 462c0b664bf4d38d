"""Candidates: nobody trains and validates, nobody spends more than epsilon, reported errors are true, and the best is kept."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from seeded_words import words

from ldptree.coins import RATE_UNIT
from ldptree.errors import BudgetError, ConfigError, DataError
from ldptree.estimators import LPCTClassifier, LPDTRegressor, holders
from ldptree.estimators.tuning import STEPS, AllErrors, draw_groups
from ldptree.protocol.ledger import Charge, RowRange

KINDS = [LPDTRegressor, LPCTClassifier]


# the report


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_no_holder_says_more_than_epsilon(epsilon):
    """P(report | levels) ~ prod e^(-r |x - level|): the worst exponent over levels and reports, in rational numbers."""
    ends = [0, STEPS // 2, STEPS]
    worst = max(
        sum(abs(x - b) - abs(x - a) for x, a, b in zip(report, first, other, strict=True))
        for first in itertools.product(ends, repeat=3)
        for other in itertools.product(ends, repeat=3)
        for report in itertools.product([-5, 0, STEPS // 2, STEPS, STEPS + 5], repeat=3)
    )
    report = AllErrors.for_budget(epsilon, 3, 0.3)
    spent = float(worst * Fraction(report.rate, RATE_UNIT))
    assert 0.99 * epsilon < spent <= report.epsilon <= epsilon


def test_the_papers_noise_would_spend_the_root_of_k_times_epsilon():
    """Noise of range sqrt(k) / eps is that of sqrt(k) eps here, and the report says so."""
    for k, epsilon in itertools.product((2, 9, 64), (0.5, 2.0)):
        printed = AllErrors.for_budget(math.sqrt(k) * epsilon, k, 1.0)
        assert printed.epsilon == pytest.approx(math.sqrt(k) * epsilon, rel=1e-4)
        assert STEPS * printed.rate / RATE_UNIT == pytest.approx(epsilon / math.sqrt(k), rel=1e-4)


def test_reports_follow_the_law_that_epsilon_is_of():
    """40,000 reports at level 20 with a rate of about .5: z below 5.5 at each of 21 outputs (false alarm 1e-6)."""
    n = 40_000
    reports = AllErrors(2, 64.0, RATE_UNIT // 2).randomize(np.full((n, 2), 20.0), words(3))[:, 0] - 20
    scale = math.tanh(0.25)
    for x in range(-10, 11):
        p = scale * math.exp(-abs(x) / 2)
        assert abs((reports == x).sum() - n * p) < 5.5 * math.sqrt(n * p * (1 - p))


def test_estimates_are_unbiased_and_their_deviations_true():
    """150 runs of 400 holders at eps 2: means within 5 standard errors, deviations within 32 % (5.5 standard errors)."""
    report = AllErrors.for_budget(2.0, 3, 1.0)
    errors = np.random.default_rng(1).random((400, 3)) * [0.5, 0.8, 1.0]
    runs = [report.estimate(report.randomize(errors, words(7, run))) for run in range(150)]
    values, stated = (np.stack(part) for part in zip(*runs, strict=True))
    noise = math.sqrt(2 / 400) * 3 / 2.0
    assert (np.abs(values.mean(axis=0) - errors.mean(axis=0)) < 5 * noise / math.sqrt(150)).all()
    assert (np.abs(values.std(axis=0) / noise - 1) < 0.32).all()
    assert (np.abs(stated.mean(axis=0) / noise - 1) < 0.05).all()


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, 1e-12])
def test_an_epsilon_that_carries_nothing_is_refused(epsilon):
    with pytest.raises(ConfigError, match="epsilon"):
        AllErrors.for_budget(epsilon, 2, 1.0)


# the groups


def draw(n, seed=0, **settings):
    return draw_groups(
        n, coins=np.random.default_rng(seed), **{"n_training": 1, "validation_share": 0.2} | settings
    )


@pytest.mark.parametrize("n_training", [1, 2, 5])
@pytest.mark.parametrize("n", [10, 11, 1000])
def test_nobody_is_in_two_groups_and_everybody_in_one(n, n_training):
    *training, validation = groups = draw(n, n_training=n_training)
    assert sorted(np.concatenate(groups).tolist()) == list(range(n))
    assert validation.size == round(n * 0.2)
    sizes = [part.size for part in training]
    assert len(sizes) == n_training
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= 1


def test_the_split_is_drawn_by_public_coins_alone():
    first, again, other = (np.concatenate(draw(500, seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(("n", "share", "n_training"), [(4, 0.2, 1), (10, 0.9, 2), (10, 0.95, 1)])
def test_too_few_rows_to_divide_are_refused(n, share, n_training):
    with pytest.raises(DataError, match="leave candidates out"):
        draw(n, n_training=n_training, validation_share=share)


# the estimators


def people(n=1600, n_public=150, seed=0):
    """The label follows both features; public rows come first."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, X[:, 0] + 2 * (X[:, 1] > 0.5) + rng.normal(0, 0.1, n), np.arange(n) < n_public


TWO = ({"depth": 0}, {"depth": 4})


def fit(kind, epsilon=4.0, public=True, **settings):
    X, y, mask = people()
    y = y if kind is LPDTRegressor else (y > 1.5).astype(int)
    model = kind(epsilon, **{"candidates": TWO, "random_state": 1} | settings)
    return model.fit(X, y, public=mask if public else None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_candidate_that_is_far_better_is_found(kind):
    fitted = fit(kind, 8.0)
    assert fitted.tuning_.chosen_candidate == {"depth": 4}
    assert fitted.tuning_.epsilon <= 8.0
    X, y, _ = people(1000, seed=2)
    assert fitted.score(X, y if kind is LPDTRegressor else y > 1.5) > 0.85
    assert f"{fitted.tuning_.error[1]:.4g}" in next(
        line for line in repr(fitted.tuning_).splitlines() if line.startswith("> ")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_each_private_row_spends_epsilon_once_on_training_or_on_validation(kind):
    settings = [{}, {"lam": "auto"}, {"mechanism": "grr"}, {"partition": "max-edge"}, {"prune": "none"}]
    fitted = fit(kind, candidates=settings, validation_share=0.25)
    entries = fitted.ledger_.entries
    covered = np.concatenate([np.arange(e.who.start, e.who.stop) for e in entries])
    assert sorted(covered.tolist()) == list(range(1450))
    assert fitted.ledger_.largest_spend().epsilon == 4.0
    *trained, validated = entries
    assert validated.about == "tuning: the errors of 5 candidates"
    # one report for the first two and the last, one for each of the others
    assert len(trained) == 3
    assert len(validated.who) == fitted.tuning_.n_validation == round(0.25 * 1450)
    assert fitted.tuning_.n_training.tolist() == [362, 362, 363, 363, 362]
    assert fitted.totals_.n_private == fitted.tuning_.n_training[fitted.tuning_.chosen]


def test_a_holder_who_trained_is_refused_a_second_report(monkeypatch):
    """The planted fault: a ledger that knows the first rows from another fit."""
    X, y, mask = people()
    model = LPDTRegressor(1.0, candidates=TWO, random_state=1)
    spend, seen = holders.Ledger.spend, []

    def charge_a_trained_row(self, charges, **rest):
        if seen and not isinstance(charges, list) and charges.question == "tuning":
            charges = Charge(
                question=charges.question,
                epsilon=charges.epsilon,
                who=RowRange(source="private rows", start=0, stop=charges.who.stop),
                about=charges.about,
            )
        seen.append(charges)
        return spend(self, charges, **rest)

    monkeypatch.setattr(holders.Ledger, "spend", charge_a_trained_row)
    with pytest.raises(BudgetError, match="round 1"):
        model.fit(X, y, public=mask)


def test_who_trains_never_validates_and_private_values_do_not_move_the_split(monkeypatch):
    """Rows are known by a value of their own: those that report, and those whose errors are measured."""
    trained, validated = [], []
    respond_with, errors_of = holders.respond_with, LPDTRegressor._errors_of

    def record(X, *rest, **settings):
        trained[-1].update(X[:, 0].tolist())
        return respond_with(X, *rest, **settings)

    def measure(self, model, rows):
        validated[-1].update(rows.private_rows[:, 0].tolist())
        return errors_of(self, model, rows)

    monkeypatch.setattr(holders, "respond_with", record)
    monkeypatch.setattr(LPDTRegressor, "_errors_of", measure)
    X, y, mask = people(800)
    for labels in (y, np.where(mask, y, y[::-1])):
        trained.append(set())
        validated.append(set())
        model = LPDTRegressor(2.0, random_state=1, candidates=[{}, {"partition": "max-edge"}])
        model.fit(X, labels, public=mask)
        assert not trained[-1] & validated[-1]
        assert len(trained[-1]) + len(validated[-1]) == 650
    assert trained[0] == trained[1]
    assert validated[0] == validated[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_chosen_settings_are_those_of_the_model(kind):
    other = {"lam": 0.0, "prune": "none"}
    fitted = fit(kind, candidates=[{"depth": 0, "mechanism": "grr"}, other], epsilon=8.0)
    assert fitted.tuning_.chosen_candidate == other
    assert (fitted.model_.lam, fitted.model_.prune) == (0.0, "none")
    assert fitted.model_.protocol_digest == fitted.protocol_.digest


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
