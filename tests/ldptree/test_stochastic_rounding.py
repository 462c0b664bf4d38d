"""A label that is a number: its levels, and how it is rounded to one of them."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare
from seeded_words import words

from ldptree.errors import ConfigError
from ldptree.protocol.stochastic_rounding import expected_shares, label_levels, round_at_random


@pytest.mark.parametrize("n_levels", [2, 3, 7, 257])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.7, 12.1), (1e-9, 1.1e-9), (-1e200, 1e200)])
def test_levels_are_evenly_spaced_and_begin_and_end_with_the_range(ends, n_levels):
    found = label_levels(*ends, n_levels)
    assert (len(found), found[0], found[-1]) == (n_levels, *ends)
    assert {type(level) for level in found} == {float}
    np.testing.assert_allclose(np.diff(found), (ends[1] - ends[0]) / (n_levels - 1), rtol=1e-6)


@pytest.mark.parametrize(
    "ends", [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf), (-math.inf, 0.0), (-1.7e308, 1.7e308)]
)
def test_a_range_that_is_none_is_refused(ends):
    with pytest.raises(ConfigError, match="label range"):
        label_levels(*ends, 3)


@pytest.mark.parametrize("n_levels", [2, 5, 257])
def test_a_rounded_label_has_the_labels_mean_exactly(n_levels):
    """Nine labels, 40,000 times each: z below 5 (false alarm 5e-6 in all)."""
    low, high, n = -2.0, 7.0, 40_000
    step = (high - low) / (n_levels - 1)
    for number, y in enumerate(np.linspace(low, high, 9)):
        found = low + step * round_at_random(np.full(n, y), low, high, n_levels, words(n_levels, number))
        assert np.abs(found - y).max() < step
        place = (y - low) / step % 1
        assert abs(found.mean() - y) <= 5 * step * math.sqrt(place * (1 - place) / n) + 1e-9


def test_a_label_that_is_a_level_is_that_level():
    found = round_at_random(np.array(label_levels(-4.0, 4.0, 9)), -4.0, 4.0, 9, words(1))
    assert found.tolist() == list(range(9))


def test_labels_out_of_range_are_moved_to_its_ends_and_missing_ones_are_none():
    labels = np.array([-99.0, -math.inf, 99.0, math.inf, 1.79e308, math.nan])
    assert round_at_random(labels, -1.0, 1.0, 5, words(2)).tolist() == [0, 0, 4, 4, 4, -1]


def test_expected_shares_are_those_of_many_roundings():
    """Chi-square, false alarm 1e-6."""
    y = np.random.default_rng(3).normal(size=50)
    found = np.bincount(round_at_random(np.tile(y, 2000), -1.5, 2.5, 6, words(4)), minlength=6)
    shares = expected_shares(y, -1.5, 2.5, 6)
    assert shares.sum() == pytest.approx(1)
    # rounding one label many times varies less than drawing levels does, so the statistic is rather too small
    assert chisquare(found, shares * found.sum()).pvalue > 1e-6
