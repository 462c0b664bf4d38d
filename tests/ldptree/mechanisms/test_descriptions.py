"""Every mechanism describes itself by the integers in use."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from ldptree.coins import Words
from ldptree.mechanisms import CHOICES, NUMBER_MECHANISMS, mechanism_for, number_mechanism_for
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.mechanisms.oracles import ORACLES


@pytest.mark.parametrize("name", ORACLES)
def test_an_oracle_describes_how_often_values_are_supported(name):
    """20,000 reports against p and q: z below 5.5."""
    oracle, n = ORACLES[name].for_values(1.0, 7), 20_000
    told = oracle.describe()
    reports = oracle.randomize(np.zeros(n, dtype=np.int64), Words.seeded(np.random.SeedSequence(5)))
    own, other = oracle.supports(reports).mean(axis=0)[:2]
    for seen, chance in ((own, told.p), (other, told.q)):
        assert abs(seen - chance) < 5.5 * math.sqrt(chance * (1 - chance) / n)
    assert (told.oracle, told.n_values, told.report_bytes) == (name, 7, oracle.pack(reports[:1]).size)


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


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_mechanism_describes_one_report(name):
    mechanism = NUMBERS[name].for_budget(1.0)
    told = mechanism.describe()
    assert (told.name, told.epsilon) == (name, mechanism.epsilon)
    assert told.report_bytes == mechanism.dtype.itemsize
    assert (told.form == "numbers") == mechanism.is_simulation_device
