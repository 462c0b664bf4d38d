"""Mechanisms for one bounded number: never over their epsilon, unbiased, and as noisy as they say."""

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import kstest
from seeded_words import words

from ldptree.audit.exact import fit_of
from ldptree.coins import log_up
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.numbers import NUMBERS, OptimalLabel, programme

EPSILONS = (1e-6, 0.01, 0.1, 0.5, 1.0, 2.0, 3.3, 4.0, 5.0, 6.0, 8.0, 64.0)
EXACT = [name for name, kind in NUMBERS.items() if not kind.is_simulation_device]
NUMBERS_TO_SEND = np.array([-1.0, -0.999, -0.4, -1 / 3, -1e-9, 0.0, 0.125, 0.2501, 0.7, 1.0])


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", EXACT)
def test_no_pair_of_numbers_and_no_output_exceeds_epsilon_and_reports_are_unbiased_and_as_noisy_as_stated(
    name, epsilon
):
    """In rational numbers; between levels a bias below 2^-50 remains."""
    mechanism = NUMBERS[name].for_budget(epsilon)
    numbers = np.append(NUMBERS_TO_SEND, np.random.default_rng(3).uniform(-1, 1, 20))
    laws, stated = [mechanism.law(float(u)) for u in numbers], mechanism.variance(numbers)
    assert all(sum(law) == 1 for law in laws)
    worst = max(max(column) / min(column) for column in zip(*laws, strict=True))
    assert log_up(worst) <= mechanism.epsilon <= epsilon
    worth = [Fraction(float(z)) for z in mechanism.decode(mechanism.outputs)]
    assert max(map(abs, worth)) <= Fraction(mechanism.bound) * (1 + Fraction(1, 10**9))
    for u, law, variance in zip(numbers, laws, stated, strict=True):
        mean = sum(p * z for p, z in zip(law, worth, strict=True))
        assert abs(mean - Fraction(float(u))) <= Fraction(1, 2**50) * max(1, *worth)
        exact = sum(p * (z - mean) ** 2 for p, z in zip(law, worth, strict=True))
        assert variance == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_optimal_mechanism_has_exactly_its_levels_as_means(epsilon):
    mechanism = OptimalLabel.for_budget(epsilon)
    half = mechanism.half
    for j in range(-half, half + 1):
        law = mechanism.law(j / half)
        worth = [Fraction(s * programme.SCALE, half * mechanism.steps) for s in mechanism.positions]
        assert sum(p * z for p, z in zip(law, worth, strict=True)) == Fraction(j, half)


def test_the_integers_do_not_depend_on_the_solver(monkeypatch):
    """Another algorithm, with another path to the optimum, ends in the same table."""
    import scipy.optimize

    tables = {e: programme.solved(e) for e in (0.5, 1.0, 2.0, 4.0)}
    simplex = scipy.optimize.linprog
    monkeypatch.setattr(
        scipy.optimize, "linprog", lambda *a, **k: simplex(*a, **{**k, "method": "highs-ipm"})
    )
    assert {e: programme.solved(e) for e in tables} == tables


@pytest.mark.parametrize(
    ("epsilon", "largest", "others"),
    [
        (1.0, 3.675, {"laplace": 8.0, "duchi": 4.565}),
        (2.0, 0.68, {"laplace": 2.0, "duchi": 1.606}),
        (4.0, 0.085, {"laplace": 0.5, "duchi": 0.958}),
    ],
)
def test_the_optimal_mechanism_is_the_least_noisy(epsilon, largest, others):
    u = np.linspace(-1, 1, 2001)
    weight = np.exp(-((u / 0.35) ** 2) / 2)
    weight /= weight.sum()
    found = {name: weight @ kind.for_budget(epsilon).variance(u) for name, kind in NUMBERS.items()}
    assert found.pop("optimal_label") <= largest
    assert found == pytest.approx(others, rel=2e-3)
    assert min(found.values()) > largest


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("u", [-1.0, -0.3, 0.0, 0.66, 1.0])
def test_reports_follow_the_law_that_is_audited(name, u):
    """40,000 reports: chi-square, of Laplace's noise Kolmogorov-Smirnov; false alarms: 1e-5 each."""
    mechanism = NUMBERS[name].for_budget(1.7)
    reports = mechanism.randomize(np.full(40_000, u), words(11))
    assert np.abs(mechanism.decode(reports)).max() <= mechanism.bound * (1 + 1e-9)
    if name in EXACT:
        seen = np.bincount(reports, minlength=mechanism.outputs.size)
        assert fit_of(seen, np.array([float(p) for p in mechanism.law(u)])) > 1e-5
    else:
        noise = mechanism.decode(reports) - u
        assert kstest(noise / np.sqrt(mechanism.variance(np.array([u])) / 2), "laplace").pvalue > 1e-5


@pytest.mark.parametrize("name", NUMBERS)
def test_a_mechanism_comes_back_from_its_integers_and_describes_one_report(name):
    mechanism = NUMBERS[name].for_budget(1.3)
    assert NUMBERS[name].from_thresholds(json.loads(json.dumps(mechanism.thresholds))) == mechanism
    told = mechanism.describe()
    assert (told.name, told.epsilon, told.report_bytes) == (name, mechanism.epsilon, mechanism.dtype.itemsize)
    assert (told.form == "numbers") == mechanism.is_simulation_device


def test_integers_that_are_not_a_mechanism_are_refused():
    good = OptimalLabel.for_budget(2.0).thresholds

    def changed(**parts):
        return {**good, **parts}

    counts = [list(row) for row in good["counts"]]
    counts[2][0] += 1
    moved = [list(row) for row in good["counts"]]
    moved[2][0] += 5
    moved[2][1] -= 5
    for bad, message in [
        (changed(counts=counts), "add up"),
        (changed(counts=moved), "mean of level 2"),
        (changed(positions=good["positions"][::-1]), "increasing"),
        (changed(steps=True), "integers"),
        (changed(steps="1"), "integers"),
        (changed(counts=None), "integers"),
        ({"steps": 1}, "exactly"),
    ]:
        with pytest.raises(ConfigError, match=message):
            OptimalLabel.from_thresholds(bad)
    with pytest.raises(ConfigError, match="flip"):
        NUMBERS["duchi"].from_thresholds({"flip": 2**63})


@pytest.mark.parametrize("name", NUMBERS)
def test_bad_input_is_one_clear_error(name):
    mechanism = NUMBERS[name].for_budget(1.0)
    for numbers in ([1.1], [np.nan], [[0.0]]):
        with pytest.raises(DataError, match=r"in \[-1, 1\]"):
            mechanism.randomize(numbers, words(0))
    for epsilon in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ConfigError, match="epsilon"):
            NUMBERS[name].for_budget(epsilon)
    with pytest.raises(DataError, match="reports are"):
        mechanism.decode(np.array(["a"]))


def test_a_forged_report_is_not_decoded():
    mechanism = OptimalLabel.for_budget(1.0)
    with pytest.raises(DataError, match="report 2 of 2"):
        mechanism.decode(np.array([0, 250], dtype=np.uint8))
    assert not NUMBERS["laplace"].for_budget(1.0).is_valid(np.array([np.inf, np.nan])).any()
