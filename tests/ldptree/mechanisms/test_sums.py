"""Sums that somebody states are taken where so many people can have given them, and nowhere else."""

import itertools

import numpy as np
import pytest
from seeded_words import words
from test_mechanisms import ENUMERABLE, made

from ldptree.mechanisms.oracles import ORACLES
from ldptree.mechanisms.randomized_response import NumberResponse


def sums_of_two(mechanism, reports):
    """What any two of these reports add up to."""
    each = {tuple(mechanism.aggregate(report[None]).tolist()) for report in reports}
    return {tuple(map(sum, zip(*pair, strict=True))) for pair in itertools.product(each, each)}


@pytest.mark.parametrize("name", ENUMERABLE)
def test_sums_are_of_two_people_where_two_reports_have_them_and_nowhere_else(name):
    """Every pair of reports, against every few whole numbers; of olh as many reports as name every set of values."""
    mechanism = made(name, 0.5, 4 if name in ORACLES else 2)
    if name == "olh":
        reports = mechanism.randomize(np.zeros(500, dtype=np.int64), words(8))
    else:
        packed = np.stack([np.frombuffer(output, dtype=np.uint8) for output in mechanism.law(0)])
        reports = mechanism.unpack(packed)
    numbers = itertools.product(range(-1, 4), repeat=mechanism.raw_size)
    given = {raw for raw in numbers if mechanism.can_be_sum(np.array(raw), 2)}
    assert given == sums_of_two(mechanism, reports)


def test_sums_of_bits_and_numbers_are_refused_where_two_people_cannot_have_them_of_a_bit():
    """Labels are -1 .. 2 in steps here; a bit, the labels with it and all labels are what two of sixteen reports have."""
    bits = ORACLES["sue"].for_values(1.0, 2)
    mechanism = NumberResponse(1, 2, bits, 1, 2**40)
    assert mechanism.bound == 1
    sent = itertools.product(range(-1, 3), range(4))
    reports = np.array([[*np.array([label], "<i4").view(np.uint8), bit] for label, bit in sent], np.uint8)
    possible = sums_of_two(mechanism, reports)
    of_bit = [{(raw[at], raw[2 + at], raw[4]) for raw in possible} for at in range(2)]
    for raw in itertools.product(range(-1, 4), range(-1, 4), *[range(-3, 6)] * 3):
        is_possible = all((raw[at], raw[2 + at], raw[4]) in of_bit[at] for at in range(2))
        assert mechanism.can_be_sum(np.array(raw), 2) == is_possible
        assert is_possible or raw not in possible
    assert not mechanism.can_be_sum(np.array([0, 0, 0, 0, 2**62]), 2**40)


# as bytes, as integers, as facts
