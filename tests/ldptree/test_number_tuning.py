"""Depth and levels where the label is a number: known from sizes, epsilon and public labels alone."""

import numpy as np
import pytest

from ldptree.errors import ConfigError
from ldptree.mechanisms import CHOICES, MECHANISMS, number_mechanism_for
from ldptree.number_range import levels
from ldptree.tuning import DEPTH_OF_PUBLIC_ROWS, MAX_DEPTH, NUMBER_LEVELS, number_depth, number_levels


def test_more_holders_or_more_epsilon_never_make_the_tree_shallower():
    by_holders = [number_depth(10, 10**e, 1.0) for e in range(9)]
    by_epsilon = [number_depth(10, 10_000, epsilon) for epsilon in (0.1, 0.5, 1, 2, 4, 8, 16)]
    assert by_holders == sorted(by_holders)
    assert by_epsilon == sorted(by_epsilon)
    assert number_depth(1, 1, 0.01) == 1
    assert number_depth(100, 10**12, 60.0) == MAX_DEPTH


def test_public_rows_carry_a_depth_of_their_own():
    assert number_depth(5, 10, 0.1, n_public=40, min_samples_leaf=5) == 3
    assert number_depth(5, 10, 0.1, n_public=39, min_samples_leaf=5) == 2
    assert number_depth(5, 10, 0.1, n_public=10**9) == DEPTH_OF_PUBLIC_ROWS


def test_labels_that_fill_little_of_their_range_leave_more_noise_and_a_shallower_tree():
    found = [number_depth(8, 10_000, 4.0, label_sd=sd) for sd in (0.01, 0.05, 0.2, 0.5)]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_sizes_that_make_no_sense_are_refused():
    for arguments in ((0, 10, 1.0), (2, 0, 1.0), (2, 10, -1.0)):
        with pytest.raises(ConfigError):
            number_depth(*arguments)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_as_many_levels_are_taken_as_have_the_least_variance(choice, epsilon):
    """Of the noise, and of what rounding adds, of a cell's sum of labels about their mean."""
    y = np.clip(np.random.default_rng(0).normal(3.0, 1.0, 200), 0.0, 10.0)
    found = number_levels(choice, epsilon, 8, y, (0.0, 10.0))
    if choice in MECHANISMS:
        assert found == 2
        return

    def variance(n_levels):
        mechanism = number_mechanism_for(choice, epsilon, 8, n_levels)
        at = np.array(levels(0.0, 10.0, n_levels))
        place = y / 10.0 * (n_levels - 1)
        below = np.minimum(place.astype(int), n_levels - 2)
        shares = np.bincount(below, 1 - place + below, n_levels) + np.bincount(
            below + 1, place - below, n_levels
        )
        counts = np.append(np.tile(shares / y.size / 8, 8), 0.0)
        form = np.append(np.append(at - y.mean(), np.zeros(7 * n_levels)), 0.0)
        own = (shares / y.size / 8) @ (at - y.mean()) ** 2
        return mechanism.linear_variance(form, counts) + own

    assert found in NUMBER_LEVELS
    assert variance(found) <= min(map(variance, NUMBER_LEVELS)) * (1 + 1e-6)


def test_more_epsilon_takes_more_levels_and_no_public_labels_are_as_good_as_even_ones():
    found = [number_levels("auto", epsilon, 4, np.zeros(0), (0.0, 1.0)) for epsilon in (0.1, 4.0, 12.0)]
    assert found == sorted(found)
    assert found[0] <= 3 < found[-1]
    even = number_levels("auto", 4.0, 4, np.linspace(0.0, 1.0, 101), (0.0, 1.0))
    assert even == found[1]
