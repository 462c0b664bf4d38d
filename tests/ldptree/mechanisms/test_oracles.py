"""What every frequency oracle promises beyond a mechanism: what a report supports, textbook probabilities, forged reports."""

import math

import numpy as np
import pytest
from seeded_words import words

from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.oracles import ORACLES

NAMES = list(ORACLES)


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


@pytest.mark.parametrize("k", [2, 9, 64, 300])
@pytest.mark.parametrize("name", NAMES)
def test_aggregate_counts_what_reports_support(name, k):
    oracle = ORACLES[name].for_values(1.0, k)
    for n in (1, 254, 255, 256, 1020, 1021, 3000):
        reports = oracle.randomize(np.arange(n) % k, words(n, k))
        np.testing.assert_array_equal(oracle.aggregate(reports), oracle.supports(reports).sum(axis=0))


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
    for epsilon in (0.01, 0.5, 1.0, 2.0, 4.0, 8.0):
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
    if name != "olh":  # whose reports fit any alphabet
        with pytest.raises(DataError):
            oracle.aggregate(ORACLES[name].for_values(1.0, 500).randomize(np.full(50, 400), words(1)))


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
