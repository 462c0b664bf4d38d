"""The rivals of the regression papers keep the guarantee they claim, or a test shows what they break."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.utils.estimator_checks import check_estimator

from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.oracles.grr import Grr
from ldptree_benchmark.rivals import REGRESSORS
from ldptree_benchmark.rivals.deconvolution import DeconvolutionRegressor
from ldptree_benchmark.rivals.histograms import PHISTRegressor
from ldptree_benchmark.rivals.krr import KaryResponseRegressor
from ldptree_benchmark.rivals.label_dt import LabelTreeRegressor, PublicPartTreeRegressor
from ldptree_benchmark.rivals.noisy_regressor import seed_of

FALSE_ALARM = 1e-3
"""Of each statistical test, with fixed seeds."""


def steps(n, seed=0, noise=0.1):
    """1 in the upper half of the first feature, -1/2 in the lower."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.where(X[:, 0] > 0.5, 1.0, -0.5) + noise * rng.normal(size=n)


@pytest.mark.parametrize("name", sorted(REGRESSORS))
def test_rivals_are_estimators_of_scikit_learn(name):
    settings = {"epsilon": 8.0, "random_state": 0} if name in {"label_dt", "par_dt"} else {}
    results = check_estimator(REGRESSORS[name](**settings), on_fail=None, on_skip=None)
    failed = [r for r in results if r["status"] == "failed"]
    assert [(r["check_name"], r["exception"]) for r in failed] == []


@pytest.mark.parametrize("name", sorted(REGRESSORS))
def test_a_seed_repeats_a_simulation_and_none_does_not(name):
    X, y = steps(200)
    predictions = [REGRESSORS[name](1.0, random_state=s).fit(X, y).predict(X) for s in (1, 1, None, None)]
    np.testing.assert_array_equal(predictions[0], predictions[1])
    assert not np.array_equal(predictions[2], predictions[3])


def inputs(d):
    """Every corner and the middle, inside the range and outside it, with labels at both ends, between and beyond."""
    places = np.array(np.meshgrid(*[[-3.0, 0.0, 0.4, 1.0, 7.0]] * d)).reshape(d, -1).T
    labels = np.array([-9.0, -2.0, 0.0, 3.0, 50.0])
    return np.repeat(places, labels.size, axis=0), np.tile(labels, len(places))


