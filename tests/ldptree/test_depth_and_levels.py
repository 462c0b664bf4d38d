"""What is chosen before any report: the depth, how few public rows a cell may have, and the levels of a number."""

from __future__ import annotations

import numpy as np
import pytest

from ldptree.errors import ConfigError
from ldptree.inference.depth import (
    DEPTH_OF_PUBLIC_ROWS,
    FEW_PUBLIC_ROWS,
    MAX_DEPTH,
    MOST_NOISE_OF_ALL,
    NUMBER_LEVELS,
    NumberDepths,
    automatic_depth,
    default_min_samples_leaf,
    number_depths,
    number_levels,
)
from ldptree.mechanisms import CHOICES, MECHANISMS, number_mechanism_for
from ldptree.protocol.stochastic_rounding import label_levels


def test_the_synthetic_pair_gets_the_depths_that_are_best_in_hindsight():
    assert [automatic_depth(2, 10_000, epsilon, 2) for epsilon in (0.5, 1, 2, 4, 8)] == [3, 4, 4, 6, 8]


def depth_of_number(*arguments, **settings):
    return number_depths(*arguments, **settings).asked


DEPTHS = [
    lambda *sizes: automatic_depth(*sizes, 2),
    depth_of_number,
    lambda *sizes: depth_of_number(*sizes, n_public=500, min_samples_leaf=5),
]


@pytest.mark.parametrize("depth", DEPTHS, ids=["classes", "a number", "a number, public rows"])
def test_more_holders_or_more_epsilon_never_make_the_tree_shallower_within_one_split_and_what_a_report_can_name(
    depth,
):
    by_holders = [depth(10, 10**e, 1.0) for e in range(9)]
    by_epsilon = [depth(10, 10_000, epsilon) for epsilon in (0.1, 0.5, 1, 2, 4, 8, 16)]
    for found in (by_holders, by_epsilon):
        assert found == sorted(found)
        assert found[0] < found[-1]
    assert depth(1, 1, 0.01) == 1 or depth is DEPTHS[2]
    assert depth(100, 10**12, 1e9 if depth is DEPTHS[0] else 60.0) == MAX_DEPTH
    for sizes in ((0, 10, 1.0), (2, 0, 1.0), (2, 10, -1.0)):
        with pytest.raises(ConfigError):
            depth(*sizes)


@pytest.mark.parametrize("mechanism", CHOICES)
def test_auto_is_no_shallower_than_a_given_mechanism_by_more_than_one(mechanism):
    for epsilon in (0.5, 2.0, 6.0):
        given = automatic_depth(20, 50_000, epsilon, 2, mechanism)
        assert automatic_depth(20, 50_000, epsilon, 2) >= given - 1


@pytest.mark.parametrize(
    ("learned", "n_public", "settings", "fewest"),
    [
        ("classes", FEW_PUBLIC_ROWS, {}, 3),
        ("classes", FEW_PUBLIC_ROWS - 1, {}, 1),
        ("classes", 1000, {"partition": "max-edge"}, 1),
        ("classes", 1000, {"is_paper": True}, 1),
        ("numbers", FEW_PUBLIC_ROWS - 1, {}, 5),
        ("numbers", 1000, {"partition": "random-edge"}, 5),
        ("errors", 1, {}, 5),
        ("classes", 1, {"wanted": 7}, 7),
        ("numbers", 1000, {"wanted": 1}, 1),
        ("errors", 0, {"wanted": 7}, 1),
        ("numbers", 0, {}, 1),
    ],
)
def test_how_few_public_rows_a_cell_may_have(learned, n_public, settings, fewest):
    assert default_min_samples_leaf(learned, n_public, **settings) == fewest


def test_one_class_is_none():
    with pytest.raises(ConfigError):
        automatic_depth(2, 10, 1.0, 1)


# of a number


def test_public_rows_carry_a_depth_of_their_own_below_what_is_asked_about():
    for n_public, whole in ((40, 3), (39, 2), (10**9, DEPTH_OF_PUBLIC_ROWS)):
        found = number_depths(5, 10, 0.1, n_public=n_public, min_samples_leaf=5)
        assert found == NumberDepths(asked=1, whole=whole)


def test_where_edges_are_cut_one_tree_serves_both():
    found = number_depths(5, 10, 0.1, n_public=40, min_samples_leaf=5, partition="max-edge")
    assert found == NumberDepths(asked=3, whole=3)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("n_private", [1_000, 12_000, 100_000])
def test_no_more_cells_are_asked_about_than_leave_the_mean_of_all_reports_quiet(n_private, epsilon):
    sd = 0.13
    depth = depth_of_number(4, n_private, epsilon, n_public=1500, min_samples_leaf=5, label_sd=sd)
    mechanism = number_mechanism_for("auto", epsilon, 2**depth)
    noise = (2**depth * mechanism.margin_variance_per_holder() / n_private) ** 0.5 / (2 * sd)
    assert depth == 1 or noise <= MOST_NOISE_OF_ALL


def test_labels_that_fill_little_of_their_range_leave_more_noise_and_a_shallower_tree():
    found = [depth_of_number(8, 10_000, 4.0, label_sd=sd) for sd in (0.01, 0.05, 0.2, 0.5)]
    assert found == sorted(found)
    assert found[0] < found[-1]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_as_many_levels_are_taken_as_have_the_least_variance(choice, epsilon):
    """Of the noise, and of what rounding adds, of a cell's sum of labels about their mean."""
    y = np.clip(np.random.default_rng(0).normal(3.0, 1.0, 200), 0.0, 10.0)
    found = number_levels(choice, epsilon, 8, y, (0.0, 10.0))
    if choice in MECHANISMS and not MECHANISMS[choice].is_joint:
        assert found == 2
        return

    def variance(n_levels):
        mechanism = number_mechanism_for(choice, epsilon, 8, n_levels)
        at = np.array(label_levels(0.0, 10.0, n_levels))
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
