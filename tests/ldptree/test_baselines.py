"""Every baseline, over the registries: it is given a fair chance, keeps to its cap and sees only its own rows; the rivals of the
regression papers keep the guarantee they claim, or a test shows what they break.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

from ldptree.baselines import BASELINES, REGRESSORS, select_baselines
from ldptree.baselines.cost_complexity import MIN_SAMPLES_LEAF, GrownTree
from ldptree.baselines.deconv import DeconvolutionRegressor
from ldptree.baselines.dt import PlainTreeRegressor, PublicTreeRegressor
from ldptree.baselines.histograms import APHISTRegressor, HistRegressor, PHISTRegressor
from ldptree.baselines.krr import KaryResponseRegressor
from ldptree.baselines.label_dt import LabelTreeRegressor, PublicPartTreeRegressor
from ldptree.baselines.public import draw_at_most
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.oracles.grr import Grr

CONSTANTS = {"majority", "constant"}
ON_PAGES = [
    *(pytest.param("classes", name, id=f"classes-{name}") for name in select_baselines(2)),
    *(pytest.param("numbers", name, id=f"numbers-{name}") for name in select_baselines(0)),
]
TREES = [case for case in ON_PAGES if case.values[1] not in CONSTANTS]
LAPLACE = {"phist": {"bins": 3}, "aphist": {"bins": 2}, "hist": {"bins": 2}, "deconv": {}}
NEEDS_PUBLIC_ROWS = {"dt_pub"}
NOT_RANDOM = {"dt", "dt_pub"}
FALSE_ALARM = 1e-3
"""Of each statistical test, with fixed seeds."""


@pytest.fixture(autouse=True)
def small_forests(monkeypatch):
    """What is promised of forests holds of ten trees as of a hundred."""
    monkeypatch.setattr("ldptree.baselines.public.N_TREES", 10)


@dataclass(frozen=True)
class Rows:
    """Rows, labels, and a baseline's answers: shares of two classes, or numbers."""

    label: str

    def draw(self, n, seed, *, noise=True):
        """Class 1 in every other fifth of the first column, a fifth of labels flipped; or a wave along it."""
        rng = np.random.default_rng(seed)
        X = rng.random((n, 4)).astype(np.float32)
        if self.label == "numbers":
            return X, 100 + 10 * np.sin(6 * X[:, 0].astype(np.float64)) + 0.5 * noise * rng.normal(size=n)
        y = (X[:, 0] * 5).astype(int) % 2
        return X, np.where(rng.random(n) < 0.2 * noise, 1 - y, y)

    def answers(self, name, X, y, test_X, *, max_rows, seed=0):
        n_classes = 2 if self.label == "classes" else 0
        return BASELINES[name].fit_predict(X, y, test_X, n_classes=n_classes, max_rows=max_rows, seed=seed)


# Baselines of a run's page: functions


@pytest.mark.parametrize(("label", "name"), TREES)
def test_trees_learn_what_there_is_to_learn(label, name):
    rows = Rows(label)
    (X, y), (test_X, test_y) = rows.draw(2_000, 1), rows.draw(2_000, 2, noise=False)
    found = rows.answers(name, X, y, test_X, max_rows=2_000)
    if label == "classes":
        assert (found.argmax(axis=1) == test_y).mean() > 0.93
        return
    assert (found.dtype, found.shape) == (np.float64, test_y.shape)
    assert np.mean((found - test_y) ** 2) < 0.01 * test_y.var()


@pytest.mark.parametrize(("label", "name"), ON_PAGES)
@pytest.mark.parametrize("n", [1, 3])
def test_a_handful_of_rows_and_equal_labels_are_enough_to_answer(label, name, n):
    rows = Rows(label)
    X, y = rows.draw(n, 0)
    for labels in (y, np.full(n, y[0])):
        assert np.isfinite(rows.answers(name, X, labels, X, max_rows=100)).all()


@pytest.mark.parametrize(("label", "name"), TREES)
def test_rows_beyond_the_cap_are_not_looked_at(label, name):
    rows = Rows(label)
    X, y = rows.draw(400, 3)
    drawn, labels = draw_at_most(150, X, y, seed=7)
    assert drawn.shape == (150, 4)
    np.testing.assert_array_equal(
        rows.answers(name, X, y, X, max_rows=150, seed=7),
        rows.answers(name, drawn, labels, X, max_rows=150, seed=7),
    )


def test_the_caps_and_what_is_read_are_stated_and_the_same_for_classes_and_numbers():
    trees = ["public_tree", "public_forest", "non_private"]
    assert [list(select_baselines(n)) for n in (2, 0)] == [["majority", *trees], ["constant", *trees]]
    assert {name for name, baseline in BASELINES.items() if baseline.reads == "private"} == {"non_private"}
    assert BASELINES["public_forest"].max_rows == BASELINES["public_tree"].max_rows == 20_000
    assert BASELINES["non_private"].max_rows == 100_000
    capped = {name: baseline.describe_cap(300_000, 1_000) for name, baseline in BASELINES.items()}
    assert capped == {
        "majority": "",
        "constant": "",
        "public_tree": "fitted on 1,000 of 300,000 public rows",
        "public_forest": "fitted on 1,000 of 300,000 public rows",
        "non_private": "fitted on about 1,000 of 300,000 private rows",
    }
    assert not any(baseline.describe_cap(1_000, 1_000) for baseline in BASELINES.values())


