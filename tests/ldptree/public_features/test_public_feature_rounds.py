"""The curator's questions as values, and what it makes of answers."""

import json

import numpy as np
import pytest

from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.oracles import Words
from ldptree.oracles.subset import SubsetSelection
from ldptree.public_features import QUESTIONS, PublicFeatures
from ldptree.public_features.contrast import SHAPES, SQUARE, Contrast
from ldptree.public_features.label_law import BINS, bin_of, half_width, normal_law
from ldptree.public_features.plan import plan
from ldptree.public_features.roles import Part
from ldptree.rounds import Shown, converse

N = 600


def words(seed=0):
    return Words.seeded(np.random.SeedSequence(seed))


def conversation(n=N, **settings):
    rng = np.random.default_rng(0)
    rows, labels = rng.random((n, 3)), rng.normal(0.5, 1, n)
    protects = np.tile([True, False, False], (n, 1))
    curator = PublicFeatures(
        epsilon=2.0, columns=("a", "b", "c"), low=(0.0,) * 3, high=(1.0,) * 3,
        label_low=-4.0, label_high=6.0, ask_private="always", **settings,
    )  # fmt: skip
    coins = words(1)
    shown = Shown.of(rows, protects)
    return shown, *converse(
        curator, shown, lambda q, at: q.randomize(rows[at], labels[at], protects[at], coins)
    )


def test_every_question_comes_back_from_its_text_and_asks_the_same():
    shown, _, answers = conversation()
    kinds = [a.question.kind for a in answers]
    assert kinds[:3] == [*QUESTIONS]
    rows, labels = np.random.default_rng(5).random((20, 3)), np.linspace(-1, 2, 20)
    for answer in answers:
        question = answer.question
        plain = json.loads(json.dumps(question.to_json()))
        again = QUESTIONS[question.kind].from_json(plain)
        assert again.to_json() == question.to_json()
        assert np.array_equal(again.asked(shown), answer.holders)
        mask = np.zeros((20, 3), dtype=bool)
        sent = [q.randomize(rows, labels, mask, words(3)) for q in (question, again)]
        assert np.array_equal(*sent)
        for name in plain:
            with pytest.raises(ProtocolMismatch):
                QUESTIONS[question.kind].from_json({**plain, name: {"x": []}})
            with pytest.raises(ProtocolMismatch):
                QUESTIONS[question.kind].from_json({k: v for k, v in plain.items() if k != name})


def test_a_run_that_stops_between_rounds_goes_on_with_the_same_question():
    """A curator made anew, which remembers nothing, asks and fits the same."""
    shown, model, answers = conversation()
    fresh = PublicFeatures(
        epsilon=2.0, columns=("a", "b", "c"), low=(0.0,) * 3, high=(1.0,) * 3,
        label_low=-4.0, label_high=6.0, ask_private="always",
    )  # fmt: skip
    for k, answer in enumerate(answers):
        assert fresh.ask(shown, answers[:k]).to_json() == answer.question.to_json()
    assert fresh.ask(shown, answers) is None
    assert fresh.fit(shown, answers).digest == model.digest


def test_round_0_finds_the_law_of_the_label():
    """3,000 reports at epsilon 2; the mean's standard error is about .06, so .3 is 5 of them."""
    labels = np.random.default_rng(1).normal(2.0, 1.5, 3000)
    oracle = SubsetSelection.for_budget(2.0, BINS)
    reports = oracle.randomize(bin_of(labels, -10.0, 10.0), words(2))
    ratio = oracle.p * (BINS - oracle.size) / ((1 - oracle.p) * oracle.size)
    law = normal_law(oracle.supports(reports), ratio, -10.0, 10.0)
    assert law.mean == pytest.approx(2.0, abs=0.3)
    assert law.sd == pytest.approx(1.5, abs=0.3)
    assert law.at_ends < 0.05
    mechanism = NUMBERS["optimal_label"].for_budget(2.0)
    few, many = (half_width(law, mechanism, n, 10.0) for n in (100, 1_000_000))
    assert 1.5 * law.sd <= few < many <= 10.0


@pytest.mark.parametrize("shape", SHAPES)
def test_a_contrast_has_mean_0_and_its_stated_square_whatever_the_feature_is(shape):
    x = np.random.default_rng(0).beta(2, 5, 200_000)
    ranks = tuple(np.searchsorted(np.sort(x), np.linspace(0, 1, 17)) / x.size)
    contrast = Contrast(0, shape, (0.0, *ranks[1:-1], 1.0))
    value = contrast(x[:, None])
    assert np.abs(value).max() <= 1
    assert abs(value.mean()) < 0.02
    assert (value**2).mean() == pytest.approx(SQUARE, abs=0.02)
    assert contrast(np.array([[np.nan]]))[0] == 0


def test_holders_are_shared_out_without_rest_and_private_features_must_pay():
    protects = np.tile([True, True, False, False, False], (9000, 1))
    rich = plan(protects, 8000, spread=1.0, report=1.0)
    assert rich.contrasts[0] == (0, "rise")
    assert rich.n_label + sum(rich.n_contrast) + rich.n_bins * len(rich.binned) == 8000
    poor = plan(protects, 8000, spread=1.0, report=100.0)
    assert poor.contrasts == ()
    assert poor.n_label == 8000
    assert plan(protects[:40], 36, spread=1.0, report=1e-6).contrasts == ()


def test_roles_are_the_same_everywhere_and_cover_everybody():
    assert Part(7, 0, 4).among(10).tolist() == [2, 3, 6, 9]
    parts = [Part(2**63, a, b).among(100) for a, b in ((0, 30), (30, 99), (99, 100))]
    assert sorted(np.concatenate(parts)) == list(range(100))
    with pytest.raises(ProtocolMismatch, match="there are 5"):
        Part(1, 0, 6).among(5)
    with pytest.raises(ProtocolMismatch):
        Part(-1, 0, 6)


def test_an_inverted_range_and_nobody_left_are_one_clear_error():
    with pytest.raises(ConfigError, match="swap them"):
        PublicFeatures(epsilon=1.0, columns=("a",), low=(0.0,), high=(1.0,), label_low=2.0, label_high=1.0)
    with pytest.raises(DataError, match="nobody is left for a role"):
        conversation(n=1)


def test_a_forged_answer_is_not_counted():
    _, _, answers = conversation()
    for answer in answers:
        bad = np.full_like(answer.reports, 255)
        assert not answer.question.is_valid(bad).any()
