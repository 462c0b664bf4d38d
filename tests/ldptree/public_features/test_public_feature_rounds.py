"""The curator's questions as values, and what it makes of answers."""

from functools import cache

import numpy as np
import pytest
from seeded_words import words

from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.families.family import converse, respond_in_rounds
from ldptree.families.public_features import PublicFeatures
from ldptree.families.public_features.allocation import (
    Part,
    Stake,
    allocate,
    divide_holders,
    size_first_parts,
)
from ldptree.families.public_features.effects import effect_probabilities
from ldptree.families.public_features.label import (
    LABEL_BINS,
    LabelDistribution,
    choose_half_width,
    fit_normal,
    label_bin_of,
)
from ldptree.families.public_features.questions import ResidualQuestion
from ldptree.families.public_features.transcript import count_shares, shares_from_reports
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.mechanisms.oracles.subset import SubsetSelection
from ldptree.models.surface import SHAPES, Contrast
from ldptree.protocol.question import PublicView
from ldptree.serialize import of_plain

N = 600


@cache
def conversation(n=N, private=(True, False, False), **settings):
    rng = np.random.default_rng(0)
    rows, labels = rng.random((n, 3)), rng.normal(0.5, 1, n)
    protects = np.tile(private, (n, 1))
    curator = PublicFeatures(
        epsilon=2.0, columns=("a", "b", "c"), low=(0.0,) * 3, high=(1.0,) * 3,
        label_low=-4.0, label_high=6.0, ask_private="always", **settings,
    )  # fmt: skip
    coins = words(1)
    shown = PublicView.of(rows, protects)
    answer = respond_in_rounds(shown, lambda q, at: q.randomize(rows[at], labels[at], protects[at], coins))
    return shown, *converse(curator, shown, answer)


def test_round_0_finds_the_law_of_the_label():
    """3,000 reports at epsilon 2; the mean's standard error is about .06, so .3 is 5 of them."""
    labels = np.random.default_rng(1).normal(2.0, 1.5, 3000)
    oracle = SubsetSelection.for_values(2.0, LABEL_BINS)
    reports = oracle.randomize(label_bin_of(labels, -10.0, 10.0), words(2))
    ratio = oracle.p * (LABEL_BINS - oracle.size) / ((1 - oracle.p) * oracle.size)
    law = fit_normal(oracle.supports(reports), ratio, -10.0, 10.0)
    assert law.mean == pytest.approx(2.0, abs=0.3)
    assert law.sd == pytest.approx(1.5, abs=0.3)
    assert law.at_ends < 0.05
    mechanism = NUMBERS["optimal_label"].for_budget(2.0)
    few, many = (choose_half_width(law, mechanism, n, 10.0) for n in (100, 1_000_000))
    assert 1.5 * law.sd <= few < many <= 10.0


def test_reports_that_all_lie_at_an_end_say_that_round_0_was_far_off():
    """Labels N(4.7, 1.7^2) that round 0 took for N(9.8, 1.9^2), give or take 1.4, were cut to 6.9 .. 12.5: their mean is 6.9."""
    means = np.linspace(0.0, 12.0, 121)
    weights = np.exp(-(((means - 9.8) / 1.4) ** 2) / 2)
    law = LabelDistribution(means, np.full(means.size, 1.9), weights / weights.sum(), 0.0)
    rng = np.random.default_rng(1)
    labels = np.clip(rng.normal(4.7, 1.7, 4000), law.mean - 2.8, law.mean + 2.8)
    found = [
        law.estimate_mean(rng.choice(labels, 300) + rng.normal(0.0, 6.0, 300), law.mean, 2.8, (-20.0, 40.0))
        for _ in range(50)
    ]
    assert labels.mean() > 6.8
    assert np.mean(found) < 6.5


@pytest.mark.parametrize("noise", [0.0, 0.5, 5.0])
def test_where_round_0_was_right_the_level_is_what_reports_say(noise):
    law = LabelDistribution(np.linspace(-0.2, 0.2, 41), np.full(41, 1.5), np.full(41, 1 / 41), 0.0)
    rng = np.random.default_rng(1)
    labels = np.clip(rng.normal(0.0, 1.5, 100_000), -3.0, 3.0)
    reports = labels + rng.normal(0.0, noise, labels.size)
    error = max(reports.std(), 1e-3) / labels.size**0.5
    assert law.estimate_mean(reports, law.mean, 3.0, (-20.0, 20.0)) == pytest.approx(
        reports.mean(), abs=3 * error
    )


