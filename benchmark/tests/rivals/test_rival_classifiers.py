"""Every rival of LPCT, over the registry: it learns ranges and classes from public rows, asks each holder once, and keeps the
guarantee that its module states, by its exact law.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, norm
from sklearn.utils.estimator_checks import check_estimator

from ldptree.errors import ConfigError, DataError
from ldptree_benchmark.rivals import CLASSIFIERS
from ldptree_benchmark.rivals.gradient.network import Network
from ldptree_benchmark.rivals.gradient.privunit_g import PrivUnitG, turn_to_sphere
from ldptree_benchmark.rivals.gradient.psgd import PSGDLinearClassifier
from ldptree_benchmark.rivals.histograms import PHISTClassifier
from ldptree_benchmark.rivals.pglm import delta_of, find_scale, find_stretch, sensitivity

EPSILONS = [0.1, 0.5, 2.0, 8.0, 64.0]
FALSE_ALARM = 1e-3
"""Of each statistical test, with fixed seeds."""


def people(n=3_000, seed=0, d=3):
    """Class 1 beyond a line; a fifth of the public labels are wrong. The first tenth is public."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y, public = (X[:, 0] + X[:, 1] > 1).astype(int), np.arange(n) < n // 10
    return X, np.where(public & (rng.random(n) < 0.2), 1 - y, y), public


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_rivals_are_classifiers_of_scikit_learn(name):
    """Every check passes; scikit-learn itself skips the one of array API inputs."""
    for result in check_estimator(CLASSIFIERS[name](8.0, random_state=0), on_fail=None, on_skip=None):
        assert result["status"] == "passed" or result["check_name"] == "check_array_api_input", result


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_seed_repeats_a_simulation_and_none_does_not(name):
    X, y, public = people(300)
    shares = [
        CLASSIFIERS[name](1.0, random_state=seed).fit(X, y, public=public).predict_proba(X)
        for seed in (1, 1, None, None)
    ]
    np.testing.assert_array_equal(shares[0], shares[1])
    assert not np.array_equal(shares[2], shares[3])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_private_rows_decide_neither_a_range_nor_the_classes(name):
    X, y, public = people(600)
    low, high = X[public].min(axis=0), X[public].max(axis=0)
    far = np.where(public[:, None], X, 50 * X - 20)
    rival = CLASSIFIERS[name](4.0, random_state=3)
    shares = rival.fit(np.clip(far, low, high), y, public=public).predict_proba(X)
    np.testing.assert_array_equal(rival.fit(far, y, public=public).predict_proba(X), shares)
    found = []
    for label in (7, 99):
        unknown = np.where(~public & (np.arange(600) % 5 == 0), label, y)
        found.append(rival.fit(X, unknown, public=public).predict_proba(X))
        assert rival.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_private_row_is_charged_its_epsilon_once(name):
    X, y, public = people(300)
    ledger = CLASSIFIERS[name](1.5, random_state=0).fit(X, y, public=public).ledger_
    (charge,) = ledger.entries
    assert (charge.epsilon, charge.who.start, charge.who.stop) == (1.5, 0, 270)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_with_nearly_no_noise_everyone_finds_the_truth(name):
    """Wrong public labels alone leave .2 of the classes wrong."""
    X, y, public = people(20_000, d=2)
    T, t, _ = people(2_000, seed=1, d=2)
    t = (T[:, 0] + T[:, 1] > 1).astype(int)
    settings = {"bins": 6} if name == "phist" else {}
    score = CLASSIFIERS[name](64.0, random_state=0, **settings).fit(X, y, public=public).score(T, t)
    assert score > (0.85 if name == "phist" else 0.93)  # a cell on the line is right by half


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_three_classes_are_learned_or_refused(name):
    rng = np.random.default_rng(0)
    X, public = rng.random((6_000, 2)), np.arange(6_000) < 200
    y = np.array(["a", "b", "c"])[(X[:, 0] * 3).astype(int)]
    rival = CLASSIFIERS[name](64.0, random_state=0)
    if rival.__sklearn_tags__().classifier_tags.multi_class:
        assert rival.fit(X, y, public=public).score(X, y) > 0.85
    else:
        with pytest.raises(DataError, match=r"multiclass: 3 classes; \w+ learns two"):
            rival.fit(X, y, public=public)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        *((name, {"epsilon": 0}, "epsilon must be a number above 0") for name in CLASSIFIERS),
        *((name, {"random_state": -1}, "random_state must be None") for name in CLASSIFIERS),
        *((name, {"feature_range": (1, 0)}, "swap them") for name in CLASSIFIERS),
        ("phist", {"bins": 0}, "bins must be a whole number from 1"),
        ("phist", {"threshold": 2}, "threshold must be a number from 0 to 1"),
        ("pglm", {"delta": 0}, "delta must be a number above 0"),
        ("pglm", {"delta": 1}, "delta must be a number above 0"),
        ("psgd_linear", {"learning_rate": 0}, "learning_rate must be a number above 0"),
        ("psgd_neural", {"clip": -1}, "clip must be a number above 0"),
        ("psgd_neural", {"hidden": 0}, "hidden must be a number above 0"),
    ],
)
def test_a_wrong_parameter_is_named(name, parameters, message):
    X, y, public = people(40)
    with pytest.raises(ConfigError, match=message):
        CLASSIFIERS[name](**parameters).fit(X, y, public=public)


