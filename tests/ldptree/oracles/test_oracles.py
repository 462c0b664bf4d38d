"""Every oracle: its epsilon is never exceeded, its totals are unbiased, its variance is exact."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ldptree.errors import ConfigError, DataError
from ldptree.oracles import ORACLES, Words
from ldptree.oracles.coins import WORD, log_up

EPSILONS = [0.01, 0.5, 1.0, 2.0, 4.0, 8.0]
NAMES = list(ORACLES)


def words(*key):
    return Words.seeded(np.random.SeedSequence([20260101, *key]))


def law(oracle, value) -> dict[tuple[int, ...], Fraction]:
    """P(support set | value) for every output, with the rational probabilities of the integers in use."""
    if oracle.name == "grr":
        lie = Fraction(oracle.thresholds["lie"], WORD)
        return {(r,): (1 - lie) * (r == value) + lie / oracle.k for r in range(oracle.k)}
    if oracle.name == "ss":
        own, size = Fraction(oracle.own, WORD), oracle.size
        n_with, n_without = math.comb(oracle.k - 1, size - 1), math.comb(oracle.k - 1, size)
        sets = itertools.combinations(range(oracle.k), size)
        return {s: own / n_with if value in s else (1 - own) / n_without for s in sets}
    own, other = (Fraction(oracle.thresholds[key], WORD) for key in ("own", "other"))
    outputs = {}
    for bits in itertools.product((0, 1), repeat=oracle.k):
        chance = Fraction(1)
        for j, bit in enumerate(bits):
            one = own if j == value else other
            chance *= one if bit else 1 - one
        outputs[tuple(np.flatnonzero(bits).tolist())] = chance
    return outputs


def supports(oracle, reports) -> np.ndarray:
    """bool [n, k]: which values each report supports."""
    if oracle.name == "grr":
        return reports[:, None] == np.arange(oracle.k)
    return np.unpackbits(reports, axis=1, bitorder="little")[:, : oracle.k].astype(bool)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("name", NAMES)
def test_no_report_exceeds_its_epsilon(name, k, epsilon):
    """Every output, every pair of values, in rational numbers."""
    oracle = ORACLES[name].for_budget(epsilon, k)
    laws = [law(oracle, value) for value in range(k)]
    assert all(sum(one.values()) == 1 for one in laws)
    worst = max(a[output] / b[output] for a in laws for b in laws for output in a)
    assert math.log(worst) <= epsilon * (1 + 1e-9)
    # what the oracle states is the smallest float not below the truth, and not above the claim
    assert oracle.epsilon == log_up(worst)
    assert oracle.epsilon <= epsilon
    assert oracle.epsilon == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_stated_epsilon_never_exceeds_any_claim(name):
    rng = np.random.default_rng(7)
    claims = [*np.exp(rng.uniform(-6, 3, 200)).tolist(), 0.1, 0.3, 1 / 3, math.pi, 20.0, 44.0, 60.0, 1e9]
    for epsilon in claims:
        assert ORACLES[name].for_budget(epsilon, int(rng.integers(2, 5000))).epsilon <= epsilon


def test_a_logarithm_is_rounded_up():
    assert log_up(Fraction(1)) == 0
    for ratio in (Fraction(2), Fraction(3, 2), Fraction(10**19, 7), Fraction(2**64 + 1, 2**64)):
        up = log_up(ratio)
        assert up == pytest.approx(math.log(ratio), rel=1e-9)
        # exp of the next float below is surely smaller than the ratio: checked with its Taylor polynomial
        below, term, total = Fraction(math.nextafter(up, 0)), Fraction(1), Fraction(1)
        for i in range(1, 200):
            term = term * below / i
            total += term
        assert total < ratio


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", NAMES)
def test_reports_are_drawn_with_the_stated_probabilities(name, k, epsilon):
    """Each output's frequency in 60,000 reports against its law: z below 5.5 (false alarm 4e-8 each)."""
    oracle = ORACLES[name].for_budget(epsilon, k)
    n = 60_000
    for value in range(k):
        reports = oracle.randomize(np.full(n, value), words(k, value))
        seen = np.bincount(supports(oracle, reports) @ 2 ** np.arange(k), minlength=2**k)
        for output, chance in law(oracle, value).items():
            p, count = float(chance), seen[sum(2**j for j in output)]
            assert abs(count - n * p) <= 5.5 * math.sqrt(n * p * (1 - p)) + 5