FEATURES = {
    "skewed": lambda g, n: g.beta(2, 5, n),
    "many levels": lambda g, n: g.integers(0, 7, n) / 6,
    "3 levels": lambda g, n: g.choice([0.0, 0.5, 1.0], n, p=[0.5, 0.3, 0.2]),
    "binary": lambda g, n: g.choice([0.0, 1.0], n),
    "rare": lambda g, n: g.choice([0.0, 1.0], n, p=[0.98, 0.02]),
    "constant": lambda g, n: np.ones(n),
}


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_contrast_has_mean_0_and_its_stated_square_whatever_the_feature_is(shape, name):
    x = FEATURES[name](np.random.default_rng(0), 20_000)
    contrast = Contrast(0, shape, count_shares(x))
    value = contrast(x[:, None])
    assert np.abs(contrast.values).max() <= 1
    assert value.mean() == pytest.approx(0.0, abs=1e-9)
    assert (value**2).mean() == pytest.approx(contrast.square)
    levels = np.unique(x).size
    is_anything = levels >= (2 if shape == "rise" else 3)
    assert np.abs(value).max() == pytest.approx(1.0 if is_anything else 0.0)
    assert (contrast.square > 0) == is_anything
    assert contrast(np.array([[np.nan]]))[0] == 0


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 43.0])
def test_noise_in_reported_shares_makes_no_constant_vary_and_no_levels_more(epsilon):
    """500 reports. A constant looks varied in 2 % of seeds; 10 seeds with 4 or more of them: 4e-5. The same of two levels."""
    oracle, constants, pairs = SubsetSelection.for_values(epsilon, 16), 0, 0
    for seed in range(10):
        found = shares_from_reports(oracle, oracle.randomize(np.full(500, 7), words(seed)))
        constants += Contrast(0, "rise", found).square == 0
        found = shares_from_reports(oracle, oracle.randomize(np.arange(500) % 2 * 15, words(seed)))
        pairs += Contrast(0, "bowl", found).square == 0 < Contrast(0, "rise", found).square
    assert constants >= 7
    assert pairs >= 7


def test_reported_shares_of_what_is_spread_are_near_those_there_are():
    """2,000 reports at epsilon 2: each share's standard error is about .016, and shrinking only lessens it."""
    oracle = SubsetSelection.for_values(2.0, 16)
    true = np.minimum(np.arange(16), 4.0) + 0.5
    true /= true.sum()
    bins = np.random.default_rng(1).choice(16, 2000, p=true)
    found = np.array(shares_from_reports(oracle, oracle.randomize(bins, words(0))))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1.0)
    assert np.abs(found - true).max() < 4 * 0.016


@pytest.mark.parametrize(
    "plain",
    [
        {"feature": 0, "shape": "rise", "ranks": [k / 16 for k in range(17)]},
        {"feature": 0, "shape": "rise", "shares": [1 / 15] * 15},
        {"feature": 0, "shape": "rise", "shares": [1 / 15] * 16},
        {"feature": 0, "shape": "rise", "shares": [-0.5, 1.5] + [0.0] * 14},
        {"feature": 0, "shape": "rise", "shares": [float("nan")] + [1 / 15] * 15},
        {"feature": 0, "shape": "rise", "shares": ["1"] + [0.0] * 15},
        {"feature": True, "shape": "rise", "shares": [1 / 16] * 16},
        {"feature": 0, "shape": "step", "shares": [1 / 16] * 16},
    ],
)
def test_what_is_no_contrast_is_refused(plain):
    with pytest.raises(DataError, match="contrast"):
        of_plain(Contrast, plain, of="contrast")


def expected(question, row, label):
    """The mean of a holder's decoded reports."""
    reports, chances = zip(*question.law(row, label, np.zeros(row.size, dtype=bool)), strict=True)
    return float(question.decode(np.stack(reports)) @ np.array(chances, dtype=np.float64))