# PHIST


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_phist_of_classes_spends_epsilon_at_most(epsilon):
    """The log density ratio of two Laplace reports is at most the L1 distance in units of the scales."""
    X, y, public = people(300, d=2)
    rival = PHISTClassifier(epsilon, bins=2, random_state=0).fit(X, y, public=public)
    corners = np.array([*itertools.product([0.0, 1.0], repeat=2)])
    answers, scales = rival.histogram_.answers(np.repeat(corners, 3, axis=0), np.tile([0.0, 0.5, 1.0], 4))
    worst = max(np.abs(answers - answer).dot(1 / scales).max() for answer in answers)
    assert epsilon / 2 < worst <= epsilon * (1 + 1e-12)


def test_the_bins_of_phist_are_those_of_its_rate():
    """(2,700 eps^2)^(1/6) on two features."""
    X, y, public = people(3_000, d=2)
    for epsilon, bins in ((0.01, 1), (0.5, 3), (2.0, 5), (8.0, 7)):
        rival = PHISTClassifier(epsilon, random_state=0).fit(X, y, public=public)
        assert rival.histogram_.bins == bins


# PSGD


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_two_vectors_can_be_told_apart_by_more_than_epsilon(epsilon):
    """Every report has the normal density times one of two factors, whatever its vector is; they differ by e^eps, all of it."""
    mechanism = PrivUnitG.for_epsilon(epsilon)
    places = np.append(np.linspace(-60, 60, 10_001), mechanism.threshold)
    factors = mechanism.log_ratio(places)
    assert np.ptp(factors) == pytest.approx(epsilon, rel=1e-12)
    total = mechanism.tail * np.exp(factors.max()) + (1 - mechanism.tail) * np.exp(factors.min())
    assert total == pytest.approx(1, rel=1e-9)
    assert norm.sf(mechanism.threshold) == pytest.approx(mechanism.tail, rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_reports_of_a_vector_follow_that_law(epsilon):
    """Along the vector by Kolmogorov-Smirnov, and across it, where they are standard normal."""
    mechanism, rng = PrivUnitG.for_epsilon(epsilon), np.random.default_rng(int(epsilon * 10))
    unit = np.array([0.6, 0.0, 0.8])
    n = 20_000
    along = mechanism.draw_along(n, rng)
    reports = np.array(
        [
            mechanism.report(unit, one, normal)
            for one, normal in zip(along, rng.standard_normal((n, 3)), strict=True)
        ]
    )
    found = reports * mechanism.mean

    def below(t):
        inside = mechanism.p / mechanism.tail
        outside = (1 - mechanism.p) / (1 - mechanism.tail)
        beyond = inside * np.maximum(mechanism.tail - norm.sf(t), 0)
        return outside * norm.cdf(np.minimum(t, mechanism.threshold)) + beyond

    assert kstest(found @ unit, below).pvalue > FALSE_ALARM
    for across in (np.array([0.8, 0.0, -0.6]), np.array([0.0, 1.0, 0.0])):
        assert kstest(found @ across, "norm").pvalue > FALSE_ALARM
    spread = reports.std(axis=0) / math.sqrt(n)
    assert (np.abs(reports.mean(axis=0) - unit) < 5 * spread).all()
    assert (reports**2).sum(axis=1).mean() == pytest.approx(mechanism.mean_square(3), rel=0.05)


def test_no_other_split_of_epsilon_is_less_noisy():
    for epsilon in EPSILONS:
        best = PrivUnitG.for_epsilon(epsilon).mean
        others = [PrivUnitG._at(p, epsilon).mean for p in np.linspace(0.01, 0.99, 99)]
        assert best >= max(others) * (1 - 1e-6)


@pytest.mark.parametrize("length", [0.0, 0.3, 1.0])
def test_a_shorter_vector_is_turned_to_the_sphere_without_bias(length):
    vector = length * np.array([0.6, 0.8])
    coins = (np.arange(10_000) + 0.5) / 10_000
    turned = np.array([turn_to_sphere(vector, coin) for coin in coins])
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1)
    np.testing.assert_allclose(turned.mean(axis=0), vector, atol=1e-4)


