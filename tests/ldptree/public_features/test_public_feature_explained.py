"""The share of the label's variance that a fit says public features explain: near the model's own, and its band holds it."""

import re

import numpy as np
import pytest
from first_fast import first_fast
from seeded_words import words

from ldptree.estimators.public_features import PublicFeatureClassifier, PublicFeatureRegressor
from ldptree.families.public_features.summary import (
    Estimate,
    estimate_class_variance,
    estimate_explained,
    estimate_label_variance,
)
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.models.surface import Surface

N = 10_000
SAID = re.compile(r"explain about (\d+)% \((\d+)% to (\d+)%\) of the variance of labels")


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("law", ["normal", "two lumps"])
def test_the_labels_variance_follows_from_how_far_reports_are_out(epsilon, law):
    """Whatever its law. Off by over 4 standard errors in 6e-5 of seeds; where reports do not tell, nothing is said."""
    rng = np.random.default_rng(0)
    numbers = (
        np.clip(rng.normal(0.2, 0.4, 20_000), -1, 1) if law == "normal" else rng.choice([-0.3, 0.9], 20_000)
    )
    mechanism = NUMBERS["optimal_label"].for_budget(epsilon)
    found = estimate_label_variance(
        3 * mechanism.decode(mechanism.randomize(numbers, words(0))), mechanism, 3.0
    )
    if found is None:
        assert epsilon < 1
        return
    # that a mean square is nearly a + b u^2 leaves some hundredths
    assert found.value == pytest.approx(9 * numbers.var(), abs=4 * found.error + 0.03 * 9 * numbers.var())


def test_classes_vary_by_their_mean():
    reports = np.random.default_rng(0).choice([-2.0, 2.0], 50_000, p=[0.4, 0.6])
    found = estimate_class_variance(reports)
    assert found.value == pytest.approx(1 - 0.4**2, abs=4 * found.error)


def test_a_fit_that_follows_noise_explains_nothing():
    """Each fold is predicted by a fit that has not seen it: 100 groups of 20, whose means say nothing."""
    rng = np.random.default_rng(1)
    groups, reports = rng.integers(0, 100, 2000), rng.normal(0, 1, 2000)

    def fit(rows, seen):
        means = np.bincount(rows[:, 0].astype(int), seen, 100) / np.maximum(
            np.bincount(rows[:, 0].astype(int), minlength=100), 1
        )
        return lambda held: means[held[:, 0].astype(int)]

    found = estimate_explained(groups[:, None].astype(float), reports, fit)
    assert found.value < 2 * found.error


def test_a_share_of_what_is_unsure_is_unsure_as_well():
    share = Estimate(value=3.0, error=0.3).over(Estimate(value=4.0, error=0.4))
    assert share.value == 0.75
    assert share.error == pytest.approx(0.75 * np.hypot(0.1, 0.1))
    assert (share.low, share.high) == pytest.approx((0.75 - 2 * share.error, 0.75 + 2 * share.error))
    assert not Estimate(value=0.5, error=0.2).is_precise


@pytest.mark.parametrize("law", first_fast("normal", "skewed"))
def test_what_is_said_to_be_explained_is_what_the_model_explains(law):
    """Of labels cut as they were asked for. A band of 95 %, and .02 as a fold is left out."""
    for epsilon, seed in ((1.0, 1), (4.0, 2)):
        rng = np.random.default_rng(seed)
        X = rng.random((N, 3))
        f = 3 * X[:, 0] + 2 * (X[:, 1] > 0.75)
        y = (
            f + rng.normal(0, 0.7, N)
            if law == "normal"
            else 2000 * np.exp(0.6 * f - 1 + rng.normal(0, 0.3, N))
        )
        found = PublicFeatureRegressor(
            epsilon,
            private_features=[],
            label_range=(-2, 10) if law == "normal" else (0, 50_000),
            random_state=seed,
        ).fit(X, y)
        about, low, high = (int(figure) / 100 for figure in SAID.search(found.model_.says).groups())
        question = found.rounds_[1].question
        middle = question.surface.intercept
        cut = np.clip(y, middle - question.half, middle + question.half)
        share = 1 - np.mean((cut - found.predict(X)) ** 2) / cut.var()
        assert low - 0.02 <= share <= high + 0.02
        assert low <= about <= high
        assert high - low < (0.6 if epsilon == 1.0 else 0.25)
        assert f"cut to {middle - question.half:.4g} to {middle + question.half:.4g}" in found.model_.says


def test_where_reports_do_not_tell_no_share_is_said():
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    found = PublicFeatureRegressor(0.5, private_features=[], label_range=(-2, 4), random_state=0).fit(
        X, X[:, 0]
    )
    assert found.model_.says.startswith("These reports do not tell how much")


def test_of_classes_the_share_is_said_as_well():
    rng = np.random.default_rng(0)
    X = rng.random((4000, 2))
    y = (rng.random(4000) < 0.1 + 0.8 * (X[:, 0] > 0.5)).astype(int)
    found = PublicFeatureClassifier(4.0, private_features=[], random_state=0).fit(X, y)
    _, low, high = (int(figure) / 100 for figure in SAID.search(found.model_.says).groups())
    assert low - 0.02 <= 0.64 <= high + 0.02


def test_an_effect_is_published_alike_where_libraries_differ_in_their_last_digits():
    """A question is known by its bytes: another digit in the sixteenth place would draw other reports."""
    rng = np.random.default_rng(5)
    means, chances = rng.normal(size=1000), rng.random(1000)
    for mean, chance in zip(means, chances, strict=True):
        own, other = (
            Surface((0,), np.zeros(1), value, np.array([value])).times(factor)
            for value, factor in ((mean, chance), (np.nextafter(mean, 9.0), np.nextafter(chance, 0.0)))
        )
        assert own.intercept == other.intercept
        assert own.slopes == other.slopes
        assert own.intercept == pytest.approx(mean * chance, rel=1e-8)