def test_a_later_contrast_asks_about_what_earlier_effects_leave():
    _, model, answers = conversation(private=(True, True, False))
    asked = [a.question for a in answers if isinstance(a.question, ResidualQuestion)]
    contrasts = [q for q in asked if q.contrast is not None]
    places = {(q.contrast.feature, q.contrast.shape): k for k, q in reversed(list(enumerate(contrasts)))}
    assert [len(q.effects) for q in contrasts] == [
        places[q.contrast.feature, q.contrast.shape] for q in contrasts
    ]
    assert len(places) >= 2
    assert ["effects" in q.to_json() for q in asked] == [bool(q.effects) for q in asked]
    last = max(contrasts, key=lambda q: len(q.effects))
    assert [e.contrast for e in last.effects] == [e.contrast for e in model.effects[: len(last.effects)]]
    row, label = np.array([0.9, 0.1, 0.4]), 0.5
    at = row[None, :]
    left = (
        label
        - last.surface(at)
        - sum(effect.coefficient(at) * effect.contrast(at) for effect in last.effects)
    )
    assert abs(left) < last.half
    assert expected(last, row, label) == pytest.approx((left * last.contrast(at)).item())
    with pytest.raises(ProtocolMismatch, match="left out"):
        ResidualQuestion.from_json({**asked[0].to_json(), "effects": []})


def test_private_features_must_pay():
    protects = np.tile([True, True, False, False, False], (9000, 1))
    rich = allocate(protects, 8000, spread=1.0, report=1.0)
    assert rich.shapes[0] == "rise"
    assert rich.left + rich.n_bins * len(rich.binned) == 8000
    poor = allocate(protects, 8000, spread=1.0, report=100.0)
    assert poor.shapes == poor.binned == ()
    assert poor.left == 8000
    assert allocate(protects[:40], 36, spread=1.0, report=1e-6).shapes == ()


def test_holders_go_where_one_more_brings_as_much_as_anywhere():
    """By the slopes of what is lost, worked out by differences."""
    stakes = [
        Stake(noise=3.0, gain=0.5),
        Stake(noise=9.0, gain=0.2, chance=0.4),
        Stake(noise=50.0, gain=1e-3),
    ]
    label, sizes = divide_holders(stakes, 6000, n_line=1, report=2.0)
    assert label + sum(sizes) == 6000
    assert sizes[2] == 0

    def brings(stake, n):
        lost = [
            stake.chance * stake.gain * v / (stake.gain + v) for v in (stake.noise / n, stake.noise / (n + 1))
        ]
        return lost[0] - lost[1]

    slopes = [brings(stake, size) for stake, size in zip(stakes[:2], sizes, strict=False)]
    of_label = 2.0 * 2 * 2.0 * (1 / label - 1 / (label + 1))
    assert slopes == pytest.approx([of_label] * 2, rel=0.01)
    # who answered already stays, and nobody is called in vain
    label, sizes = divide_holders(
        [Stake(noise=50.0, gain=1e-3, asked=70)], 6000, n_line=1, report=2.0, asked=100
    )
    assert (label, sizes) == (5930, (70,))


@pytest.mark.parametrize("k", [1, 3, 7, 30])
def test_first_parts_take_a_quarter_of_the_holders_at_most(k):
    _, sizes = divide_holders([Stake(noise=3.0, gain=0.5)] * k, 6000, n_line=3, report=2.0)
    first = size_first_parts(sizes, 6000)
    assert sum(first) <= 1500
    assert all(2 * part <= size for part, size in zip(first, sizes, strict=True))


def test_a_feature_is_believed_by_its_own_answers_and_by_those_of_others():
    ratios = np.full(7, 4.0)
    none, one, most = (
        effect_probabilities(np.array(sizes), ratios)
        for sizes in ([0.5] * 7, [0.5] * 6 + [5.0], [5.0] * 6 + [0.5])
    )
    assert none.max() < 0.2
    assert one[-1] > 0.9
    assert most[-1] > 2 * none[-1]
    # alone, with half a chance before: by Bayes' rule with a variance of 5 against 1
    factor = 5**-0.5 * np.exp(1.5**2 * (1 - 1 / 5) / 2)
    assert effect_probabilities(np.array([1.5]), np.array([4.0])) == pytest.approx(
        [factor / (1 + factor)], abs=1e-3
    )


def test_roles_are_the_same_everywhere_and_cover_everybody():
    assert Part(7, 0, 4).select(10).tolist() == [2, 3, 6, 9]
    parts = [Part(2**63, a, b).select(100) for a, b in ((0, 30), (30, 99), (99, 100))]
    assert sorted(np.concatenate(parts)) == list(range(100))
    with pytest.raises(ProtocolMismatch, match="there are 5"):
        Part(1, 0, 6).select(5)
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