@pytest.mark.parametrize("k", [63, 64, 65, 200, 513])
def test_every_bit_of_a_wide_report_has_its_own_probability(k):
    """z below 5.5 for each of k bits of 40,000 reports (false alarm 4e-8 each); past k all are zero."""
    oracle = ORACLES["oue"].for_budget(1.0, k)
    values = np.arange(40_000) % k
    reports = oracle.randomize(values, words(k))
    bits = np.unpackbits(reports, axis=1, bitorder="little")
    assert not bits[:, k:].any()
    own = bits[np.arange(values.size), values].astype(np.int64)
    assert abs(own.sum() - 20_000) < 5.5 * 100
    others = bits[:, :k].sum(axis=0, dtype=np.int64) - np.bincount(values, weights=own, minlength=k)
    n = values.size - np.bincount(values, minlength=k)
    assert (np.abs(others - n * oracle.q) < 5.5 * np.sqrt(n * oracle.q * (1 - oracle.q))).all()
    # neighbours are independent: 10,000 pairs of bits agree as often as they should
    agree = (bits[:, 0:k:2][:, : k // 2] == bits[:, 1:k:2]).mean()
    assert agree == pytest.approx(oracle.q**2 + (1 - oracle.q) ** 2, abs=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_reports_come_from_the_operating_system_too(name):
    oracle = ORACLES[name].for_budget(2.0, 9)
    values = np.arange(30_000) % 9
    counts = oracle.unbias(oracle.aggregate(oracle.randomize(values, Words.system())), values.size)
    spread = math.sqrt(oracle.linear_variance(np.eye(9)[0], np.bincount(values), values.size))
    assert (np.abs(counts - np.bincount(values)) < 8 * spread).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_reports_in_one_call_or_none(name):
    oracle = ORACLES[name].for_budget(1.0, 100)
    values = np.arange(3000) % 100
    np.testing.assert_array_equal(oracle.randomize(values, words(1)), oracle.randomize(values, words(1)))
    assert oracle.randomize(values[:0], words(1)).shape[0] == 0
    assert oracle.aggregate(oracle.randomize(values[:0], words(1))).tolist() == [0] * 100


@pytest.mark.parametrize("k", [2, 9, 64, 300])
@pytest.mark.parametrize("name", NAMES)
def test_aggregate_counts_what_reports_support(name, k):
    oracle = ORACLES[name].for_budget(1.0, k)
    for n in (1, 254, 255, 256, 1020, 1021, 3000):
        reports = oracle.randomize(np.arange(n) % k, words(n, k))
        np.testing.assert_array_equal(oracle.aggregate(reports), supports(oracle, reports).sum(axis=0))
    halves = oracle.aggregate(reports[:1700]) + oracle.aggregate(reports[1700:])
    np.testing.assert_array_equal(halves, oracle.aggregate(reports))


@pytest.mark.parametrize("k", [2, 3, 5, 6])
@pytest.mark.parametrize("name", NAMES)
def test_linear_variance_is_that_of_the_exact_law(name, k):
    """Against the enumerated law of one report, for random weights and counts (covariances included)."""
    rng = np.random.default_rng(k)
    for epsilon in (0.3, 1.0, 5.0):
        oracle = ORACLES[name].for_budget(epsilon, k)
        weights, counts = rng.normal(size=k), rng.integers(0, 50, k)
        expected = 0.0
        for value in range(k):
            outcomes = [
                (float(chance), sum(weights[j] for j in output))
                for output, chance in law(oracle, value).items()
            ]
            mean = sum(p * x for p, x in outcomes)
            expected += counts[value] * sum(p * (x - mean) ** 2 for p, x in outcomes) / oracle.gap**2
        assert oracle.linear_variance(weights, counts, int(counts.sum())) == pytest.approx(expected, rel=1e-9)
        both = oracle.linear_variance(np.stack([weights, 2 * weights], axis=1), counts, int(counts.sum()))
        assert both == pytest.approx([expected, 4 * expected], rel=1e-9)


def test_grr_totals_always_sum_to_the_number_of_reports():
    oracle = ORACLES["grr"].for_budget(1.0, 7)
    assert oracle.linear_variance(np.ones(7), np.full(7, 10.0), 70) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("k", [2, 16, 256])
@pytest.mark.parametrize("name", NAMES)
def test_totals_are_unbiased_with_the_stated_variance(name, k):
    """300 runs of 500 holders: mean within 5 standard errors (false alarm 6e-7 a comparison), variance within
    45 % (5 standard errors of a sample variance of 300)."""
    oracle = ORACLES[name].for_budget(1.5, k)
    rng = np.random.default_rng(k)
    values = np.minimum(rng.geometric(0.3, 500) - 1, k - 1)
    counts = np.bincount(values, minlength=k)
    forms = np.stack([np.eye(k)[0], np.eye(k)[0] - np.eye(k)[1], np.arange(k) % 2 - 0.5], axis=1)
    source = words(k)
    draws = np.stack(
        [oracle.unbias(oracle.aggregate(oracle.randomize(values, source)), 500) @ forms for _ in range(300)]
    )
    variance = oracle.linear_variance(forms, counts, 500)
    assert (np.abs(draws.mean(axis=0) - counts @ forms) < 5 * np.sqrt(variance / 300)).all()
    assert (np.abs(draws.var(axis=0, ddof=1) / variance - 1) < 0.45).all()


@pytest.mark.parametrize("name", NAMES)
def test_sampled_totals_have_the_law_of_aggregated_reports(name):
    """Two samples of 4,000 draws, chi-square per value over 8 bins (7 degrees): below 45, false alarm 1.4e-7
    a value; and the covariance between values agrees."""
    oracle = ORACLES[name].for_budget(1.0, 4)
    values = np.repeat([0, 1, 2, 3], [25, 10, 5, 0])
    counts = np.bincount(values, minlength=4)
    reports = oracle.randomize(np.tile(values, 4000), words(9))
    drawn = supports(oracle, reports).reshape(4000, 40, 4).sum(axis=1)
    generator = words(9).generator()
    sampled = np.stack([oracle.sample_totals(counts, generator) for _ in range(4000)])
    for j in range(4):
        edges = np.unique(np.quantile(drawn[:, j], np.linspace(0, 1, 9)[1:-1]))
        a, b = (np.bincount(np.digitize(x[:, j], edges), minlength=edges.size + 1) for x in (drawn, sampled))
        assert ((a - b) ** 2 / (a + b)).sum() < 45
    scale = np.sqrt(np.outer(drawn.var(axis=0), drawn.var(axis=0)))
    assert (np.abs(np.cov(drawn.T) - np.cov(sampled.T)) < 0.15 * scale).all()


@pytest.mark.parametrize("name", NAMES)
def test_one_dishonest_report_shifts_no_total_further_than_stated(name):
    oracle = ORACLES[name].for_budget(1.0, 6)
    influence = oracle.influence(1000)
    honest = oracle.randomize(np.zeros(1000, dtype=np.int64), words(4))
    worst = honest[:1].copy()
    worst[:] = 63 if name in ("oue", "sue") else 3
    forged = np.concatenate([worst, honest[1:]])
    shift = np.abs(
        oracle.unbias(oracle.aggregate(forged), 1000) - oracle.unbias(oracle.aggregate(honest), 1000)
    )
    assert shift.max() == pytest.approx(influence.one)
    assert (shift > 0).sum() <= influence.totals_at_once
    assert influence.one_percent == pytest.approx(10 * influence.one)
    assert oracle.influence(1001).one_percent == pytest.approx(11 * influence.one)


@pytest.mark.parametrize("name", NAMES)
def test_an_oracle_is_made_again_from_its_integers(name):
    oracle = ORACLES[name].for_budget(0.7, 33)
    again = ORACLES[name].from_thresholds(33, oracle.thresholds)
    assert again == oracle
    assert again.epsilon == oracle.epsilon
    with pytest.raises(ConfigError, match="exactly the integers"):
        ORACLES[name].from_thresholds(33, {})
    with pytest.raises(ConfigError):
        ORACLES[name].from_thresholds(33, dict.fromkeys(oracle.thresholds, WORD))


@pytest.mark.parametrize("name", NAMES)
def test_a_budget_or_alphabet_that_makes_no_sense_is_refused(name):
    for epsilon in (0.0, -1.0, math.nan, math.inf, 1e-25):
        with pytest.raises(ConfigError):
            ORACLES[name].for_budget(epsilon, 4)
    for k in (0, 1, 2**40):
        with pytest.raises(ConfigError):
            ORACLES[name].for_budget(1.0, k)


@pytest.mark.parametrize("name", NAMES)
def test_values_and_reports_of_another_alphabet_are_refused(name):
    oracle = ORACLES[name].for_budget(1.0, 9)
    for values in ([9], [-1], [[1]]):
        with pytest.raises(DataError):
            oracle.randomize(np.array(values), words(1))
    with pytest.raises(DataError):
        oracle.aggregate(ORACLES[name].for_budget(1.0, 500).randomize(np.full(50, 400), words(1)))
    with pytest.raises(DataError):
        oracle.aggregate(np.zeros((3, 2)))


def test_the_stated_probabilities_are_the_textbook_ones():
    grr, oue = (ORACLES[name].for_budget(1.0, 10) for name in ("grr", "oue"))
    assert grr.p == pytest.approx(math.e / (math.e + 9))
    assert grr.q == pytest.approx(1 / (math.e + 9))
    assert (oue.p, oue.q) == (0.5, pytest.approx(1 / (math.e + 1)))
    assert oue.linear_variance([1] + [0] * 9, [0] * 9 + [1], 1) == pytest.approx(
        4 * math.e / (math.e - 1) ** 2
    )


@pytest.mark.parametrize("k", [2, 3, 16, 256, 4096])
def test_subset_selection_is_never_noisier_than_grr_and_oue(k):
    for epsilon in EPSILONS:
        noise = {name: ORACLES[name].for_budget(epsilon, k).mean_variance() for name in ("ss", "grr", "oue")}
        assert noise["ss"] <= min(noise["grr"], noise["oue"]) * (1 + 1e-9)


def test_a_set_of_another_size_and_a_bit_past_the_alphabet_are_refused():
    oracle = ORACLES["ss"].for_budget(1.0, 10)
    reports = oracle.randomize(np.arange(10), words(5))
    for forged in (0b1, 0b111111):
        reports[3, 0], reports[3, 1] = forged, 0
        with pytest.raises(DataError, match="no set of 3 values"):
            oracle.aggregate(reports)
    for name in ("oue", "ss"):
        with pytest.raises(DataError, match="past its 10 values"):
            ORACLES[name].for_budget(1.0, 10).aggregate(np.array([[1, 128]], dtype=np.uint8))
