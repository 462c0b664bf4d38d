"""The automatic depth, and how few public rows a cell may have: known from sizes and epsilon alone."""

import pytest

from ldptree.errors import ConfigError
from ldptree.inference.depth import FEW_PUBLIC_ROWS, MAX_DEPTH, automatic_depth, default_min_samples_leaf
from ldptree.mechanisms import CHOICES


def test_the_synthetic_pair_gets_the_depths_that_are_best_in_hindsight():
    assert [automatic_depth(2, 10_000, epsilon, 2) for epsilon in (0.5, 1, 2, 4, 8)] == [3, 4, 4, 6, 8]


def test_more_holders_or_more_epsilon_never_make_the_tree_shallower():
    by_holders = [automatic_depth(10, 10**e, 1.0, 2) for e in range(9)]
    by_epsilon = [automatic_depth(10, 10_000, epsilon, 2) for epsilon in (0.1, 0.5, 1, 2, 4, 8, 16)]
    assert by_holders == sorted(by_holders)
    assert by_epsilon == sorted(by_epsilon)


def test_there_is_at_least_one_split_and_never_more_cells_than_a_report_can_name():
    assert automatic_depth(1, 1, 0.01, 2) == 1
    assert automatic_depth(100, 10**12, 1e9, 2) == MAX_DEPTH


@pytest.mark.parametrize("mechanism", CHOICES)
def test_auto_is_no_shallower_than_a_given_mechanism_by_more_than_one(mechanism):
    for epsilon in (0.5, 2.0, 6.0):
        given = automatic_depth(20, 50_000, epsilon, 2, mechanism)
        assert automatic_depth(20, 50_000, epsilon, 2) >= given - 1


def test_sizes_that_make_no_sense_are_refused():
    for arguments in ((0, 10, 1.0, 2), (2, 0, 1.0, 2), (2, 10, 1.0, 1), (2, 10, -1.0, 2)):
        with pytest.raises(ConfigError):
            automatic_depth(*arguments)


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
