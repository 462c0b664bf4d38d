"""Every mechanism of the registry: its epsilon is never exceeded, its totals are unbiased and as noisy as it says.

An oracle stands here for the joint report over k values. What only one mechanism promises is in the files beside this one.
"""

import itertools
import json
import math
from collections import Counter
from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import ks_2samp
from seeded_words import words

from ldptree.audit.exact import fit_of
from ldptree.coins import RATE_UNIT, WORD, Words, log_up
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms import (
    CHOICES,
    MECHANISMS,
    NUMBER_MECHANISMS,
    choose_oracle,
    mechanism_for,
    number_mechanism_for,
    report_values,
)
from ldptree.mechanisms.oracles import ORACLES
from ldptree.mechanisms.oracles.local_hash import PRIME

EPSILONS = [0.01, 0.5, 1.0, 2.0, 4.0, 8.0]
NAMES = list(MECHANISMS)
ADDITIVE = ["laplace", "discrete_laplace"]
"""Noise on every number: a report is one of endlessly many."""
ENUMERABLE = [name for name in NAMES if name not in ADDITIVE]
DRAWN = [name for name in ENUMERABLE if name != "olh"]
"""Whose law is of whole reports: a report of olh names its hash, of which there are 2^93."""
SETS = [(1, 1.0), (2, 0.5), (2, 3.0), (3, 1.0), (4, 0.3)]
"""Cells and epsilon for signed subsets of 1, 2, 1, 2 and 4 cells."""