@pytest.mark.parametrize("name", select_baselines(2))
def test_shares_sum_to_one_even_for_a_class_nobody_has(name):
    X, y = Rows("classes").draw(300, 0)
    shares = BASELINES[name].fit_predict(X, y, X[:50], n_classes=3, max_rows=200, seed=0)
    assert shares.shape == (50, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares[:, 2], 0.0)


def test_the_constant_is_the_mean():
    X, y = Rows("numbers").draw(100, 0)
    predicted = BASELINES["constant"].fit_predict(X, y, X[:7], n_classes=0, max_rows=10, seed=0)
    np.testing.assert_array_equal(predicted, np.full(7, y.mean()))


def test_labels_of_pure_noise_leave_the_root_alone():
    rng = np.random.default_rng(0)
    X, y = rng.random((2_000, 6)).astype(np.float32), (rng.random(2_000) < 0.25).astype(int)
    shares = Rows("classes").answers("public_tree", X, y, X, max_rows=2_000)
    assert (shares.argmax(axis=1) == 0).mean() > 0.95


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_numbers_of_pure_noise_leave_the_root_alone_in_any_unit(unit):
    rng = np.random.default_rng(0)
    X, y = rng.random((2_000, 6)).astype(np.float32), unit * rng.normal(size=2_000)
    assert np.unique(Rows("numbers").answers("public_tree", X, y, X, max_rows=2_000)).size <= 3


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_labels_chooses_no_other_tree(unit):
    rows = Rows("numbers")
    (X, y), (test_X, _) = rows.draw(600, 5), rows.draw(600, 6)
    y += 5 * np.random.default_rng(7).normal(size=600)
    plain, scaled = (rows.answers("public_tree", X, y * u, test_X, max_rows=600) / u for u in (1.0, unit))
    np.testing.assert_allclose(plain, scaled, rtol=1e-9)


@pytest.mark.parametrize("price", [0.0005, 0.002, 0.01, 0.05])
def test_pruning_for_a_price_equals_scikit_learn(price):
    X, y = Rows("classes").draw(800, 4)
    settings = {"min_samples_leaf": MIN_SAMPLES_LEAF, "random_state": 0}
    grown = GrownTree.grow(X, y, 2, seed=0)
    expected = DecisionTreeClassifier(ccp_alpha=price, **settings).fit(X, y)
    found = grown.predict(X, grown.prune(np.array([price]))[0])
    np.testing.assert_allclose(found, expected.predict_proba(X))
    y = Rows("numbers").draw(800, 4)[1] + 3 * np.random.default_rng(8).normal(size=800)
    price *= 200  # 0.1 to 10, of a variance instead of an impurity
    grown = GrownTree.grow_on_numbers(X, y, seed=0)
    expected = DecisionTreeRegressor(ccp_alpha=price, **settings).fit(X, y)
    found = grown.predict(X, grown.prune(np.array([price]))[0])[:, 0]
    np.testing.assert_allclose(found, expected.predict(X))


# Rivals of the regression papers: estimators


def steps(n, seed=0, noise=0.1):
    """1 in the upper half of the first feature, -1/2 in the lower."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.where(X[:, 0] > 0.5, 1.0, -0.5) + noise * rng.normal(size=n)


@pytest.mark.parametrize("name", sorted(set(REGRESSORS) - NEEDS_PUBLIC_ROWS))
def test_rivals_are_estimators_of_scikit_learn(name):
    settings = {"epsilon": 8.0, "random_state": 0} if name in {"label_dt", "par_dt"} else {}
    results = check_estimator(REGRESSORS[name](**settings), on_fail=None, on_skip=None)
    failed = [r for r in results if r["status"] == "failed"]
    assert [(r["check_name"], r["exception"]) for r in failed] == []


@pytest.mark.parametrize("name", sorted(set(REGRESSORS) - NOT_RANDOM))
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
    oracle = Grr.for_values(float(model.epsilon_each(protects)[0]), k)
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
    p = Grr.for_values(1.0, k).p
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
        ("phist", {"epsilon": 0}, "epsilon must be a number above 0"),
        ("phist", {"epsilon": None}, "epsilon must be a number above 0"),
        ("aphist", {"threshold": 2}, "threshold must be a number from 0 to 1"),
        ("hist", {"bins": 0}, "bins must be a whole number from 1"),
        ("phist", {"label_range": (1, 1)}, "label_range: low must be below high"),
        ("phist", {"feature_range": (1, 0)}, "swap them"),
        ("deconv", {"bandwidth": 0}, "bandwidth must be a number from"),
        ("deconv", {"epsilon": math.inf}, "epsilon must be a number above 0"),
        ("krr", {"bins": 1}, "bins must be a whole number from 2"),
        ("krr", {"share": "evry"}, "share must be one of"),
        ("krr", {"private_features": [7]}, "a column must be a whole number from 0 to 1"),
        ("dt", {"max_depth": 0}, "max_depth must be a whole number"),
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
    with pytest.raises(DataError, match="say which rows are public"):
        PublicTreeRegressor().fit(X, y)
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
