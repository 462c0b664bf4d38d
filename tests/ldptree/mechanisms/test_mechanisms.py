"""Every mechanism on a cell and a label: its epsilon is never exceeded, its totals are unbiased, its variance is exact."""

import json
import math
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
from scipy.stats import chi2, ks_2samp

from ldptree.coins import RATE_UNIT, Words
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

NAMES = CHOICES[1:]
NOT_JOINT = [name for name, of in MECHANISMS.items() if not of.is_joint]
CLASSES = [(name, C) for name in NAMES for C in (2, 3) if name != "signed_subset" or C == 2]
EPSILONS = [0.01, 0.5, 1.0, 2.0, 4.0, 8.0]


def words(*key):
    return Words.seeded(np.random.SeedSequence([20261121, *key]))


def most_classes(name):
    return max(C for known, C in CLASSES if known == name)


def skewed(mechanism, n, seed=0):
    """Counts of n holders: half of the values nobody's, one with a third of everybody, some outside."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(mechanism.k, 0.5)) * (rng.random(mechanism.k) < 0.5)
    shares[rng.integers(mechanism.k)] += 0.5
    return rng.multinomial(n, shares / shares.sum())


def totals_of_collections(mechanism, counts, n_collections):
    """[n_collections, K] the totals of so many collections from the same holders, unbiased."""
    values = np.tile(np.repeat(np.arange(mechanism.k), counts), n_collections)
    parts = np.split(mechanism.randomize(values, words(0)), n_collections)
    return np.stack([mechanism.unbias(mechanism.aggregate(part), int(counts.sum())) for part in parts])


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1 / 3, 1.0, math.pi, 8.0, 20.0])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_stated_never_exceeds_the_claim_and_nearly_spends_it(name, epsilon):
    stated = mechanism_for(name, epsilon, 3, 2).epsilon
    assert epsilon * (1 - 1e-6) <= stated <= epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_output_of_randomized_response_exceeds_its_epsilon(epsilon):
    """Every output, every pair of values, in rational numbers."""
    mechanism = mechanism_for("randomized_response", epsilon, 2, 2)
    laws = [mechanism.law(value) for value in range(mechanism.k)]
    assert all(sum(one.values()) == 1 for one in laws)
    worst = max(a[output] / b[output] for a in laws for b in laws for output in a)
    assert math.log(worst) <= mechanism.epsilon <= epsilon


def test_randomized_response_is_drawn_with_the_stated_probabilities():
    """Each output's frequency in 60,000 reports against its law: z below 5.5 (false alarm 4e-8 each)."""
    mechanism, n = mechanism_for("randomized_response", 2.0, 2, 2), 60_000
    for value in range(mechanism.k):
        reports = mechanism.pack(mechanism.randomize(np.full(n, value), words(value)))
        seen = Counter(reports.view(f"V{reports.shape[1]}").ravel().tolist())
        law = mechanism.law(value)
        assert seen.keys() <= law.keys()
        for output, chance in law.items():
            p = float(chance)
            assert abs(seen[output] - n * p) <= 5.5 * math.sqrt(n * p * (1 - p)) + 5


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_density_of_added_noise_exceeds_its_epsilon(n_classes, epsilon):
    """A number's likelihoods under indicators 0 and 1 differ by at most e^(eps/4), and at most four indicators differ."""
    for name in ("laplace", "discrete_laplace"):
        mechanism = mechanism_for(name, epsilon, 3, n_classes)
        truths = mechanism.indicators(np.arange(mechanism.k))
        furthest = max(np.abs(a - b).sum() for a in truths for b in truths)
        assert furthest == 4
        rate = 1 / mechanism.scale if name == "laplace" else mechanism.rate / 2**32
        assert furthest * rate <= epsilon


def test_discrete_noise_has_its_law():
    """Chi-square of 200,000 draws over 25 values; false alarm 1e-6."""
    for epsilon in (1.0, 6.0):
        mechanism = mechanism_for("discrete_laplace", epsilon, 1, 2)
        noise = mechanism.draw_noise(200_000, words(5))
        a = math.exp(-epsilon / 4)
        values = np.arange(-12, 13)
        chance = (1 - a) / (1 + a) * a ** np.abs(values)
        seen = np.array([(noise == v).sum() for v in values])
        expected = noise.size * np.append(chance, 1 - chance.sum())
        found = np.append(seen, noise.size - seen.sum())
        keep = expected > 5
        statistic = ((found - expected)[keep] ** 2 / expected[keep]).sum()
        assert statistic < chi2.isf(1e-6, keep.sum() - 1)


def test_a_discrete_number_is_cut_off_where_hardly_any_noise_comes():
    mechanism = mechanism_for("discrete_laplace", 1.0, 2, 2)
    assert math.exp(-mechanism.rate / 2**32 * mechanism.bound) <= 2.0**-64
    reports = np.array(
        [[mechanism.bound + 1, 0, 0, -mechanism.bound], [mechanism.bound + 2, 0, 0, 0]], np.int32
    )
    assert mechanism.is_valid(reports).tolist() == [True, False]
    with pytest.raises(DataError, match="another protocol"):
        mechanism.aggregate(reports)