def made(name, epsilon, k):
    """The mechanism with k totals, or one more: of an oracle all of them are values; of the others cells of two classes each."""
    return (
        ORACLES[name].for_values(epsilon, k) if name in ORACLES else mechanism_for(name, epsilon, k // 2, 2)
    )


def classes_of(name):
    return (2,) if MECHANISMS[name].for_classes == 2 else (2, 3)


def laws_of(mechanism):
    laws = [mechanism.law(value) for value in range(mechanism.k)]
    assert all(sum(law.values()) == 1 and law.keys() == laws[0].keys() for law in laws)
    return laws


def worst_ratio(laws):
    return max(max(law[output] for law in laws) / min(law[output] for law in laws) for output in laws[0])


def skewed(mechanism, n, seed=0):
    """Counts of n holders: half of the values nobody's, one with a third of everybody, some outside."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(mechanism.k, 0.5)) * (rng.random(mechanism.k) < 0.5)
    shares[rng.integers(mechanism.k)] += 0.5
    return rng.multinomial(n, shares / shares.sum())


def collections_of(mechanism, counts, n_collections, *key):
    """What so many collections from the same holders add up to, before it is unbiased."""
    values = np.tile(np.repeat(np.arange(mechanism.k), counts), n_collections)
    parts = np.split(mechanism.randomize(values, words(*key)), n_collections)
    return np.stack([mechanism.aggregate(part) for part in parts])


# what a report tells


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    ("name", "k"),
    [(name, k) for name in ORACLES for k in (2, 3, 4, 5, 6)]
    + [("randomized_response", 4), ("signed_subset", 2), ("signed_subset", 4), ("signed_subset", 8)],
)
def test_no_report_exceeds_its_epsilon(name, k, epsilon):
    """Every output, every pair of values, in rational numbers."""
    mechanism = made(name, epsilon, k)
    worst = worst_ratio(laws_of(mechanism))
    assert log_up(worst) <= mechanism.epsilon <= epsilon
    if name != "randomized_response":  # two coins, each rounded down
        # what is stated is the smallest float not below the truth
        assert mechanism.epsilon == log_up(worst)
        assert mechanism.epsilon == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("hashed", [(0, 0, 7), (0, 1, 0), (1, 2, 3), (2**31 - 2, 2**30, 5), (12_345, 0, 1)])
def test_no_hash_makes_a_report_exceed_its_epsilon(hashed):
    for epsilon in (0.01, 1.0, 4.0):
        oracle = ORACLES["olh"].for_values(epsilon, 6)
        laws = [oracle.law(value, *hashed) for value in range(6)]
        assert all(sum(law.values()) == 1 for law in laws)
        assert log_up(worst_ratio(laws)) <= epsilon


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ADDITIVE)
def test_no_density_of_added_noise_exceeds_its_epsilon(name, n_classes):
    """A number's likelihoods under indicators 0 and 1 differ by at most e^(eps/4), and at most four indicators differ."""
    for epsilon in EPSILONS:
        mechanism = mechanism_for(name, epsilon, 3, n_classes)
        truths = mechanism.indicators(np.arange(mechanism.k))
        furthest = max(np.abs(a - b).sum() for a in truths for b in truths)
        rate = 1 / mechanism.scales[0] if name == "laplace" else mechanism.rate / RATE_UNIT
        assert furthest == 4
        assert furthest * rate <= epsilon


def test_every_mechanism_is_gone_through_or_adds_noise():
    assert {*ENUMERABLE, *ADDITIVE} == set(MECHANISMS)
    assert all(hasattr(MECHANISMS[name], "law") for name in ENUMERABLE)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stated_never_exceeds_any_claim_and_nearly_spends_it(name):
    """Of the mechanism and, added up exactly, of the parts that it is split into."""
    rng = np.random.default_rng(7)
    for epsilon in [*np.exp(rng.uniform(-6, 3, 200)).tolist(), 0.05, 0.1, 0.3, 1 / 3, math.pi, 8.0, 20.0]:
        mechanism = mechanism_for(name, epsilon, 3, 2)
        assert epsilon * (1 - 1e-6) <= mechanism.epsilon <= epsilon
        if name in ORACLES:
            assert made(name, epsilon, int(rng.integers(2, 5000))).epsilon <= epsilon
        if name == "randomized_response":
            assert Fraction(mechanism.bits.epsilon) + Fraction(mechanism.label.epsilon) <= Fraction(epsilon)
            number = number_mechanism_for(name, epsilon, 5, rho=float(rng.uniform(0.1, 0.99)))
            steps = Fraction(number.steps * number.rate, RATE_UNIT)
            assert Fraction(number.bits.epsilon) + steps <= Fraction(number.epsilon) <= Fraction(epsilon)
    for epsilon in (44.0, 60.0, 1e9):
        if name in ORACLES:
            assert made(name, epsilon, 9).epsilon <= epsilon


def test_a_logarithm_is_rounded_up():
    assert log_up(Fraction(1)) == 0

    def exp(x):
        """Its Taylor polynomial, exact to 100 digits here."""
        term = total = Fraction(1)
        for i in range(1, 200):
            term = term * Fraction(x) / i
            total += term
        return total

    for ratio in (Fraction(2), Fraction(3, 2), Fraction(10**19, 7), Fraction(2**64 + 1, 2**64)):
        up = log_up(ratio)
        assert up == pytest.approx(math.log(ratio), rel=1e-9)
        assert exp(math.nextafter(up, 0)) < ratio < exp(up)


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
@pytest.mark.parametrize(
    ("name", "k"), [(name, k) for name in DRAWN for k in ((2, 5) if name in ORACLES else (4,))]
)
def test_reports_are_drawn_with_the_stated_probabilities(name, k, epsilon):
    """Each output's frequency in 60,000 reports against its law: z below 5.5 (false alarm 4e-8 each)."""
    mechanism, n = made(name, epsilon, k), 60_000
    for value, law in enumerate(laws_of(mechanism)):
        packed = mechanism.pack(mechanism.randomize(np.full(n, value), words(k, value)))
        seen = Counter(packed.view(f"V{packed.shape[1]}").ravel().tolist())
        assert seen.keys() <= law.keys()
        for output, chance in law.items():
            p = float(chance)
            assert abs(seen[output] - n * p) <= 5.5 * math.sqrt(n * p * (1 - p)) + 5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("name", ENUMERABLE)
def test_no_report_is_likelier_than_its_mechanism_says_and_one_is_as_likely(name, epsilon):
    mechanism = mechanism_for(name, epsilon, 3, 2)
    likeliest = max(max(law.values()) for law in laws_of(mechanism))
    of_hash = 3 * math.log2(PRIME) if name == "olh" else 0.0  # its law is of one hash
    assert mechanism.min_entropy == pytest.approx(of_hash - math.log2(likeliest), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ORACLES)
def test_reports_come_from_the_operating_system_too(name):
    oracle, values = made(name, 2.0, 9), np.arange(30_000) % 9
    counts = oracle.unbias(oracle.aggregate(oracle.randomize(values, Words.system())), values.size)
    spread = math.sqrt(oracle.linear_variance(np.eye(9)[0], np.bincount(values)))
    assert (np.abs(counts - np.bincount(values)) < 8 * spread).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_reports_in_one_call_or_none(name):
    mechanism = made(name, 1.0, 100)
    values = np.arange(3000) % mechanism.k
    one, again = (mechanism.randomize(values, words(1)) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    none = mechanism.randomize(values[:0], words(1))
    assert none.shape[0] == 0
    assert mechanism.aggregate(none).tolist() == [0] * mechanism.raw_size


# what is made of reports


def outcomes(mechanism, value):
    """The chance of every report, float [n], and the totals that it alone adds up to, [n, k]."""
    if mechanism.name != "olh":
        law = mechanism.law(value)
        reports = mechanism.unpack(np.stack([np.frombuffer(output, dtype=np.uint8) for output in law]))
        totals = [mechanism.unbias(mechanism.aggregate(one[None]), 1) for one in reports]
        return np.array([*map(float, law.values())]), np.array(totals)
    # up to three values are hashed to buckets independently, by their masses
    masses, lie = np.diff(mechanism._edges.astype(np.float64)) / (2**31 - 1), mechanism.lie / WORD
    found = []
    for *hashed, told in itertools.product(range(mechanism.buckets), repeat=mechanism.k + 1):
        chance = (1 - lie) * (told == hashed[value]) + lie / mechanism.buckets
        found.append((chance * np.prod(masses[hashed]), mechanism.unbias(np.array(hashed) == told, 1)))
    return tuple(map(np.array, zip(*found, strict=True)))


@pytest.mark.parametrize(
    ("name", "k", "epsilons"),
    [(name, k, (0.3, 1.0, 5.0)) for name in ORACLES if name != "olh" for k in (2, 3, 5, 6)]
    + [("olh", 2, (0.3, 1.0, 3.0)), ("olh", 3, (0.3, 1.0, 2.0)), ("randomized_response", 4, (0.3, 1.0, 5.0))]
    + [("signed_subset", 2 * cells, (epsilon,)) for cells, epsilon in SETS],
)
def test_linear_variance_is_that_of_the_exact_law(name, k, epsilons):
    """One report of each value: its mean is that value; the variances of forms, everybody together among them, are stated."""
    for epsilon in epsilons:
        mechanism = made(name, epsilon, k)
        rng, unit = np.random.default_rng(k), np.eye(mechanism.k)
        forms, counts = rng.normal(size=(mechanism.k, 4)), rng.integers(0, 50, mechanism.k)
        forms[:, 0] = 1
        variances = []
        for value in range(mechanism.k):
            chances, totals = outcomes(mechanism, value)
            assert chances.sum() == pytest.approx(1, rel=1e-12)
            np.testing.assert_allclose(chances @ totals, unit[value], atol=1e-11)
            variances.append(chances @ (totals @ forms - forms[value]) ** 2)
            stated = mechanism.linear_variance(forms, unit[value])
            np.testing.assert_allclose(stated, variances[-1], rtol=1e-9, atol=1e-11 * max(variances[-1]))
        expected = counts @ np.array(variances)
        stated = mechanism.linear_variance(forms, counts)
        np.testing.assert_allclose(stated, expected, rtol=1e-9, atol=1e-11 * max(expected))
        assert mechanism.linear_variance(forms[:, 1], counts) == pytest.approx(stated[1])


@pytest.mark.parametrize(
    ("name", "n_classes"),
    [*((name, 1) for name in ORACLES), ("signed_subset", 2)]
    + [(name, C) for name in (*ADDITIVE, "randomized_response") for C in (2, 3)],
)
def test_totals_are_unbiased_with_the_stated_variance(name, n_classes):
    """Three linear forms of 400 collections: means within 5 standard errors (false alarm 6e-7 a comparison), variances within 5
    of theirs.
    """
    is_wide = n_classes == 1 or name == "signed_subset"
    mechanism = made(name, 1.5, 70) if is_wide else mechanism_for(name, 1.5, 3, n_classes)
    n, k = 300, mechanism.k
    counts = skewed(mechanism, n, seed=k)
    forms = np.stack(
        [np.eye(k)[counts.argmax()], np.arange(k) % 2 - 0.5, *np.random.default_rng(9).normal(size=(1, k))], 1
    )
    found = (
        np.stack([mechanism.unbias(one, n) for one in collections_of(mechanism, counts, 400, 3, k)]) @ forms
    )
    variance = mechanism.linear_variance(forms, counts)
    assert (np.abs(found.mean(axis=0) - counts @ forms) < 5 * np.sqrt(variance / 400)).all()
    assert (np.abs(found.var(axis=0, ddof=1) / variance - 1) < 5 * np.sqrt(2.5 / 400)).all()


@pytest.mark.parametrize(
    ("name", "k", "n_draws"),
    [(name, 16, 2000) for name in ORACLES]
    + [pytest.param(name, 4096, 300, marks=pytest.mark.slow) for name in ORACLES]
    + [(name, 16, 300) for name in NAMES if name not in ORACLES]
    + [("signed_subset", 512, 60)],  # of so many cells each report is drawn
)
def test_sampled_totals_have_the_law_of_aggregated_reports(name, k, n_draws):
    """Skewed counts, most of them zero. Two-sample Kolmogorov-Smirnov of six linear forms of the totals, each at a false
    alarm of 1e-7 (less where totals are whole numbers); and the covariances between values agree."""
    mechanism = made(name, 1.0, k)
    k = mechanism.k
    counts = np.bincount(np.repeat([0, 1, k // 2, k - 1], [7, 2, 1, 0]), minlength=k)
    drawn = collections_of(mechanism, counts, n_draws, 9, k)
    generator = words(9, k).generator()
    sampled = np.stack([mechanism.sample_totals(counts, generator) for _ in range(n_draws)])
    drawn, sampled = (np.stack([mechanism.unbias(one, 10) for one in raw]) for raw in (drawn, sampled))
    units = np.eye(k)[[0, 1, k // 2, k - 1]]
    forms = np.stack([*units, units[0] - units[1], counts == 0]).T
    bound = math.sqrt(math.log(2 / 1e-7) / 2) * math.sqrt(2 / n_draws)
    for a, b in zip((drawn @ forms).T, (sampled @ forms).T, strict=True):
        assert ks_2samp(a, b).statistic < bound
    if n_draws >= 600:
        scale = np.sqrt(np.outer(drawn.var(axis=0), drawn.var(axis=0)))
        assert (np.abs(np.cov(drawn.T) - np.cov(sampled.T)) < 0.20 * scale).all()


@pytest.mark.parametrize("name", DRAWN)
def test_sampled_totals_of_three_holders_have_their_exact_law(name):
    """Every outcome of three reports with its chance, and each total alone, against 4,000 draws; false alarms of 1e-6 each."""
    mechanism = made(name, 1.0, 6)
    values = [0, 0, mechanism.k - 1]
    chances = Counter({(0,) * mechanism.raw_size: 1.0})
    for value in values:
        one = Counter()
        for output, chance in mechanism.law(value).items():
            report = np.frombuffer(output, dtype=np.uint8)[None]
            one[tuple(mechanism.aggregate(mechanism.unpack(report)).tolist())] += float(chance)
        before, chances = chances, Counter()
        for (total, first), (more, second) in itertools.product(before.items(), one.items()):
            chances[tuple(map(sum, zip(total, more, strict=True)))] += first * second
    generator, counts = words(10).generator(), np.bincount(values, minlength=mechanism.k)
    seen = Counter(tuple(mechanism.sample_totals(counts, generator).tolist()) for _ in range(4_000))
    assert seen.keys() <= chances.keys()
    drawn, law = np.array([seen[total] for total in chances]), np.array([*chances.values()])
    assert fit_of(drawn, law) > 1e-6
    for column in np.array([*chances]).T.astype(int):
        assert fit_of(np.bincount(column, drawn), np.bincount(column, law)) > 1e-6


@pytest.mark.parametrize(
    ("name", "k", "epsilon"),
    [(name, k, 1.0) for name in NAMES for k in ((6, 7) if name in ORACLES else (6,))]
    + [("signed_subset", 2 * cells, epsilon) for cells, epsilon in SETS],
)
def test_one_dishonest_report_moves_a_total_by_what_is_stated(name, k, epsilon):
    """Of any two reports, all of them where they can be gone through: the largest shift of a total, and of how many at once."""
    mechanism = made(name, epsilon, k)
    force = mechanism.poisoning_bound(1000)
    for n, by in ((1000, 10), (1001, 11)):
        assert mechanism.poisoning_bound(n).one_percent == pytest.approx(by * force.one) or math.isinf(
            force.one
        )
    if name in DRAWN:
        told = outcomes(mechanism, 0)[1]
    else:
        reports = mechanism.randomize(np.arange(2000) % mechanism.k, words(4))
        if name == "discrete_laplace":
            B = mechanism.bound
            reports = np.append(
                reports, np.array([[B + 1] * 3 + [-B] * 3, [-B] * 3 + [B + 1] * 3], np.int32), axis=0
            )
        if name == "olh":  # whose hash may support all values or none
            reports = np.append(reports, np.array([[0, 0, 0, 0], [0, 0, 0, 1]], np.uint32), axis=0)
        told = np.array([mechanism.unbias(mechanism.aggregate(one[None]), 1) for one in reports])
    told = told if name in ORACLES else told[:, :-1]
    assert (np.ptp(told, axis=0) <= force.one * (1 + 1e-9)).all()
    assert name == "laplace" or np.ptp(told, axis=0).max() == pytest.approx(force.one)
    shifts = np.abs(told[:, None] - told[None, :100])
    assert (shifts > 1e-9).sum(axis=2).max() <= force.totals_at_once or name == "signed_subset"
    if name == "signed_subset" and k > 2:  # further totals move by less
        assert (shifts > force.one * (1 - 1e-9)).sum(axis=2).max() == force.totals_at_once


@pytest.mark.parametrize(("name", "n_classes"), [(name, C) for name in NAMES for C in classes_of(name)])
def test_the_variance_of_a_group_of_cells_is_that_of_its_linear_form(name, n_classes):
    mechanism = mechanism_for(name, 1.5, 4, n_classes)
    counts = skewed(mechanism, 5000, seed=3).astype(float)
    inside = counts[:-1].reshape(4, n_classes)
    class_weights = np.random.default_rng(1).normal(size=n_classes)
    groups = [[0], [1, 2], [0, 1, 2, 3]]
    sums = np.stack([inside[g].sum(axis=0) for g in groups])
    found = mechanism.cell_variance(class_weights, [len(g) for g in groups], sums, counts)
    for group, variance in zip(groups, found, strict=True):
        weights = np.zeros((4, n_classes))
        weights[group] = class_weights
        assert variance == pytest.approx(mechanism.linear_variance(np.append(weights.ravel(), 0), counts))


@pytest.mark.parametrize("name", NAMES)
def test_sums_of_shards_are_sums_and_can_come_from_as_many_holders(name):
    mechanism = mechanism_for(name, 1.0, 5, classes_of(name)[-1])
    values = np.arange(600) % mechanism.k
    reports = mechanism.randomize(values, words(1))
    raw = mechanism.aggregate(reports)
    assert raw.shape == (mechanism.raw_size,)
    np.testing.assert_allclose(mechanism.aggregate(reports[:99]) + mechanism.aggregate(reports[99:]), raw)
    assert mechanism.can_be_sum(raw, 600)
    assert mechanism.can_be_sum(mechanism.sample_totals(np.bincount(values), np.random.default_rng(0)), 600)
    assert not mechanism.can_be_sum(raw[:-1], 600)
    assert not mechanism.can_be_sum(raw, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_report_survives_its_bytes_and_every_honest_one_is_valid(name):
    for k in (2, 8, 9, 300):
        mechanism = made(name, 1.0, k)
        for n in (0, 1, 500):
            reports = mechanism.randomize(np.arange(n) % mechanism.k, words(2))
            packed = mechanism.pack(reports)
            assert (packed.dtype, packed.shape) == (np.uint8, (n, mechanism.report_bytes))
            for given in (packed, np.asfortranarray(packed)):
                again = mechanism.unpack(given)
                assert again.dtype == reports.dtype
                np.testing.assert_array_equal(again, reports)
            assert mechanism.is_valid(reports).all()
        for wrong in (packed[:, :-1], packed[0], packed.astype(np.int64)):
            with pytest.raises(DataError, match=r"packed reports are|uint8"):
                mechanism.unpack(wrong)


@pytest.mark.parametrize("name", NAMES)
def test_the_integers_give_back_the_same_mechanism(name):
    mechanism = mechanism_for(name, 0.7, 5, classes_of(name)[-1])
    of, sizes = type(mechanism), (5, classes_of(name)[-1])
    again = of.from_thresholds(*sizes, mechanism.thresholds)
    assert again == mechanism
    assert again.epsilon == mechanism.epsilon
    too_large = dict.fromkeys(mechanism.thresholds, 2**64 if name != "laplace" else math.inf)
    for wrong in ({}, mechanism.thresholds | {"more": 1}, too_large):
        with pytest.raises(ConfigError):
            of.from_thresholds(*sizes, wrong)


@pytest.mark.parametrize("choice", CHOICES)
def test_the_same_question_at_another_epsilon_is_that_mechanism_made_for_it(choice):
    for make in (mechanism_for, number_mechanism_for):
        one, other = (make(choice, epsilon, 3, 2) for epsilon in (1.0, 2.5))
        if type(one) is type(other):  # "auto" may choose another
            assert one.at_epsilon(2.5) == other


@pytest.mark.parametrize("choice", NUMBER_MECHANISMS)
def test_another_epsilon_is_shared_between_cell_and_number_as_the_first_one_was(choice):
    found = number_mechanism_for(choice, 1.0, 3, rho=0.3).at_epsilon(2.5)
    wanted = number_mechanism_for(choice, 2.5, 3, rho=0.3)
    assert found.epsilon <= 2.5
    assert found.thresholds == pytest.approx(wanted.thresholds, rel=1e-6)


@pytest.mark.parametrize("name", CHOICES)
def test_a_mechanism_describes_one_report_in_plain_facts(name):
    mechanism = mechanism_for(name, 1.0, 3, 2)
    told = mechanism.describe()
    assert told.epsilon == mechanism.epsilon
    assert told.n_values == 7
    assert told.report_bytes == mechanism.report_bytes
    assert told.is_simulation_device == mechanism.is_simulation_device
    assert (told.noise_sd is None) == (told.p is not None) == (told.q is not None)
    assert (told.oracle is not None) == (told.name == "joint")
    assert name not in ORACLES or (told.oracle, told.p, told.q) == (name, mechanism.p, mechanism.q)
    assert json.loads(json.dumps(asdict(told))) == asdict(told)


# what is refused


@pytest.mark.parametrize("name", NAMES)
def test_what_makes_no_sense_is_refused(name):
    for epsilon in (0.0, -1.0, math.nan, math.inf, 1e-25):
        with pytest.raises(ConfigError, match="epsilon"):
            mechanism_for(name, epsilon, 3, 2)
    with pytest.raises(ConfigError, match="at least 1 and 2"):
        mechanism_for(name, 1.0, 3, 1)
    with pytest.raises(ConfigError):
        mechanism_for(name, 1.0, 2**40, 2)
    if name in ORACLES:
        for k in (0, 1, 2**40):
            with pytest.raises(ConfigError):
                made(name, 1.0, k)
    mechanism = mechanism_for(name, 1.0, 3, 2)
    for values in ([7], [-1], [[1]]):
        with pytest.raises(DataError, match=r"0 \.\. 6|values"):
            mechanism.randomize(np.array(values), words(0))
    with pytest.raises(DataError):
        mechanism.aggregate(np.zeros((3, 2)))


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(ConfigError, match="known are auto, grr"):
        mechanism_for("gauss", 1.0, 3, 2)


# a cell and a label as one value


def test_each_cell_and_label_has_its_own_value_and_the_last_is_outside():
    cells, labels = (a.ravel() for a in np.meshgrid(np.arange(-1, 3), np.arange(-1, 2)))
    values = report_values(cells, labels, n_cells=3, n_classes=2)
    is_outside = (cells < 0) | (labels < 0)
    assert (values[is_outside] == 6).all()
    assert sorted(values[~is_outside].tolist()) == list(range(6))
    np.testing.assert_array_equal(values[~is_outside], (cells * 2 + labels)[~is_outside])
    assert choose_oracle(1.0, 3, 2).k == 7


@pytest.mark.parametrize(
    ("cells", "labels"), [([3], [0]), ([0], [2]), ([-2], [0]), ([0, 1], [0]), ([[0]], [[0]])]
)
def test_values_out_of_range_are_refused(cells, labels):
    with pytest.raises(DataError):
        report_values(cells, labels, n_cells=3, n_classes=2)


def test_the_chosen_oracle_is_the_less_noisy_one():
    assert choose_oracle(1.0, 1, 2).name == "grr"
    assert choose_oracle(1.0, 128, 2).name == "oue"
    assert choose_oracle(8.0, 128, 2).name == "grr"
    # the figures at epsilon 8, 256 values
    assert ORACLES["grr"].for_values(8.0, 256).mean_variance() == pytest.approx(7e-4, rel=0.01)
    assert ORACLES["oue"].for_values(8.0, 256).mean_variance() == pytest.approx(0.0052, rel=0.01)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_margin_variance_has_its_closed_forms(epsilon):
    e = math.exp(epsilon)
    oue, grr = (mechanism_for(name, epsilon, 8, 2).margin_variance_per_holder() for name in ("oue", "grr"))
    assert oue == pytest.approx(2 * e / (e - 1) ** 2)
    q, gap = 1 / (e + 16), (e - 1) / (e + 16)
    assert grr == pytest.approx(q / (2 * gap**2))


# noise on numbers, and mechanisms where the label is one


def test_discrete_noise_has_its_law_and_zero_is_the_likeliest():
    """Chi-square of 200,000 draws over 25 values; false alarm 1e-6."""
    from scipy.stats import chi2

    for epsilon in (1.0, 6.0):
        mechanism = mechanism_for("discrete_laplace", epsilon, 1, 2)
        noise = mechanism.draw_noise(100_000, words(5))
        a, values = math.exp(-mechanism.rate / RATE_UNIT), np.arange(-12, 13)
        assert a == pytest.approx(math.exp(-epsilon / 4))
        chance = (1 - a) / (1 + a) * a ** np.abs(values)
        seen = np.array([(noise == v).sum() for v in values])
        expected = noise.size * np.append(chance, 1 - chance.sum())
        found = np.append(seen, noise.size - seen.sum())
        keep = expected > 5
        assert ((found - expected)[keep] ** 2 / expected[keep]).sum() < chi2.isf(1e-6, keep.sum() - 1)
        mass = sum(a ** abs(x) for x in range(-2_000, 2_001))
        assert mechanism.min_entropy == pytest.approx(2 * math.log2(mass), rel=1e-9)


def test_a_discrete_number_is_cut_off_where_hardly_any_noise_comes():
    mechanism = mechanism_for("discrete_laplace", 1.0, 2, 2)
    assert math.exp(-mechanism.rate / RATE_UNIT * mechanism.bound) <= 2.0**-64
    reports = np.array(
        [[mechanism.bound + 1, 0, 0, -mechanism.bound], [mechanism.bound + 2, 0, 0, 0]], np.int32
    )
    assert mechanism.is_valid(reports).tolist() == [True, False]
    with pytest.raises(DataError, match="another protocol"):
        mechanism.aggregate(reports)


def test_the_papers_noise_is_the_papers():
    """LPCT: 32 / eps^2 a number, 40 / eps^2 for a margin; the joint report has 1.8 at epsilon 1."""
    laplace, discrete, oue = (
        mechanism_for(name, 1.0, 128, 2) for name in ("laplace", "discrete_laplace", "oue")
    )
    assert laplace.noise_variances == pytest.approx(32)
    assert laplace.margin_variance_per_holder() == pytest.approx(40)
    assert discrete.margin_variance_per_holder() == pytest.approx(40, rel=0.01)
    assert oue.margin_variance_per_holder() == pytest.approx(1.84, rel=0.01)


@pytest.mark.parametrize("name", NUMBER_MECHANISMS)
def test_a_label_apart_has_noise_and_chance_of_its_own(name):
    mechanism = number_mechanism_for(name, 1.0, 3, rho=0.5)
    # a share of one half of epsilon 1 on a range one wide: scale 2
    assert mechanism.describe().label_noise_sd == pytest.approx(2 * math.sqrt(2), rel=1e-3)
    parts = 0.0 if name == "laplace" else mechanism.bits.min_entropy
    assert mechanism.min_entropy >= parts
    assert (mechanism.min_entropy > parts) == (name != "laplace")