@pytest.mark.parametrize("name", ["psgd_linear", "psgd_neural"])
def test_each_holder_reports_once_in_random_order_at_the_weights_of_those_before(name, monkeypatch):
    X, y, public = people(200)
    asked, reported = [], []
    gradient, report = Network.gradient, PrivUnitG.report

    def spy_on_gradient(self, layers, rows, targets):
        if len(rows) == 1:
            asked.append((rows[0], layers[0].copy()))
        return gradient(self, layers, rows, targets)

    def spy_on_report(self, unit, along, normal):
        reported.append(unit)
        return report(self, unit, along, normal)

    monkeypatch.setattr(Network, "gradient", spy_on_gradient)
    monkeypatch.setattr(PrivUnitG, "report", spy_on_report)
    rival = CLASSIFIERS[name](2.0, random_state=0, clip=0.1).fit(X, y, public=public)
    private = rival.encoding_.encode(X[~public]).astype(float)
    rows = np.array([row for row, _ in asked])
    assert len(asked) == len(reported) == 180
    assert not np.array_equal(rows, private)
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], private[np.lexsort(private.T)])
    assert len({layer.tobytes() for _, layer in asked}) == 180
    assert {unit.size for unit in reported} == {rival.weights_.size}
    np.testing.assert_allclose(np.linalg.norm(reported, axis=1), 1)


@pytest.mark.parametrize("hidden", [0, 5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradients_are_those_of_the_loss(hidden, n_classes):
    rng = np.random.default_rng(0)
    network = Network(4, n_classes, hidden)
    weights = rng.normal(size=network.size)
    X, targets = rng.random((20, 4)), np.eye(n_classes)[rng.integers(n_classes, size=20)]

    def loss(at):
        return network.loss(network.shares(network.split(at), X), targets)

    found, _ = network.gradient(network.split(weights), X, targets)
    steps = 1e-6 * np.eye(network.size)
    expected = [(loss(weights + step) - loss(weights - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_the_descent_begins_at_the_best_model_of_the_public_rows():
    X, y, public = people(2_000)
    rival = PSGDLinearClassifier(1.0, learning_rate=1e-12, random_state=0).fit(X, y, public=public)
    known, targets = rival.encoding_.encode(X[public]).astype(float), np.eye(2)[y[public]]
    slope, _ = rival.network_.gradient(rival.network_.split(rival.weights_), known, targets)
    np.testing.assert_allclose(slope + rival.weights_ / public.sum(), 0, atol=1e-4)


# PGLM


def distance(one, other):
    """Of what two holders send without noise."""
    (x, y), (z, w) = one, other
    return math.sqrt(((np.outer(x, x) - np.outer(z, z)) ** 2).sum() + ((x * y - z * w) ** 2).sum())


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_sensitivity_of_pglm_is_the_largest_distance_of_two_holders(d):
    corners = [np.array([1.0, *corner]) for corner in itertools.product([0.0, 1.0], repeat=d)]
    holders = [(corner, label) for corner in corners for label in (-0.5, 0.0, 0.5)]
    assert max(distance(*pair) for pair in itertools.combinations(holders, 2)) == pytest.approx(
        sensitivity(d)
    )
    rng = np.random.default_rng(d)
    inner = [(np.append(1.0, rng.random(d)), rng.uniform(-0.5, 0.5)) for _ in range(60)]
    assert max(distance(*pair) for pair in itertools.product(inner, holders)) < sensitivity(d)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-7])
def test_the_noise_of_pglm_is_epsilon_delta_private_and_no_larger(epsilon, delta):
    """delta is the integral of (density - e^eps other density) where it is positive, of the two laws that are furthest apart."""
    scale = find_scale(1.0, epsilon, delta)
    edge = scale**2 * epsilon + 0.5

    def excess(t):
        return norm.pdf(t, 1.0, scale) - math.exp(epsilon + norm.logpdf(t, 0.0, scale))

    found, _ = quad(excess, edge, edge + 40 * scale, epsabs=1e-14, limit=400)
    assert found == pytest.approx(delta, rel=1e-3)
    assert delta_of(scale, epsilon) <= delta < delta_of(scale * 0.999, epsilon)


def test_pglm_adds_noise_of_that_scale_to_the_sum_of_all(monkeypatch):
    """Standard deviations over 400 seeds, within 5 of their standard errors, which are .035 of them."""
    X, y, public = people(300, d=2)
    seen, solve = [], np.linalg.solve

    def spy(moments, of_labels):
        seen.append(moments)
        return solve(moments, of_labels)

    monkeypatch.setattr(np.linalg, "solve", spy)
    for seed in range(400):
        rival = CLASSIFIERS["pglm"](1.0, random_state=seed).fit(X, y, public=public)
    assert rival.delta_ == 1 / 270**2
    spread = np.std(seen, axis=0) / (find_scale(sensitivity(2), 1.0, rival.delta_) * math.sqrt(270))
    expected = np.where(np.eye(3) == 1, 1, math.sqrt(0.5))
    np.testing.assert_allclose(spread, expected, rtol=0.18)
    sums = np.column_stack([np.ones(270), rival.encoding_.encode(X[~public])])
    np.testing.assert_allclose(np.mean(seen, axis=0), sums.T @ sums, atol=5 * 300 * math.sqrt(270) / 20)


def test_the_stretch_of_pglm_undoes_that_of_least_squares():
    """A logistic model of one normal feature: c w is near the weight that drew the labels."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200_000)
    y = (rng.random(x.size) < 1 / (1 + np.exp(-1.5 * x))) - 0.5
    slope = (x @ y) / (x @ x)
    assert find_stretch(slope * x[:5_000]) * slope == pytest.approx(1.5, rel=0.06)