@pytest.mark.parametrize("bins", [2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("label_range", [(-2.0, 3.0), (-3.0, 3.0), (0.0, 3.0)])
def test_no_two_rows_can_be_told_apart_by_more_than_epsilon(bins, epsilon, label_range):
    model = PHISTRegressor(epsilon, label_range=label_range, bins=bins)
    answers, scales = model.answers(*inputs(2))
    # The log density ratio of two reports is at most the L1 distance in units of the scales, and reaches it.
    worst = max(np.abs(answers - answer).dot(1 / scales).max() for answer in answers)
    assert worst <= epsilon * (1 + 1e-12)
    assert worst > epsilon / 2


def test_the_histogram_spends_all_of_epsilon_where_labels_lie_on_both_sides_of_0():
    answers, scales = PHISTRegressor(1.5, bins=2, label_range=(-3.0, 3.0)).answers(*inputs(1))
    worst = max(np.abs(answers - answer).dot(1 / scales).max() for answer in answers)
    assert worst == pytest.approx(1.5)


@pytest.mark.parametrize("d", [1, 3])
def test_deconvolution_spends_half_of_epsilon_on_features_and_half_on_the_label(d):
    """The largest log density ratio of Laplace noise: a range of 1 a feature, and of 5 for the label, in units of the scales."""
    model = DeconvolutionRegressor(1.5, label_range=(-2.0, 3.0), feature_range=(-3.0, 7.0), random_state=0)
    assert (np.array([1.0] * d + [5.0]) / model.scales(d)).sum() == pytest.approx(1.5)
    X, y = inputs(d)
    sent = model.fit(X, y).reports_ - np.random.default_rng(seed_of(0)).laplace(
        size=(len(y), d + 1)
    ) * model.scales(d)
    assert sent.min(axis=0) == pytest.approx([0.0] * d + [-2.0])
    assert sent.max(axis=0) == pytest.approx([1.0] * d + [3.0])


def test_the_sums_that_fit_draws_are_those_of_reports():
    """Two-sample Kolmogorov-Smirnov of the one cell's prediction, both ways, false alarm 1e-3."""
    rng = np.random.default_rng(5)
    X, y = rng.random((40, 1)), rng.uniform(-1, 1, 40)
    drawn = [
        PHISTRegressor(8.0, bins=1, threshold=0.0, random_state=s).fit(X, y).values_[0] for s in range(600)
    ]
    answers, scales = PHISTRegressor(8.0, bins=1).answers(X, y)
    sums = (answers + scales * rng.laplace(size=(600, *answers.shape))).sum(axis=1)
    reported = np.where(sums[:, 0] > 0, sums[:, 1] / sums[:, 0], 0.0)
    assert ks_2samp(drawn, reported).pvalue > FALSE_ALARM


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("s", [0, 1, 3])
def test_k_ary_response_spends_epsilon_over_protected_values_and_label(k, s):
    epsilon, label_range = 2.0, (-1.0, 4.0)
    protects = np.zeros((1, 3), dtype=bool)
    protects[:, :s] = True
    model = KaryResponseRegressor(epsilon, bins=k, label_range=label_range)
    oracle = Grr.for_values(float(model.epsilon_each(protects)[0]), k)
    laws = [oracle.law(value) for value in range(k)]
    ratio = max(a[output] / b[output] for a in laws for b in laws for output in a)
    of_label = math.exp((label_range[1] - label_range[0]) / model.label_scales(protects)[0])
    assert ratio**s * Fraction(of_label) <= Fraction(math.exp(epsilon) * (1 + 1e-9))


def test_k_ary_response_answers_as_its_law_and_leaves_shown_values_alone():
    """Counts of the reported bins against the oracle's law, chi-square by normal bounds of 4 standard errors."""
    n, k = 20_000, 3
    rng = np.random.default_rng(2)
    X, y = rng.random((n, 2)), np.zeros(n)
    protects = np.zeros((n, 2), dtype=bool)
    protects[: n // 2, 0] = True
    model = KaryResponseRegressor(2.0, bins=k, max_depth=1, random_state=3).fit(X, y, protects=protects)
    np.testing.assert_array_equal(model.reports_[:, :2][~protects], X[~protects])
    told, true = ((values[: n // 2, 0] * k).astype(int) for values in (model.reports_, X))
    p = Grr.for_values(1.0, k).p
    kept = (told == true).mean()
    assert abs(kept - p) < 4 * math.sqrt(p * (1 - p) / (n // 2))
    spread = model.reports_[: n // 2, 2].std(), model.reports_[n // 2 :, 2].std()
    assert spread[0] == pytest.approx(2 * math.sqrt(2) / 1.0, rel=0.05)  # half of epsilon for the label
    assert spread[1] == pytest.approx(2 * math.sqrt(2) / 2.0, rel=0.05)  # all of it


@pytest.mark.parametrize(
    ("model", "tolerance"),
    [
        (PHISTRegressor(64.0, bins=2, label_range=(-2, 2), random_state=0), 0.05),
        (KaryResponseRegressor(64.0, bins=4, max_depth=2, label_range=(-2, 2), random_state=0), 0.05),
    ],
    ids=lambda model: type(model).__name__,
)
def test_with_nearly_no_noise_everyone_finds_the_truth(model, tolerance):
    X, y = steps(8_000)
    test = np.array([[0.2, 0.3], [0.8, 0.3], [0.2, 0.9], [0.8, 0.9]])
    np.testing.assert_allclose(model.fit(X, y).predict(test), [-0.5, 1.0, -0.5, 1.0], atol=tolerance)


def test_a_rare_cell_predicts_0():
    X = np.concatenate([np.full((990, 1), 0.1), np.full((10, 1), 0.9)])
    model = PHISTRegressor(64.0, bins=2, threshold=0.05, random_state=0).fit(X, np.ones(1000))
    np.testing.assert_allclose(model.values_, [1.0, 0.0], atol=0.02)
    assert model.values_[1] == 0.0


@pytest.mark.parametrize("name", ["phist", "hist"])
def test_cells_beyond_memory_are_refused_with_their_number_and_what_fits(name):
    X, y = np.zeros((10, 68)), np.zeros(10)
    with pytest.raises(
        ConfigError, match=r"4 bins on each of 68 features are 4\^68 = 1e40\.9 cells.*bins = 1$"
    ):
        REGRESSORS[name](bins=4).fit(X, y)
    with pytest.raises(ConfigError, match=r"3\^16 = .*bins = 2$"):
        REGRESSORS[name](bins=3).fit(X[:, :16], y)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("phist", {"epsilon": 0}, "epsilon must be a number above 0"),
        ("phist", {"epsilon": None}, "epsilon must be a number above 0"),
        ("hist", {"threshold": 2}, "threshold must be a number from 0 to 1"),
        ("hist", {"bins": 0}, "bins must be a whole number from 1"),
        ("phist", {"label_range": (1, 1)}, "label_range: low must be below high"),
        ("phist", {"feature_range": (1, 0)}, "swap them"),
        ("phist", {"epsilon": math.inf}, "epsilon must be a number above 0"),
        ("deconv", {"bandwidth": 0}, "bandwidth must be"),
        ("krr", {"bins": 1}, "bins must be a whole number from 2"),
        ("krr", {"private_features": [7]}, "a column must be a whole number from 0 to 1"),
        *(
            (name, settings, message)
            for name in ("label_dt", "par_dt")
            for settings, message in (
                ({"epsilon": -1.0}, "epsilon must be"),
                ({"max_depth": 63}, "max_depth must be"),
                ({"min_samples_leaf": 0}, "min_samples_leaf must be"),
                ({"label": "no"}, "label must be"),
                ({"label_range": (1, 0)}, "low must be below high"),
                ({"feature_range": (2, 1)}, "low must be below high"),
            )
        ),
    ],
)
def test_a_wrong_parameter_is_named(name, parameters, message):
    X, y = steps(20)
    with pytest.raises(ConfigError, match=message):
        REGRESSORS[name](**parameters).fit(X, y)


def test_a_wrong_mask_is_named():
    X, y = steps(20)
    with pytest.raises(DataError, match="one True"):
        KaryResponseRegressor().fit(X, y, protects=np.ones((20, 3), dtype=bool))
    with pytest.raises(DataError, match="protects is int64"):
        KaryResponseRegressor().fit(X, y, protects=np.ones((20, 2), dtype=int))
    with pytest.raises(ConfigError, match="one of them"):
        KaryResponseRegressor(private_features=[0]).fit(X, y, protects=np.ones((20, 2), dtype=bool))
    with pytest.raises(DataError, match="protects is"):
        PublicPartTreeRegressor(1.0).fit(X, y, protects=np.ones((20, 3), dtype=bool))


# LabelDT and ParDT: a noisy label, then a tree


def people(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, np.clip(X[:, 0] + (X[:, 1] > 0.5) - 1 + 0.1 * rng.standard_normal(n), -1, 1)


@pytest.mark.parametrize("label", ["laplace", "optimal_label"])
def test_label_dt_learns_from_all_features_and_par_dt_from_those_that_are_shown(label):
    """A constant leaves .34; the first feature explains .08 of it, the second .25."""
    (X, y), (T, t) = people(), people(seed=1)
    every = LabelTreeRegressor(4.0, label=label, random_state=0).fit(X, y)
    assert np.mean((every.predict(T) - t) ** 2) < 0.06
    part = PublicPartTreeRegressor(4.0, private_features=[0], label=label, random_state=0).fit(X, y)
    assert 0.06 < np.mean((part.predict(T) - t) ** 2) < 0.16
    assert part.features_.tolist() == [1, 2]


def test_the_noise_of_a_label_is_its_range_over_epsilon():
    """Variance 2 (range / eps)^2, within 10 % (5 standard errors of a Laplace's at n = 50,000), seed fixed."""
    rng = np.random.default_rng(0)
    X, y = rng.random((50_000, 1)), rng.uniform(-1, 3, 50_000)
    fitted = LabelTreeRegressor(0.5, max_depth=1, label_range=(-1.0, 3.0), random_state=1).fit(X, y)
    noise = fitted.noisy_labels_ - y
    assert np.var(noise) == pytest.approx(2 * (4 / 0.5) ** 2, rel=0.1)
    assert abs(noise.mean()) < 5 * np.sqrt(128 / 50_000)


def test_labels_beyond_the_range_are_moved_to_its_end_before_they_are_sent():
    X, y = people(300)
    a, b = (
        LabelTreeRegressor(1.0, random_state=2).fit(X, labels) for labels in (y, np.where(y >= 1, 99.0, y))
    )
    np.testing.assert_array_equal(a.noisy_labels_, b.noisy_labels_)


def test_a_protected_value_decides_nothing():
    X, y = people(600)
    protects = np.random.default_rng(3).random(X.shape) < 0.5
    other = np.where(protects, np.random.default_rng(4).random(X.shape), X)
    a, b = (
        PublicPartTreeRegressor(1.0, random_state=2).fit(rows, y, protects=protects) for rows in (X, other)
    )
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_with_everything_protected_par_dt_is_a_constant_and_with_nothing_it_is_label_dt():
    X, y = people(600)
    constant = PublicPartTreeRegressor(1.0, random_state=2).fit(X, y)
    assert len(set(constant.predict(X))) == 1
    assert constant.predict(X)[0] == pytest.approx(constant.noisy_labels_.mean())
    every = PublicPartTreeRegressor(1.0, private_features=[], random_state=2).fit(X, y)
    label = LabelTreeRegressor(1.0, random_state=2).fit(X, y)
    np.testing.assert_array_equal(every.predict(X), label.predict(X))
