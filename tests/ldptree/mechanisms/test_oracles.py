"""Every oracle: its epsilon is never exceeded, its totals are unbiased, its variance is exact."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from ldptree.coins import WORD, Words, log_up
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.oracles import ORACLES

EPSILONS = [0.01, 0.5, 1.0, 2.0, 4.0, 8.0]
NAMES = list(ORACLES)
# a report of olh names its hash, of which there are 2^93: its law is stated for a given one
ENUMERABLE = [name for name in NAMES if name != "olh"]


def words(*key):
    return Words.seeded(np.random.SeedSequence([20260101, *key]))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("name", NAMES)
def test_no_report_exceeds_its_epsilon(name, k, epsilon):
    """Every output, every pair of values, in rational numbers."""
    oracle = ORACLES[name].for_values(epsilon, k)
    laws = [oracle.law(value) for value in range(k)]
    assert all(sum(one.values()) == 1 for one in laws)
    worst = max(a[output] / b[output] for a in laws for b in laws for output in a)
    assert math.log(worst) <= epsilon * (1 + 1e-9)
    # what the oracle states is the smallest float not below the truth, and not above the claim
    assert oracle.epsilon == log_up(worst)
    assert oracle.epsilon <= epsilon
    assert oracle.epsilon == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("hashed", [(0, 0, 7), (0, 1, 0), (1, 2, 3), (2**31 - 2, 2**30, 5), (12_345, 0, 1)])
def test_no_hash_makes_a_report_exceed_its_epsilon(hashed):
    for epsilon in (0.01, 1.0, 4.0):
        oracle = ORACLES["olh"].for_values(epsilon, 6)
        laws = [oracle.law(value, *hashed) for value in range(6)]
        assert all(sum(one.values()) == 1 for one in laws)
        assert log_up(max(a[output] / b[output] for a in laws for b in laws for output in a)) <= epsilon


@pytest.mark.parametrize("name", NAMES)
def test_the_stated_epsilon_never_exceeds_any_claim(name):
    rng = np.random.default_rng(7)
    claims = [*np.exp(rng.uniform(-6, 3, 200)).tolist(), 0.1, 0.3, 1 / 3, math.pi, 20.0, 44.0, 60.0, 1e9]
    for epsilon in claims:
        assert ORACLES[name].for_values(epsilon, int(rng.integers(2, 5000))).epsilon <= epsilon


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
@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("name", ENUMERABLE)
def test_reports_are_drawn_with_the_stated_probabilities(name, k, epsilon):
    """Each output's frequency in 60,000 reports against its law: z below 5.5 (false alarm 4e-8 each)."""
    oracle = ORACLES[name].for_values(epsilon, k)
    n = 60_000
    for value in range(k):
        reports = oracle.randomize(np.full(n, value), words(k, value))
        packed = oracle.pack(reports)
        seen = Counter(packed.view(f"V{packed.shape[1]}").ravel().tolist())
        law = oracle.law(value)
        assert seen.keys() <= law.keys()
        for output, chance in law.items():
            p = float(chance)
            assert abs(seen[output] - n * p) <= 5.5 * math.sqrt(n * p * (1 - p)) + 5


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_hash_is_uniform_and_knows_nothing_of_the_value(epsilon):
    """a, b and c of 100,000 reports: high and low digits, chi-square over 16 bins below 71 (15 degrees, false alarm
    3e-9 each); then the three-wise independence that the variance rests on: z below 5.5 for triples of supports."""
    oracle = ORACLES["olh"].for_values(epsilon, 9)
    n = 100_000
    values = np.arange(n) % 3
    reports = oracle.randomize(values, words(17))
    for column in reports[:, :3].T.astype(np.int64):
        for bins in (column * 16 // (2**31 - 1), column % 16, (column + values * 5) % 16):
            assert ((np.bincount(bins, minlength=16) - n / 16) ** 2 / (n / 16)).sum() < 71
    supported = oracle.supports(reports)
    own = supported[np.arange(n), values]
    assert abs(own.sum() - n * oracle.p) < 5.5 * math.sqrt(n * oracle.p * (1 - oracle.p))
    for chance, both in (
        (oracle.p * oracle.q, own & supported[:, 5]),
        (oracle.q**2, supported[:, 4] & supported[:, 8]),
        (oracle.p * oracle.q**2, own & supported[:, 3] & supported[:, 7]),
    ):
        assert abs(both.sum() - n * chance) < 5.5 * math.sqrt(n * chance * (1 - chance))


@pytest.mark.parametrize("k", [63, 64, 65, 200, 513])
def test_every_bit_of_a_wide_report_has_its_own_probability(k):
    """z below 5.5 for each of k bits of 40,000 reports (false alarm 4e-8 each); past k all are zero."""
    oracle = ORACLES["oue"].for_values(1.0, k)
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
    oracle = ORACLES[name].for_values(2.0, 9)
    values = np.arange(30_000) % 9
    counts = oracle.unbias(oracle.aggregate(oracle.randomize(values, Words.system())), values.size)
    spread = math.sqrt(oracle.linear_variance(np.eye(9)[0], np.bincount(values)))
    assert (np.abs(counts - np.bincount(values)) < 8 * spread).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_reports_in_one_call_or_none(name):
    oracle = ORACLES[name].for_values(1.0, 100)
    values = np.arange(3000) % 100
    np.testing.assert_array_equal(oracle.randomize(values, words(1)), oracle.randomize(values, words(1)))
    assert oracle.randomize(values[:0], words(1)).shape[0] == 0
    assert oracle.aggregate(oracle.randomize(values[:0], words(1))).tolist() == [0] * 100


@pytest.mark.parametrize("k", [2, 9, 64, 300])
@pytest.mark.parametrize("name", NAMES)
def test_aggregate_counts_what_reports_support(name, k):
    oracle = ORACLES[name].for_values(1.0, k)
    for n in (1, 254, 255, 256, 1020, 1021, 3000):
        reports = oracle.randomize(np.arange(n) % k, words(n, k))
        np.testing.assert_array_equal(oracle.aggregate(reports), oracle.supports(reports).sum(axis=0))
    halves = oracle.aggregate(reports[:1700]) + oracle.aggregate(reports[1700:])
    np.testing.assert_array_equal(halves, oracle.aggregate(reports))


def patterns(oracle, value):
    """(chance, the values supported) of every report, as floats."""
    if oracle.name == "olh":  # up to three values are hashed to buckets independently, by their masses
        masses = np.diff(oracle._edges.astype(np.float64)) / (2**31 - 1)
        lie = oracle.lie / WORD
        for hashed in itertools.product(range(oracle.buckets), repeat=oracle.k):
            for told in range(oracle.buckets):
                chance = (1 - lie) * (told == hashed[value]) + lie / oracle.buckets
                yield chance * np.prod(masses[list(hashed)]), np.array(hashed) == told
        return
    law = oracle.law(value)
    reports = oracle.unpack(np.stack([np.frombuffer(output, dtype=np.uint8) for output in law]))
    yield from zip(map(float, law.values()), oracle.supports(reports), strict=True)


@pytest.mark.parametrize(
    ("name", "k", "epsilons"),
    [(name, k, (0.3, 1.0, 5.0)) for name in ENUMERABLE for k in (2, 3, 5, 6)]
    + [("olh", 2, (0.3, 1.0, 3.0)), ("olh", 3, (0.3, 1.0, 2.0))],
)
def test_linear_variance_is_that_of_the_exact_law(name, k, epsilons):
    """Against the enumerated law of one report, for random weights and counts (covariances included)."""
    rng = np.random.default_rng(k)
    for epsilon in epsilons:
        oracle = ORACLES[name].for_values(epsilon, k)
        weights, counts = rng.normal(size=k), rng.integers(0, 50, k)
        expected = 0.0
        for value in range(k):
            outcomes = [
                (chance, float(is_supported @ weights)) for chance, is_supported in patterns(oracle, value)
            ]
            assert sum(p for p, _ in outcomes) == pytest.approx(1, rel=1e-12)
            mean = sum(p * x for p, x in outcomes)
            expected += counts[value] * sum(p * (x - mean) ** 2 for p, x in outcomes) / oracle.gap**2
        assert oracle.linear_variance(weights, counts) == pytest.approx(expected, rel=1e-9)
        both = oracle.linear_variance(np.stack([weights, 2 * weights], axis=1), counts)
        assert both == pytest.approx([expected, 4 * expected], rel=1e-9)


def test_grr_totals_always_sum_to_the_number_of_reports():
    oracle = ORACLES["grr"].for_values(1.0, 7)
    assert oracle.linear_variance(np.ones(7), np.full(7, 10.0)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("k", [2, 16, 256])
@pytest.mark.parametrize("name", NAMES)
def test_totals_are_unbiased_with_the_stated_variance(name, k):
    """300 runs of 500 holders: mean within 5 standard errors (false alarm 6e-7 a comparison), variance within
    45 % (5 standard errors of a sample variance of 300)."""
    oracle = ORACLES[name].for_values(1.5, k)
    rng = np.random.default_rng(k)
    values = np.minimum(rng.geometric(0.3, 500) - 1, k - 1)
    counts = np.bincount(values, minlength=k)
    forms = np.stack([np.eye(k)[0], np.eye(k)[0] - np.eye(k)[1], np.arange(k) % 2 - 0.5], axis=1)
    source = words(k)
    draws = np.stack(
        [oracle.unbias(oracle.aggregate(oracle.randomize(values, source)), 500) @ forms for _ in range(300)]
    )
    variance = oracle.linear_variance(forms, counts)
    assert (np.abs(draws.mean(axis=0) - counts @ forms) < 5 * np.sqrt(variance / 300)).all()
    assert (np.abs(draws.var(axis=0, ddof=1) / variance - 1) < 0.45).all()


@pytest.mark.parametrize(("k", "n_draws"), [(2, 600), (16, 2000), (4096, 300)])
@pytest.mark.parametrize("name", NAMES)
def test_sampled_totals_have_the_law_of_aggregated_reports(name, k, n_draws):
    """Skewed counts, most of them zero. Two-sample Kolmogorov-Smirnov of six linear forms of the totals, each at a false
    alarm of 1e-7 (less: the totals are whole numbers); and the covariances between values agree."""
    oracle = ORACLES[name].for_values(1.0, k)
    values = np.repeat([0, 1, k // 2, k - 1], [7, 2, 1, 0])
    counts = np.bincount(values, minlength=k)
    reports = oracle.randomize(np.tile(values, n_draws), words(9, k))
    drawn = np.stack([oracle.aggregate(part) for part in np.split(reports, n_draws)])
    generator = words(9, k).generator()
    sampled = np.stack([oracle.sample_totals(counts, generator) for _ in range(n_draws)])
    units = np.eye(k)[[0, 1, k // 2, k - 1]]
    forms = np.stack([*units, units[0] - units[1], counts == 0]).T
    bound = math.sqrt(math.log(2 / 1e-7) / 2) * math.sqrt(2 / n_draws)
    for a, b in zip((drawn @ forms).T, (sampled @ forms).T, strict=True):
        at = np.union1d(a, b)
        ours, theirs = (np.searchsorted(np.sort(x), at, side="right") / n_draws for x in (a, b))
        assert np.abs(ours - theirs).max() < bound
    if k <= 16:
        scale = np.sqrt(np.outer(drawn.var(axis=0), drawn.var(axis=0)))
        assert (np.abs(np.cov(drawn.T) - np.cov(sampled.T)) < 0.2 * scale).all()


@pytest.mark.parametrize("name", NAMES)
def test_one_dishonest_report_shifts_no_total_further_than_stated(name):
    oracle = ORACLES[name].for_values(1.0, 6)
    influence = oracle.poisoning_bound(1000)
    honest = oracle.randomize(np.zeros(1000, dtype=np.int64), words(4))
    worst = honest[:1].copy()
    worst[:] = {"oue": 63, "sue": 63, "olh": 0}.get(name, 3)
    forged = np.concatenate([worst, honest[1:]])
    shift = np.abs(
        oracle.unbias(oracle.aggregate(forged), 1000) - oracle.unbias(oracle.aggregate(honest), 1000)
    )
    assert shift.max() == pytest.approx(influence.one)
    assert (shift > 0).sum() <= influence.totals_at_once
    assert influence.one_percent == pytest.approx(10 * influence.one)
    assert oracle.poisoning_bound(1001).one_percent == pytest.approx(11 * influence.one)


@pytest.mark.parametrize("name", NAMES)
def test_an_oracle_is_made_again_from_its_integers(name):
    oracle = ORACLES[name].for_values(0.7, 33)
    again = ORACLES[name].from_thresholds(32, 1, oracle.thresholds)
    assert again == oracle
    assert again.epsilon == oracle.epsilon
    with pytest.raises(ConfigError, match="exactly the integers"):
        ORACLES[name].from_thresholds(32, 1, {})
    with pytest.raises(ConfigError):
        ORACLES[name].from_thresholds(32, 1, dict.fromkeys(oracle.thresholds, WORD))


@pytest.mark.parametrize("name", NAMES)
def test_a_budget_or_alphabet_that_makes_no_sense_is_refused(name):
    for epsilon in (0.0, -1.0, math.nan, math.inf, 1e-25):
        with pytest.raises(ConfigError):
            ORACLES[name].for_values(epsilon, 4)
    for k in (0, 1, 2**40):
        with pytest.raises(ConfigError):
            ORACLES[name].for_values(1.0, k)


@pytest.mark.parametrize("name", NAMES)
def test_values_and_reports_of_another_alphabet_are_refused(name):
    oracle = ORACLES[name].for_values(1.0, 9)
    for values in ([9], [-1], [[1]]):
        with pytest.raises(DataError):
            oracle.randomize(np.array(values), words(1))
    if name != "olh":  # whose reports fit any alphabet
        with pytest.raises(DataError):
            oracle.aggregate(ORACLES[name].for_values(1.0, 500).randomize(np.full(50, 400), words(1)))
    with pytest.raises(DataError):
        oracle.aggregate(np.zeros((3, 2)))


def test_the_stated_probabilities_are_the_textbook_ones():
    grr, oue = (ORACLES[name].for_values(1.0, 10) for name in ("grr", "oue"))
    assert grr.p == pytest.approx(math.e / (math.e + 9))
    assert grr.q == pytest.approx(1 / (math.e + 9))
    assert (oue.p, oue.q) == (0.5, pytest.approx(1 / (math.e + 1)))
    sue, ss = (ORACLES[name].for_values(1.0, 10) for name in ("sue", "ss"))
    assert sue.p == pytest.approx(math.exp(0.5) / (math.exp(0.5) + 1))
    assert sue.q == pytest.approx(1 - sue.p)
    assert ss.p == pytest.approx(3 * math.e / (3 * math.e + 7))  # sets of 3 values: 10 / (e + 1) is 2.7
    assert {ORACLES["olh"].for_values(1.0, k).report_bytes for k in (2, 10, 100_000)} == {16}
    assert oue.linear_variance([1] + [0] * 9, [0] * 9 + [1]) == pytest.approx(4 * math.e / (math.e - 1) ** 2)


@pytest.mark.parametrize("k", [2, 3, 16, 256, 4096])
def test_subset_selection_is_never_noisier_than_grr_and_oue(k):
    for epsilon in EPSILONS:
        noise = {name: ORACLES[name].for_values(epsilon, k).mean_variance() for name in ("ss", "grr", "oue")}
        assert noise["ss"] <= min(noise["grr"], noise["oue"]) * (1 + 1e-9)


# reports over 10 values at epsilon 1 that no honest holder could have sent
FORGED = {
    "grr": [10, 2**32 - 1],
    "oue": [[1, 4], [0, 255]],
    "sue": [[1, 4], [0, 255]],
    "ss": [[1, 0], [63, 0], [0, 0], [1, 12], [0, 7]],
    "olh": [[2**31 - 1, 0, 0, 0], [0, 2**31 - 1, 0, 0], [0, 0, 2**32 - 1, 0], [0, 0, 0, 4]],
}
HONEST = {
    "grr": [0, 9],
    "oue": [[0, 0], [255, 3]],
    "sue": [[0, 0], [255, 3]],
    "ss": [[7, 0], [1, 3]],
    "olh": [[0, 0, 0, 0], [2**31 - 2, 2**31 - 2, 2**31 - 2, 3]],
}


@pytest.mark.parametrize("name", NAMES)
def test_a_report_that_no_honest_holder_could_send_is_told_and_refused(name):
    oracle = ORACLES[name].for_values(1.0, 10)
    honest, forged = (np.array(x[name], dtype=oracle.dtype) for x in (HONEST, FORGED))
    assert oracle.is_valid(np.concatenate([honest, forged])).tolist() == [True] * 2 + [False] * len(forged)
    assert oracle.aggregate(honest).sum() == oracle.supports(honest).sum()
    for one in forged:
        with pytest.raises(DataError, match=r"report 3 of 3 .* cannot come from an honest holder"):
            oracle.aggregate(np.concatenate([honest, one[None]]))
    assert oracle.is_valid(oracle.randomize(np.arange(1000) % 10, words(5))).all()
    with pytest.raises(DataError, match="reports are"):
        oracle.is_valid(honest.astype(np.float64))


@pytest.mark.parametrize("k", [2, 8, 9, 300])
@pytest.mark.parametrize("name", NAMES)
def test_packed_reports_are_unpacked_as_they_were(name, k):
    oracle = ORACLES[name].for_values(1.0, k)
    for n in (0, 1, 50):
        reports = oracle.randomize(np.arange(n) % k, words(6))
        packed = oracle.pack(reports)
        assert (packed.dtype, packed.shape) == (np.uint8, (n, oracle.report_bytes))
        again = oracle.unpack(packed)
        assert again.dtype == reports.dtype
        np.testing.assert_array_equal(again, reports)
        np.testing.assert_array_equal(oracle.unpack(np.asfortranarray(packed)), reports)
    for wrong in (packed[:, :-1], packed[0], packed.astype(np.int64)):
        with pytest.raises(DataError, match="packed reports are"):
            oracle.unpack(wrong)


def test_packed_numbers_are_little_endian():
    grr, olh = (ORACLES[name].for_values(1.0, 500) for name in ("grr", "olh"))
    assert grr.pack(np.array([258], dtype=np.uint32)).tolist() == [[2, 1, 0, 0]]
    assert olh.pack(np.array([[1, 2, 3, 258]], dtype=np.uint32)).tolist() == [
        [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2, 1, 0, 0]
    ]


def test_local_hashing_has_a_bounded_number_of_buckets_and_is_as_noisy_as_oue():
    for epsilon, buckets in ((0.01, 2), (1.0, 4), (4.0, 56), (10.0, 22_027), (20.0, 2**15)):
        oracle = ORACLES["olh"].for_values(epsilon, 1000)
        assert oracle.thresholds["buckets"] == buckets
        assert oracle.epsilon == pytest.approx(epsilon, rel=1e-9)
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        olh, oue = (ORACLES[name].for_values(epsilon, 1000).mean_variance() for name in ("olh", "oue"))
        assert olh == pytest.approx(oue, rel=0.05)
    with pytest.raises(ConfigError, match="buckets"):
        ORACLES["olh"].from_thresholds(8, 1, {"buckets": 2**15 + 1, "lie": 5})
    with pytest.raises(ConfigError, match="at most"):
        ORACLES["olh"].for_values(1.0, 2**31)


@pytest.mark.parametrize("name", NAMES)
def test_an_oracle_describes_how_often_values_are_supported(name):
    """20,000 reports against p and q: z below 5.5."""
    oracle, n = ORACLES[name].for_values(1.0, 7), 20_000
    told = oracle.describe()
    reports = oracle.randomize(np.zeros(n, dtype=np.int64), words(5))
    own, other = oracle.supports(reports).mean(axis=0)[:2]
    for seen, chance in ((own, told.p), (other, told.q)):
        assert abs(seen - chance) < 5.5 * math.sqrt(chance * (1 - chance) / n)
    assert (told.oracle, told.n_values, told.report_bytes) == (name, 7, oracle.pack(reports[:1]).size)
