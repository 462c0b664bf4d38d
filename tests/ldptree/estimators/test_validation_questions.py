"""A validation holder's one report: its epsilon is never exceeded, its estimates are unbiased, its deviations are true."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from ldptree.coins import RATE_UNIT, Words, log_up
from ldptree.errors import ConfigError, DataError
from ldptree.estimators.tuning.choice import choose, expected_excess
from ldptree.estimators.tuning.losses import PublicLosses, largest_difference
from ldptree.estimators.tuning.questions import (
    QUESTIONS,
    STEPS,
    AllErrors,
    Difference,
    Estimates,
    advanced_composition,
)
from ldptree.estimators.tuning.reports import CHOICES, question_for

LISTED = [name for name in QUESTIONS if name != "laplace"]
EPSILONS = (0.1, 1.0, 4.0)
MODELS = np.array([[0.2, 0.9], [0.5, 0.5], [0.9, 0.1], [0.2, 0.8]])
"""What four candidates predict in either of two cells."""


def words(*key):
    return Words.seeded(np.random.SeedSequence([20261121, *key]))


def everybody(loss):
    """Losses [people, candidates] of everyone there can be: both cells, labels on a grid and beyond the range."""
    labels = np.linspace(-0.5, 1.5, 9) if loss == "squared" else np.array([0.0, 1.0])
    rows = list(itertools.product(range(2), labels))
    if loss == "squared":
        return np.array([(MODELS[:, x] - y) ** 2 for x, y in rows])
    return np.array([((MODELS[:, x] > 0.5) != y).astype(float) for x, y in rows])


def worst_ratio(laws):
    assert all(sum(chance for _, chance in law) == 1 for law in laws)
    tables = [{np.asarray(report).tobytes(): chance for report, chance in law} for law in laws]
    return max(a[output] / b[output] for a in tables for b in tables for output in a)


@pytest.mark.parametrize("loss", ["squared", "0/1"])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", LISTED)
def test_no_holder_says_more_than_epsilon(name, epsilon, loss):
    """Every (x, y), every report, every candidate one may be asked about, in rational numbers."""
    question, losses = QUESTIONS[name].for_budget(epsilon, [0.3] * 4), everybody(loss)
    assert question.epsilon <= epsilon
    ratios = [
        worst_ratio([question.law(row, int(asked)) for row in losses])
        for asked in np.unique(question.assign(100))
    ]
    assert max(ratios) > 1
    assert log_up(max(ratios)) <= question.epsilon


@pytest.mark.parametrize("name", ["difference", "one-model"])
def test_enumeration_catches_a_holder_who_answers_about_two_models_with_all_of_epsilon(name):
    question, losses = QUESTIONS[name].for_budget(1.0, [0.3] * 4), everybody("squared")

    def both(row):
        laws = [question.law(row, asked) for asked in (1, 2)]
        return [(np.array([a, b]), p * q) for (a, p), (b, q) in itertools.product(*laws)]

    assert log_up(worst_ratio([both(row) for row in losses])) > 1.5


def test_laplace_spends_what_its_integers_say():
    """P(report | levels) ~ prod e^(-r |x - level|): the worst exponent over levels and reports, in rational numbers."""
    ends = [0, STEPS // 2, STEPS]
    worst = max(
        sum(abs(x - b) - abs(x - a) for x, a, b in zip(report, one, other, strict=True))
        for one in itertools.product(ends, repeat=3)
        for other in itertools.product(ends, repeat=3)
        for report in itertools.product([-5, 0, STEPS // 2, STEPS, STEPS + 5], repeat=3)
    )
    assert worst == 3 * STEPS
    for epsilon in EPSILONS:
        question = AllErrors.for_budget(epsilon, [0.3] * 3)
        assert float(worst * Fraction(question.rate, RATE_UNIT)) <= question.epsilon <= epsilon


def test_laplace_draws_that_law():
    """40,000 reports at level 20 with a rate of about .5: z below 5.5 at each of 21 outputs (false alarm 1e-6)."""
    question = AllErrors((64.0, 64.0), RATE_UNIT // 2)
    n = 40_000
    losses = np.full((n, 2), 20.0)
    reports = question.randomize(losses, question.assign(n), words(3))[:, 0] - 20
    scale = math.tanh(0.25)
    for x in range(-10, 11):
        p = scale * math.exp(-abs(x) / 2)
        assert abs((reports == x).sum() - n * p) < 5.5 * math.sqrt(n * p * (1 - p))


def test_the_papers_noise_spends_more_than_it_says():
    """Noise of range sqrt(k) / eps: sqrt(k) eps, and by advanced composition more than eps at any delta one would state."""
    for k, epsilon in itertools.product((2, 9, 64), (0.5, 2.0)):
        printed = AllErrors.as_printed(epsilon, [1.0] * k)
        assert printed.epsilon == pytest.approx(math.sqrt(k) * epsilon, rel=1e-4)
        for delta in (1e-6, 1e-2, 0.5):
            assert advanced_composition(epsilon / math.sqrt(k), k, delta) > epsilon


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("name", LISTED)
def test_reports_are_drawn_with_the_stated_chances(name, epsilon):
    """20,000 holders with the same losses: z below 5.5 for each output (false alarm 4e-8 each)."""
    question, n = QUESTIONS[name].for_budget(epsilon, [0.3] * 4), 20_000
    losses = everybody("squared")[2]
    asked = np.full(n, question.assign(100)[-1])
    reports = question.randomize(np.tile(losses, (n, 1)), asked, words(5))
    for report, chance in question.law(losses, int(asked[0])):
        p, seen = float(chance), (reports == report).reshape(n, -1).all(axis=1).sum()
        assert abs(seen - n * p) < 5.5 * math.sqrt(n * p * (1 - p)) + 1


@pytest.mark.parametrize("name", QUESTIONS)
def test_estimates_are_unbiased_and_their_deviations_true(name):
    """150 runs of 400 holders at eps 2: means within 5 standard errors, deviations within 32 % (5.5 standard errors)."""
    question = QUESTIONS[name].for_budget(2.0, [1.0] * 3)
    rng = np.random.default_rng(1)
    losses = rng.random((400, 3)) * [0.5, 0.8, 1.0]
    truth = losses.mean(axis=0)
    if name == "difference":
        truth = truth - truth[0]
    runs = []
    for run in range(150):
        # the order is drawn by public coins
        mine, asked = losses[rng.permutation(400)], question.assign(400)
        runs.append(question.estimate(question.randomize(mine, asked, words(7, run)), asked))
    values, stated = np.stack([e.value for e in runs]), np.stack([e.sd for e in runs]).mean(axis=0)
    first = int(question.assign(9)[0] == 1)
    assert (np.abs(values.mean(axis=0) - truth)[first:] < 5 * stated[first:] / math.sqrt(150)).all()
    assert (np.abs(values.std(axis=0)[first:] / stated[first:] - 1) < 0.32).all()
    assert (values[:, :first] == 0).all()


def test_holders_are_asked_about_all_models_equally_often():
    for n in (1, 2, 7, 100, 1001):
        asked = Difference.for_budget(1.0, [1.0] * 4).assign(n)
        counts = np.bincount(asked, minlength=4)
        assert counts[0] == 0
        assert counts[1:].max() - counts[1:].min() <= 1
        assert (np.diff(asked) >= 0).all()


def test_a_model_nobody_was_asked_about_is_not_chosen():
    question = Difference.for_budget(1.0, [1.0] * 9)
    asked = question.assign(4)
    estimates = question.estimate(question.randomize(np.zeros((4, 9)), asked, words(1)), asked)
    assert np.isinf(estimates.sd[1:]).all()
    assert choose(*expected_excess(estimates, np.zeros((0, 9)))) == 0


def test_the_first_stays_unless_another_is_surely_better():
    def chosen(value, sd):
        return choose(
            *expected_excess(Estimates(np.array(value), np.array(sd), first_is_known=True), np.zeros((0, 3)))
        )

    assert chosen([0, -0.1, 0.2], [0, 0.2, 0.01]) == 0
    assert chosen([0, -0.1, 0.2], [0, 0.02, 0.01]) == 1
    # a sure small gain before a doubtful large one
    assert chosen([0, -0.1, -0.5], [0, 0.02, 0.6]) == 1


def test_public_rows_keep_a_hopeless_candidate_out_and_give_way_to_reports():
    rng = np.random.default_rng(0)
    public = rng.random((100, 2)) * [1.0, 6.0]
    lucky = Estimates(np.array([0.0, -5.0]), np.array([0.0, 4.0]), first_is_known=True)
    sure = Estimates(np.array([0.0, -0.2]), np.array([0.0, 0.01]), first_is_known=True)
    assert choose(*expected_excess(lucky, public[:0])) == 1
    assert choose(*expected_excess(lucky, public)) == 0
    # private people are others: the reports say so, and they are believed
    assert choose(*expected_excess(sure, public)) == 1


def test_the_quieter_question_is_asked():
    rng = np.random.default_rng(0)
    base = rng.random((200, 1))
    alike = base + 0.01 * rng.random((200, 4))
    apart = (rng.random((200, 4)) < 0.3).astype(float)
    near = question_for("auto", 1.0, PublicLosses(alike, 1.0, [0, *[0.01] * 3]), 1000)
    assert near.name == "difference"
    assert max(near.ranges[1:]) <= 0.01
    far = question_for("auto", 1.0, PublicLosses(apart, 1.0, [0, *[1.0] * 3]), 1000)
    assert far.name == "one-model"
    for choice in CHOICES:
        asked = question_for(choice, 0.7, PublicLosses(apart[:0], 1.0, [0, *[1.0] * 3]), 1000)
        assert asked.epsilon <= 0.7
        assert json.loads(asked.to_json())["question"] == asked.name


def test_a_difference_is_never_larger_than_its_bound():
    rng = np.random.default_rng(0)
    first, other = rng.random(20), rng.random(20)
    y = rng.random((500, 1))
    seen = np.abs((first - y) ** 2 - (other - y) ** 2).max()
    bound = largest_difference(first, other, 0.0, 1.0)
    assert seen <= bound <= 1.1 * seen


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_makes_no_sense_is_refused(name):
    kind = QUESTIONS[name]
    for epsilon in (0.0, -1.0, math.nan):
        with pytest.raises(ConfigError):
            kind.for_budget(epsilon, [1.0, 1.0])
    for ranges in ([1.0], [1.0, 0.0], [1.0, math.inf]):
        with pytest.raises(ConfigError):
            kind.for_budget(1.0, ranges)
    question = kind.for_budget(1.0, [1.0] * 3)
    asked = question.assign(6)
    for losses in (np.zeros((6, 2)), np.zeros((5, 3)), np.full((6, 3), np.nan)):
        with pytest.raises(DataError, match="losses of shape"):
            question.randomize(losses, asked, words(1))
    with pytest.raises(DataError):
        question.estimate(np.zeros((6, 7)), asked)
    with pytest.raises(ConfigError, match="known are auto"):
        question_for("sue", 1.0, PublicLosses(np.zeros((0, 2)), 1.0, [0, 1]), 9)