@pytest.mark.parametrize(("name", "n_classes"), [case for case in CLASSES if case[0] in NOT_JOINT])
def test_totals_are_unbiased_and_their_variance_is_the_stated_one(name, n_classes):
    """Three linear forms of 400 collections of 300 holders: means z < 5, variances within 5 standard errors."""
    mechanism = mechanism_for(name, 2.0, 3, n_classes)
    counts = skewed(mechanism, 300, seed=n_classes)
    rng = np.random.default_rng(9)
    forms = rng.normal(size=(mechanism.k, 3))
    found = totals_of_collections(mechanism, counts, 400) @ forms
    variance = mechanism.linear_variance(forms, counts)
    assert (np.abs(found.mean(axis=0) - counts @ forms) < 5 * np.sqrt(variance / 400)).all()
    assert (np.abs(found.var(axis=0, ddof=1) / variance - 1) < 5 * np.sqrt(2.5 / 400)).all()
    for j in range(3):
        assert mechanism.linear_variance(forms[:, j], counts) == pytest.approx(variance[j])


@pytest.mark.parametrize(("name", "n_classes"), CLASSES)
def test_the_variance_of_a_group_of_cells_is_that_of_its_linear_form(name, n_classes):
    mechanism = mechanism_for(name, 1.5, 4, n_classes)
    counts = skewed(mechanism, 5000, seed=3).astype(float)
    inside = counts[:-1].reshape(4, n_classes)
    class_weights = np.random.default_rng(1).normal(size=n_classes)
    groups = [[0], [1, 2], [0, 1, 2, 3]]
    found = mechanism.cell_variance(
        class_weights, [len(g) for g in groups], np.stack([inside[g].sum(axis=0) for g in groups]), counts
    )
    for group, variance in zip(groups, found, strict=True):
        weights = np.zeros((4, n_classes))
        weights[group] = class_weights
        assert variance == pytest.approx(mechanism.linear_variance(np.append(weights.ravel(), 0), counts))


