"""How much chance a report holds at least: what a mechanism says against its law, report by report."""

import math

import pytest

from ldptree.coins import RATE_UNIT
from ldptree.mechanisms import mechanism_for, number_mechanism_for
from ldptree.mechanisms.oracles.local_hash import PRIME


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("name", ["grr", "oue", "sue", "ss", "olh", "randomized_response", "signed_subset"])
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
