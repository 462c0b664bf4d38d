"""Published numbers do not show which processor made them."""

import numpy as np

from ldptree.rounding import BITS, round_digits


def test_a_rounded_number_is_near_and_does_not_show_the_last_digits():
    """Of 10,000 numbers, all but the few on an edge (chance 2 ** -20 each) hide a difference of two units in the last place."""
    values = np.random.default_rng(1).standard_normal(10_000) * np.geomspace(1e-30, 1e30, 10_000)
    off = values + 2 * np.spacing(values)
    rounded = round_digits(values)
    assert (np.abs(rounded - values) <= np.abs(values) * 2.0**-BITS).all()
    assert (round_digits(off) != rounded).sum() <= 1
    assert (round_digits(rounded) == rounded).all()


def test_what_is_no_number_or_none_at_all_stays():
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 0.5])
    assert np.array_equal(round_digits(values), values, equal_nan=True)
    assert round_digits(2.0).shape == ()
