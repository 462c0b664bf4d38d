"""The rivals of the regression papers keep the guarantee they claim, or the test shows what they break."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest
from sklearn.utils.estimator_checks import check_estimator

from ldptree.baselines import REGRESSORS
from ldptree.baselines.aphist import APHISTRegressor
from ldptree.baselines.deconv import DeconvolutionRegressor
from ldptree.baselines.dt import PlainTreeRegressor
from ldptree.baselines.dt_pub import PublicTreeRegressor
from ldptree.baselines.hist import HistRegressor
from ldptree.baselines.krr import KaryResponseRegressor
from ldptree.baselines.phist import PHISTRegressor
from ldptree.errors import ConfigError, DataError
from ldptree.oracles.grr import Grr

LAPLACE = {"phist": {"bins": 3}, "aphist": {"bins": 2}, "hist": {"bins": 2}, "deconv": {}}
FALSE_ALARM = 1e-3
"""Of each statistical test, with fixed seeds."""


def steps(n: int, seed: int = 0, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """1 in the upper half of the first feature, -1/2 in the lower."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.where(X[:, 0] > 0.5, 1.0, -0.5) + noise * rng.normal(size=n)


def inputs(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Every corner and the middle, inside the range and outside it, with labels at both ends, between and beyond."""
    places = np.array(np.meshgrid(*[[-3.0, 0.0, 0.4, 1.0, 7.0]] * d)).reshape(d, -1).T
    labels = np.array([-9.0, -2.0, 0.0, 3.0, 50.0])
    return np.repeat(places, labels.size, axis=0), np.tile(labels, len(places))


@pytest.mark.parametrize("name", LAPLACE)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("label_range", [(-2.0, 3.0), (-3.0, 3.0), (0.0, 3.0)])
def test_no_two_rows_can_be_told_apart_by_more_than_epsilon(name, epsilon, label_range):
    model = REGRESSORS[name](epsilon, label_range=label_range, **LAPLACE[name])
    answers, scales = model.answers(*inputs(2))
    # The log density ratio of two reports is at most the L1 distance in units of the scales, and reaches it.
    worst = max(np.abs(answers - answer).dot(1 / scales).max() for answer in answers)
    assert worst <= epsilon * (1 + 1e-12)
    assert worst > epsilon / 2


def test_the_histogram_spends_all_of_epsilon_where_labels_lie_on_both_sides_of_0():
    answers, scales = PHISTRegressor(1.5, bins=2, label_range=(-3.0, 3.0)).answers(*inputs(1))
    worst = max(np.abs(answers - answer).dot(1 / scales).max() for answer in answers)
    assert worst == pytest.approx(1.5)


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


def test_deconvolution_sends_nothing_but_laplace_noise_of_the_stated_scales():
    X, y = steps(2_000)
    model = DeconvolutionRegressor(2.0, random_state=1).fit(X, y)
    answers, scales = model.answers(X, y)
    assert kstest(((model.reports_ - answers) / scales).ravel(), "laplace").pvalue > FALSE_ALARM


def test_deconvolution_undoes_the_noise():
    """Its estimate on noisy rows is that of a plain kernel on clear ones; five standard errors of the draws, measured."""
    rng = np.random.default_rng(3)
    X = rng.random((4_000, 1))
    y = X[:, 0] ** 2
    points = np.array([[0.2], [0.5], [0.8]])
    kernel = np.exp(-(((points - X.T) / 0.5) ** 2) / 2)
    found = np.array(
        [
            DeconvolutionRegressor(8.0, bandwidth=0.5, label_range=(0.0, 1.0), random_state=s)
            .fit(X, y)
            .predict(points)
            for s in range(30)
        ]
    )
    error = found.std(axis=0, ddof=1) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - kernel @ y / kernel.sum(axis=1)) < 5 * error + 0.01).all()
    assert (error < 0.01).all()


def test_many_features_and_little_budget_do_not_break_deconvolution():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 105)), rng.random(60)
    model = DeconvolutionRegressor(0.5, bandwidth=0.02, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("s", [0, 1, 3])
def test_k_ary_response_spends_epsilon_over_protected_values_and_label(k, s):
    epsilon, label_range = 2.0, (-1.0, 4.0)
    protects = np.zeros((1, 3), dtype=bool)
    protects[:, :s] = True
    model = KaryResponseRegressor(epsilon, bins=k, label_range=label_range)
    oracle = Grr.for_budget(float(model.epsilon_each(protects)[0]), k)
    laws = [oracle.law(value) for value in range(k)]
    ratio = max(a[output] / b[output] for a in laws for b in laws for output in a)
    of_label = math.exp((label_range[1] - label_range[0]) / model.label_scales(protects)[0])
    assert ratio**s * Fraction(of_label) <= Fraction(math.exp(epsilon) * (1 + 1e-9))
    literal = KaryResponseRegressor(epsilon, bins=k, label_range=label_range, share="each")
    assert (s + 1) * literal.epsilon_each(protects)[0] == (s + 1) * epsilon


def test_epsilon_on_every_value_is_said_to_be_spent_several_times():
    X, y = steps(50)
    assert KaryResponseRegressor(2.0, share="each", random_state=0).fit(X, y).epsilon_spent_ == 6.0
    assert KaryResponseRegressor(2.0, random_state=0).fit(X, y).epsilon_spent_ == pytest.approx(2.0)


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
    p = Grr.for_budget(1.0, k).p
    kept = (told == true).mean()
    assert abs(kept - p) < 4 * math.sqrt(p * (1 - p) / (n // 2))
    spread = model.reports_[: n // 2, 2].std(), model.reports_[n // 2 :, 2].std()
    assert spread[0] == pytest.approx(2 * math.sqrt(2) / 1.0, rel=0.05)  # half of epsilon for the label
    assert spread[1] == pytest.approx(2 * math.sqrt(2) / 2.0, rel=0.05)  # all of it


def test_a_public_tree_reads_no_private_row():
    X, y = steps(400)
    public = np.arange(400) < 60
    rng = np.random.default_rng(9)
    other_X, other_y = (
        np.where(public[:, None], X, rng.random(X.shape)),
        np.where(public, y, rng.normal(size=400)),
    )
    fit = PublicTreeRegressor(max_depth=3).fit
    np.testing.assert_array_equal(
        fit(X, y, public=public).predict(X), fit(other_X, other_y, public=public).predict(X)
    )


@pytest.mark.parametrize(
    ("model", "tolerance"),
    [
        (PHISTRegressor(64.0, bins=2, label_range=(-2, 2), random_state=0), 0.05),
        (HistRegressor(64.0, bins=2, label_range=(-2, 2), random_state=0), 0.05),
        (HistRegressor(None, bins=2, label_range=(-2, 2)), 0.01),
        (APHISTRegressor(64.0, bins=2, label_range=(-2, 2), random_state=0), 0.05),
        (DeconvolutionRegressor(64.0, bandwidth=0.05, label_range=(-2, 2), random_state=0), 0.1),
        (KaryResponseRegressor(64.0, bins=4, max_depth=2, label_range=(-2, 2), random_state=0), 0.05),
        (PlainTreeRegressor(max_depth=1), 0.02),
    ],
    ids=lambda model: type(model).__name__,
)
def test_with_nearly_no_noise_everyone_finds_the_truth(model, tolerance):
    X, y = steps(8_000)
    test = np.array([[0.2, 0.3], [0.8, 0.3], [0.2, 0.9], [0.8, 0.9]])
    np.testing.assert_allclose(model.fit(X, y).predict(test), [-0.5, 1.0, -0.5, 1.0], atol=tolerance)


def test_the_adjusted_histogram_as_described_is_wrong_in_a_crowded_cell():
    X, y = np.full((50_000, 1), 0.1), np.ones(50_000)
    found = APHISTRegressor(64.0, bins=2, random_state=0).fit(X, y).predict([[0.1]])
    assert found[0] == pytest.approx(1 / ((1 + 0.5) / 2), abs=0.01)
    assert PHISTRegressor(64.0, bins=2, random_state=0).fit(X, y).predict([[0.1]])[0] == pytest.approx(
        1, abs=0.01
    )


def test_a_rare_cell_predicts_0():
    X = np.concatenate([np.full((990, 1), 0.1), np.full((10, 1), 0.9)])
    model = HistRegressor(None, bins=2, threshold=0.05).fit(X, np.ones(1000))
    np.testing.assert_array_equal(model.values_, [1.0, 0.0])


@pytest.mark.parametrize("name", ["phist", "aphist", "hist"])
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
        ("phist", {"epsilon": 0}, "epsilon must be a number from"),
        ("phist", {"epsilon": None}, "epsilon must be a number from"),
        ("aphist", {"threshold": 2}, "threshold must be a number from 0 to 1"),
        ("hist", {"bins": 0}, "bins must be a whole number from 1"),
        ("phist", {"label_range": (1, 1)}, "label_range: low must be below high"),
        ("phist", {"feature_range": (1, 0)}, "swap them"),
        ("deconv", {"bandwidth": 0}, "bandwidth must be a number from"),
        ("deconv", {"epsilon": math.inf}, "epsilon must be a number from"),
        ("krr", {"bins": 1}, "bins must be a whole number from 2"),
        ("krr", {"share": "evry"}, "share must be one of"),
        ("krr", {"private_features": [7]}, "a column must be a whole number from 0 to 1"),
        ("dt", {"max_depth": 0}, "max_depth must be a whole number"),
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
    with pytest.raises(DataError, match="say which rows are public"):
        PublicTreeRegressor().fit(X, y)


@pytest.mark.parametrize("name", [*LAPLACE, "krr", "dt"])
def test_rivals_are_estimators_of_scikit_learn(name):
    failed = [
        r for r in check_estimator(REGRESSORS[name](), on_fail=None, on_skip=None) if r["status"] == "failed"
    ]
    assert [(r["check_name"], r["exception"]) for r in failed] == []


@pytest.mark.parametrize("name", [*LAPLACE, "krr"])
def test_a_seed_repeats_a_simulation_and_none_does_not(name):
    X, y = steps(200)
    predictions = [REGRESSORS[name](1.0, random_state=s).fit(X, y).predict(X) for s in (1, 1, None, None)]
    np.testing.assert_array_equal(predictions[0], predictions[1])
    assert not np.array_equal(predictions[2], predictions[3])