@pytest.mark.parametrize("n_cells", [1, 8, 2048])
@pytest.mark.parametrize("name", NOT_JOINT)
def test_exact_totals_have_the_law_of_summed_reports(name, n_cells):
    """Kolmogorov-Smirnov of a linear form and of one total, 150 against 150 draws; false alarm 1e-5 each."""
    mechanism = mechanism_for(name, 1.0, n_cells, 2)
    n = 200 if n_cells < 1000 else 20
    counts = skewed(mechanism, n, seed=n_cells)
    draws = 150 if n_cells < 1000 else 40
    forms = np.random.default_rng(2).normal(size=(mechanism.k, 2))
    forms[:, 1] = np.arange(mechanism.k) == counts.argmax()
    generator = np.random.default_rng(77)
    ours = [mechanism.unbias(mechanism.sample_totals(counts, generator), n) @ forms for _ in range(draws)]
    theirs = totals_of_collections(mechanism, counts, draws) @ forms
    for a, b in zip(np.transpose(ours), np.transpose(theirs), strict=True):
        assert ks_2samp(a, b).pvalue > 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_sums_of_shards_are_sums_and_can_come_from_as_many_holders(name):
    mechanism = mechanism_for(name, 1.0, 5, most_classes(name))
    values = np.arange(600) % mechanism.k
    reports = mechanism.randomize(values, words(1))
    raw = mechanism.aggregate(reports)
    assert raw.shape == (mechanism.raw_size,)
    np.testing.assert_allclose(mechanism.aggregate(reports[:99]) + mechanism.aggregate(reports[99:]), raw)
    assert mechanism.can_be_sum(raw, 600)
    assert mechanism.can_be_sum(mechanism.sample_totals(np.bincount(values), np.random.default_rng(0)), 600)
    assert not mechanism.can_be_sum(raw[:-1], 600)
    assert name == "laplace" or not mechanism.can_be_sum(raw, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_report_survives_its_bytes_and_every_honest_one_is_valid(name):
    mechanism = mechanism_for(name, 1.0, 5, most_classes(name))
    reports = mechanism.randomize(np.arange(500) % mechanism.k, words(2))
    packed = mechanism.pack(reports)
    assert (packed.dtype, packed.shape) == (np.uint8, (500, mechanism.report_bytes))
    np.testing.assert_array_equal(mechanism.unpack(packed), reports)
    assert mechanism.is_valid(reports).all()
    with pytest.raises(DataError, match="uint8"):
        mechanism.unpack(packed[:, :-1])


@pytest.mark.parametrize("name", NAMES)
def test_the_integers_give_back_the_same_mechanism(name):
    C = most_classes(name)
    mechanism = mechanism_for(name, 1.0, 5, C)
    of = type(mechanism)
    assert of.from_thresholds(5, C, mechanism.thresholds) == mechanism
    with pytest.raises(ConfigError):
        of.from_thresholds(5, C, mechanism.thresholds | {"more": 1})


@pytest.mark.parametrize("name", NAMES)
def test_one_dishonest_report_moves_a_total_by_what_is_stated(name):
    """The largest and the smallest contribution of any valid report to any total, searched for, differ by no more."""
    mechanism = mechanism_for(name, 2.0, 3, 2)
    one = mechanism.poisoning_bound(1000).one
    assert mechanism.poisoning_bound(1000).one_percent == pytest.approx(10 * one) or math.isinf(one)
    reports = mechanism.randomize(np.arange(20_000) % mechanism.k, words(4))
    each = np.array([mechanism.unbias(mechanism.aggregate(r[None]), 1)[:-1] for r in reports[:4000]])
    assert (np.ptp(each, axis=0) <= one * (1 + 1e-12)).all()
    if name == "discrete_laplace":
        B = mechanism.bound
        far = np.array([[B + 1] * 3 + [-B] * 3, [-B] * 3 + [B + 1] * 3], np.int32)
        each = np.array([mechanism.unbias(mechanism.aggregate(r[None]), 1)[:-1] for r in far])
    if name != "laplace":
        assert np.ptp(each, axis=0).max() == pytest.approx(one)


def test_the_papers_noise_is_the_papers():
    """LPCT: 32 / eps^2 a number, 40 / eps^2 for a margin; the joint report has 1.8 at epsilon 1."""
    laplace = mechanism_for("laplace", 1.0, 128, 2)
    assert laplace.noise_variance == pytest.approx(32)
    assert laplace.margin_variance_per_holder() == pytest.approx(40)
    assert mechanism_for("discrete_laplace", 1.0, 128, 2).margin_variance_per_holder() == pytest.approx(
        40, rel=0.01
    )
    assert mechanism_for("oue", 1.0, 128, 2).margin_variance_per_holder() == pytest.approx(1.84, rel=0.01)


def test_values_out_of_range_and_unknown_names_are_refused():
    for name in NAMES:
        with pytest.raises(DataError, match=r"0 \.\. 6"):
            mechanism_for(name, 1.0, 3, 2).randomize(np.array([7]), words(0))
        with pytest.raises(ConfigError, match="epsilon"):
            mechanism_for(name, math.nan, 3, 2)
    with pytest.raises(ConfigError, match="known are auto, grr"):
        mechanism_for("gauss", 1.0, 3, 2)
    with pytest.raises(ConfigError, match="at least 1 and 2"):
        mechanism_for("oue", 1.0, 3, 1)
    with pytest.raises(DataError):
        report_values([3], [0], n_cells=3, n_classes=2)


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


def margin_noise(name, epsilon):
    return mechanism_for(name, epsilon, 8, 2).margin_variance_per_holder()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_margin_variance_has_its_closed_forms(epsilon):
    e = math.exp(epsilon)
    assert margin_noise("oue", epsilon) == pytest.approx(2 * e / (e - 1) ** 2)
    q, gap = 1 / (e + 16), (e - 1) / (e + 16)
    assert margin_noise("grr", epsilon) == pytest.approx(q / (2 * gap**2))


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
    assert json.loads(json.dumps(asdict(told))) == asdict(told)


@pytest.mark.parametrize("name", NUMBER_MECHANISMS)
def test_a_label_apart_has_noise_of_its_own(name):
    told = number_mechanism_for(name, 1.0, 3, rho=0.5).describe()
    # a share of one half of epsilon 1 on a range one wide: scale 2
    assert told.label_noise_sd == pytest.approx(2 * math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("laplace", "discrete_laplace")])
def test_no_report_is_likelier_than_its_mechanism_says_and_one_is_as_likely(name, epsilon):
    mechanism = mechanism_for(name, epsilon, 3, 2)
    likeliest = max(max(mechanism.law(value).values()) for value in range(mechanism.k))
    of_hash = 3 * math.log2(PRIME) if name == "olh" else 0.0  # its law is of one hash
    assert mechanism.min_entropy == pytest.approx(of_hash - math.log2(likeliest), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_of_noise_on_whole_numbers_zero_is_the_likeliest(epsilon):
    mechanism = mechanism_for("discrete_laplace", epsilon, 3, 2)
    a = math.exp(-mechanism.rate / RATE_UNIT)
    mass = sum(a ** abs(x) for x in range(-2_000, 2_001))
    assert mechanism.min_entropy == pytest.approx(6 * math.log2(mass), rel=1e-9)


@pytest.mark.parametrize("name", ["laplace", "randomized_response"])
def test_a_number_has_the_chance_of_its_parts(name):
    mechanism = number_mechanism_for(name, 1.0, 3)
    parts = 0.0 if name == "laplace" else mechanism.bits.min_entropy
    assert mechanism.min_entropy >= parts
    assert (mechanism.min_entropy > parts) == (name != "laplace")
